// Batches of tokens that a language model can learn.
#pragma once

#include "ferrite/data/batch.hpp"

namespace ferrite::testing {

constexpr std::int64_t token_vocabulary = 61;

/// Texts in which each token follows from the one before.
inline data::HostBatch token_batch(std::int64_t number, std::int64_t rows, std::int64_t length) {
  std::vector<std::int32_t> x, y;
  for (std::int64_t row = 0; row < rows; ++row) {
    std::int64_t token = (number * 13 + row * 7) % token_vocabulary;
    for (std::int64_t i = 0; i < length; ++i) {
      x.push_back(static_cast<std::int32_t>(token));
      token = (token * 5 + 3) % token_vocabulary;
      y.push_back(static_cast<std::int32_t>(token));
    }
  }
  const Shape shape{rows, length};
  return {HostTensor::from(std::span<const std::int32_t>(x), shape),
          HostTensor::from(std::span<const std::int32_t>(y), shape)};
}

}  // namespace ferrite::testing
