// Rows, splits and standardisation, all on host memory.
#include "ferrite/data/dataset.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "ferrite/core/error.hpp"
#include "ferrite/core/rng.hpp"

namespace ferrite::data {
namespace {

Shape row_shape(const HostTensor& x) {
  Shape shape = x.shape();
  shape.erase(0);
  return shape;
}

/// Apart from the streams an Rng of the same seed hands out, which count from 0.
constexpr std::uint64_t split_stream = std::uint64_t{1} << 62;

HostTensor pick(const HostTensor& x, std::span<const std::int64_t> numbers) {
  Shape shape = x.shape();
  shape[0] = static_cast<std::int64_t>(numbers.size());
  const std::size_t row = static_cast<std::size_t>(row_shape(x).numel()) * size_of(x.dtype());
  return HostTensor::make(x.dtype(), shape, [&](std::span<std::byte> out) {
    for (std::size_t i = 0; i < numbers.size() && row > 0; ++i)
      std::memcpy(out.data() + i * row, x.bytes().data() + static_cast<std::size_t>(numbers[i]) * row, row);
  });
}

}  // namespace

Dataset::Dataset(HostTensor x, HostTensor y) : x_(std::move(x)), y_(std::move(y)) {
  if (x_.shape().rank() < 1 || y_.shape().rank() < 1 || x_.shape()[0] != y_.shape()[0]) {
    throw ShapeError(fmt::format("[dataset] x {} and y {}: both need one row per example",
                                 to_string(x_.shape()), to_string(y_.shape())));
  }
}

Dataset Dataset::from_csv(const std::filesystem::path& path, const CsvDatasetConfig& config) {
  const CsvTable table = read_csv(path, config.csv);
  std::vector<std::string> features;
  for (const std::string& column : table.columns)
    if (column != config.target) features.push_back(column);
  return {table.to_tensor(features, config.feature_dtype),
          table.column_tensor(config.target, config.target_dtype)};
}

HostBatch Dataset::rows(std::span<const std::int64_t> numbers) const {
  for (std::int64_t i : numbers) {
    if (i < 0 || i >= size())
      throw ValueError(fmt::format("[dataset] row {}: must lie in [0, {})", i, size()));
  }
  return {pick(x_, numbers), pick(y_, numbers)};
}

std::pair<Dataset, Dataset> Dataset::split(double fraction, std::uint64_t seed) const {
  if (!(fraction >= 0 && fraction <= 1))
    throw ValueError(fmt::format("[split] fraction {}: must lie in [0, 1]", fraction));
  const std::vector<std::int64_t> order = random_permutation(size(), {seed, split_stream});
  const auto first = static_cast<std::size_t>(std::llround(fraction * static_cast<double>(size())));
  const std::span<const std::int64_t> all(order);
  const HostBatch head = rows(all.first(first)), tail = rows(all.subspan(first));
  return {Dataset(head.x, head.y), Dataset(tail.x, tail.y)};
}

Dataset Dataset::with_row_shape(const Shape& row) const {
  Shape shape = row;
  shape.insert(0, size());
  if (row.numel() != row_shape(x_).numel()) {
    throw ShapeError(fmt::format("[dataset] rows of shape {} as {}: the number of features differs",
                                 to_string(row_shape(x_)), to_string(row)));
  }
  return with_x(HostTensor::view(x_.dtype(), shape, x_.bytes(), std::make_shared<HostTensor>(x_)));
}

Standardizer Standardizer::fit(const HostTensor& x) {
  if (x.shape().rank() < 1 || x.shape()[0] < 1)
    throw ShapeError(fmt::format("[standardize] x {}: needs at least one row", to_string(x.shape())));
  Standardizer result;
  const auto features = static_cast<std::size_t>(row_shape(x).numel());
  const double count = static_cast<double>(x.shape()[0]);
  std::vector<double> values(static_cast<std::size_t>(x.numel()));
  detail::convert_elements(x.dtype(), x.bytes().data(), DType::f64, values.data(), x.numel());
  result.mean_.assign(features, 0);
  result.deviation_.assign(features, 0);
  for (std::size_t i = 0; i < values.size(); ++i) result.mean_[i % features] += values[i] / count;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double d = values[i] - result.mean_[i % features];
    result.deviation_[i % features] += d * d / count;
  }
  for (double& d : result.deviation_) d = d > 0 ? std::sqrt(d) : 1;
  return result;
}

HostTensor Standardizer::apply(const HostTensor& x) const {
  const std::size_t features = mean_.size();
  if (x.shape().rank() < 1 || row_shape(x).numel() != static_cast<std::int64_t>(features)) {
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

}  // namespace ferrite::data
