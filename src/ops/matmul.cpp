// matmul: shape rule and cost.
#include "ferrite/ops/matmul.hpp"

#include <fmt/format.h>

#include "ferrite/ops/host_matrices.hpp"

namespace ferrite::op {

Metas Matmul::infer(MetaSpan in) const {
  detail::check_arity(type_name, in.size(), 2, 2);
  const Shape &a = in[0].shape, &b = in[1].shape;
  const auto operands = [&] { return fmt::format("[matmul] lhs {} and rhs {}", to_string(a), to_string(b)); };
  if (a.rank() < 2 || b.rank() < 2) throw ShapeError(operands() + ": both need at least two axes");
  const std::int64_t inner = a.back(), other = b[b.rank() - 2];
  if (inner != other)
    throw ShapeError(fmt::format("{}: inner dimensions {} and {} differ", operands(), inner, other));
  Shape shape = detail::broadcast_batches(type_name, "lhs", a, "rhs", b);
  shape.push_back(a[a.rank() - 2]);
  shape.push_back(b.back());
  const DType dtype = promote(in[0].dtype, in[1].dtype);
  if (dtype == DType::bool_) throw DTypeError("[matmul] both operands are bool: cast one to a number");
  return {Meta{shape, detail::sum_dtype(type_name, dtype, at_least)}};
}

Cost Matmul::cost(MetaSpan in, MetaSpan out) const {
  return {2 * static_cast<double>(out[0].shape.numel()) * static_cast<double>(in[0].shape.back()),
          static_cast<double>(in[0].bytes() + in[1].bytes() + out[0].bytes())};
}

double Matmul::reduction_length(MetaSpan in) const { return static_cast<double>(in[0].shape.back()); }

}  // namespace ferrite::op
