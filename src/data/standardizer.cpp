// Features of zero mean and unit variance.
#include <fmt/format.h>

#include <cmath>

#include "ferrite/core/error.hpp"
#include "ferrite/data/dataset.hpp"
#include "ferrite/nn/state.hpp"

namespace ferrite::data {
namespace {

std::int64_t features_of(const HostTensor& x) {
  Shape row = x.shape();
  row.erase(0);
  return row.numel();
}

}  // namespace

Standardizer Standardizer::fit(const HostTensor& x) {
  if (x.shape().rank() < 1 || x.shape()[0] < 1)
    throw ShapeError(fmt::format("[standardize] x {}: needs at least one row", to_string(x.shape())));
  Standardizer result;
  const auto features = static_cast<std::size_t>(features_of(x));
  const double count = static_cast<double>(x.shape()[0]);
  std::vector<double> values(static_cast<std::size_t>(x.numel()));
  detail::convert_elements(x.dtype(), x.bytes().data(), DType::f64, values.data(), x.numel());
  result.mean_.assign(features, 0);
  result.deviation_.assign(features, 0);
  std::vector<bool> varies(features);
  for (std::size_t i = 0; i < values.size(); ++i) {
    result.mean_[i % features] += values[i] / count;
    if (values[i] != values[i % features]) varies[i % features] = true;
  }
  // Rounded sums of one number are another, and their difference would pass for a deviation.
  for (std::size_t i = 0; i < features; ++i)
    if (!varies[i]) result.mean_[i] = values[i];
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double d = values[i] - result.mean_[i % features];
    result.deviation_[i % features] += d * d / count;
  }
  for (double& d : result.deviation_) d = d > 0 ? std::sqrt(d) : 1;
  return result;
}

HostTensor Standardizer::apply(const HostTensor& x) const {
  const std::size_t features = mean_.size();
  if (x.shape().rank() < 1 || features_of(x) != static_cast<std::int64_t>(features)) {
    throw ShapeError(
        fmt::format("[standardize] x {}: needs {} features per row", to_string(x.shape()), features));
  }
  if (x.dtype() != DType::f32 && x.dtype() != DType::f64)
    throw DTypeError(fmt::format("[standardize] x of {}: needs f32 or f64", to_string(x.dtype())));
  return HostTensor::make(x.dtype(), x.shape(), [&](std::span<std::byte> bytes) {
    const auto scale = [&]<class T>(T* out) {
      const std::span<const T> in = x.as<T>();
      for (std::size_t i = 0; i < in.size(); ++i)
        out[i] =
            static_cast<T>((static_cast<double>(in[i]) - mean_[i % features]) / deviation_[i % features]);
    };
    if (x.dtype() == DType::f32)
      scale(reinterpret_cast<float*>(bytes.data()));
    else
      scale(reinterpret_cast<double*>(bytes.data()));
  });
}

NamedTensors Standardizer::state() const {
  const Shape shape{static_cast<std::int64_t>(mean_.size())};
  return {{"mean", HostTensor::from(std::span<const double>(mean_), shape)},
          {"deviation", HostTensor::from(std::span<const double>(deviation_), shape)}};
}

Standardizer Standardizer::from_state(const NamedTensors& state) {
  const auto found = state.find("mean");
  const Shape shape = found == state.end() ? Shape{0} : Shape{found->second.numel()};
  const StateEntry needed[] = {{"mean", {shape, DType::f64}}, {"deviation", {shape, DType::f64}}};
  check_state("standardizer", needed, state);
  const auto values = [&](const char* name) {
    const HostTensor& t = state.find(name)->second;
    std::vector<double> result(static_cast<std::size_t>(t.numel()));
    detail::convert_elements(t.dtype(), t.bytes().data(), DType::f64, result.data(), t.numel());
    return result;
  };
  Standardizer result;
  result.mean_ = values("mean");
  result.deviation_ = values("deviation");
  for (std::size_t i = 0; i < result.mean_.size(); ++i) {
    if (!std::isfinite(result.mean_[i]) || !std::isfinite(result.deviation_[i]) ||
        result.deviation_[i] <= 0) {
      throw ValueError(fmt::format(
          "[standardizer] feature {}, mean {} and deviation {}: both must be finite, the deviation positive",
          i, result.mean_[i], result.deviation_[i]));
    }
  }
  return result;
}

}  // namespace ferrite::data
