// The innermost part of gemm: panels of a few rows or columns, copied into the order in which one kernel
// reads them, and that kernel, which keeps a tile of the result in registers. (Goto and van de Geijn 2008;
// Van Zee and van de Geijn 2015.)
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "backend_cpu/gemm/matrix.hpp"
#include "backend_cpu/simd/simd.hpp"

// Arrays stay in registers only if every loop over them is unrolled.
#if defined(__clang__)
#define FERRITE_UNROLL _Pragma("clang loop unroll(full)")
#else
#define FERRITE_UNROLL _Pragma("GCC unroll 16")
#endif

namespace ferrite::cpu {

/// Rows and columns of the tile in registers: as many accumulators as leave room for one row of b and the
/// broadcast element of a (of 32, 16 and 32 vector registers). Panels of no more than `few_panel_rows` rows
/// have a tile of their own: what is left of 32 columns of a head, with AVX-512 and AVX.
#if defined(__AVX512F__)
inline constexpr int panel_rows = 14, few_panel_rows = 4, panel_vectors = 2;
#elif defined(__aarch64__)
inline constexpr int panel_rows = 8, few_panel_rows = 4, panel_vectors = 3;
#elif defined(__AVX__)
inline constexpr int panel_rows = 6, few_panel_rows = 2, panel_vectors = 2;
#else
inline constexpr int panel_rows = 4, few_panel_rows = 2, panel_vectors = 2;
#endif
/// Rows of the tile that multiplies a panel of so many.
constexpr int rows_of_tile(std::int64_t rows) { return rows <= few_panel_rows ? few_panel_rows : panel_rows; }
template <class W>
inline constexpr int panel_columns = panel_vectors* static_cast<int>(simd::lanes<W>);

template <class W>
FERRITE_INLINE simd::Vec<W> load_vector(const W* p) {
  simd::Vec<W> v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

/// One step of the transposition of a square of vectors: exchanges its blocks of `distance` off the diagonal.
template <class W, std::int64_t distance, std::size_t... lane>
FERRITE_INLINE void exchange(simd::Vec<W> (&rows)[simd::lanes<W>], std::index_sequence<lane...>) {
  constexpr std::int64_t n = simd::lanes<W>;
  FERRITE_UNROLL
  for (std::int64_t i = 0; i < n; ++i) {
    if (i & distance) continue;
    const simd::Vec<W> x = rows[i], y = rows[i + distance];
    rows[i] = __builtin_shufflevector(x, y, ((lane & distance) ? n + lane - distance : lane)...);
    rows[i + distance] = __builtin_shufflevector(x, y, ((lane & distance) ? n + lane : lane + distance)...);
  }
  if constexpr (2 * distance < n) exchange<W, 2 * distance>(rows, std::index_sequence<lane...>{});
}

/// At most `width` rows of x with unit column stride: squares of them are transposed in registers.
template <int width, class W>
FERRITE_INLINE void pack_rows(const W* x, std::int64_t rows, std::int64_t row_stride, std::int64_t depth,
                              W* panel) {
  constexpr int n = static_cast<int>(simd::lanes<W>);
  const simd::Vec<W> none{};
  std::int64_t k = 0;
  for (; k + n <= depth; k += n) {
    // From the last square to the first, and from k upwards: if width is not a multiple of n, a vector runs
    // over into elements that are written later.
    for (int i = (width - 1) / n * n; i >= 0; i -= n) {
      simd::Vec<W> square[n];
      FERRITE_UNROLL
      for (int j = 0; j < n; ++j) square[j] = i + j < rows ? load_vector(x + (i + j) * row_stride + k) : none;
      exchange<W, 1>(square, std::make_index_sequence<n>{});
      FERRITE_UNROLL
      for (int j = 0; j < n; ++j) {
        W* const target = panel + (k + j) * width + i;
        if (target + n <= panel + depth * width)
          std::memcpy(target, &square[j], sizeof square[j]);
        else
          std::memcpy(target, &square[j], sizeof(W) * static_cast<std::size_t>(std::min(n, width - i)));
      }
    }
  }
  for (; k < depth; ++k) {
    for (int i = 0; i < width; ++i) panel[k * width + i] = i < rows ? x[i * row_stride + k] : W{0};
  }
}

/// panel[k * width + i] = x(i, k) for a matrix of at most `width` rows, 0 for the rows beyond.
template <int width, class W, class T>
void pack_panel(const Matrix<const T>& x, W* panel) {
  if constexpr (std::is_same_v<W, T>) {
    if (x.column_stride == 1) return pack_rows<width>(x.data, x.rows, x.row_stride, x.columns, panel);
    if (x.row_stride == 1) {
      for (std::int64_t k = 0; k < x.columns; ++k) {
        const W* const column = x.data + k * x.column_stride;
        if (x.rows == width)
          std::memcpy(panel + k * width, column, width * sizeof(W));
        else
          for (int i = 0; i < width; ++i) panel[k * width + i] = i < x.rows ? column[i] : W{0};
      }
      return;
    }
  }
  for (std::int64_t k = 0; k < x.columns; ++k) {
    for (int i = 0; i < width; ++i) panel[k * width + i] = i < x.rows ? convert_wide<W>(x(i, k)) : W{0};
  }
}

/// x(i, k) = panel[k * width + i] for the first `rows` rows of a panel: what pack_rows has done, undone.
template <int width, class W>
FERRITE_INLINE void unpack_rows(const W* panel, std::int64_t rows, std::int64_t depth, W* x,
                                std::int64_t row_stride) {
  constexpr int n = static_cast<int>(simd::lanes<W>);
  static_assert(width % n == 0, "squares must not reach over the edge of a panel");
  std::int64_t k = 0;
  for (; k + n <= depth; k += n) {
    for (int i = 0; i < rows; i += n) {
      simd::Vec<W> square[n];
      FERRITE_UNROLL
      for (int j = 0; j < n; ++j) square[j] = load_vector(panel + (k + j) * width + i);
      exchange<W, 1>(square, std::make_index_sequence<n>{});
      FERRITE_UNROLL
      for (int j = 0; j < n; ++j)
        if (i + j < rows) std::memcpy(x + (i + j) * row_stride + k, &square[j], sizeof square[j]);
    }
  }
  for (; k < depth; ++k) {
    for (int i = 0; i < rows; ++i) x[i * row_stride + k] = panel[k * width + i];
  }
}

/// Asks for the rows of x, of unit column stride, which are packed soon: rows far apart form no stream that a
/// processor recognises.
template <class T>
FERRITE_INLINE void fetch_rows(const Matrix<const T>& x) {
  constexpr std::int64_t line = 64 / sizeof(T);
  for (std::int64_t i = 0; i < x.rows; ++i) {
    for (std::int64_t k = 0; k < x.columns; k += line) __builtin_prefetch(x.data + i * x.row_stride + k);
  }
}

template <int rows, class W>
using Accumulators = simd::Vec<W>[rows][panel_vectors];

#if defined(__aarch64__)
/// sum + x y[lane]: one instruction, which g++ does not find by itself.
template <int lane>
FERRITE_INLINE simd::Vec<float> multiply_by_lane(simd::Vec<float> sum, simd::Vec<float> x,
                                                 simd::Vec<float> y) {
  return vfmaq_laneq_f32(sum, x, y, lane);
}
template <int lane>
FERRITE_INLINE simd::Vec<double> multiply_by_lane(simd::Vec<double> sum, simd::Vec<double> x,
                                                  simd::Vec<double> y) {
  return vfmaq_laneq_f64(sum, x, y, lane);
}
#endif

/// sums += the product of one column of the panel of a and one row of the panel of b.
template <int rows, class W>
FERRITE_INLINE void add_outer_product(const W* a, const W* b, Accumulators<rows, W>& sums) {
  simd::Vec<W> row[panel_vectors];
  FERRITE_UNROLL
  for (int j = 0; j < panel_vectors; ++j) row[j] = load_vector(b + j * simd::lanes<W>);
#if defined(__aarch64__)
  if constexpr (std::is_floating_point_v<W>) {
    constexpr int n = static_cast<int>(simd::lanes<W>);
    simd::Vec<W> column[rows / n];
    FERRITE_UNROLL
    for (int i = 0; i < rows / n; ++i) column[i] = load_vector(a + i * n);
    [&]<int... i>(std::integer_sequence<int, i...>) {
      ((sums[i / panel_vectors][i % panel_vectors] =
            multiply_by_lane<i / panel_vectors % n>(sums[i / panel_vectors][i % panel_vectors],
                                                    row[i % panel_vectors], column[i / panel_vectors / n])),
       ...);
    }
    (std::make_integer_sequence<int, rows * panel_vectors>{});
    return;
  }
#endif
  FERRITE_UNROLL
  for (int i = 0; i < rows; ++i) {
    const simd::Vec<W> spread = a[i] - simd::Vec<W>{};  // x + 0 would be an addition: it turns -0 into 0
    FERRITE_UNROLL
    for (int j = 0; j < panel_vectors; ++j) sums[i][j] += row[j] * spread;
  }
}

/// As multiply_panels, if c has at most `rows` rows.
template <int rows, class W>
[[gnu::flatten]] void multiply_tile(std::int64_t depth, W alpha, const W* a, const W* b, const Matrix<W>& c,
                                    bool add) {
  constexpr int columns = panel_columns<W>;
  const bool whole = c.rows == rows && c.columns == columns && c.column_stride == 1;
  if (whole) {
    for (int i = 0; i < rows; ++i) __builtin_prefetch(c.data + i * c.row_stride, 1);
  }
  Accumulators<rows, W> sums = {};
  for (std::int64_t k = 0; k < depth; ++k) add_outer_product<rows>(a + k * panel_rows, b + k * columns, sums);
  if (whole) {
    FERRITE_UNROLL
    for (int i = 0; i < rows; ++i) {
      FERRITE_UNROLL
      for (int j = 0; j < panel_vectors; ++j) {
        W* const target = c.data + i * c.row_stride + j * simd::lanes<W>;
        simd::Vec<W> v = sums[i][j] * alpha;
        if (add) v += load_vector(target);
        std::memcpy(target, &v, sizeof v);
      }
    }
    return;
  }
  W tile[rows][columns];
  std::memcpy(tile, sums, sizeof tile);
  for (std::int64_t i = 0; i < c.rows; ++i) {
    for (std::int64_t j = 0; j < c.columns; ++j)
      c(i, j) = add ? tile[i][j] * alpha + c(i, j) : tile[i][j] * alpha;
  }
}

/// c = alpha a b, or c += alpha a b, for one panel of a and one of b.
template <class W>
void multiply_panels(std::int64_t depth, W alpha, const W* a, const W* b, const Matrix<W>& c, bool add) {
  if (c.rows <= few_panel_rows)
    multiply_tile<few_panel_rows>(depth, alpha, a, b, c, add);
  else
    multiply_tile<panel_rows>(depth, alpha, a, b, c, add);
}

}  // namespace ferrite::cpu

#undef FERRITE_UNROLL
