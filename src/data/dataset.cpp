// Rows and splits of data sets, on host memory.
#include "ferrite/data/dataset.hpp"

#include <fmt/format.h>

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

/// Distinct from the streams that an Rng of the same seed hands out, which count from 0.
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

HostBatch Dataset::rows(std::span<const std::int64_t> numbers) const {
  for (std::int64_t i : numbers) {
    if (i < 0 || i >= size())
      throw ValueError(fmt::format("[dataset] row {}: must lie in [0, {})", i, size()));
  }
  HostBatch batch{pick(x_, numbers), pick(y_, numbers)};
  for (const HostTensor& input : more_) batch.more.push_back(pick(input, numbers));
  return batch;
}

std::pair<Dataset, Dataset> Dataset::split(double fraction, std::uint64_t seed) const {
  if (!(fraction >= 0 && fraction <= 1))
    throw ValueError(fmt::format("[split] fraction {}: must lie in [0, 1]", fraction));
  const std::vector<std::int64_t> order = random_permutation(size(), {seed, split_stream});
  const auto first = static_cast<std::size_t>(std::llround(fraction * static_cast<double>(size())));
  const std::span<const std::int64_t> all(order);
  const auto part = [&](std::span<const std::int64_t> numbers) {
    HostBatch batch = rows(numbers);
    Dataset data(std::move(batch.x), std::move(batch.y));
    data.more_ = std::move(batch.more);
    return data;
  };
  return {part(all.first(first)), part(all.subspan(first))};
}

Dataset Dataset::with_x(HostTensor x) const {
  Dataset data(std::move(x), y_);
  data.more_ = more_;
  return data;
}

Dataset Dataset::with_input(HostTensor input) const {
  if (input.shape().rank() < 1 || input.shape()[0] != size()) {
    throw ShapeError(fmt::format("[dataset] input {}: needs one row for each of the {} examples",
                                 to_string(input.shape()), size()));
  }
  Dataset data = *this;
  data.more_.push_back(std::move(input));
  return data;
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

}  // namespace ferrite::data
