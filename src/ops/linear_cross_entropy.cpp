// linear_cross_entropy: shape rules, cost, and the size of its chunks.
#include "ferrite/ops/linear_cross_entropy.hpp"

#include <algorithm>

#include "ferrite/core/integers.hpp"
#include "ops/norm_rules.hpp"

namespace ferrite::op {
namespace {

Meta logits_of(MetaSpan in) { return {{in[0].shape[0], in[1].shape[0]}, promote(in[0].dtype, in[1].dtype)}; }

}  // namespace

Metas LinearCrossEntropy::infer(MetaSpan in) const {
  detail::check_arity(type_name, in.size(), 3, 3);
  detail::check_rank(type_name, "x", in[0].shape, 2);
  detail::check_rank(type_name, "weight", in[1].shape, 2);
  detail::check_floating(type_name, "x", in[0].dtype);
  detail::check_floating(type_name, "weight", in[1].dtype);
  detail::check_shape(type_name, "weight", in[1].shape, {in[1].shape[0], in[0].shape[1]});
  detail::check_attribute(type_name, "chunk_rows", static_cast<double>(chunk_rows), chunk_rows >= 0,
                          "must not be negative");
  const Meta logits = logits_of(in);
  check_extents(type_name, logits.shape);
  const Meta result{{}, check_classes(type_name, logits, in[2], label_smoothing, classes).dtype};
  if (!with_gradient) return {result};
  const DType dx = in[0].dtype == DType::f16 ? result.dtype : in[0].dtype;
  return {result, {in[0].shape, dx}, {in[1].shape, result.dtype}};
}

Cost LinearCrossEntropy::cost(MetaSpan in, MetaSpan out) const {
  const auto elements = static_cast<double>(logits_of(in).shape.numel());
  const double products = with_gradient ? 3 : 1, others = with_gradient ? 24 : 12;
  const auto length = static_cast<double>(in[0].shape[1]);
  return {elements * (2 * length * products + others), streaming(in, out, 0).bytes};
}

double LinearCrossEntropy::reduction_length(MetaSpan in) const {
  return static_cast<double>(logits_of(in).shape.numel()) + static_cast<double>(in[0].shape[1]);
}

std::int64_t LinearCrossEntropy::rows_at_once(std::int64_t rows, std::int64_t row_bytes,
                                              std::int64_t most_bytes) const {
  const std::int64_t all = std::max<std::int64_t>(rows, 1);
  if (chunk_rows > 0) return std::min(chunk_rows, all);
  const std::int64_t most = std::max<std::int64_t>(most_bytes / std::max<std::int64_t>(row_bytes, 1), 1);
  return divide_up(all, divide_up(all, most));
}

}  // namespace ferrite::op
