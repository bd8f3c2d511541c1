// A backend is an allocator, host copies, and kernels. Kernels are free functions
//
//   void run(MyBackend&, const Op&, Ins in, Outs out);                    writes the outputs
//   void run(MyBackend&, const Op&, Ins in, Outs out, Accumulate mask);   or adds to what they hold
//   bool accepts(const MyBackend&, const Op&, MetaSpan in);               which calls the kernel takes
//
// that argument-dependent lookup finds. They are declared only in the header of the backend or of the op, so
// that everyone who sees both sees the kernel. Anyone may add a kernel for their own op to a backend of the
// library. A derived class inherits the kernels of its base.
#pragma once

#include "ferrite/ops/op.hpp"
#include "ferrite/ops/primitives.hpp"

namespace ferrite {

namespace detail {
void run() = delete;  // hides functions of ordinary lookup: kernels are found only by their arguments

template <class B, class Op>
concept HasKernel = requires(B& b, const Op& op, Ins in, Outs out) {
  run(b, op, in, out);
};
template <class B, class Op>
concept HasAddingKernel = requires(B& b, const Op& op, Ins in, Outs out, Accumulate mask) {
  run(b, op, in, out, mask);
};
/// The call itself, for places where a member called `run` hides the free function.
template <class B, class Op, class... Mask>
void call_kernel(B& b, const Op& op, Ins in, Outs out, Mask... mask) {
  run(b, op, in, out, mask...);
}
}  // namespace detail

/// The backend has its own kernel for Op.
template <class B, class Op>
concept Runs = detail::HasKernel<B, Op>;

/// ... and that kernel can add to what the outputs already hold.
template <class B, class Op>
concept RunsAccumulating = detail::HasAddingKernel<B, Op>;

/// Memory and transfers. copy_from_host and copy_to_host move dense row-major bytes; the array is contiguous.
template <class B>
concept HasMemory = requires(B& b, const Meta& meta, const Array& array, const void* source, void* target) {
  { b.allocate(meta) } -> std::same_as<Array>;
  b.copy_from_host(array, source);
  b.copy_to_host(array, target);
  b.synchronize();
  { b.device() } -> std::same_as<Device>;
  { b.memory_stats() } -> std::same_as<MemoryStats>;
  { b.describe() } -> std::convertible_to<std::string>;
};

// One named concept per required primitive, so that the compiler's first line names what is missing.
template <class B>
concept RunsFill = Runs<B, op::Fill>;
template <class B>
concept RunsIota = Runs<B, op::Iota>;
template <class B>
concept RunsRandom = Runs<B, op::Random>;
template <class B>
concept RunsCopy = Runs<B, op::Copy>;
template <class B>
concept RunsUnary = Runs<B, op::Unary>;
template <class B>
concept RunsBinary = Runs<B, op::Binary>;
template <class B>
concept RunsWhere = Runs<B, op::Where>;
template <class B>
concept RunsReduce = Runs<B, op::Reduce>;
template <class B>
concept RunsArgReduce = Runs<B, op::ArgReduce>;
template <class B>
concept RunsScan = Runs<B, op::Scan>;
template <class B>
concept RunsMatmul = Runs<B, op::Matmul>;
template <class B>
concept RunsGather = Runs<B, op::Gather>;
template <class B>
concept RunsScatter = Runs<B, op::Scatter>;
template <class B>
concept RunsScatterAdd = Runs<B, op::ScatterAdd>;

template <class B>
concept Backend = HasMemory<B> && RunsFill<B> && RunsIota<B> && RunsRandom<B> && RunsCopy<B> &&
    RunsUnary<B> && RunsBinary<B> && RunsWhere<B> && RunsReduce<B> && RunsArgReduce<B> && RunsScan<B> &&
    RunsMatmul<B> && RunsGather<B> && RunsScatter<B> && RunsScatterAdd<B>;

/// One static_assert per primitive: put `static_assert(check_backend<MyBackend>())` beside a new backend and
/// the first error line names the op that is missing.
template <class B>
consteval bool check_backend() {
  static_assert(HasMemory<B>,
                "backend lacks memory: allocate, copy_from_host, copy_to_host, synchronize, device, "
                "memory_stats, describe");
  static_assert(RunsFill<B>, "backend lacks run(op::Fill)");
  static_assert(RunsIota<B>, "backend lacks run(op::Iota)");
  static_assert(RunsRandom<B>, "backend lacks run(op::Random)");
  static_assert(RunsCopy<B>, "backend lacks run(op::Copy)");
  static_assert(RunsUnary<B>, "backend lacks run(op::Unary)");
  static_assert(RunsBinary<B>, "backend lacks run(op::Binary)");
  static_assert(RunsWhere<B>, "backend lacks run(op::Where)");
  static_assert(RunsReduce<B>, "backend lacks run(op::Reduce)");
  static_assert(RunsArgReduce<B>, "backend lacks run(op::ArgReduce)");
  static_assert(RunsScan<B>, "backend lacks run(op::Scan)");
  static_assert(RunsMatmul<B>, "backend lacks run(op::Matmul)");
  static_assert(RunsGather<B>, "backend lacks run(op::Gather)");
  static_assert(RunsScatter<B>, "backend lacks run(op::Scatter)");
  static_assert(RunsScatterAdd<B>, "backend lacks run(op::ScatterAdd)");
  return Backend<B>;
}

namespace detail {
/// Any backend or op. An argument converts to it if no `accepts` names its type.
struct Anything {
  template <class T>
  constexpr Anything(const T&) {}  // NOLINT(google-explicit-constructor)
};
}  // namespace detail

/// The run-time side of Runs: a backend may take an op only for some dtypes or attributes. Calls that it
/// refuses are composed. A kernel without an `accepts` takes every call.
inline bool accepts(detail::Anything, detail::Anything, MetaSpan) { return true; }

namespace detail {
/// Every caller of `run` asks this first.
template <class B, class Op>
bool kernel_accepts(const B& b, const Op& op, MetaSpan in) {
  static_assert(
      !requires { b.accepts(op, in); },
      "accepts is a free function: write `friend bool accepts(const MyBackend&, const MyOp&, MetaSpan)`, "
      "a member would hide those of a base class");
  return accepts(b, op, in);
}
/// True if a kernel would add to the outputs by itself; only for ops with RunsAccumulating.
template <class B, class Op>
bool kernel_adds(const B& b, const Op& op, MetaSpan in) {
  if constexpr (requires { b.adds(op, in); })  // a backend chosen at run time
    return b.adds(op, in);
  else
    return kernel_accepts(b, op, in);
}
}  // namespace detail

}  // namespace ferrite
