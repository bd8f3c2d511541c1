// Where the gradients of a model lie while they are reduced: one array per dtype, cut into buckets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ferrite/core/array.hpp"

namespace ferrite::dist {

/// A part of one array that is reduced by one call: the gradients of neighbouring parameters.
struct Bucket {
  std::size_t arena = 0;
  std::int64_t begin = 0, count = 0;    // elements of the arena
  std::vector<std::size_t> parameters;  // by their index in the model
};

/// The same for ranks with the same parameters and bucket_bytes.
struct BucketPlan {
  /// Where the gradient of a parameter begins.
  struct Place {
    std::size_t arena = 0, bucket = 0;
    std::int64_t begin = 0;
  };
  std::vector<Place> places;    // by parameter
  std::vector<Bucket> buckets;  // in the order in which they are reduced
  std::vector<Meta> arenas;     // one axis each
};

/// Parameters are taken in reverse order, about the order in which backward completes their gradients. A
/// bucket ends with the parameter that brings it to `bucket_bytes`. Parameters are not cut, and each begins
/// at a multiple of 64 bytes, so that no two begin at the same element. ValueError unless bucket_bytes >= 1.
FERRITE_API BucketPlan plan_buckets(std::span<const Meta> parameters, std::int64_t bucket_bytes);

}  // namespace ferrite::dist
