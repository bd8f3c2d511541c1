// The arithmetic of sum, prod, max, min, any, all, argmax and argmin on blocks. Several accumulators side by
// side keep the vector units busy; how many depends on nothing but the code, so that results are the same
// everywhere.
#include "backend_cpu/folders.hpp"

#include <limits>
#include <type_traits>

namespace ferrite::cpu {
namespace {

template <class T>
constexpr T lowest = std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                                          : std::numeric_limits<T>::min();
template <class T>
constexpr T highest = std::numeric_limits<T>::has_infinity ? std::numeric_limits<T>::infinity()
                                                           : std::numeric_limits<T>::max();

// Rules: the total that changes nothing, and how a total takes in another.

struct Sum {
  template <class T>
  static constexpr T none = 0;
  template <class T>
  static T combine(T a, T b) {
    return a + b;
  }
};
struct Prod {
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
    return ((b > a) | (b != b)) ? b : a;
  }
};
struct Min {
  template <class T>
  static constexpr T none = highest<T>;
  template <class T>
  static T combine(T a, T b) {
    return ((b < a) | (b != b)) ? b : a;
  }
};
struct Any {
  template <class T>
  static constexpr T none = 0;
  template <class T>
  static T combine(T a, T b) {
    return a | static_cast<T>(b != 0);
  }
};
struct All {
  template <class T>
  static constexpr T none = 1;
  template <class T>
  static T combine(T a, T b) {
    return a & static_cast<T>(b != 0);
  }
};

template <class Total, class Rule, class In>
[[gnu::flatten]] Total fold(const In* x, std::int64_t n) {
  constexpr std::int64_t lanes = 16;
  Total lane[lanes];
  for (std::int64_t j = 0; j < lanes; ++j) lane[j] = Rule::template none<Total>;
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    for (std::int64_t j = 0; j < lanes; ++j) lane[j] = Rule::combine(lane[j], static_cast<Total>(x[i + j]));
  for (std::int64_t j = 0; i + j < n; ++j) lane[j] = Rule::combine(lane[j], static_cast<Total>(x[i + j]));
  for (std::int64_t width = lanes / 2; width > 0; width /= 2)
    for (std::int64_t j = 0; j < width; ++j) lane[j] = Rule::combine(lane[j], lane[j + width]);
  return lane[0];
}

template <class In, class Total, class Rule>
class RuleFolder final : public Folder {
 public:
  RuleFolder(DType input_dtype, DType result_dtype) : Folder(input_dtype, result_dtype, sizeof(Total)) {}

  void start(void* totals, std::int64_t n) const override {
    std::fill_n(static_cast<Total*>(totals), n, Rule::template none<Total>);
  }
  void fold_run(void* total, const void* x, std::int64_t n, std::int64_t) const override {
    auto& t = *static_cast<Total*>(total);
    t = Rule::combine(t, fold<Total, Rule>(static_cast<const In*>(x), n));
  }
  [[gnu::flatten]] void fold_rows(void* totals, const void* const* rows, std::int64_t count, std::int64_t n,
                                  std::int64_t) const override {
    auto* t = static_cast<Total*>(totals);
    const auto row = [&](std::int64_t r) { return static_cast<const In*>(rows[r]); };
    std::int64_t r = 0;
    for (; r + 4 <= count; r += 4) {  // a total is loaded and stored once for four rows
      const In *a = row(r), *b = row(r + 1), *c = row(r + 2), *d = row(r + 3);
      for_each_index(n, [=](std::int64_t j) {
        Total sum = Rule::combine(t[j], static_cast<Total>(a[j]));
        sum = Rule::combine(sum, static_cast<Total>(b[j]));
        sum = Rule::combine(sum, static_cast<Total>(c[j]));
        t[j] = Rule::combine(sum, static_cast<Total>(d[j]));
      });
    }
    for (; r < count; ++r) {
      const In* a = row(r);
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
};

template <class In, class Rule>
class ArgFolder final : public Folder {
 public:
  explicit ArgFolder(DType input_dtype) : Folder(input_dtype, DType::i64, sizeof(Best)) {}

  void start(void* totals, std::int64_t n) const override {
    std::fill_n(static_cast<Best*>(totals), n, Best{Rule::template none<In>, 0});
  }
  void fold_run(void* total, const void* data, std::int64_t n, std::int64_t first) const override {
    auto& best = *static_cast<Best*>(total);
    const auto* x = static_cast<const In*>(data);
    // The extreme of a block first, which is fast, and its place only if it is better than all before.
    for (std::int64_t i = 0; i < n; i += block_size) {
      const std::int64_t count = std::min(block_size, n - i);
      const In extreme = fold<In, Rule>(x + i, count);
      if (!beats(extreme, best.value)) continue;
      std::int64_t at = i;
      while (!(x[at] == extreme || x[at] != x[at])) ++at;
      best = {extreme, first + at};
    }
  }
  void fold_rows(void* totals, const void* const* rows, std::int64_t count, std::int64_t n,
                 std::int64_t first) const override {
    auto* best = static_cast<Best*>(totals);
    for (std::int64_t r = 0; r < count; ++r) {
      const auto* x = static_cast<const In*>(rows[r]);
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

  /// True for a NaN, unless one was there before.
  static bool beats(In a, In b) { return b == b && (a != a || (std::is_same_v<Rule, Max> ? a > b : a < b)); }
};

template <class In, class Total, class Rule>
const Folder& rule_folder() {
  // Unsigned totals of integers: signed overflow would be undefined.
  using Kept = std::conditional_t<std::is_same_v<Total, std::uint64_t>, std::int64_t, Total>;
  static const RuleFolder<In, Total, Rule> folder(
      dtype_of<std::conditional_t<std::is_same_v<In, std::uint64_t>, std::int64_t, In>>, dtype_of<Kept>);
  return folder;
}

template <class Rule>
const Folder& arithmetic_folder(DType input) {
  switch (compute_dtype(input)) {
    case DType::f32:
      return rule_folder<float, double, Rule>();
    case DType::f64:
      return rule_folder<double, double, Rule>();
    default:
      return rule_folder<std::uint64_t, std::uint64_t, Rule>();
  }
}

template <class Rule>
const Folder& extreme_folder(DType input) {
  return visit_compute(input, [&]<class C>() -> const Folder& { return rule_folder<C, C, Rule>(); });
}

template <class Rule>
const Folder& logical_folder() {
  static const RuleFolder<std::uint8_t, std::uint8_t, Rule> folder(DType::bool_, DType::bool_);
  return folder;
}

template <class Rule>
const Folder& arg_folder(DType input) {
  return visit_compute(input, [&]<class C>() -> const Folder& {
    static const ArgFolder<C, Rule> folder(dtype_of<C>);
    return folder;
  });
}

}  // namespace

const Folder& folder_for(op::ReduceFn fn, DType input) {
  switch (fn) {
    case op::ReduceFn::sum:
      return arithmetic_folder<Sum>(input);
    case op::ReduceFn::prod:
      return arithmetic_folder<Prod>(input);
    case op::ReduceFn::max:
      return extreme_folder<Max>(input);
    case op::ReduceFn::min:
      return extreme_folder<Min>(input);
    case op::ReduceFn::any:
      return logical_folder<Any>();
    default:
      return logical_folder<All>();
  }
}

const Folder& folder_for(op::ArgReduceFn fn, DType input) {
  return fn == op::ArgReduceFn::argmax ? arg_folder<Max>(input) : arg_folder<Min>(input);
}

}  // namespace ferrite::cpu
