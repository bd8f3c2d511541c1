// The arithmetic of sum, prod, max, min, any, all, argmax and argmin on blocks. Several accumulators side by
// side keep the vector units busy. Their number is fixed in the code, so results are the same everywhere.
#include "backend_cpu/kit/folds.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

#include "backend_cpu/simd/simd.hpp"

namespace ferrite::cpu {
namespace {

template <class T>
constexpr T lowest = std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                                          : std::numeric_limits<T>::min();
template <class T>
constexpr T highest = std::numeric_limits<T>::has_infinity ? std::numeric_limits<T>::infinity()
                                                           : std::numeric_limits<T>::max();

// NaN if either is NaN. Arm has instructions for that.
template <class T>
T larger(T a, T b) {
  return ((b > a) | (b != b)) ? b : a;
}
template <class T>
T smaller(T a, T b) {
  return ((b < a) | (b != b)) ? b : a;
}
#if defined(__aarch64__)
using Floats = simd::Vec<float>;
using Doubles = simd::Vec<double>;
Floats larger(Floats a, Floats b) { return (Floats)vmaxq_f32((float32x4_t)a, (float32x4_t)b); }
Floats smaller(Floats a, Floats b) { return (Floats)vminq_f32((float32x4_t)a, (float32x4_t)b); }
Doubles larger(Doubles a, Doubles b) { return (Doubles)vmaxq_f64((float64x2_t)a, (float64x2_t)b); }
Doubles smaller(Doubles a, Doubles b) { return (Doubles)vminq_f64((float64x2_t)a, (float64x2_t)b); }
#endif

// Rules: the neutral total, and how a total combines with another. They serve numbers and vectors of them.
// `widens_late` allows a few inputs to be combined before they are widened to totals.

struct Sum {
  static constexpr bool widens_late = true;
  template <class T>
  static constexpr T none = 0;
  template <class T>
  static T combine(T a, T b) {
    return a + b;
  }
};
struct Prod {
  static constexpr bool widens_late = false;  // four small floats may underflow
  template <class T>
  static constexpr T none = 1;
  template <class T>
  static T combine(T a, T b) {
    return a * b;
  }
};
struct Max {
  template <class T>
  static constexpr T none = lowest<T>;
  template <class T>
  static T combine(T a, T b) {
    return larger(a, b);
  }
};
struct Min {
  template <class T>
  static constexpr T none = highest<T>;
  template <class T>
  static T combine(T a, T b) {
    return smaller(a, b);
  }
};
/// Combines four numbers, pairwise, into what a total takes in.
template <class Total, class Rule, class In>
FERRITE_INLINE Total fold_four(In a, In b, In c, In d) {
  using Few = std::conditional_t<Rule::widens_late, In, Total>;
  const auto few = [](In x) { return static_cast<Few>(x); };
  return static_cast<Total>(Rule::combine(Rule::combine(few(a), few(b)), Rule::combine(few(c), few(d))));
}

/// Folds x[0], x[1], ... into `lanes` totals side by side, as many full rounds as there are, and those into
/// `total`. Returns the number of elements folded. Compilers keep vectors in registers, but widen better in
/// plain loops.
template <std::int64_t lanes, class Rule, class In, class Total>
FERRITE_INLINE std::int64_t fold_lanes(const In* x, std::int64_t n, Total& total) {
  std::int64_t i = 0;
  if constexpr (std::is_same_v<In, Total>) {
    constexpr std::int64_t width = std::min(simd::lanes<Total>, lanes), vectors = lanes / width;
    typedef Total Vector __attribute__((vector_size(sizeof(Total) * width)));
    Vector part[vectors];
    for (Vector& v : part) v = Vector{} + Rule::template none<Total>;
    for (; i + lanes <= n; i += lanes) {
      for (std::int64_t k = 0; k < vectors; ++k) {
        Vector v;
        std::memcpy(&v, x + i + k * width, sizeof v);
        part[k] = Rule::combine(part[k], v);
      }
    }
    for (std::int64_t half = vectors / 2; half > 0; half /= 2)
      for (std::int64_t k = 0; k < half; ++k) part[k] = Rule::combine(part[k], part[k + half]);
    for (std::int64_t j = 0; j < width; ++j) total = Rule::combine(total, static_cast<Total>(part[0][j]));
  } else {
    Total lane[lanes];
    std::fill_n(lane, lanes, Rule::template none<Total>);
    for (; i + 4 * lanes <= n; i += 4 * lanes) {
      const In *a = x + i, *b = a + lanes, *c = b + lanes, *d = c + lanes;
      for (std::int64_t j = 0; j < lanes; ++j)
        lane[j] = Rule::combine(lane[j], fold_four<Total, Rule>(a[j], b[j], c[j], d[j]));
    }
    for (; i + lanes <= n; i += lanes)
      for (std::int64_t j = 0; j < lanes; ++j) lane[j] = Rule::combine(lane[j], static_cast<Total>(x[i + j]));
    for (std::int64_t half = lanes / 2; half > 0; half /= 2)
      for (std::int64_t j = 0; j < half; ++j) lane[j] = Rule::combine(lane[j], lane[j + half]);
    total = Rule::combine(total, lane[0]);
  }
  return i;
}

template <class Rule, class Total, class In>
FERRITE_INLINE Total fold(const In* x, std::int64_t n) {
  Total total = Rule::template none<Total>;
  std::int64_t i = 0;
  if (n >= 256) i = fold_lanes<32, Rule>(x, n, total);
  if (n - i >= 8) i += fold_lanes<8, Rule>(x + i, n - i, total);
  for (; i < n; ++i) total = Rule::combine(total, static_cast<Total>(x[i]));
  return total;
}

template <class In, class Total, class Rule>
class RuleFold final : public Fold {
 public:
  RuleFold(DType input_dtype, DType result_dtype) : Fold(input_dtype, result_dtype, sizeof(Total)) {}

  void start(void* totals, std::int64_t n) const override {
    std::fill_n(static_cast<Total*>(totals), n, Rule::template none<Total>);
  }
  [[gnu::flatten]] void fold_runs(void* totals, std::int64_t count, const void* runs, std::int64_t stride,
                                  std::int64_t n, std::int64_t) const override {
    auto* t = static_cast<Total*>(totals);
    const auto* x = static_cast<const In*>(runs);
    for (std::int64_t j = 0; j < count; ++j) t[j] = Rule::combine(t[j], fold<Rule, Total>(x + j * stride, n));
  }
  [[gnu::flatten]] void fold_rows(void* totals, const void* rows, std::int64_t stride, std::int64_t count,
                                  std::int64_t n, std::int64_t) const override {
    auto* t = static_cast<Total*>(totals);
    const auto* x = static_cast<const In*>(rows);
    std::int64_t r = 0;
    for (; r + 8 <= count; r += 8) {  // a total is loaded and stored once for eight rows
      const In* eight = x + r * stride;
      if constexpr (std::is_same_v<In, Total>)
        fold_eight_rows(t, eight, stride, n);
      else
        widen_eight_rows(t, eight, stride, n);
    }
    for (; r < count; ++r) {
      const In* a = x + r * stride;
      for_each_index(n, [=](std::int64_t j) { t[j] = Rule::combine(t[j], static_cast<Total>(a[j])); });
    }
  }
  void merge(void* totals, const void* later, std::int64_t n) const override {
    auto* t = static_cast<Total*>(totals);
    const auto* other = static_cast<const Total*>(later);
    for (std::int64_t j = 0; j < n; ++j) t[j] = Rule::combine(t[j], other[j]);
  }
  void results(const void* totals, void* y, std::int64_t n) const override {
    convert_block(result, totals, result, y, n);
  }

 private:
  FERRITE_INLINE static void fold_eight_rows(Total* t, const Total* x, std::int64_t stride, std::int64_t n) {
    constexpr std::int64_t width = simd::lanes<Total>;
    using Vector = simd::Vec<Total>;
    std::int64_t j = 0;
    for (; j + width <= n; j += width) {
      Vector total, v[8];
      std::memcpy(&total, t + j, sizeof total);
      for (int r = 0; r < 8; ++r) std::memcpy(&v[r], x + r * stride + j, sizeof total);
      for (int half = 4; half > 0; half /= 2)
        for (int r = 0; r < half; ++r) v[r] = Rule::combine(v[r], v[r + half]);
      total = Rule::combine(total, v[0]);
      std::memcpy(t + j, &total, sizeof total);
    }
    for (; j < n; ++j)
      for (int r = 0; r < 8; ++r) t[j] = Rule::combine(t[j], x[r * stride + j]);
  }
  FERRITE_INLINE static void widen_eight_rows(Total* t, const In* a, std::int64_t stride, std::int64_t n) {
    const In *b = a + stride, *c = b + stride, *d = c + stride;
    const In *e = d + stride, *f = e + stride, *g = f + stride, *h = g + stride;
    for_each_index(n, [=](std::int64_t j) {
      const Total first = fold_four<Total, Rule>(a[j], b[j], c[j], d[j]);
      const Total second = fold_four<Total, Rule>(e[j], f[j], g[j], h[j]);
      t[j] = Rule::combine(Rule::combine(t[j], first), second);
    });
  }
};

template <class In, class Rule>
class ArgFold final : public Fold {
 public:
  explicit ArgFold(DType input_dtype) : Fold(input_dtype, DType::i64, sizeof(Best)) {}

  void start(void* totals, std::int64_t n) const override {
    std::fill_n(static_cast<Best*>(totals), n, Best{Rule::template none<In>, 0});
  }
  void fold_runs(void* totals, std::int64_t count, const void* runs, std::int64_t stride, std::int64_t n,
                 std::int64_t first) const override {
    for (std::int64_t j = 0; j < count; ++j)
      fold_run(static_cast<Best*>(totals)[j], static_cast<const In*>(runs) + j * stride, n, first);
  }
  void fold_rows(void* totals, const void* rows, std::int64_t stride, std::int64_t count, std::int64_t n,
                 std::int64_t first) const override {
    auto* best = static_cast<Best*>(totals);
    for (std::int64_t r = 0; r < count; ++r) {
      const In* x = static_cast<const In*>(rows) + r * stride;
      for (std::int64_t j = 0; j < n; ++j) {
        if (beats(x[j], best[j].value)) best[j] = {x[j], first + r};
      }
    }
  }
  void merge(void* totals, const void* later, std::int64_t n) const override {
    auto* best = static_cast<Best*>(totals);
    const auto* other = static_cast<const Best*>(later);
    for (std::int64_t j = 0; j < n; ++j) {
      if (beats(other[j].value, best[j].value)) best[j] = other[j];
    }
  }
  void results(const void* totals, void* y, std::int64_t n) const override {
    const auto* best = static_cast<const Best*>(totals);
    for (std::int64_t j = 0; j < n; ++j) static_cast<std::int64_t*>(y)[j] = best[j].index;
  }

 private:
  struct Best {
    In value;
    std::int64_t index;
  };
  static_assert(sizeof(Best) <= max_total_size);

  /// First the extreme of a block, which is fast, then its place only if it beats all earlier ones.
  [[gnu::flatten]] static void fold_run(Best& best, const In* x, std::int64_t n, std::int64_t first) {
    for (std::int64_t i = 0; i < n; i += block_size) {
      const In extreme = fold<Rule, In>(x + i, std::min(block_size, n - i));
      if (!beats(extreme, best.value)) continue;
      std::int64_t at = i;
      while (!(x[at] == extreme || x[at] != x[at])) ++at;
      best = {extreme, first + at};
    }
  }
  /// True for a NaN, unless one was there before.
  static bool beats(In a, In b) { return b == b && (a != a || (std::is_same_v<Rule, Max> ? a > b : a < b)); }
};

template <class In, class Total, class Rule>
const Fold& rule_fold() {
  // Unsigned totals of integers: signed overflow would be undefined.
  using Kept = std::conditional_t<std::is_same_v<Total, std::uint64_t>, std::int64_t, Total>;
  static const RuleFold<In, Total, Rule> only(
      dtype_of<std::conditional_t<std::is_same_v<In, std::uint64_t>, std::int64_t, In>>, dtype_of<Kept>);
  return only;
}

template <class Rule>
const Fold& arithmetic_fold(DType input) {
  switch (compute_dtype(input)) {
    case DType::f32:
      return rule_fold<float, double, Rule>();
    case DType::f64:
      return rule_fold<double, double, Rule>();
    default:
      return rule_fold<std::uint64_t, std::uint64_t, Rule>();
  }
}

template <class Rule>
const Fold& extreme_fold(DType input) {
  return visit_compute(input, [&]<class C>() -> const Fold& { return rule_fold<C, C, Rule>(); });
}

/// Bools are bytes: any is their maximum, all their minimum.
template <class Rule>
const Fold& logical_fold() {
  static const RuleFold<std::uint8_t, std::uint8_t, Rule> only(DType::bool_, DType::u8);
  return only;
}

template <class Rule>
const Fold& arg_fold(DType input) {
  return visit_compute(input, [&]<class C>() -> const Fold& {
    static const ArgFold<C, Rule> only(dtype_of<C>);
    return only;
  });
}

}  // namespace

const Fold& fold_for(op::ReduceFn fn, DType input) {
  switch (fn) {
    case op::ReduceFn::sum:
      return arithmetic_fold<Sum>(input);
    case op::ReduceFn::prod:
      return arithmetic_fold<Prod>(input);
    case op::ReduceFn::max:
      return extreme_fold<Max>(input);
    case op::ReduceFn::min:
      return extreme_fold<Min>(input);
    case op::ReduceFn::any:
      return logical_fold<Max>();
    default:
      return logical_fold<Min>();
  }
}

const Fold& fold_for(op::ArgReduceFn fn, DType input) {
  return fn == op::ArgReduceFn::argmax ? arg_fold<Max>(input) : arg_fold<Min>(input);
}

}  // namespace ferrite::cpu
