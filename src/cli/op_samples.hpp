// A small valid call of every op for a given dtype: what `ferrite ops` asks each backend about.
#pragma once

#include <vector>

#include "ferrite/ops/list.hpp"

namespace ferrite::cli {

using Inputs = std::vector<Meta>;

// Each sets what attributes the op cannot do without and returns its inputs. Most ops take any matrix.
template <class Op>
Inputs sample(Op&, DType d) {
  return {{{2, 3}, d}};
}

inline Meta ids(const Shape& shape) { return {shape, DType::i64}; }
inline Meta statistics(const Shape& shape, DType d) { return {shape, op::LayerNorm::statistics_dtype(d)}; }
inline Inputs alike(std::size_t count, const Shape& shape, DType d) { return Inputs(count, Meta{shape, d}); }

inline Inputs sample(op::Fill& op, DType d) {
  op.dtype = d;
  return {};
}
inline Inputs sample(op::Iota& op, DType d) {
  op.dtype = d;
  return {};
}
inline Inputs sample(op::Random& op, DType d) {
  op.dtype = d;
  return {};
}
inline Inputs sample(op::Copy& op, DType d) {
  op.dtype = d;
  return alike(1, {2, 3}, d);
}
inline Inputs sample(op::Binary& op, DType d) {
  return alike(op.side == op::ScalarSide::none ? 2 : 1, {2, 3}, d);
}
inline Inputs sample(op::Where& op, DType d) {
  Inputs in{{{2, 3}, DType::bool_}, {{2, 3}, d}, {{2, 3}, d}};
  if (op.side != op::ScalarSide::none) in.pop_back();
  return in;
}
inline Inputs sample(op::Matmul&, DType d) { return {{{2, 3}, d}, {{3, 4}, d}}; }
inline Inputs sample(op::Gather&, DType d) { return {{{2, 3}, d}, ids({2, 3})}; }
inline Inputs sample(op::Scatter&, DType d) { return {{{2, 3}, d}, ids({2, 3}), {{2, 3}, d}}; }
inline Inputs sample(op::ScatterAdd&, DType d) { return {{{2, 3}, d}, ids({2, 3}), {{2, 3}, d}}; }

inline Inputs sample(op::Reshape& op, DType d) {
  op.shape = {6};
  return alike(1, {2, 3}, d);
}
inline Inputs sample(op::Permute& op, DType d) {
  op.order = {1, 0};
  return alike(1, {2, 3}, d);
}
inline Inputs sample(op::Expand& op, DType d) {
  op.shape = {2, 3};
  return alike(1, {1, 3}, d);
}
inline Inputs sample(op::Fold& op, DType d) {
  op.length = 2;
  return alike(1, {2, 1}, d);
}
inline Inputs sample(op::Pad& op, DType d) {
  op.low = op.high = op.interior = {0, 0};
  return alike(1, {2, 3}, d);
}

inline Inputs sample(op::Statistic& op, DType d) {
  if (op.fn == op::StatisticFn::norm) op.parameter = 2;
  return alike(1, {2, 3}, d);
}
inline Inputs sample(op::UnaryBackward& op, DType d) {
  op.fn = op::UnaryFn::exp;
  return alike(2, {2, 3}, d);
}
inline Inputs sample(op::OrderStatistics&, DType d) { return {{{4, 3}, d}, {{5}, DType::f64}}; }
inline Inputs sample(op::Bucketize&, DType d) { return {{{4, 3}, d}, {{3, 5}, DType::f64}}; }
inline Inputs sample(op::OneHot& op, DType d) {
  op.dtype = d;
  op.classes = 3;
  return {ids({2})};
}
// Large enough for a backend that leaves small selections to gather.
inline Inputs sample(op::IndexSelect&, DType d) { return {{{64, 64}, d}, ids({32})}; }
inline Inputs sample(op::Embedding&, DType d) { return {{{5, 3}, d}, ids({4})}; }
inline Inputs sample(op::EmbeddingBackward& op, DType d) {
  op.rows = 5;
  return {{{4, 3}, d}, ids({4})};
}
inline Inputs sample(op::SoftmaxBackward&, DType d) { return alike(2, {2, 3}, d); }
inline Inputs sample(op::LogSoftmaxBackward&, DType d) { return alike(2, {2, 3}, d); }
inline Inputs sample(op::LayerNorm&, DType d) { return {{{2, 3}, d}, {{3}, d}, {{3}, d}}; }
inline Inputs sample(op::LayerNormBackward&, DType d) {
  return {{{2, 3}, d}, {{2, 3}, d}, {{3}, d}, statistics({2}, d), statistics({2}, d)};
}
inline Inputs sample(op::RmsNorm&, DType d) { return {{{2, 3}, d}, {{3}, d}}; }
inline Inputs sample(op::RmsNormBackward&, DType d) {
  return {{{2, 3}, d}, {{2, 3}, d}, {{3}, d}, statistics({2}, d)};
}
inline Inputs sample(op::BatchNorm&, DType d) { return {{{2, 3}, d}, {{3}, d}, {{3}, d}}; }
inline Inputs sample(op::BatchNormBackward&, DType d) {
  return {{{2, 3}, d}, {{2, 3}, d}, {{3}, d}, statistics({3}, d), statistics({3}, d)};
}
inline Inputs sample(op::Linear&, DType d) { return {{{2, 3}, d}, {{4, 3}, d}, {{4}, d}}; }
inline Inputs sample(op::Attention&, DType d) { return alike(3, {1, 2, 3, 4}, d); }
inline Inputs sample(op::AttentionBackward&, DType d) {
  Inputs in = alike(5, {1, 2, 3, 4}, d);
  in.push_back(statistics({1, 2, 3}, d));
  return in;
}
inline Inputs sample(op::SoftmaxCrossEntropy&, DType d) { return {{{2, 3}, d}, ids({2})}; }
inline Inputs sample(op::SoftmaxCrossEntropyBackward&, DType d) {
  return {statistics({2}, d), {{2, 3}, d}, ids({2}), statistics({2}, d)};
}
inline Inputs sample(op::SoftmaxCrossEntropyWithGradient&, DType d) {
  return {{{2, 3}, d}, ids({2}), statistics({}, d)};
}
inline Inputs sample(op::CrossEntropyLoss&, DType d) { return {{{2, 3}, d}, ids({2})}; }
inline Inputs sample(op::Conv2d&, DType d) { return {{{1, 2, 4, 4}, d}, {{3, 2, 3, 3}, d}, {{3}, d}}; }
inline Inputs sample(op::Conv2dInputGrad& op, DType d) {
  op.input = {1, 2, 4, 4};
  return {{{1, 3, 2, 2}, d}, {{3, 2, 3, 3}, d}};
}
inline Inputs sample(op::Conv2dWeightGrad& op, DType d) {
  op.weight = {3, 2, 3, 3};
  return {{{1, 3, 2, 2}, d}, {{1, 2, 4, 4}, d}};
}
inline Inputs sample(op::MaxPool2d&, DType d) { return alike(1, {1, 2, 4, 4}, d); }
inline Inputs sample(op::MaxPool2dBackward& op, DType d) {
  op.input = {1, 2, 4, 4};
  return {{{1, 2, 2, 2}, d}, ids({1, 2, 2, 2})};
}
inline Inputs sample(op::AvgPool2d&, DType d) { return alike(1, {1, 2, 4, 4}, d); }
inline Inputs sample(op::AvgPool2dBackward& op, DType d) {
  op.input = {1, 2, 4, 4};
  return alike(1, {1, 2, 2, 2}, d);
}
inline Inputs sample(op::PointwiseLoss&, DType d) { return alike(2, {2, 3}, d); }
inline Inputs sample(op::PointwiseLossBackward&, DType d) { return alike(3, {2, 3}, d); }
inline Inputs sample(op::Sgd&, DType d) {
  return {{{3}, d}, {{3}, d}, statistics({3}, d), statistics({}, d)};
}
inline Inputs sample(op::Adam&, DType d) {
  return {{{3}, d}, {{3}, d}, statistics({3}, d), statistics({3}, d), statistics({}, d)};
}

}  // namespace ferrite::cli
