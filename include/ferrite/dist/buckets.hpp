// Where the gradients of a model lie while they are reduced: one array per dtype, cut into buckets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ferrite/core/array.hpp"
#include "ferrite/optim/shards.hpp"

namespace ferrite::dist {

/// A part of one array that is reduced by one call: the gradients of neighbouring parameters.
struct Bucket {
  std::size_t arena = 0;
  std::int64_t begin = 0, count = 0;    // elements of the arena
  std::vector<std::size_t> parameters;  // by their index in the model
};

/// The same for ranks with the same parameters, bucket_bytes and parts.
struct BucketPlan {
  /// Where the gradient of a parameter begins.
  struct Place {
    std::size_t arena = 0, bucket = 0;
    std::int64_t begin = 0;
  };
  std::vector<Place> places;    // by parameter
  std::vector<Bucket> buckets;  // in the order in which they are reduced
  std::vector<Meta> arenas;     // one axis each
  int parts = 1;                // equal ones, that every bucket can be cut into
};

/// Parameters are taken in reverse order, about the order in which backward completes their gradients. A
/// bucket ends with the parameter that brings it to `bucket_bytes`. Parameters are not cut, and each begins
/// at a multiple of 64 bytes, so that no two begin at the same element. Parts are multiples of 64 bytes too.
/// ValueError unless bucket_bytes and parts are at least 1.
FERRITE_API BucketPlan plan_buckets(std::span<const Meta> parameters, std::int64_t bucket_bytes,
                                    int parts = 1);

/// Which elements of a parameter, of `numel`, lie in a part of its bucket; none perhaps.
FERRITE_API optim::Share share_of(const BucketPlan& plan, std::size_t parameter, std::int64_t numel,
                                  int part);

}  // namespace ferrite::dist
