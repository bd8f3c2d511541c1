// Matrices for kernels: a pointer, two extents, two strides. Also scratch memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "ferrite/core/array.hpp"
#include "ferrite/ops/op.hpp"

namespace ferrite::cpu {

/// Memory for one piece of work, from the allocator that also serves tensors: reused and counted.
template <class T>
class Scratch {
 public:
  explicit Scratch(std::int64_t count)
      : buffer_(host_allocator().allocate(static_cast<std::size_t>(count) * sizeof(T))) {}
  T* data() const { return static_cast<T*>(buffer_->data()); }

 private:
  std::shared_ptr<Buffer> buffer_;
};

/// The type in which products of T are accumulated. Integers are unsigned so that they wrap around.
template <class T>
using Wide = std::conditional_t<std::is_same_v<T, double>, double,
                                std::conditional_t<std::is_integral_v<T>, std::uint64_t, float>>;

template <class To, class From>
FERRITE_INLINE To convert_wide(From x) {
  if constexpr (std::is_integral_v<From>)
    return static_cast<To>(x);
  else
    return convert<To>(x);
}

/// True if all inputs are f32, or all are f64, as the fused contractions require.
inline bool all_f32_or_f64(MetaSpan in) {
  const DType dtype = in[0].dtype;
  return (dtype == DType::f32 || dtype == DType::f64) &&
         std::all_of(in.begin(), in.end(), [&](const Meta& m) { return m.dtype == dtype; });
}

/// Strides count elements and may be anything, 0 and negative included.
template <class T>
struct Matrix {
  T* data;
  std::int64_t rows, columns, row_stride, column_stride;

  Matrix(T* first, std::int64_t m, std::int64_t n, std::int64_t row_step, std::int64_t column_step)
      : data(first), rows(m), columns(n), row_stride(row_step), column_stride(column_step) {}
  /// Rows of unit stride, `row_step` apart.
  Matrix(T* first, std::int64_t m, std::int64_t n, std::int64_t row_step)
      : Matrix(first, m, n, row_step, 1) {}
  /// Dense.
  Matrix(T* first, std::int64_t m, std::int64_t n) : Matrix(first, m, n, n, 1) {}
  operator Matrix<const T>() const { return {data, rows, columns, row_stride, column_stride}; }

  T& operator()(std::int64_t i, std::int64_t j) const { return data[i * row_stride + j * column_stride]; }
  Matrix block(std::int64_t i, std::int64_t j, std::int64_t m, std::int64_t n) const {
    return {&(*this)(i, j), m, n, row_stride, column_stride};
  }
  Matrix transposed() const { return {data, columns, rows, column_stride, row_stride}; }
};

/// The last two axes of an array, at its first element.
template <class T>
Matrix<T> matrix_of(const Array& x) {
  const Layout& l = x.layout();
  const int last = l.shape.rank() - 1;
  return {x.data<std::remove_const_t<T>>(), l.shape[last - 1], l.shape[last], l.strides[last - 1],
          l.strides[last]};
}

}  // namespace ferrite::cpu
