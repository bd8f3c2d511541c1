// Products of strided matrices. The result is cut into tiles by shape alone, never by the number of threads,
// and each tile is one gemm, so that any number of threads gives the same bits. An operand whose strides gemm
// cannot express, or whose elements are not those gemm computes in, is copied panel by panel; the others are
// not.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <type_traits>

#include "backend_cpu/gemm.hpp"
#include "ferrite/core/array.hpp"
#include "ferrite/core/thread_pool.hpp"
#include "ferrite/op.hpp"

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

/// What products of T are accumulated in. Integers are unsigned so that they wrap around.
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

/// True if all inputs are f32, or all are f64: what the fused contractions take.
inline bool all_f32_or_f64(MetaSpan in) {
  const DType dtype = in[0].dtype;
  return (dtype == DType::f32 || dtype == DType::f64) &&
         std::all_of(in.begin(), in.end(), [&](const Meta& m) { return m.dtype == dtype; });
}

template <class T>
struct Matrix {
  T* data;
  std::int64_t rows, columns, row_stride, column_stride;

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

/// The matrix as gemm takes it, or nothing where its strides are neither those of rows nor of columns.
template <class T>
std::optional<Operand<std::remove_const_t<T>>> as_operand(const Matrix<T>& x) {
  const auto dense_rows = [](const Matrix<T>& y) {
    return (y.column_stride == 1 || y.columns == 1) && (y.row_stride >= y.columns || y.rows == 1);
  };
  const auto stride = [](const Matrix<T>& y) { return y.rows == 1 ? y.columns : y.row_stride; };
  if (dense_rows(x)) return {{x.data, stride(x)}};
  if (const Matrix<T> t = x.transposed(); dense_rows(t)) return {{x.data, stride(t), true}};
  return {};
}

/// Copies x into `panel`, in the order that reads x's memory best.
template <class W, class T>
Operand<W> pack(const Matrix<const T>& x, W* panel) {
  const bool transposed = std::abs(x.row_stride) < std::abs(x.column_stride);
  const Matrix<const T> y = transposed ? x.transposed() : x;
  for (std::int64_t i = 0; i < y.rows; ++i) {
    const T* row = &y(i, 0);
    W* target = panel + i * y.columns;
    if (y.column_stride == 1) {
      for (std::int64_t j = 0; j < y.columns; ++j) target[j] = convert_wide<W>(row[j]);
    } else {
      for (std::int64_t j = 0; j < y.columns; ++j) target[j] = convert_wide<W>(row[j * y.column_stride]);
    }
  }
  return {panel, y.columns, transposed};
}

/// x itself if gemm can read it, else a copy in `panel`.
template <class W, class T>
Operand<W> load(const Matrix<const T>& x, W* panel) {
  if constexpr (std::is_same_v<T, W>) {
    if (const auto operand = as_operand(x)) return *operand;
  }
  return pack<W>(x, panel);
}

/// True if gemm can work on the elements of x where they are.
template <class W, class T>
bool is_direct(const Matrix<T>& x) {
  return std::is_same_v<std::remove_const_t<T>, W> && as_operand(x).has_value();
}

/// c = a b, or c += a b, on the calling thread. C is T, or Wide<T> for sums that are added up further.
template <class T, class C>
void multiply_tile(const Matrix<const T>& a, const Matrix<const T>& b, const Matrix<C>& c, bool add) {
  using W = Wide<T>;
  const std::int64_t m = c.rows, n = c.columns, k = a.columns;
  const bool direct_a = is_direct<W>(a), direct_b = is_direct<W>(b);
  const auto target = as_operand(c);
  const bool direct_c = std::is_same_v<C, W> && target && !target->transposed;
  const auto accumulate = [&](W* sums, std::int64_t stride, bool fresh, std::int64_t depth, W* panels) {
    W* b_panel = panels + (direct_a ? 0 : m * depth);
    std::int64_t i = 0;
    do {
      const std::int64_t part = std::min(depth, k - i);
      const Operand<W> x = load(a.block(0, i, m, part), panels), y = load(b.block(i, 0, part, n), b_panel);
      gemm(m, n, part, W{1}, x, y, fresh && i == 0 ? W{0} : W{1}, sums, stride);
      i += depth;
    } while (i < k);
  };
  if constexpr (std::is_same_v<C, W>) {
    if (direct_a && direct_b && direct_c) return accumulate(c.data, target->stride, !add, k, nullptr);
  }
  constexpr std::int64_t panel_depth = 512;
  const std::int64_t depth = std::min(k, panel_depth);
  const std::int64_t sums_size = direct_c ? 0 : m * n;
  const Scratch<W> scratch(sums_size + (direct_a ? 0 : m * depth) + (direct_b ? 0 : depth * n));
  W* panels = scratch.data() + sums_size;
  if constexpr (std::is_same_v<C, W>) {
    if (direct_c) return accumulate(c.data, target->stride, !add, depth, panels);
  }
  accumulate(scratch.data(), n, true, depth, panels);
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      const W sum = scratch.data()[i * n + j];
      c(i, j) = convert_wide<C>(add ? convert_wide<W>(c(i, j)) + sum : sum);
    }
  }
}

/// How the products of a batch are cut: the result into tiles, or, for a small result of a long product, the
/// inner axis into parts whose sums are added up in order.
struct Tiling {
  std::int64_t row_tiles = 1, column_tiles = 1, depth_parts = 1;
};

/// gemm copies its operands for every tile, which costs 2 % for tiles of 256 x 512 and 10 % for 64 x 64; but
/// too few tiles leave threads idle. So the result is halved, always along its longer side (with rows
/// weighing double), until there are four tiles, and further, up to sixteen, as long as every tile keeps
/// enough work.
inline Tiling choose_tiling(std::int64_t batch, std::int64_t m, std::int64_t n, std::int64_t k) {
  constexpr std::int64_t most_tiles = 16, least_extent = 64, least_work = 1 << 22;
  const bool vector = m == 1 || n == 1;  // bound by memory: less work is worth a thread
  const std::int64_t work = m * n * std::max<std::int64_t>(k, 1);
  const std::int64_t pieces = std::min(work >> (vector ? 17 : 20), most_tiles / std::min(batch, most_tiles));
  Tiling tiling;
  if (pieces > 1 && k >= 4096 && k >= 8 * std::max(m, n) && m * n <= 1 << 16) {
    tiling.depth_parts = std::min(pieces, k / 1024);
    return tiling;
  }
  for (std::int64_t tiles = 1; 2 * tiles <= pieces; tiles *= 2) {
    const std::int64_t rows = m / tiling.row_tiles, columns = n / tiling.column_tiles;
    const bool halve_rows = 2 * rows > columns;
    if ((halve_rows ? rows : columns) / 2 < least_extent) break;
    const std::int64_t least_tile = tiles < 8 ? 64 * 128 : 128 * 128;
    if (tiles >= 4 && !vector && (work / (2 * tiles) < least_work || rows * columns / 2 < least_tile)) break;
    (halve_rows ? tiling.row_tiles : tiling.column_tiles) *= 2;
  }
  // Whatever the shape, a tile and its copies stay small.
  tiling.row_tiles = std::max(tiling.row_tiles, m / 512);
  tiling.column_tiles = std::max(tiling.column_tiles, n / 2048);
  return tiling;
}

template <class T>
struct Product {
  Matrix<const T> a, b;
  Matrix<T> c;
};

/// Adds up the parts of a product along its inner axis, each computed by one thread.
template <class T>
void multiply_in_parts(const Product<T>& p, std::int64_t parts, bool add) {
  using W = Wide<T>;
  const std::int64_t m = p.c.rows, n = p.c.columns, k = p.a.columns, depth = (k - 1) / parts + 1;
  const Scratch<W> sums(parts * m * n);
  parallel_for(parts, [&](std::int64_t part) {
    const std::int64_t begin = std::min(k, part * depth), size = std::min(depth, k - begin);
    const Matrix<W> sum{sums.data() + part * m * n, m, n, n, 1};
    multiply_tile(p.a.block(0, begin, m, size), p.b.block(begin, 0, size, n), sum, false);
  });
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      W sum = add ? convert_wide<W>(p.c(i, j)) : W{0};
      for (std::int64_t part = 0; part < parts; ++part) sum += sums.data()[(part * m + i) * n + j];
      p.c(i, j) = convert_wide<T>(sum);
    }
  }
}

/// Multiplies `batch` products of equal extents, product_at(i) for i in [0, batch), on the thread pool. Then
/// done(c, i, row, column) for each tile c of result i, which begins at (row, column), on the thread that has
/// it in its cache.
template <class T, class ProductAt, class Done>
void multiply(std::int64_t batch, ProductAt&& product_at, bool add, Done&& done) {
  if (batch == 0) return;
  const Product<T> first = product_at(0);
  const std::int64_t m = first.c.rows, n = first.c.columns, k = first.a.columns;
  if (m == 0 || n == 0) return;
  const Tiling tiling = choose_tiling(batch, m, n, k);
  if (tiling.depth_parts > 1) {
    for (std::int64_t index = 0; index < batch; ++index) {
      const Product<T> p = product_at(index);
      multiply_in_parts(p, tiling.depth_parts, add);
      done(p.c, index, std::int64_t{0}, std::int64_t{0});
    }
    return;
  }
  const auto tile_extent = [](std::int64_t extent, std::int64_t tiles) {
    constexpr std::int64_t kernel = 16;  // a multiple of what the libraries compute at once
    const std::int64_t size = (extent - 1) / tiles + 1;
    return tiles == 1 ? extent : (size + kernel - 1) / kernel * kernel;
  };
  const std::int64_t tile_rows = tile_extent(m, tiling.row_tiles),
                     tile_columns = tile_extent(n, tiling.column_tiles);
  const std::int64_t row_tiles = (m - 1) / tile_rows + 1, column_tiles = (n - 1) / tile_columns + 1;
  const std::int64_t tiles = row_tiles * column_tiles;
  // Small products share a chunk, so that it is worth a thread; which ones do has no influence on the bits.
  constexpr std::int64_t chunk_work = 1 << 18;
  const std::int64_t work = tile_rows * tile_columns * std::max<std::int64_t>(k, 1);
  parallel_ranges(batch * tiles, chunk_work / work, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t tile = begin; tile < end; ++tile) {
      const std::int64_t index = tile / tiles;
      const std::int64_t row = tile % tiles / column_tiles * tile_rows,
                         column = tile % column_tiles * tile_columns;
      const std::int64_t rows = std::min(tile_rows, m - row), columns = std::min(tile_columns, n - column);
      const Product<T> p = product_at(index);
      const Matrix<T> c = p.c.block(row, column, rows, columns);
      multiply_tile(p.a.block(row, 0, rows, k), p.b.block(0, column, k, columns), c, add);
      done(c, index, row, column);
    }
  });
}

}  // namespace ferrite::cpu
