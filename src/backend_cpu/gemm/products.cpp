// Calls OpenBLAS, and tries out which of the two is faster.
#include "backend_cpu/gemm/products.hpp"

#include <bit>
#include <chrono>
#include <limits>
#include <mutex>
#include <unordered_map>

#include "backend_cpu/linalg/openblas.hpp"
#include "ferrite/core/thread_pool.hpp"

namespace ferrite::cpu {
namespace {

enum class Engine : std::uint8_t { own, openblas };

/// The first products of a kind go to one and then to the other; the faster, by its best time, gets all later
/// ones. Not in turn: OpenBLAS's threads look for more work for a while, which slows down whoever follows.
class Trials {
 public:
  static Trials& get() {
    static Trials trials;
    return trials;
  }
  struct Turn {
    Engine engine;
    bool counts;  // its time is to be told
  };
  Turn next(std::uint64_t kind) {
    const std::lock_guard lock(mutex_);
    Trial& trial = trials_[kind];
    if (trial.told >= 2 * times_each)
      return {trial.best[1] < trial.best[0] ? Engine::openblas : Engine::own, false};
    return {trial.given++ < times_each ? Engine::own : Engine::openblas, true};
  }
  void tell(std::uint64_t kind, Engine engine, double seconds) {
    const std::lock_guard lock(mutex_);
    Trial& trial = trials_[kind];
    double& best = trial.best[static_cast<std::size_t>(engine)];
    best = std::min(best, seconds);
    ++trial.told;
  }

 private:
  static constexpr int times_each = 4;
  struct Trial {
    int given = 0, told = 0;
    double best[2] = {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()};
  };
  std::mutex mutex_;
  std::unordered_map<std::uint64_t, Trial> trials_;
};

/// 0 for 1, then twice a power of two: extents of one number differ by less than a half.
std::uint64_t size_class(std::int64_t extent) {
  const auto n = static_cast<std::uint64_t>(extent);
  const int power = std::bit_width(n) - 1;
  return 2 * static_cast<std::uint64_t>(power) + (power > 0 ? n >> (power - 1) & 1 : 0);
}

/// A matrix as BLAS takes it: row-major, or the transpose of a row-major one.
template <class T>
struct BlasMatrix {
  bool fits, transposed;
  int stride;

  explicit BlasMatrix(const Matrix<T>& x) {
    constexpr std::int64_t most = std::numeric_limits<int>::max();
    const auto dense_rows = [&](std::int64_t columns, std::int64_t row_step, std::int64_t column_step) {
      return column_step == 1 && row_step >= std::max<std::int64_t>(columns, 1) && row_step <= most;
    };
    transposed = !dense_rows(x.columns, x.row_stride, x.column_stride);
    fits = x.rows <= most && x.columns <= most &&
           (!transposed || dense_rows(x.rows, x.column_stride, x.row_stride));
    stride = fits ? static_cast<int>(transposed ? x.column_stride : x.row_stride) : 0;
  }
};

bool has_openblas() {
  static const bool found = find_in_openblas("cblas_sgemm") != nullptr;
  return found;
}

template <class T>
constexpr bool may_be_openblas = std::is_same_v<T, float> || std::is_same_v<T, double>;

template <class T>
struct OpenBlasProduct {
  BlasMatrix<const T> a, b;
  BlasMatrix<T> c;
  bool is_empty;

  OpenBlasProduct(const Matrix<const T>& left, const Matrix<const T>& right, const Matrix<T>& result)
      : a(left),
        b(right),
        c(result),
        is_empty(result.rows == 0 || result.columns == 0 || left.columns == 0) {}
  /// It may take part: it is wanted, installed, and can do these matrices.
  bool is_possible(Products products) const {
    return products != Products::reproducible && has_openblas() && !is_empty && a.fits && b.fits && c.fits &&
           !c.transposed;
  }

  void run(T alpha, const Matrix<const T>& left, const Matrix<const T>& right, const Matrix<T>& result,
           bool add) const {
    enum { row_major = 101, as_it_is = 111, transpose = 112 };
    using F = void(int, int, int, int, int, int, T, const T*, int, const T*, int, T, T*, int);
    static F* const call =
        reinterpret_cast<F*>(find_in_openblas(sizeof(T) == 4 ? "cblas_sgemm" : "cblas_dgemm"));
    call(row_major, a.transposed ? transpose : as_it_is, b.transposed ? transpose : as_it_is,
         static_cast<int>(result.rows), static_cast<int>(result.columns), static_cast<int>(left.columns),
         alpha, left.data, a.stride, right.data, b.stride, add ? T{1} : T{0}, result.data, c.stride);
  }
  /// What decides which engine is faster, for a batch of `count` side by side.
  std::uint64_t kind(const Matrix<const T>& left, const Matrix<T>& result, std::int64_t count) const {
    std::uint64_t packed = sizeof(T) == 4;
    for (const std::uint64_t part :
         {std::uint64_t{a.transposed}, std::uint64_t{b.transposed}, size_class(result.rows),
          size_class(result.columns), size_class(left.columns), size_class(count),
          static_cast<std::uint64_t>(num_threads())})
      packed = packed << 9 | part;
    return packed;
  }
};

/// Gives `done` rows of a finished product, as tiles that fit a cache.
template <class T>
void finish(const Matrix<T>& c, const TileFunction<T>& done) {
  if (!done) return;
  constexpr std::int64_t tile = 1 << 14;
  parallel_ranges(c.rows, tile / std::max<std::int64_t>(c.columns, 1),
                  [&](std::int64_t begin, std::int64_t end) {
                    done(c.block(begin, 0, end - begin, c.columns), begin, 0);
                  });
}

/// Calls one of the two, and under `fastest` remembers how long it took.
template <class Own, class OpenBlas>
void by_the_chosen(Products products, std::uint64_t kind, const Own& own, const OpenBlas& openblas) {
  const Trials::Turn turn =
      products == Products::openblas ? Trials::Turn{Engine::openblas, false} : Trials::get().next(kind);
  const auto start = std::chrono::steady_clock::now();
  if (turn.engine == Engine::openblas)
    openblas();
  else
    own();
  if (turn.counts)
    Trials::get().tell(kind, turn.engine,
                       std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
}

}  // namespace

template <class T>
void multiply(Products products, Wide<T> alpha, const Matrix<const T>& a, const Matrix<const T>& b,
              const Matrix<T>& c, bool add, const TileFunction<T>& done) {
  const auto by_ferrite = [&] { gemm<T>(alpha, a, b, c, add, done); };
  if constexpr (may_be_openblas<T>) {
    if (const OpenBlasProduct<T> blas(a, b, c); blas.is_possible(products)) {
      return by_the_chosen(products, blas.kind(a, c, 1), by_ferrite, [&] {
        give_openblas_our_threads();
        blas.run(alpha, a, b, c, add);
        finish(c, done);
      });
    }
  }
  by_ferrite();
}

template <class T>
void multiply_batch(Products products, std::int64_t count, const std::function<Product<T>(std::int64_t)>& at,
                    bool add) {
  if (count == 0) return;
  constexpr std::int64_t small = 1 << 18;  // products below are not shared, and come several at a time
  const Product<T> first = at(0);
  const std::int64_t work = std::max<std::int64_t>(first.a.rows * first.a.columns * first.c.columns, 1);
  const auto one_by_one = [&](Products by) {
    for (std::int64_t i = 0; i < count; ++i) {
      const Product<T> p = at(i);
      multiply<T>(by, 1, p.a, p.b, p.c, add);
    }
  };
  if (count == 1 || (count < num_threads() && work >= small)) return one_by_one(products);
  const auto side_by_side = [&](const auto& multiply_one) {
    parallel_ranges(count, small / work, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) multiply_one(at(i));
    });
  };
  const auto by_ferrite = [&] { side_by_side([&](const Product<T>& p) { gemm<T>(1, p.a, p.b, p.c, add); }); };
  if constexpr (may_be_openblas<T>) {
    if (const OpenBlasProduct<T> blas(first.a, first.b, first.c); blas.is_possible(products)) {
      return by_the_chosen(products, blas.kind(first.a, first.c, count), by_ferrite, [&] {
        if (!openblas_runs_side_by_side()) return one_by_one(Products::openblas);
        const OpenBlasOnOneThread batch_has_the_threads;
        side_by_side([&](const Product<T>& p) { blas.run(1, p.a, p.b, p.c, add); });
      });
    }
  }
  by_ferrite();
}

#define FERRITE_MULTIPLY(T)                                                                 \
  template void multiply(Products, Wide<T>, const Matrix<const T>&, const Matrix<const T>&, \
                         const Matrix<T>&, bool, const TileFunction<T>&);                   \
  template void multiply_batch(Products, std::int64_t, const std::function<Product<T>(std::int64_t)>&, bool);
FERRITE_MULTIPLY(float)
FERRITE_MULTIPLY(double)
FERRITE_MULTIPLY(Half)
FERRITE_MULTIPLY(BFloat16)
FERRITE_MULTIPLY(std::int32_t)
FERRITE_MULTIPLY(std::int64_t)
FERRITE_MULTIPLY(std::uint8_t)
#undef FERRITE_MULTIPLY

}  // namespace ferrite::cpu
