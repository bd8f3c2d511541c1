// When do two results of one op agree? Parity and `ferrite replay` share this rule: a tolerance that comes
// from the op and, where that is nearly used up, a bound on what rounding can do inside the op.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ferrite/backend/evaluate.hpp"
#include "ferrite/io/host_tensor.hpp"
#include "ferrite/ops/argreduce.hpp"
#include "ferrite/ops/attributes.hpp"
#include "ferrite/ops/pool2d.hpp"
#include "ferrite/ops/sort.hpp"
#include "ferrite/tensor/error_model.hpp"

namespace ferrite {

/// The distance between two tensors, and the place of the largest error.
struct Comparison {
  double ratio = 0;            // worst error / allowed error; infinite where none was allowed
  std::int64_t differing = 0;  // elements whose error is larger than allowed
  std::int64_t index = 0;      // row-major place of the worst element
  double value = 0, expected = 0, error = 0, allowed = 0;  // ... and the values there
  bool agrees() const { return differing == 0; }
};

/// Floats agree if |value - expected| <= tolerance (|expected| + rms(expected)) + slack[i], with the root
/// mean square of the element's part (detail::part_sizes), by default of all elements. A tolerance that is
/// not zero also allows the smallest normal number of f32 (f64 for f64, two steps of f16), because kernels
/// may flush smaller numbers. NaN agrees with NaN, and an infinity with itself and with values that nearly
/// overflow. Integers and bools must be equal. `expected` is rounded to the dtype of `value` first. Throws
/// ShapeError if the shapes differ.
FERRITE_API Comparison compare(const HostTensor& value, const HostTensor& expected, double tolerance,
                               std::span<const double> slack = {},
                               std::span<const std::int64_t> part_sizes = {});

namespace detail {

/// An output that holds places in an input, seen as [outer, extent, inner]: two places agree if the elements
/// at them agree.
struct IndexRule {
  std::size_t input = 0;
  std::int64_t outer = 1, extent = 1, inner = 1;

  static IndexRule along(const Shape& shape, int axis) {
    IndexRule rule{0, 1, shape[axis], 1};
    for (int i = 0; i < axis; ++i) rule.outer *= shape[i];
    for (int i = axis + 1; i < shape.rank(); ++i) rule.inner *= shape[i];
    return rule;
  }
};
using OptionalIndexRule = std::optional<IndexRule>;

template <class Op>
OptionalIndexRule index_rule(const Op&, std::size_t, MetaSpan) {
  return {};
}
inline OptionalIndexRule index_rule(const op::ArgReduce& op, std::size_t, MetaSpan in) {
  return IndexRule::along(in[0].shape, normalize_axis(op.name(), op.axis, in[0].shape.rank()));
}
inline OptionalIndexRule index_rule(const op::Sort& op, std::size_t output, MetaSpan in) {
  if (output == 0) return {};
  return IndexRule::along(in[0].shape, normalize_axis(op.type_name, op.axis, in[0].shape.rank()));
}
inline OptionalIndexRule index_rule(const op::MaxPool2d&, std::size_t output, MetaSpan in) {
  const Shape& x = in[0].shape;
  if (output == 0) return {};
  return IndexRule{0, x[0] * x[1], x[2] * x[3], 1};
}

/// Uniforms, coin flips and integers have the same bits on every backend.
template <class Op>
bool draws_bits(const Op&) {
  return false;
}
inline bool draws_bits(const op::Random& op) { return op.fn != op::RandomFn::normal; }

/// What a comparison needs to know about an op, with the type erased: there are many kernels, but this code
/// is compiled once.
struct OpInfo {
  std::string_view type_name;
  std::string_view (*name)(const void*);
  std::string (*attributes)(const void*);
  double (*tolerance)(const void*, MetaSpan in, MetaSpan out);
  OptionalIndexRule (*places)(const void*, std::size_t output, MetaSpan in);
  std::vector<std::int64_t> (*parts)(const void*, MetaSpan in);
  Primitives<ErrorModel> (*evaluate)(const void*, ErrorModel&, Ins);
};

template <class Op>
struct OpAdapter {
  static const Op& of(const void* op) { return *static_cast<const Op*>(op); }
  static std::string_view name(const void* op) { return op_name(of(op)); }
  static std::string attributes(const void* op) { return format_attributes(of(op)); }
  static double tolerance(const void* op, MetaSpan in, MetaSpan out) {
    return draws_bits(of(op)) ? 0 : op_tolerance(of(op), in, out);
  }
  static OptionalIndexRule places(const void* op, std::size_t output, MetaSpan in) {
    return index_rule(of(op), output, in);
  }
  static std::vector<std::int64_t> parts(const void* op, MetaSpan in) { return part_sizes(of(op), in); }
  static Primitives<ErrorModel> evaluate(const void* op, ErrorModel& b, Ins in) {
    return ferrite::evaluate(b, of(op), in);
  }
  static constexpr OpInfo info{Op::type_name, name, attributes, tolerance, places, parts, evaluate};
};

/// Those of the library's ops, by their place in the list: the library compiles them
/// (src/tensor/op_info.cpp).
FERRITE_API const OpInfo& core_op_info(std::size_t index);

/// A borrowed op with its type erased.
struct ErasedOp {
  const void* op;
  const OpInfo* info;

  template <class Op>
  static ErasedOp of(const Op& op) {
    if constexpr (LibraryOp<Op>)
      return {&op, &core_op_info(OpPlace<Op>::value)};
    else
      return {&op, &OpAdapter<Op>::info};
  }
  std::string_view name() const { return info->name(op); }
};

/// One call of an op on two backends. `before` holds the earlier contents of accumulating outputs (shape [0]
/// for the others).
struct ComparedCall {
  ErasedOp op;
  Accumulate mask = Accumulate::none;
  std::vector<HostTensor> inputs;
  std::vector<HostTensor> before;
  std::vector<HostTensor> outputs;   // of the backend under test
  std::vector<HostTensor> expected;  // of the other
};

FERRITE_API Metas metas_of(std::span<const HostTensor> tensors);

/// One comparison per output.
FERRITE_API std::vector<Comparison> compare_outputs(const ComparedCall& call);

/// The outputs as Reference computes them with every floating input in float64.
FERRITE_API std::vector<std::vector<double>> evaluate_in_double(const ComparedCall& call);

}  // namespace detail
}  // namespace ferrite
