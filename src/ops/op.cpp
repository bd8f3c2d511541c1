// Checks and the tolerance rule shared by all ops.
#include "ferrite/ops/op.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace ferrite {

double tolerance_from(double reduction_length, MetaSpan in, MetaSpan out) {
  // A result is as coarse as the coarsest floating operand it was computed from; an exact integer op has
  // no floating operand at all and tolerance 0.
  double eps = 0;
  for (const Meta& m : in) eps = std::max(eps, epsilon(m.dtype));
  for (const Meta& m : out) eps = std::max(eps, epsilon(m.dtype));
  return 8 * eps * std::sqrt(std::max(reduction_length, 1.0));
}

DType wide_dtype(MetaSpan metas) {
  DType wide = DType::f32;
  for (const Meta& m : metas)
    if (m.dtype == DType::f64) wide = DType::f64;
  return wide;
}

namespace detail {

Metas alike(std::size_t count, const Shape& shape, DType dtype) {
  Metas metas;
  for (std::size_t i = 0; i < count; ++i) metas.push_back(Meta{shape, dtype});
  return metas;
}
Meta ids(const Shape& shape) { return {shape, DType::i64}; }
Meta statistics(const Shape& shape, DType dtype) { return {shape, wide_dtype(dtype)}; }

}  // namespace detail

namespace detail {

void check_arity(std::string_view op, std::size_t given, std::size_t least, std::size_t most) {
  if (given >= least && given <= most) return;
  const std::string needed = least == most ? fmt::format("{}", least) : fmt::format("{} to {}", least, most);
  throw ShapeError(fmt::format("[{}] {} inputs given: needs {}", op, given, needed));
}

void check_floating(std::string_view op, std::string_view what, DType dtype) {
  if (!is_floating(dtype))
    throw DTypeError(fmt::format("[{}] {} is {}: needs a floating dtype (f32, f64, f16, bf16); cast it first",
                                 op, what, to_string(dtype)));
}

void check_integer(std::string_view op, std::string_view what, DType dtype) {
  if (!is_integer(dtype))
    throw DTypeError(fmt::format("[{}] {} is {}: needs an integer dtype", op, what, to_string(dtype)));
}

void check_dtype(std::string_view op, std::string_view what, DType given, DType needed) {
  if (given != needed)
    throw DTypeError(fmt::format("[{}] {} is {}: needs {}", op, what, to_string(given), to_string(needed)));
}

DType sum_dtype(std::string_view op, DType terms, std::optional<DType> at_least) {
  if (!at_least) return terms;
  check_floating(op, "operand", terms);
  check_floating(op, "at_least", *at_least);
  return promote(terms, *at_least);
}

void throw_attribute(std::string_view op, std::string_view attribute, double value, std::string_view rule) {
  throw ValueError(fmt::format("[{}] {} {}: {}", op, attribute, value, rule));
}

void check_weight_decides(std::string_view op, std::string_view what, DType dtype, DType weight) {
  if (const DType result = promote(dtype, weight); result != weight)
    throw DTypeError(
        fmt::format("[{0}] {1} is {2} and the weight {3}: the result would be {4}; cast {1} by "
                    "cast({1}, DType::{3}), or the weight",
                    op, what, to_string(dtype), to_string(weight), to_string(result)));
}

void check_rank(std::string_view op, std::string_view what, const Shape& shape, int rank) {
  if (shape.rank() != rank)
    throw ShapeError(
        fmt::format("[{}] {} {} has {} axes: needs {}", op, what, to_string(shape), shape.rank(), rank));
}

void check_shape(std::string_view op, std::string_view what, const Shape& given, const Shape& needed) {
  if (!(given == needed))
    throw ShapeError(fmt::format("[{}] {} {}: needs {}", op, what, to_string(given), to_string(needed)));
}

}  // namespace detail
}  // namespace ferrite
