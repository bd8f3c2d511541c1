// Tables as linear models read them: scaled numbers, flags of missing ones, and one weight per category.
#pragma once

#include "ferrite/models/pfn/table_encoder.hpp"

namespace ferrite::pfn::detail {

/// Of the cells that are there; a column without deviation has 1.
struct ColumnMoments {
  double mean = 0, deviation = 1;
  bool has_missing = false;
  bool is_category = false;
};
std::vector<ColumnMoments> column_moments(const EncodedTable& train);

/// Row r is dense[r] beside ones at the places in active[r], of which -1 is none.
struct Design {
  std::size_t rows = 0, dense_width = 0, active_width = 0;
  std::vector<double> dense;         // [rows, dense_width]
  std::vector<std::int32_t> active;  // [rows, active_width]
};

class DesignFit {
 public:
  DesignFit() = default;
  explicit DesignFit(const EncodedTable& train);

  /// How many weights a row has: those of dense columns first.
  std::size_t width() const { return width_; }
  Design apply(const EncodedTable& table) const;

 private:
  std::vector<ColumnMoments> moments_;
  std::vector<std::size_t> first_;  // the first weight of a category column, of a number its flag's
  std::vector<std::int64_t> categories_;
  std::size_t numbers_ = 0, dense_width_ = 0, width_ = 0;
};

}  // namespace ferrite::pfn::detail
