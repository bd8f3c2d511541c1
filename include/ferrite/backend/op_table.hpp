// What a backend does with every op of the list, with the op types erased. The library compiles one table for
// each of its backend stacks. `evaluate` goes through it, so a program that uses such a stack compiles none
// of its ops. AnyBackend, Parity, replay and `ferrite ops` use the same entries.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "ferrite/backend/compiled.hpp"
#include "ferrite/backend/concept.hpp"

namespace ferrite {

template <class B>
using Primitives = SmallVector<typename B::Primitive, 2>;

/// A backend that runs kernels on arrays, as opposed to a decorator with its own primitive.
template <class B>
concept RunsKernels = std::same_as<typename B::Primitive, Array>;

/// A backend's kernel for one op, and which calls it takes; null if it has none. `op` is a pointer to an op
/// of the type that the entry is for.
template <class B>
struct OpKernels {
  void (*run)(B&, const void* op, Ins in, Outs out) = nullptr;
  void (*run_adding)(B&, const void* op, Ins in, Outs out, Accumulate mask) = nullptr;
  bool (*accepts)(const B&, const void* op, MetaSpan in) = nullptr;
  bool (*adds)(const B&, const void* op, MetaSpan in) = nullptr;
};

/// One op on one backend. What an op has not, or the backend, is null.
template <class B>
struct OpEntry : OpKernels<B> {
  using Primitive = typename B::Primitive;

  Primitives<B> evaluate(B& b, const void* op, Refs<Primitive> in) const {
    return evaluate_by(*this, b, op, in);
  }
  /// Not for views, and not on a backend with its own primitive.
  void evaluate_in_place(B& b, const void* op, Ins in, Outs out) const {
    evaluate_in_place_by(*this, b, op, in, out);
  }
  /// The backend has a kernel, and it takes these inputs.
  bool runs(const B& b, const void* op, MetaSpan in) const { return this->run && this->accepts(b, op, in); }

  Primitives<B> (*evaluate_by)(const OpEntry&, B&, const void* op, Refs<Primitive> in) = nullptr;
  void (*evaluate_in_place_by)(const OpEntry&, B&, const void* op, Ins in, Outs out) = nullptr;
  Positions lowered;  // by Autocast
  std::string_view (*name)(const void* op) = nullptr;
  /// What the results will be. All errors in shapes, dtypes and attributes are found here.
  Metas (*infer)(const void* op, MetaSpan in) = nullptr;
  std::optional<Layout> (*view)(const void* op, const Layout& in) = nullptr;
  // The op made of others: new results, or results in existing arrays.
  Primitives<B> (*compose)(B&, const void* op, Refs<Primitive> in, MetaSpan metas,
                           MetaSpan results) = nullptr;
  void (*compose_into)(B&, const void* op, Ins in, MetaSpan metas, MetaSpan results, Outs out) = nullptr;
};

/// The entries of all ops of the library, each at its OpPlace.
template <class B>
using OpTable = std::span<const OpEntry<B>>;

/// For a stack that the library compiles: defined in src/stacks/.
template <CompiledStack B>
FERRITE_API OpTable<B> op_table();

/// Its entry for Op is in that table.
template <class B, class Op>
concept InTable = CompiledStack<B> && LibraryOp<Op>;

namespace detail {

/// Runs a kernel that the backend has.
template <class B, class Op>
void run_kernel(B& b, const Op& op, Ins in, Outs out) {
  if constexpr (InTable<B, Op>)
    op_table<B>()[OpPlace<Op>::value].run(b, &op, in, out);
  else
    call_kernel(b, op, in, out);
}
template <class B, class Op>
void run_kernel(B& b, const Op& op, Ins in, Outs out, Accumulate mask) {
  if constexpr (InTable<B, Op>)
    op_table<B>()[OpPlace<Op>::value].run_adding(b, &op, in, out, mask);
  else
    call_kernel(b, op, in, out, mask);
}

}  // namespace detail
}  // namespace ferrite
