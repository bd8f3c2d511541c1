// Folds: what a reduction does to its elements. They know only numbers and blocks; reduction.cpp decides
// which elements meet in which order.
#pragma once

#include <cstdint>
#include <memory>

#include "ferrite/cpu/blocks.hpp"
#include "ferrite/ops/argreduce.hpp"
#include "ferrite/ops/reduce.hpp"

namespace ferrite::cpu {

/// Folds blocks into totals, an array of whatever the fold keeps for one output. Positions count along the
/// reduction in row-major order; only argmax and argmin need them.
class Fold {
 public:
  Fold(DType input_dtype, DType result_dtype, std::size_t size_of_total)
      : input(input_dtype), result(result_dtype), total_size(size_of_total) {}
  virtual ~Fold() = default;

  const DType input;   // of the blocks it reads
  const DType result;  // of the blocks it gives
  const std::size_t total_size;

  virtual void start(void* totals, std::int64_t n) const = 0;
  /// totals[j] folds the n elements of run j; runs begin `stride` elements apart, their elements stand at
  /// positions first, first + 1, ...
  virtual void fold_runs(void* totals, std::int64_t count, const void* runs, std::int64_t stride,
                         std::int64_t n, std::int64_t first) const = 0;
  /// totals[j] folds element j of every row; rows begin `stride` elements apart, row r stands at position
  /// first + r.
  virtual void fold_rows(void* totals, const void* rows, std::int64_t stride, std::int64_t count,
                         std::int64_t n, std::int64_t first) const = 0;
  /// Folds in totals of later positions.
  virtual void merge(void* totals, const void* later, std::int64_t n) const = 0;
  virtual void results(const void* totals, void* y, std::int64_t n) const = 0;
};

/// At most this many bytes for one total.
inline constexpr std::size_t max_total_size = 16;

/// Sums and products of floats are kept in f64; of f32, four are added before they are widened.
const Fold& fold_for(op::ReduceFn fn, DType input);
const Fold& fold_for(op::ArgReduceFn fn, DType input);

}  // namespace ferrite::cpu
