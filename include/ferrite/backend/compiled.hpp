// The backend stacks that the library compiles. To add one, add a line here and a file in src/stacks/; if
// AnyBackend holds it, also add its name in src/stacks/any_backend.cpp. Other stacks work too: their ops are
// compiled where they are used.
#pragma once

#include "ferrite/ops/op_list.hpp"

namespace ferrite {

class Cpu;
class Cuda;
class ErrorModel;
class Reference;
class AnyBackend;
template <class B>
class Autodiff;
template <class B>
class Lazy;
template <class B, class Ref>
class Parity;
template <class B>
class Profiled;

using CpuParity = Parity<Cpu, Reference>;
/// The GPU against the CPU, op by op.
using CudaParity = Parity<Cuda, Cpu>;
/// Fused ops against the ops themselves.
using LazyParity = Parity<Lazy<Cpu>, Cpu>;
using CudaLazyParity = Parity<Lazy<Cuda>, Cuda>;

/// Backends, which need only be declared.
template <class... Stacks>
using StackList = OpList<Stacks...>;

// clang-format off
/// The stacks that AnyBackend makes by name.
using NamedStacks = StackList<
    Cpu,
    Cuda,
    Reference,
    Lazy<Cpu>,
    Lazy<Cuda>,
    Profiled<Cpu>,
    Profiled<Cuda>,
    CpuParity,
    CudaParity,
    LazyParity,
    CudaLazyParity>;
using NamelessStacks = StackList<
    ErrorModel,
    Autodiff<Reference>,
    Autodiff<Cpu>,
    Autodiff<Cuda>,
    Autodiff<AnyBackend>>;
// clang-format on

template <class B>
concept CompiledStack = NamedStacks::contains<B> || NamelessStacks::contains<B>;

}  // namespace ferrite
