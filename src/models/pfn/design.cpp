#include "models/pfn/design.hpp"

#include <cmath>

#include "ferrite/core/thread_pool.hpp"

namespace ferrite::pfn::detail {

std::vector<ColumnMoments> column_moments(const EncodedTable& train) {
  std::vector<ColumnMoments> all(train.features.size());
  parallel_for(train.columns(), [&](std::int64_t i) {
    const auto c = static_cast<std::size_t>(i);
    ColumnMoments& m = all[c];
    m.is_category = train.features[c].is_category;
    double sum = 0, count = 0, squares = 0;
    for (std::int64_t r = 0; r < train.rows; ++r) {
      const auto v = static_cast<double>(train.row(r)[c]);
      if (std::isnan(v)) {
        m.has_missing = true;
      } else {
        sum += v;
        ++count;
      }
    }
    if (count > 0) m.mean = sum / count;
    for (std::int64_t r = 0; r < train.rows; ++r) {
      const double d = static_cast<double>(train.row(r)[c]) - m.mean;
      if (!std::isnan(d)) squares += d * d;
    }
    if (squares > 0) m.deviation = std::sqrt(squares / count);
  });
  return all;
}

DesignFit::DesignFit(const EncodedTable& train) : moments_(column_moments(train)) {
  first_.resize(moments_.size());
  for (const ColumnMoments& m : moments_) numbers_ += !m.is_category;
  dense_width_ = numbers_;
  for (std::size_t c = 0; c < moments_.size(); ++c)
    if (!moments_[c].is_category && moments_[c].has_missing) first_[c] = dense_width_++;
  width_ = dense_width_;
  for (std::size_t c = 0; c < moments_.size(); ++c) {
    categories_.push_back(train.features[c].categories);
    if (!moments_[c].is_category) continue;
    first_[c] = width_;
    width_ += static_cast<std::size_t>(categories_[c]) + moments_[c].has_missing;
  }
}

Design DesignFit::apply(const EncodedTable& table) const {
  Design out;
  out.rows = static_cast<std::size_t>(table.rows);
  out.dense_width = dense_width_;
  out.active_width = moments_.size() - numbers_;
  out.dense.resize(out.rows * out.dense_width);
  out.active.resize(out.rows * out.active_width, -1);
  for (std::size_t r = 0; r < out.rows; ++r) {
    double* const dense = out.dense.data() + r * out.dense_width;
    std::int32_t* const active = out.active.data() + r * out.active_width;
    std::size_t number = 0, category = 0;
    for (std::size_t c = 0; c < moments_.size(); ++c) {
      const ColumnMoments& m = moments_[c];
      const auto v = static_cast<double>(table.row(static_cast<std::int64_t>(r))[c]);
      if (m.is_category) {
        const double code = std::isnan(v) && m.has_missing ? static_cast<double>(categories_[c]) : v;
        if (!std::isnan(code))
          active[category] = static_cast<std::int32_t>(first_[c]) + static_cast<int>(code);
        ++category;
      } else {
        dense[number++] = std::isnan(v) ? 0 : (v - m.mean) / m.deviation;
        if (m.has_missing) dense[first_[c]] = std::isnan(v);
      }
    }
  }
  return out;
}

}  // namespace ferrite::pfn::detail
