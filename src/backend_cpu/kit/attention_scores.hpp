// Shared by the forward and the backward kernel of attention: heads as matrices, and blocks of masked scores.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "backend_cpu/gemm/gemm.hpp"
#include "ferrite/cpu/rows.hpp"

namespace ferrite::cpu {

/// Queries and keys per block. Two blocks of scores stay in the second-level cache, and gemm is near its full
/// speed.
inline constexpr std::int64_t query_block = 64, key_block = 128;

/// x [B, H, rows, columns] as B H matrices whose rows have unit stride.
template <class T>
class Heads {
 public:
  /// Copies x if its rows are not dense.
  Heads(Cpu& cpu, const Array& x) : array_(has_dense_rows(x.layout()) ? x : dense(cpu, x)) {}

  /// `count` rows of one head from `row` on; heads are counted through all batches.
  Matrix<const T> rows(std::int64_t head, std::int64_t row, std::int64_t count) const {
    const Shape &shape = array_.shape(), &strides = array_.layout().strides;
    const std::int64_t offset = head / shape[1] * strides[0] + head % shape[1] * strides[1];
    return {array_.data<T>() + offset + row * strides[2], count, shape[3], strides[2]};
  }

 private:
  static bool has_dense_rows(const Layout& l) { return l.shape[3] == 1 || l.strides[3] == 1; }

  Array array_;
};

/// Scaled and masked scores, block by block.
template <class T>
class Scores {
 public:
  Scores(Cpu& cpu, const Array& q, const Array& k, const Array* mask, bool causal, double scale)
      : q_(cpu, q),
        k_(cpu, k),
        heads_(q.shape()[1]),
        scale_(static_cast<T>(scale)),
        causal_(causal),
        shift_(k.shape()[2] - q.shape()[2]),
        keys_(k.shape()[2]) {
    if (!mask) return;
    mask_ = mask->with_layout(mask->layout().expand({q.shape()[0], heads_, q.shape()[2], keys_}));
  }

  const Heads<T>& q() const { return q_; }
  const Heads<T>& k() const { return k_; }

  /// Keys [0, keys_seen(t)) are those that causality lets query t see.
  std::int64_t keys_seen(std::int64_t query) const {
    return causal_ ? std::clamp<std::int64_t>(query + shift_ + 1, 0, keys_) : keys_;
  }
  /// The first query that sees this key.
  std::int64_t first_query(std::int64_t key) const {
    return causal_ ? std::max<std::int64_t>(key - shift_, 0) : 0;
  }

  /// Scores [rows, columns] of the queries from `query` on and the keys from `key` on; -infinity where
  /// hidden.
  void compute(std::int64_t head, std::int64_t query, std::int64_t rows, std::int64_t key,
               std::int64_t columns, T* scores) const {
    gemm<T>(scale_, q_.rows(head, query, rows), k_.rows(head, key, columns).transposed(),
            Matrix<T>(scores, rows, columns), false);
    for (std::int64_t i = 0; i < rows; ++i) {
      T* row = scores + i * columns;
      if (mask_.defined()) apply_mask(head, query + i, key, columns, row);
      const std::int64_t seen = std::clamp<std::int64_t>(keys_seen(query + i) - key, 0, columns);
      std::fill(row + seen, row + columns, hidden);
    }
  }

 private:
  static constexpr T hidden = -std::numeric_limits<T>::infinity();

  void apply_mask(std::int64_t head, std::int64_t query, std::int64_t key, std::int64_t columns,
                  T* row) const {
    const Shape& s = mask_.layout().strides;
    const std::int64_t offset = head / heads_ * s[0] + head % heads_ * s[1] + query * s[2] + key * s[3];
    if (mask_.dtype() == DType::bool_) {
      const auto* keep = mask_.data<std::uint8_t>() + offset;
      for (std::int64_t j = 0; j < columns; ++j) row[j] = keep[j * s[3]] != 0 ? row[j] : hidden;
    } else {
      const T* added = mask_.data<T>() + offset;
      for (std::int64_t j = 0; j < columns; ++j) row[j] += added[j * s[3]];
    }
  }

  Heads<T> q_, k_;
  std::int64_t heads_;
  T scale_;
  bool causal_;
  std::int64_t shift_, keys_;
  Array mask_;
};

/// The kernels take f32 and f64, with a mask of bool or of the same dtype.
inline bool accepts_attention(MetaSpan in, std::size_t mask_index) {
  if (!all_f32_or_f64(in.first(std::min(in.size(), mask_index)))) return false;
  return in.size() <= mask_index || in[mask_index].dtype == DType::bool_ ||
         in[mask_index].dtype == in[0].dtype;
}

}  // namespace ferrite::cpu
