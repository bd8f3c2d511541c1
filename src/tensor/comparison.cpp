// Elementwise comparison, and a second check of differences that rounding inside the op could explain.
#include "ferrite/tensor/comparison.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "ferrite/tensor/tensor_data.hpp"

namespace ferrite {

namespace {

std::vector<double> as_doubles(const HostTensor& x) {
  std::vector<double> values(static_cast<std::size_t>(x.numel()));
  // A broken kernel may write a bool that is neither 0 nor 1.
  const DType dtype = x.dtype() == DType::bool_ ? DType::u8 : x.dtype();
  detail::convert_elements(dtype, x.bytes().data(), DType::f64, values.data(), x.numel());
  return values;
}

HostTensor rounded_to(DType dtype, const HostTensor& x) {
  if (x.dtype() == dtype) return x;
  return HostTensor::make(dtype, x.shape(), [&](std::span<std::byte> bytes) {
    detail::convert_elements(x.dtype(), x.bytes().data(), dtype, bytes.data(), x.numel());
  });
}

double largest_finite(DType dtype) {
  switch (dtype) {
    case DType::f16:
      return 65504;
    case DType::bf16:
      return 0x1.fep127;
    case DType::f32:
      return std::numeric_limits<float>::max();
    default:
      return std::numeric_limits<double>::max();
  }
}

/// The effect of underflow on a number of this dtype. 16-bit results are computed in f32.
double underflow(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return std::numeric_limits<double>::min();
    case DType::f16:
      return 0x1p-23;
    default:
      return std::numeric_limits<float>::min();
  }
}

/// Of the elements of each part that are finite. Squares of scaled elements stay in range.
std::vector<double> root_mean_squares(std::span<const double> values,
                                      std::span<const std::int64_t> part_sizes) {
  double largest = 0;
  for (const double v : values)
    if (std::isfinite(v)) largest = std::max(largest, std::abs(v));
  if (largest == 0) largest = 1;
  std::vector<double> squares(values.size());
  std::transform(values.begin(), values.end(), squares.begin(),
                 [&](double v) { return v / largest * (v / largest); });
  std::vector<double> means = detail::part_means(squares, part_sizes);
  for (double& mean : means) mean = largest * std::sqrt(mean);
  return means;
}

/// |a - b|, where the limit of the dtype replaces an infinity that only one of the two reached.
double distance(double a, double b, double limit) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
  if (std::isnan(a) || std::isnan(b)) return HUGE_VAL;
  return std::abs(std::clamp(a, -limit, limit) - std::clamp(b, -limit, limit));
}

void take(Comparison& result, std::int64_t index, double value, double expected, double error,
          double allowed) {
  if (error == 0) return;
  const double ratio = allowed > 0 ? error / allowed : HUGE_VAL;
  if (!(error <= allowed)) ++result.differing;
  if (ratio > result.ratio || (ratio == result.ratio && error > result.error)) {
    result.ratio = ratio;
    result.index = index;
    result.value = value;
    result.expected = expected;
    result.error = error;
    result.allowed = allowed;
  }
}

Comparison compare_integers(const HostTensor& value, const HostTensor& expected) {
  Comparison result;
  const std::vector<double> a = as_doubles(value), b = as_doubles(expected);
  const std::size_t size = size_of(value.dtype());
  for (std::size_t i = 0; i < a.size(); ++i) {
    // Compare bytes: doubles cannot tell large i64 apart.
    if (std::memcmp(value.bytes().data() + i * size, expected.bytes().data() + i * size, size) != 0)
      take(result, static_cast<std::int64_t>(i), a[i], b[i], std::max(std::abs(a[i] - b[i]), 1.0), 0);
  }
  return result;
}

Comparison compare_places(const HostTensor& value, const HostTensor& expected, const HostTensor& source,
                          const detail::IndexRule& rule, double tolerance) {
  Comparison result;
  const auto a = value.as<std::int64_t>(), b = expected.as<std::int64_t>();
  const std::vector<double> elements = as_doubles(source);
  const double scale = root_mean_squares(elements, {})[0], limit = largest_finite(source.dtype());
  const std::int64_t rows = rule.outer * rule.inner, count = rows == 0 ? 0 : value.numel() / rows;
  for (std::int64_t i = 0; i < value.numel(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (a[at] == b[at]) continue;
    const std::int64_t outer = i / (count * rule.inner), inner = i % rule.inner;
    const auto element = [&](std::int64_t place) {
      return elements[static_cast<std::size_t>((outer * rule.extent + place) * rule.inner + inner)];
    };
    const auto inside = [&](std::int64_t place) { return place >= 0 && place < rule.extent; };
    double error = HUGE_VAL, allowed = 0;
    if (inside(a[at]) && inside(b[at])) {
      const double there = element(b[at]);
      error = distance(element(a[at]), there, limit);
      allowed = tolerance * ((std::isfinite(there) ? std::abs(there) : 0) + scale);
    }
    take(result, i, static_cast<double>(a[at]), static_cast<double>(b[at]), error, allowed);
  }
  return result;
}

}  // namespace

Comparison compare(const HostTensor& value, const HostTensor& expected, double tolerance,
                   std::span<const double> slack, std::span<const std::int64_t> part_sizes) {
  detail::check_shape("compare", "value", value.shape(), expected.shape());
  const HostTensor rounded = rounded_to(value.dtype(), expected);
  if (!is_floating(value.dtype())) return compare_integers(value, rounded);
  Comparison result;
  const std::vector<double> a = as_doubles(value), b = as_doubles(rounded);
  const double limit = largest_finite(value.dtype());
  const std::vector<double> scales = root_mean_squares(b, part_sizes);
  const std::vector<std::size_t> part = detail::part_of_elements(part_sizes);
  const double floor = tolerance > 0 ? underflow(value.dtype()) : 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double size = std::isfinite(b[i]) ? std::abs(b[i]) : std::isnan(b[i]) ? 0 : limit;
    const double allowed =
        tolerance * (size + scales[part[i % part.size()]]) + floor + (slack.empty() ? 0 : slack[i]);
    take(result, static_cast<std::int64_t>(i), a[i], b[i], distance(a[i], b[i], limit), allowed);
  }
  return result;
}

namespace detail {

Metas metas_of(std::span<const HostTensor> tensors) {
  Metas metas;
  metas.reserve(tensors.size());
  for (const HostTensor& t : tensors) metas.push_back({t.shape(), t.dtype()});
  return metas;
}

namespace {

/// The outputs of an op with every floating input in float64, and a bound of the error of each element.
struct Bounded {
  std::vector<std::vector<double>> outputs, errors;
};

Bounded evaluate_with_errors(const ComparedCall& call, const Rounding& rounding) {
  ErrorModel model(rounding);
  std::vector<Array> arrays;
  for (const HostTensor& x : call.inputs) {
    const HostTensor wide = is_floating(x.dtype()) ? rounded_to(DType::f64, x) : x;
    arrays.push_back(model.allocate({wide.shape(), wide.dtype()}));
    model.copy_from_host(arrays.back(), wide.bytes().data());
  }
  std::vector<const Array*> refs;
  for (const Array& a : arrays) refs.push_back(&a);
  Bounded result;
  std::size_t k = 0;
  for (const Array& y : call.op.info->evaluate(call.op.op, model, Ins(refs.data(), refs.size()))) {
    auto& output = result.outputs.emplace_back(as_doubles(HostTensor::make(
        y.dtype(), y.shape(), [&](std::span<std::byte> bytes) { model.copy_to_host(y, bytes.data()); })));
    auto& error = result.errors.emplace_back(model.errors(y));
    if (accumulates(call.mask, k)) {
      const std::vector<double> before = as_doubles(call.before[k]);
      for (std::size_t i = 0; i < before.size(); ++i) {
        error[i] += rounding.relative * (std::abs(before[i]) + std::abs(output[i]));
        output[i] += before[i];
      }
    }
    ++k;
  }
  return result;
}

/// One step of a kernel: four epsilons of the coarsest dtype, because an elementary function may be off by a
/// few and two kernels are compared.
Rounding rounding_of(const ComparedCall& call) {
  Rounding rounding;
  const auto take = [&](const HostTensor& x) {
    if (!is_floating(x.dtype())) return;
    rounding.relative = std::max(rounding.relative, 4 * epsilon(x.dtype()));
    rounding.absolute =
        std::max(rounding.absolute, underflow(x.dtype() == DType::f64 ? DType::f64 : DType::f32));
  };
  for (const HostTensor& x : call.inputs) take(x);
  for (const HostTensor& y : call.outputs) take(y);
  return rounding;
}

}  // namespace

std::vector<std::vector<double>> evaluate_in_double(const ComparedCall& call) {
  return evaluate_with_errors(call, {}).outputs;
}

std::vector<Comparison> compare_outputs(const ComparedCall& call) {
  const Metas in = metas_of(call.inputs), out = metas_of(call.outputs);
  const double tolerance = call.op.info->tolerance(call.op.op, in, out);
  // The bound takes a few runs of the op, so it is computed only if the tolerance alone is nearly used up.
  constexpr double ample = 0.25;
  const std::vector<std::int64_t> parts = call.op.info->parts(call.op.op, in);
  std::vector<std::vector<double>> slack;
  std::vector<Comparison> results;
  for (std::size_t k = 0; k < call.outputs.size(); ++k) {
    const HostTensor &value = call.outputs[k], &expected = call.expected[k];
    if (const auto rule = call.op.info->places(call.op.op, k, in)) {
      results.push_back(compare_places(value, expected, call.inputs[rule->input], *rule, tolerance));
      continue;
    }
    Comparison result = compare(value, expected, tolerance, {}, parts);
    if (result.ratio > ample && tolerance > 0 && is_floating(value.dtype())) {
      if (slack.empty()) slack = evaluate_with_errors(call, rounding_of(call)).errors;
      result = compare(value, expected, tolerance, slack[k], parts);
    }
    results.push_back(result);
  }
  return results;
}

}  // namespace detail
}  // namespace ferrite
