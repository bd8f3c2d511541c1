// What a backend does with every op of the list, with the op types erased. The library compiles one table for
// each of its backend stacks. `evaluate` goes through it, so a program that uses such a stack compiles none
// of its ops. AnyBackend, Parity, replay and `ferrite ops` use the same entries.
#pragma once

#include <array>

#include "ferrite/backend/compiled.hpp"
#include "ferrite/backend/concept.hpp"

namespace ferrite {

template <class B>
using Primitives = SmallVector<typename B::Primitive, 2>;

/// A backend that runs kernels on arrays, as opposed to a decorator with its own primitive.
template <class B>
concept RunsKernels = std::same_as<typename B::Primitive, Array>;

/// One op on one backend. `op` is a pointer to an op of the type that the entry is for.
template <class B>
struct OpEntry {
  Primitives<B> (*evaluate)(B&, const void* op, Refs<typename B::Primitive> in);
  /// Null if the backend has no kernel, or none that adds.
  void (*run)(B&, const void* op, Ins in, Outs out) = nullptr;
  void (*run_adding)(B&, const void* op, Ins in, Outs out, Accumulate mask) = nullptr;
  bool (*accepts)(const B&, const void* op, MetaSpan in) = nullptr;
  bool (*adds)(const B&, const void* op, MetaSpan in) = nullptr;
  /// Null on a backend with its own primitive.
  void (*evaluate_in_place)(B&, const void* op, Ins in, Outs out) = nullptr;
  bool composes = false;  // the op can be made of others
};

template <class B>
using OpTable = std::array<OpEntry<B>, op::Core::size>;

/// For a stack that the library compiles: defined in src/stacks/.
template <CompiledStack B>
FERRITE_API const OpTable<B>& op_table();

/// Its entry for Op is in that table.
template <class B, class Op>
concept InTable = CompiledStack<B> && op::Core::contains<Op>;

namespace detail {

/// Runs a kernel that the backend has.
template <class B, class Op>
void run_kernel(B& b, const Op& op, Ins in, Outs out) {
  if constexpr (InTable<B, Op>)
    op_table<B>()[op::Core::index_of<Op>()].run(b, &op, in, out);
  else
    call_kernel(b, op, in, out);
}
template <class B, class Op>
void run_kernel(B& b, const Op& op, Ins in, Outs out, Accumulate mask) {
  if constexpr (InTable<B, Op>)
    op_table<B>()[op::Core::index_of<Op>()].run_adding(b, &op, in, out, mask);
  else
    call_kernel(b, op, in, out, mask);
}

}  // namespace detail
}  // namespace ferrite
