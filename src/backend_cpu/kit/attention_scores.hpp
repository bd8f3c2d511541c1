// Shared by the forward and the backward kernel of attention: heads as matrices, and blocks of masked scores.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>

#include "backend_cpu/gemm/gemm.hpp"
#include "ferrite/cpu/rows.hpp"

namespace ferrite::cpu {

/// Queries and keys per block of the backward kernel. Two blocks of scores stay in the second-level cache,
/// and gemm is near its full speed.
inline constexpr std::int64_t query_block = 64, key_block = 128;

inline bool has_dense_rows(const Layout& l) { return l.shape[3] == 1 || l.strides[3] == 1; }

/// Where row `row` of a head of x [B, H, rows, columns] begins, in elements; heads are counted through all
/// batches.
inline std::int64_t start_of_row(const Array& x, std::int64_t head, std::int64_t row) {
  const Shape &shape = x.shape(), &strides = x.layout().strides;
  return head / shape[1] * strides[0] + head % shape[1] * strides[1] + row * strides[2];
}

/// x [B, H, rows, columns] as B H matrices whose rows have unit stride.
template <class T>
class Heads {
 public:
  /// Copies x if its rows are not dense.
  Heads(Cpu& cpu, const Array& x) : array_(has_dense_rows(x.layout()) ? x : dense(cpu, x)) {}

  /// `count` rows of one head from `row` on.
  Matrix<const T> rows(std::int64_t head, std::int64_t row, std::int64_t count) const {
    return {array_.data<T>() + start_of_row(array_, head, row), count, array_.shape()[3],
            array_.layout().strides[2]};
  }

 private:
  Array array_;
};

/// The same of an output: its heads are written where they lie, or, if its rows are not dense, into a
/// temporary that commit() copies into place.
template <class T>
class HeadsOut {
 public:
  HeadsOut(Cpu& cpu, const Array& out) : array_(out) {
    if (!has_dense_rows(out.layout())) array_ = temporary_.emplace(cpu, out, false).array();
  }
  T* row(std::int64_t head, std::int64_t row) const {
    return array_.data<T>() + start_of_row(array_, head, row);
  }
  std::int64_t row_stride() const { return array_.layout().strides[2]; }
  void commit() {
    if (temporary_) temporary_->commit();
  }

 private:
  Array array_;
  std::optional<Destination> temporary_;
};

/// Scaled and masked scores, block by block. Heads are those of q.
template <class T>
class Scores {
 public:
  /// `op` is Attention or AttentionBackward.
  template <class Op>
  Scores(Cpu& cpu, const Op& op, const Array& q, const Array& k, const Array* mask)
      : q_(cpu, q),
        k_(cpu, k),
        heads_(q.shape()[1]),
        sharing_(k.shape()[1] > 0 ? heads_ / k.shape()[1] : 1),
        scale_(static_cast<T>(op.scale)),
        causal_(op.causal),
        shift_(k.shape()[2] - q.shape()[2]),
        queries_(q.shape()[2]),
        keys_(k.shape()[2]),
        window_(op.window == 0 ? queries_ + keys_ : std::min(op.window, queries_ + keys_)) {
    if (!mask) return;
    mask_ = mask->with_layout(mask->layout().expand({q.shape()[0], heads_, q.shape()[2], keys_}));
  }

  const Heads<T>& q() const { return q_; }
  const Heads<T>& k() const { return k_; }

  /// The heads of q that read one head of k and v, and which that is.
  std::int64_t sharing() const { return sharing_; }
  std::int64_t key_head(std::int64_t head) const { return head / sharing_; }

  /// Keys [first_key(t), end_key(t)) are those that causality and the window let query t see.
  std::int64_t first_key(std::int64_t query) const {
    return std::clamp<std::int64_t>(query + shift_ - window_ + 1, 0, keys_);
  }
  std::int64_t end_key(std::int64_t query) const {
    return std::clamp<std::int64_t>(query + shift_ + (causal_ ? 1 : window_), 0, keys_);
  }
  /// Queries [first_query(s), end_query(s)) are those that see key s.
  std::int64_t first_query(std::int64_t key) const {
    return std::clamp<std::int64_t>(key - shift_ - (causal_ ? 0 : window_ - 1), 0, queries_);
  }
  std::int64_t end_query(std::int64_t key) const {
    return std::clamp<std::int64_t>(key - shift_ + window_, 0, queries_);
  }

  /// Scores [rows, columns] of the queries from `query` on and the keys from `key` on; -infinity where
  /// hidden.
  void compute(std::int64_t head, std::int64_t query, std::int64_t rows, std::int64_t key,
               std::int64_t columns, T* scores) const {
    const Matrix<T> block(scores, rows, columns);
    gemm<T>(scale_, q_.rows(head, query, rows), k_.rows(key_head(head), key, columns).transposed(), block,
            false);
    hide(head, query, key, block);
  }
  /// What products are multiplied by to become scores.
  T scale() const { return scale_; }
  /// Scores (i, j) of query + i and key + j become -infinity where they are hidden; the mask is added.
  void hide(std::int64_t head, std::int64_t query, std::int64_t key, const Matrix<T>& scores) const {
    const std::int64_t columns = scores.columns;
    for (std::int64_t i = 0; i < scores.rows; ++i) {
      if (mask_.defined()) apply_mask(head, query + i, key, scores.block(i, 0, 1, columns));
      const auto within = [&](std::int64_t end) { return std::clamp<std::int64_t>(end - key, 0, columns); };
      for (std::int64_t j = 0; j < within(first_key(query + i)); ++j) scores(i, j) = hidden;
      for (std::int64_t j = within(end_key(query + i)); j < columns; ++j) scores(i, j) = hidden;
    }
  }

 private:
  static constexpr T hidden = -std::numeric_limits<T>::infinity();

  void apply_mask(std::int64_t head, std::int64_t query, std::int64_t key, const Matrix<T>& row) const {
    const Shape& s = mask_.layout().strides;
    const std::int64_t offset = head / heads_ * s[0] + head % heads_ * s[1] + query * s[2] + key * s[3];
    if (mask_.dtype() == DType::bool_) {
      const auto* keep = mask_.data<std::uint8_t>() + offset;
      for (std::int64_t j = 0; j < row.columns; ++j)
        if (keep[j * s[3]] == 0) row(0, j) = hidden;
    } else {
      const T* added = mask_.data<T>() + offset;
      for (std::int64_t j = 0; j < row.columns; ++j) row(0, j) += added[j * s[3]];
    }
  }

  Heads<T> q_, k_;
  std::int64_t heads_, sharing_;
  T scale_;
  bool causal_;
  std::int64_t shift_, queries_, keys_, window_;
  Array mask_;
};

/// The kernels take f32 and f64, with a mask of bool or of the same dtype.
inline bool accepts_attention(MetaSpan in, std::size_t mask_index) {
  if (!all_f32_or_f64(in.first(std::min(in.size(), mask_index)))) return false;
  return in.size() <= mask_index || in[mask_index].dtype == DType::bool_ ||
         in[mask_index].dtype == in[0].dtype;
}

}  // namespace ferrite::cpu
