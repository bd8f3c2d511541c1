// The backend stacks that the library compiles. To add one, add a line here and a file in src/stacks/. Other
// stacks work too: their ops are compiled where they are used.
#pragma once

#include "ferrite/ops/list.hpp"

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

template <class... Stacks>
struct StackList {
  template <class B>
  static constexpr bool contains = (... || std::same_as<B, Stacks>);
};

// clang-format off
using CompiledStacks = StackList<
    Reference,
    ErrorModel,
    Cpu,
    Profiled<Cpu>,
    CpuParity,
    Lazy<Cpu>,
    LazyParity,
    Cuda,
    Profiled<Cuda>,
    CudaParity,
    Lazy<Cuda>,
    CudaLazyParity,
    Autodiff<Reference>,
    Autodiff<Cpu>,
    Autodiff<Cuda>,
    Autodiff<AnyBackend>>;
// clang-format on

template <class B>
concept CompiledStack = CompiledStacks::contains<B>;

}  // namespace ferrite
