// How a product is cut: blocks that bound the memory for panels, slices of the inner axis that fit the
// first-level cache, and tiles for the threads. ferrite has its own kernel instead of OpenBLAS's for two
// reasons: OpenBLAS rounds differently at the edges of a tile, so a product cut among threads would depend on
// their number; and it packs the operands of every tile again (docs/performance.md has the figures).
#include "backend_cpu/gemm/gemm.hpp"

#include <optional>
#include <utility>

#include "backend_cpu/gemm/gemm_panels.hpp"
#include "ferrite/core/integers.hpp"
#include "ferrite/core/thread_pool.hpp"

namespace ferrite::cpu {
namespace {

/// Inner elements per slice: a panel of a (12 to 14 KiB of f32) stays in the first-level cache while those of
/// b pass by.
constexpr std::int64_t most_depth = panel_rows > 8 ? 256 : 384;
/// Rows and columns per block: its panels take at most 6 MiB for each operand.
constexpr std::int64_t most_extent = 4032;

/// Panels per tile. Tiles are as large as the second-level cache allows, and smaller if there would not be a
/// few for every thread.
struct Tiles {
  std::int64_t rows, columns;

  template <class W>
  static Tiles choose(std::int64_t row_panels, std::int64_t column_panels, std::int64_t depth) {
    constexpr std::int64_t cache = 256 * 1024 / sizeof(W), most_rows = 128 / panel_rows, per_thread = 6;
    const auto shares = [](std::int64_t panels, std::int64_t most) {
      return divide_up(panels, divide_up(panels, std::max<std::int64_t>(most, 1)));
    };
    Tiles t{shares(row_panels, most_rows), shares(column_panels, cache / (depth * panel_columns<W>))};
    const std::int64_t wanted = num_threads() > 1 ? num_threads() * per_thread : 1;
    while (divide_up(row_panels, t.rows) * divide_up(column_panels, t.columns) < wanted) {
      if (t.columns > 1 && t.columns * panel_columns<W> >= t.rows * panel_rows)
        t.columns = divide_up(t.columns, 2);
      else if (t.rows > 1)
        t.rows = divide_up(t.rows, 2);
      else
        break;
    }
    return t;
  }
};

/// One block. Its columns are packed for all threads. So are its rows if several tiles read them; else the
/// task that needs a panel of rows packs it, and finds it in its first-level cache.
template <class W, class T>
class BlockProduct {
 public:
  BlockProduct(W alpha, const Matrix<const T>& a, const Matrix<const T>& b, const Matrix<W>& c, bool add)
      : alpha_(alpha),
        a_(a),
        b_(b),
        c_(c),
        add_(add),
        row_panels_(divide_up(c.rows, panel_rows)),
        column_panels_(divide_up(c.columns, panel_columns<W>)),
        depth_(divide_up(a.columns, divide_up(a.columns, most_depth))),
        tiles_(Tiles::choose<W>(row_panels_, column_panels_, depth_)),
        shared_rows_(tiles_.columns < column_panels_ ? row_panels_ : 0),
        panels_(depth_ * (shared_rows_ * panel_rows + column_panels_ * panel_columns<W>)),
        column_data_(panels_.data() + depth_ * shared_rows_ * panel_rows) {}

  template <class Done>
  void run(Done&& done) {
    for (std::int64_t k = 0; k < a_.columns; k += depth_) {
      const std::int64_t depth = std::min(depth_, a_.columns - k);
      pack(k, depth);
      const std::int64_t across = divide_up(row_panels_, tiles_.rows);
      parallel_for(across * divide_up(column_panels_, tiles_.columns), [&](std::int64_t tile) {
        const std::int64_t row = tile % across * tiles_.rows, column = tile / across * tiles_.columns;
        const std::int64_t rows = std::min(tiles_.rows, row_panels_ - row);
        const std::int64_t columns = std::min(tiles_.columns, column_panels_ - column);
        alignas(64) W own_panel[panel_rows * most_depth];
        for (std::int64_t i = row; i < row + rows; ++i) {
          const W* a = shared_row_panel(i, depth);
          if (shared_rows_ == 0) {
            pack_rows_of(i, k, depth, own_panel);
            a = own_panel;
          }
          for (std::int64_t j = column; j < column + columns; ++j)
            multiply_panels<W>(depth, alpha_, a, column_panel(j, depth),
                               part(i, j, panel_rows, panel_columns<W>), add_ || k > 0);
        }
        if (k + depth == a_.columns)
          done(part(row, column, rows * panel_rows, columns * panel_columns<W>), row * panel_rows,
               column * panel_columns<W>);
      });
    }
  }

 private:
  W* shared_row_panel(std::int64_t i, std::int64_t depth) const {
    return panels_.data() + i * panel_rows * depth;
  }
  W* column_panel(std::int64_t j, std::int64_t depth) const {
    return column_data_ + j * panel_columns<W> * depth;
  }
  /// At most m rows and n columns of the result, from a panel on.
  Matrix<W> part(std::int64_t i, std::int64_t j, std::int64_t m, std::int64_t n) const {
    const std::int64_t row = i * panel_rows, column = j * panel_columns<W>;
    return c_.block(row, column, std::min(m, c_.rows - row), std::min(n, c_.columns - column));
  }
  void pack_rows_of(std::int64_t panel, std::int64_t k, std::int64_t depth, W* target) const {
    const std::int64_t i = panel * panel_rows;
    pack_panel<panel_rows>(a_.block(i, k, std::min<std::int64_t>(panel_rows, c_.rows - i), depth), target);
  }
  void pack(std::int64_t k, std::int64_t depth) const {
    constexpr std::int64_t chunk = 1 << 14;
    parallel_ranges(shared_rows_ + column_panels_, chunk / (depth * panel_rows),
                    [&](std::int64_t begin, std::int64_t end) {
                      for (std::int64_t p = begin; p < end; ++p) {
                        if (p < shared_rows_) {
                          pack_rows_of(p, k, depth, shared_row_panel(p, depth));
                        } else {
                          constexpr std::int64_t width = panel_columns<W>;
                          const std::int64_t q = p - shared_rows_, j = q * width;
                          pack_panel<panel_columns<W>>(
                              b_.block(k, j, depth, std::min(width, c_.columns - j)).transposed(),
                              column_panel(q, depth));
                        }
                      }
                    });
  }

  W alpha_;
  Matrix<const T> a_, b_;
  Matrix<W> c_;
  bool add_;
  std::int64_t row_panels_, column_panels_, depth_;
  Tiles tiles_;
  std::int64_t shared_rows_;  // panels of rows that are packed for all
  Scratch<W> panels_;
  W* column_data_;
};

/// A product with enough rows and columns for panels, block by block.
template <class T, class W, class Done>
void multiply_blocks(W alpha, Matrix<const T> a, Matrix<const T> b, Matrix<W> c, bool add, Done&& done) {
  // A tile in registers is wider than it is high: the transpose of a narrow result fills it better.
  const auto padded = [](std::int64_t m, std::int64_t n) {
    return divide_up(m, panel_rows) * panel_rows * divide_up(n, panel_columns<W>) * panel_columns<W>;
  };
  const bool swapped = 4 * padded(c.rows, c.columns) > 5 * padded(c.columns, c.rows);
  if (swapped) {
    std::swap(a, b);
    a = a.transposed();
    b = b.transposed();
    c = c.transposed();
  }
  for (std::int64_t j = 0; j < c.columns; j += most_extent) {
    const std::int64_t columns = std::min(most_extent, c.columns - j);
    for (std::int64_t i = 0; i < c.rows; i += most_extent) {
      const std::int64_t rows = std::min(most_extent, c.rows - i);
      BlockProduct<W, T>(alpha, a.block(i, 0, rows, a.columns), b.block(0, j, b.rows, columns),
                         c.block(i, j, rows, columns), add)
          .run([&](const Matrix<W>& tile, std::int64_t row, std::int64_t column) {
            if (swapped)
              done(tile.transposed(), j + column, i + row);
            else
              done(tile, i + row, j + column);
          });
    }
  }
}

/// The dot products of x and `rows` rows of a, which share what they read of x. A row's sum is the same
/// whatever rows are beside it: blocks of a thousand elements are added up in W, their sums in double.
template <int rows, class W>
[[gnu::flatten]] void multiply_rows(const W* a, std::int64_t stride, const W* x, std::int64_t n, W* sums) {
  constexpr std::int64_t width = simd::lanes<W>, block = 1024;
  constexpr int chains = 3;  // to hide the latency of additions, of as many registers as there are
  double total[rows] = {};
  for (std::int64_t begin = 0; begin < n; begin += block) {
    const std::int64_t end = std::min(n, begin + block);
    simd::Vec<W> partial[rows][chains] = {};
    const auto add = [&](auto at, int chain) {
      const simd::Vec<W> factor = at(x);
      for (int r = 0; r < rows; ++r) partial[r][chain] += factor * at(a + r * stride);
    };
    std::int64_t k = begin;
    for (; k + chains * width <= end; k += chains * width)
      for (int chain = 0; chain < chains; ++chain) add(simd::Whole<W>{k + chain * width}, chain);
    for (; k + width <= end; k += width) add(simd::Whole<W>{k}, 0);
    if (k < end) add(simd::Part<W>{k, end - k}, 0);
    for (int r = 0; r < rows; ++r) {
      const simd::Vec<W> v = partial[r][0] + partial[r][1] + partial[r][2];
      W sum = v[0];
      for (std::int64_t j = 1; j < width; ++j) sum += v[j];
      total[r] += static_cast<double>(sum);
    }
  }
  for (int r = 0; r < rows; ++r) sums[r] = static_cast<W>(total[r]);
}
template <int rows, class W>
requires(!std::is_floating_point_v<W>) void multiply_rows(const W* a, std::int64_t stride, const W* x,
                                                          std::int64_t n, W* sums) {
  for (int r = 0; r < rows; ++r) {
    sums[r] = 0;
    for (std::int64_t k = 0; k < n; ++k) sums[r] += a[r * stride + k] * x[k];
  }
}

/// sums += factors[j] columns[j] for `count` columns of n elements, `stride` apart.
template <int count, class T, class W>
FERRITE_INLINE void add_columns(const T* columns, std::int64_t stride, const W* factors, std::int64_t n,
                                W* sums) {
  for (std::int64_t i = 0; i < n; ++i) {
    W sum = sums[i];
    for (int j = 0; j < count; ++j) sum += factors[j] * convert_wide<W>(columns[j * stride + i]);
    sums[i] = sum;
  }
}

/// c = alpha a x, or c += alpha a x, for a column x: limited by reading a once, so nothing is packed. Rows of
/// unit stride are multiplied a few at a time, other matrices column by column for a strip of rows.
template <class T, class W>
void multiply_vector(W alpha, const Matrix<const T>& a, const Matrix<const T>& x, const Matrix<W>& c,
                     bool add) {
  constexpr std::int64_t chunk = 1 << 16, most_rows = 512;
  const std::int64_t k = a.columns;
  std::optional<Scratch<W>> dense;
  const W* vector = nullptr;
  if constexpr (std::is_same_v<T, W>) {
    if (x.row_stride == 1) vector = x.data;
  }
  if (!vector) {
    W* const elements = dense.emplace(k).data();
    for (std::int64_t i = 0; i < k; ++i) elements[i] = convert_wide<W>(x(i, 0));
    vector = elements;
  }
  const auto store = [&](std::int64_t row, W sum) {
    c(row, 0) = add ? alpha * sum + c(row, 0) : alpha * sum;
  };
  if constexpr (std::is_same_v<T, W>) {
    if (a.column_stride == 1) {
      // Neighbouring rows would be read in short pieces by turns: rows far apart make long streams.
      constexpr int at_once = 4;
      parallel_ranges(c.rows, chunk / std::max<std::int64_t>(k, 1),
                      [&](std::int64_t begin, std::int64_t end) {
                        const std::int64_t distance = (end - begin) / at_once;
                        W sums[at_once];
                        for (std::int64_t i = begin; i < begin + distance; ++i) {
                          multiply_rows<at_once>(&a(i, 0), distance * a.row_stride, vector, k, sums);
                          for (int r = 0; r < at_once; ++r) store(i + r * distance, sums[r]);
                        }
                        for (std::int64_t i = begin + at_once * distance; i < end; ++i) {
                          multiply_rows<1>(&a(i, 0), a.row_stride, vector, k, sums);
                          store(i, sums[0]);
                        }
                      });
      return;
    }
  }
  parallel_ranges(c.rows,
                  std::min(most_rows, std::max<std::int64_t>(chunk / std::max<std::int64_t>(k, 1), 16)),
                  [&](std::int64_t begin, std::int64_t end) {
                    constexpr int at_once = 8;
                    W sums[most_rows] = {};
                    std::int64_t j = 0;
                    for (; a.row_stride == 1 && j + at_once <= k; j += at_once)
                      add_columns<at_once>(&a(begin, j), a.column_stride, vector + j, end - begin, sums);
                    for (; a.row_stride == 1 && j < k; ++j)
                      add_columns<1>(&a(begin, j), a.column_stride, vector + j, end - begin, sums);
                    for (; j < k; ++j) {
                      for (std::int64_t i = begin; i < end; ++i)
                        sums[i - begin] += vector[j] * convert_wide<W>(a(i, j));
                    }
                    for (std::int64_t i = begin; i < end; ++i) store(i, sums[i - begin]);
                  });
}

template <class T, class W, class Done>
void multiply(W alpha, const Matrix<const T>& a, const Matrix<const T>& b, const Matrix<W>& c, bool add,
              Done&& done) {
  if (c.columns == 1) {
    multiply_vector<T>(alpha, a, b, c, add);
    done(c, std::int64_t{0}, std::int64_t{0});
  } else if (c.rows == 1) {
    multiply_vector<T>(alpha, b.transposed(), a.transposed(), c.transposed(), add);
    done(c, std::int64_t{0}, std::int64_t{0});
  } else {
    multiply_blocks<T>(alpha, a, b, c, add, done);
  }
}

/// A long product with a small result has no tiles for several threads: parts along the inner axis are
/// computed side by side and added in order. Their number depends only on the extents.
template <class T>
std::int64_t inner_parts(const Matrix<T>& c, std::int64_t k) {
  constexpr std::int64_t most_parts = 16, least_depth = 1024, small = 1 << 16;
  if (k < 4 * least_depth || k < 8 * std::max(c.rows, c.columns) || c.rows * c.columns > small) return 1;
  return std::min(most_parts, k / least_depth);
}

template <class T, class W>
void multiply_parts(std::int64_t parts, W alpha, const Matrix<const T>& a, const Matrix<const T>& b,
                    const Matrix<W>& c, bool add) {
  const std::int64_t m = c.rows, n = c.columns, k = a.columns, depth = divide_up(k, parts);
  const Scratch<W> sums(parts * m * n);
  parallel_for(parts, [&](std::int64_t part) {
    const std::int64_t begin = std::min(k, part * depth), size = std::min(depth, k - begin);
    multiply<T>(alpha, a.block(0, begin, m, size), b.block(begin, 0, size, n),
                Matrix<W>(sums.data() + part * m * n, m, n), false, [](auto&&...) {});
  });
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      W sum = add ? c(i, j) : W{0};
      for (std::int64_t part = 0; part < parts; ++part) sum += sums.data()[(part * m + i) * n + j];
      c(i, j) = sum;
    }
  }
}

}  // namespace

template <class T>
void gemm(Wide<T> alpha, const Matrix<const T>& a, const Matrix<const T>& b, const Matrix<T>& c, bool add,
          const TileFunction<T>& done) {
  using W = Wide<T>;
  const std::int64_t m = c.rows, n = c.columns, k = a.columns;
  if (m == 0 || n == 0) return;
  const auto finish = [&](const Matrix<T>& tile, std::int64_t row, std::int64_t column) {
    if (done) done(tile, row, column);
  };
  if (k == 0) {
    for (std::int64_t i = 0; !add && i < m; ++i) {
      for (std::int64_t j = 0; j < n; ++j) c(i, j) = T{};
    }
    return finish(c, 0, 0);
  }
  const std::int64_t parts = inner_parts(c, k);
  if constexpr (std::is_same_v<T, W>) {
    if (parts == 1) return multiply<T>(alpha, a, b, c, add, finish);
    multiply_parts<T>(parts, alpha, a, b, c, add);
    return finish(c, 0, 0);
  } else {
    const Scratch<W> scratch(m * n);
    const Matrix<W> sums(scratch.data(), m, n);
    const auto round = [&](const Matrix<W>& tile, std::int64_t row, std::int64_t column) {
      const Matrix<T> target = c.block(row, column, tile.rows, tile.columns);
      for (std::int64_t i = 0; i < tile.rows; ++i) {
        for (std::int64_t j = 0; j < tile.columns; ++j)
          target(i, j) = convert_wide<T>(add ? convert_wide<W>(target(i, j)) + tile(i, j) : tile(i, j));
      }
      finish(target, row, column);
    };
    if (parts == 1) return multiply<T>(alpha, a, b, sums, false, round);
    multiply_parts<T>(parts, alpha, a, b, sums, false);
    round(sums, 0, 0);
  }
}

#define FERRITE_GEMM(T)                                                                               \
  template void gemm(Wide<T>, const Matrix<const T>&, const Matrix<const T>&, const Matrix<T>&, bool, \
                     const TileFunction<T>&);
FERRITE_GEMM(float)
FERRITE_GEMM(double)
FERRITE_GEMM(Half)
FERRITE_GEMM(BFloat16)
FERRITE_GEMM(std::int32_t)
FERRITE_GEMM(std::int64_t)
FERRITE_GEMM(std::uint8_t)
#undef FERRITE_GEMM

}  // namespace ferrite::cpu
