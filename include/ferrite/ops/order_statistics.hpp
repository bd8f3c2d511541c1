// order_statistics: for every column of a matrix, the values at the ranks that quantiles are made from. NaN
// does not count. The results are elements of the column, so they are exact on every backend. To get a
// quantile, interpolate between them (interpolate_quantile).
#pragma once

#include <cmath>

#include "ferrite/core/rng.hpp"
#include "ferrite/ops/op.hpp"
#include "ferrite/ops/sort.hpp"

namespace ferrite {

/// How a quantile between two ranks is computed; the names and the arithmetic are NumPy's.
enum class QuantileMethod : std::uint8_t { linear, inverted_cdf, averaged_inverted_cdf };
FERRITE_API std::string_view to_string(QuantileMethod method);
constexpr int count_of(QuantileMethod) { return 3; }

/// The quantile is x(lower) + weight (x(upper) - x(lower)), ranks counted from 0.
struct QuantilePosition {
  std::int64_t lower = 0, upper = 0;
  double weight = 0;
};

/// `level` in [0, 1] of `count` >= 1 values. The product is rounded before the subtraction (volatile: no
/// fused multiply-add), so that every compiler finds the same ranks.
FERRITE_HOST_DEVICE inline QuantilePosition quantile_position(QuantileMethod method, double level,
                                                              std::int64_t count) {
  const std::int64_t last = count - 1;
  const auto clamped = [last](double rank) {  // before the cast, which must not overflow; NaN is rank 0
    return !(rank > 0) ? 0 : rank >= static_cast<double>(last) ? last : static_cast<std::int64_t>(rank);
  };
  const volatile double product =
      level * static_cast<double>(method == QuantileMethod::linear ? last : count);
  const double exact = product, below = std::floor(exact);
  if (method == QuantileMethod::linear) return {clamped(below), clamped(below + 1), exact - below};
  if (exact != below) return {clamped(below), clamped(below), 0};
  if (method == QuantileMethod::inverted_cdf) return {clamped(below - 1), clamped(below - 1), 0};
  return {clamped(below - 1), clamped(below), 0.5};
}

/// NumPy's formula, which is exact at both ends and monotone. Next to an infinity there is nothing to
/// interpolate: it returns the nearer of the two values, the upper one in the middle.
FERRITE_API double interpolate_quantile(double lower, double upper, double weight);

namespace op {

/// # Shapes: x [n, c] floating, n >= 1, levels f64 [k] in [0, 1] -> lower and upper [c, k] of x's dtype, and
/// count i64 [c], the number of elements of the column that are not NaN. If that is 0, lower and upper are
/// NaN. Ranks are those of quantile_position; -0 may come back as 0.
struct FERRITE_API OrderStatistics {
  static constexpr LibraryName type_name = "order_statistics";
  static constexpr bool composes_as_given = true;
  QuantileMethod method = QuantileMethod::linear;

  Metas infer(MetaSpan in) const;
  Cost cost(MetaSpan in, MetaSpan out) const;
  Metas example(DType d) const { return {{{4, 3}, d}, {{5}, DType::f64}}; }
  static void attributes(auto& self, auto&& visit) { visit("method", self.method); }

  template <class B>
  Tensors<B> compose(B&, TensorSpan<B> in) const {
    const Tensor<B> sorted = eval(Sort{0}, in[0]);  // NaN comes last
    const Tensor<B> count = sum(logical_not(isnan(in[0])), {0});
    const Tensor<B> size = unsqueeze(cast(count, DType::f64), 1), last = maximum(size - 1, 0);
    const Tensor<B> product = unsqueeze(in[1], 0) * (method == QuantileMethod::linear ? size - 1 : size);
    const Tensor<B> below = floor(product);
    const auto value_at = [&](const Tensor<B>& rank) {
      const Tensor<B> index = cast(minimum(maximum(rank, 0), last), DType::i64);
      return transpose(gather(sorted, 0, transpose(index, 0, 1)), 0, 1);
    };
    if (method == QuantileMethod::linear) return {value_at(below), value_at(below + 1), count};
    const Tensor<B> lower = where(product == below, below - 1, below);
    const Tensor<B> upper = method == QuantileMethod::inverted_cdf ? lower : below;
    return {value_at(lower), value_at(upper), count};
  }
};

}  // namespace op

// Kernels (backend/concept.hpp).
FERRITE_API void run(Cpu&, const op::OrderStatistics& op, Ins in, Outs out);
FERRITE_API void run(Cuda&, const op::OrderStatistics& op, Ins in, Outs out);
FERRITE_API bool accepts(const Cpu&, const op::OrderStatistics& op, MetaSpan in);
FERRITE_API bool accepts(const Cuda&, const op::OrderStatistics& op, MetaSpan in);

template <class B>
struct OrderStatistics {
  Tensor<B> lower, upper, count;
};

/// See op::OrderStatistics. Levels outside [0, 1] give the first and the last value.
template <class B>
OrderStatistics<B> order_statistics(const Tensor<B>& x, const Tensor<B>& levels,
                                    QuantileMethod method = QuantileMethod::linear) {
  auto out = eval_all(op::OrderStatistics{method}, x, levels);
  return {out[0], out[1], out[2]};
}

}  // namespace ferrite
