// Shape: up to eight extents, by value, no heap.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "ferrite/core/export.hpp"

namespace ferrite {

inline constexpr int max_rank = 8;

/// A short list of integers: extents, axes, strides. At most max_rank entries, stored inline.
class FERRITE_API Shape {
 public:
  constexpr Shape() = default;
  Shape(std::initializer_list<std::int64_t> dims) : Shape(std::span(dims.begin(), dims.size())) {}
  explicit Shape(std::span<const std::int64_t> dims);
  static Shape filled(int rank, std::int64_t value);

  int rank() const { return rank_; }
  bool empty() const { return rank_ == 0; }
  std::int64_t operator[](int i) const { return dims_[static_cast<std::size_t>(i)]; }
  std::int64_t& operator[](int i) { return dims_[static_cast<std::size_t>(i)]; }
  const std::int64_t* begin() const { return dims_.data(); }
  const std::int64_t* end() const { return dims_.data() + rank_; }
  std::int64_t back() const { return dims_[static_cast<std::size_t>(rank_ - 1)]; }

  /// Appends an extent; throws ShapeError beyond rank 8.
  void push_back(std::int64_t dim);
  void insert(int position, std::int64_t dim);
  void erase(int position);

  /// Product of the extents; 1 for rank 0. Overflow is excluded by checked_numel at creation.
  std::int64_t numel() const {
    std::int64_t n = 1;
    for (int i = 0; i < rank_; ++i) n *= dims_[static_cast<std::size_t>(i)];
    return n;
  }

  friend bool operator==(const Shape& a, const Shape& b) {
    if (a.rank_ != b.rank_) return false;
    for (int i = 0; i < a.rank_; ++i)
      if (a[i] != b[i]) return false;
    return true;
  }

 private:
  std::array<std::int64_t, max_rank> dims_{};
  int rank_ = 0;
};

/// "[2, 3]"
FERRITE_API std::string to_string(const Shape& shape);

/// Throws ShapeError if an extent is negative or the byte count overflows 63 bits.
FERRITE_API void check_extents(std::string_view op, const Shape& shape);

/// NumPy broadcasting of two shapes; the error names the op, both shapes and the axis.
FERRITE_API Shape broadcast(std::string_view op, const Shape& a, const Shape& b);

/// Maps -rank..rank-1 to 0..rank-1; throws ShapeError naming the op and the valid range.
FERRITE_API int normalize_axis(std::string_view op, std::int64_t axis, int rank);

/// Normalised, sorted, checked for duplicates. An empty list means all axes.
FERRITE_API Shape normalize_axes(std::string_view op, const Shape& axes, int rank);

}  // namespace ferrite
