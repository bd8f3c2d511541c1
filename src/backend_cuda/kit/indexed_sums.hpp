// Sums over equal indices: scatter_add and the gradient of embedding.
#pragma once

#include "ferrite/cuda/call.hpp"

namespace ferrite::cuda {

/// What is added, and where. All three arrays have the index's shape; a source of 16-bit floats may have a
/// target of f32, otherwise both have one dtype. `target` has stride 0 along the
/// `scattered` axes (a bit mask); there the index gives the offset: index * step, with index in [-extent,
/// extent).
struct IndexedSum {
  Array target, index, source;
  std::int64_t extent, step;
  unsigned scattered;
};

/// Every element of the target that an index names becomes the sum of its sources; with `add`, the sum is
/// added to it once. The sources are sorted by target and added in order, in chunks of a fixed length: no
/// atomics, the same bits on every run. Axes along which the index is broadcast move as rows.
void add_indexed(const Call& call, const IndexedSum& sum, bool add);

}  // namespace ferrite::cuda
