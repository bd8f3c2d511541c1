// What a backend is: an allocator, host copies, and an overload set `run(op, in, out)`.
#pragma once

#include "ferrite/op.hpp"
#include "ferrite/ops/primitives.hpp"

namespace ferrite {

/// The backend has its own kernel for Op.
template <class B, class Op>
concept Runs = requires(B& b, const Op& op, Ins in, Outs out) {
  b.run(op, in, out);
};

/// ... and that kernel can add to what the outputs already hold.
template <class B, class Op>
concept RunsAccumulating = requires(B& b, const Op& op, Ins in, Outs out, Accumulate mask) {
  b.run(op, in, out, mask);
};

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
/// Any backend or op: what an argument is converted to if no `accepts` names its type.
struct Anything {
  template <class T>
  constexpr Anything(const T&) {}  // NOLINT(google-explicit-constructor)
};
}  // namespace detail

/// Run-time side of Runs: a backend may take an op for some dtypes or attributes only. What it refuses is
/// composed. It says so by a free function of its own namespace (a friend, for instance),
///
///   bool accepts(const MyBackend&, const Op&, MetaSpan in);
///
/// which argument-dependent lookup finds. Those of a backend hold for the classes derived from it, whatever
/// they declare. A kernel for which there is none takes everything.
inline bool accepts(detail::Anything, detail::Anything, MetaSpan) { return true; }

namespace detail {
/// What everyone asks who is about to call `run`.
template <class B, class Op>
bool kernel_accepts(const B& b, const Op& op, MetaSpan in) {
  static_assert(
      !requires { b.accepts(op, in); },
      "accepts is a free function: write `friend bool accepts(const MyBackend&, const MyOp&, MetaSpan)`, "
      "a member would hide those of a base class");
  return accepts(b, op, in);
}
}  // namespace detail

}  // namespace ferrite
