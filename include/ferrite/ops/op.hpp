// An op is a plain struct of attributes with
//
//   static constexpr std::string_view type_name;        its name; a LibraryName if it is in op::Core
//   Metas infer(MetaSpan in) const;                      shape and dtype rule; throws if something is wrong
//   static void attributes(auto& self, auto&& visit);    visit("axis", self.axis) for each attribute
//
// and, where they make sense,
//
//   std::string_view name() const;                       the member of a family ("exp" of "unary")
//   std::optional<Layout> view(const Layout&) const;     a view: metadata only, no backend runs it
//   void assemble(B& b, Ins in, Outs out) const;         made of fills and copies into parts of the output
//   Tensors<B> compose(B& b, TensorSpan<B> in) const;    made of other ops; the oracle of a fused kernel.
//                                                        Floating inputs arrive in one dtype, f32 or f64,
//                                                        results are rounded once, to what infer says
//   static constexpr bool composes_as_given = true;      ... unless the parts only move elements, or
//                                                        compute wide: inputs arrive in their own dtypes
//   static constexpr bool takes_storage = true;          it only moves elements: i8, u16, u32 too
//   static constexpr std::size_t index_input = 1;        ... or only this input, an index, may have those
//   static constexpr std::size_t storage_input = 1;      ... or only this one, which it widens as it reads
//   void vjp(Vjp<B>& v) const;                           its gradient, written in ops
//   Saves saves() const;                                 ... and which inputs and outputs that reads
//   bool has_vjp(Positions needed) const;                ... unless one of these inputs needs it: then the op
//                                                        is composed
//   Op recorded() const;                                 for an op with one output: the form that runs if its
//                                                        gradient may be needed, with more outputs for vjp
//   Cost cost(MetaSpan in, MetaSpan out) const;          what it must compute and move
//   double reduction_length(MetaSpan in) const;          how many terms go into one output element
//   static constexpr Positions lowered;                  the inputs that Autocast rounds to 16 bits
//   static constexpr std::string_view later_attribute;   one that files of earlier versions do not have
//   Metas example(DType d);                              sets the attributes that it needs and returns the
//                                                        inputs of a small valid call; default: a matrix
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "ferrite/core/array.hpp"
#include "ferrite/core/error.hpp"

namespace ferrite {

// Backends, for which the headers of ops declare kernels (backend/concept.hpp).
class Cpu;
class Cuda;
class Reference;

using Metas = SmallVector<Meta, 3>;
using MetaSpan = std::span<const Meta>;

/// A single axis as a plain number: sum(x, 1) beside sum(x, {0, 1}). Unlike an int, a template parameter of
/// this kind does not match {}.
template <class T>
concept AxisNumber = std::signed_integral<T>;

/// Inputs of an op: borrowed, in order, optional trailing ones simply absent.
template <class P>
class Refs {
 public:
  Refs(const P* const* items, std::size_t size) : items_(items), size_(size) {}
  std::size_t size() const { return size_; }
  const P& operator[](std::size_t i) const { return *items_[i]; }
  const P* const* data() const { return items_; }

 private:
  const P* const* items_;
  std::size_t size_;
};

/// Kernels are destination-passing: they read `in` and fill `out`, which the caller allocated by the op's
/// shape rule. Every layout is valid for both. An output may be an input itself if the op says so.
using Ins = Refs<Array>;
using Outs = std::span<Array>;

/// Bit i set: add to out[i] instead of overwriting it (gradient sinks).
enum class Accumulate : std::uint32_t { none = 0, first = 1 };
constexpr bool accumulates(Accumulate mask, std::size_t output) {
  return (static_cast<std::uint32_t>(mask) >> output) & 1u;
}

/// Some of an op's inputs, or of its outputs, by position: {0, 2} are the first and the third. Positions from
/// 32 on are never among them.
class Positions {
 public:
  constexpr Positions() = default;
  constexpr Positions(std::initializer_list<std::size_t> positions) {
    for (std::size_t i : positions) insert(i);
  }
  constexpr void insert(std::size_t i) { bits_ |= i < 32 ? 1u << i : 0u; }
  constexpr bool contains(std::size_t i) const { return i < 32 && ((bits_ >> i) & 1u); }
  /// How many of them are less than `end`.
  constexpr std::size_t count_below(std::size_t end) const {
    return static_cast<std::size_t>(std::popcount(end < 32 ? bits_ & ((1u << end) - 1u) : bits_));
  }
  friend constexpr bool operator==(Positions, Positions) = default;

 private:
  std::uint32_t bits_ = 0;
};

/// The inputs and outputs that a vjp needs: {.inputs = {0, 1}, .outputs = {1}} keeps v.input(0), v.input(1)
/// and v.output(1). Reading any other is a GradientError.
struct Saves {
  Positions inputs = {};
  Positions outputs = {};
};

/// The inputs that Autocast rounds to 16 bits (decorators/autocast.hpp): those of products, which are faster
/// then.
template <class Op>
constexpr Positions op_lowered() {
  if constexpr (requires { Op::lowered; })
    return Op::lowered;
  else
    return {};
}

struct Cost {
  double flops = 0;
  double bytes = 0;
};

template <class Op>
concept ViewOp = requires(const Op& op, const Layout& layout) {
  op.view(layout);
};

template <class B>
class Tensor;
template <class B>
using Tensors = SmallVector<Tensor<B>, 2>;
template <class B>
using TensorSpan = std::span<const Tensor<B>>;
template <class B>
class Vjp;

/// The name of an op of the library. This type says that the op is in op::Core (ops/list.hpp), which few
/// files need to read: whoever adds an op compiles those alone again.
struct LibraryName : std::string_view {
  using std::string_view::string_view;
};
template <class Op>
concept LibraryOp = std::same_as<decltype(Op::type_name), const LibraryName>;
/// The place of such an op in op::Core. The linker finds it (src/ops/list.cpp): an op that has a LibraryName
/// but is not in the list is an undefined reference.
template <LibraryOp Op>
struct OpPlace {
  FERRITE_API static const std::size_t value;
};

template <class Op>
std::string_view op_name(const Op& op) {
  if constexpr (requires { op.name(); })
    return op.name();
  else
    return Op::type_name;
}

template <class Op>
Saves op_saves(const Op& op) {
  if constexpr (requires { op.saves(); })
    return op.saves();
  else
    return {};
}

/// By default an op reads every input and writes every output once, with one operation per output element.
template <class Op>
Cost op_cost(const Op& op, MetaSpan in, MetaSpan out) {
  if constexpr (requires { op.cost(in, out); }) {
    return op.cost(in, out);
  } else {
    Cost cost;
    for (const Meta& m : in) cost.bytes += static_cast<double>(m.bytes());
    for (const Meta& m : out) {
      cost.bytes += static_cast<double>(m.bytes());
      cost.flops += static_cast<double>(m.shape.numel());
    }
    return cost;
  }
}

template <class Op>
double op_reduction_length(const Op& op, MetaSpan in) {
  if constexpr (requires { op.reduction_length(in); })
    return op.reduction_length(in);
  else
    return 1;
}

/// The dtype for results made of several ops: f64 if one of these is f64, else f32.
FERRITE_API DType wide_dtype(MetaSpan metas);

/// Relative error allowed between two correct implementations of one op: epsilon of the coarsest dtype
/// involved times the square root of the number of terms, times a small constant for the elementary
/// functions (a few ulp each). Never one global number.
FERRITE_API double tolerance_from(double reduction_length, MetaSpan in, MetaSpan out);

template <class Op>
double op_tolerance(const Op& op, MetaSpan in, MetaSpan out) {
  return tolerance_from(op_reduction_length(op, in), in, out);
}

/// The inputs of a small valid call of an op for tests and tables, with its attributes set to fit.
template <class Op>
Metas op_example(Op& op, DType dtype) {
  if constexpr (requires { op.example(dtype); })
    return op.example(dtype);
  else
    return {{{2, 3}, dtype}};
}

/// The attributes as JSON text ({"axis":-1}), for reports and replay files. parse_attributes is the
/// inverse and throws ParseError on unknown or missing keys. Defined in ops/attributes.hpp.
template <class Op>
std::string format_attributes(const Op& op);
template <class Op>
Op parse_attributes(std::string_view json);

namespace detail {
/// Runs a kernel that the backend has, for ops that are assembled from others (backend/op_table.hpp).
template <class B, class Op>
void run_kernel(B& b, const Op& op, Ins in, Outs out);
template <class B, class Op>
void run_kernel(B& b, const Op& op, Ins in, Outs out, Accumulate mask);

/// Runs the parts of an op, or of a function made of ops: their errors name it (backend/evaluate.hpp).
template <class F>
decltype(auto) run_parts(std::string_view op, F&& parts);

[[noreturn]] FERRITE_API void throw_attribute(std::string_view op, std::string_view attribute, double value,
                                              std::string_view rule);
/// Throws ShapeError unless an op got between `least` and `most` inputs.
FERRITE_API void check_arity(std::string_view op, std::size_t given, std::size_t least, std::size_t most);
/// Throws DTypeError unless `dtype` is floating / integer.
FERRITE_API void check_floating(std::string_view op, std::string_view what, DType dtype);
FERRITE_API void check_integer(std::string_view op, std::string_view what, DType dtype);
FERRITE_API void check_dtype(std::string_view op, std::string_view what, DType given, DType needed);
/// The dtype of a sum of `terms`: their own, or if that is wider, `at_least`, in which less is lost by
/// rounding. Throws DTypeError if one of the two is not floating.
FERRITE_API DType sum_dtype(std::string_view op, DType terms, std::optional<DType> at_least);
/// Throws DTypeError if `what` would make the result of a layer wider than its weight.
FERRITE_API void check_weight_decides(std::string_view op, std::string_view what, DType dtype, DType weight);
FERRITE_API void check_rank(std::string_view op, std::string_view what, const Shape& shape, int rank);
FERRITE_API void check_shape(std::string_view op, std::string_view what, const Shape& given,
                             const Shape& needed);
// Inputs of examples: several of the same kind, indices, and tensors that ops keep in at least f32.
FERRITE_API Metas alike(std::size_t count, const Shape& shape, DType dtype);
FERRITE_API Meta ids(const Shape& shape);
FERRITE_API Meta statistics(const Shape& shape, DType dtype);

/// Throws ValueError unless an attribute meets the rule.
inline void check_attribute(std::string_view op, std::string_view attribute, double value, bool meets,
                            std::string_view rule) {
  if (!meets) throw_attribute(op, attribute, value, rule);
}
}  // namespace detail

}  // namespace ferrite
