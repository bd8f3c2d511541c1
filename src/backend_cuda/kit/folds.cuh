// What reductions do with elements (see reduce.cuh): sums, products, extremes, truth values, moments. Floats
// are added as a tree in f32 for batches of about 16, and the batches in double. This costs nothing beside
// the memory traffic, and a sum of any length is as accurate as a batch.
#pragma once

#include "backend_cuda/kit/reduce.cuh"

namespace ferrite::cuda {

/// Sums of floats; a batch is added in Value. The result is sum / divisor, or its square root.
template <class T, class Result = T, class Value = Compute<T>>
struct FloatSum {
  using Input = T;
  using Total = double;
  using Output = Result;
  static constexpr bool is_sum = true, packed = true;
  /// Squares and sums of the largest floats overflow f32 although their mean or norm does not.
  static constexpr bool leaves_range = std::is_same_v<Value, float> && !std::is_same_v<T, __half>;
  double divisor = 1;
  Term term = Term::value;
  bool root = false;

  __device__ Total start() const { return 0; }
  template <int count, int lanes>
  __device__ __forceinline__ void add(Total& total, const Pack<T, lanes> (&packs)[count], std::int64_t,
                                      std::int64_t) const {
    const auto plus = [](Value a, Value b) { return a + b; };
    Value sums[count];
#pragma unroll
    for (int u = 0; u < count; ++u) {
      Value values[lanes];
#pragma unroll
      for (int v = 0; v < lanes; ++v) {
        const auto x = convert_to<Value>(packs[u].lane[v]);
        values[v] = term == Term::value ? x : term == Term::square ? x * x : ::fabs(x);
      }
      sums[u] = tree<lanes>(values, plus);
    }
    total += static_cast<double>(tree<count>(sums, plus));
  }
  __device__ FloatSum<T, Result, double> careful() const requires leaves_range {
    return {divisor, term, root};
  }
  __device__ bool failed(Total total) const { return !::isfinite(total); }
  __device__ void merge(Total& total, const Total& other) const { total += other; }
  __device__ double finish(const Total& total) const {
    return root ? ::sqrt(total / divisor) : total / divisor;
  }
};

/// Sums of integers and counts of truth values, in 64 bits, wrapping around. Stored is the type in memory.
template <class T, class Stored = T>
struct IntegerSum {
  using Input = Stored;
  using Total = std::uint64_t;
  using Output = std::int64_t;
  static constexpr bool is_sum = true, packed = true;

  __device__ Total start() const { return 0; }
  template <int count, int lanes>
  __device__ __forceinline__ void add(Total& total, const Pack<Input, lanes> (&packs)[count], std::int64_t,
                                      std::int64_t) const {
    using Value = std::conditional_t<sizeof(Input) == 1, std::uint32_t, std::uint64_t>;
    Value sum = 0;
#pragma unroll
    for (int u = 0; u < count; ++u)
#pragma unroll
      for (int v = 0; v < lanes; ++v) sum += static_cast<Value>(convert_to<T>(packs[u].lane[v]));
    total += sum;
  }
  __device__ void merge(Total& total, const Total& other) const { total += other; }
  __device__ Total finish(const Total& total) const { return total; }
};

/// Products: of floats in double, of integers in 64 bits, wrapping around.
template <class T, class Stored = T>
struct ElementProduct {
  using Input = Stored;
  using Total = std::conditional_t<std::is_integral_v<T>, std::uint64_t, double>;
  using Output = std::conditional_t<std::is_integral_v<T>, std::int64_t, T>;
  static constexpr bool is_sum = false, packed = false;

  __device__ Total start() const { return 1; }
  template <int count>
  __device__ __forceinline__ void add(Total& total, const Pack<Input, 1> (&packs)[count], std::int64_t,
                                      std::int64_t) const {
#pragma unroll
    for (int u = 0; u < count; ++u) {
      if constexpr (std::is_integral_v<T>)
        total *= static_cast<Total>(convert_to<T>(packs[u].lane[0]));
      else
        total *= convert_to<double>(packs[u].lane[0]);
    }
  }
  __device__ void merge(Total& total, const Total& other) const { total *= other; }
  __device__ Total finish(const Total& total) const { return total; }
};

/// The larger of two; NaN if one is NaN.
__device__ __forceinline__ float larger(float a, float b) {
  float result;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
}
__device__ __forceinline__ double larger(double a, double b) { return b > a || b != b ? b : a; }
template <class T>
requires std::is_integral_v<T> __device__ __forceinline__ T larger(T a, T b) { return a > b ? a : b; }

/// Elements as numbers of at least 32 bits, of which the largest is wanted: unchanged, as magnitudes, or in
/// reversed order, all by masks.
template <class T>
struct Ordered {
  using Value = std::conditional_t<is_16_bit<T>, float, std::conditional_t<sizeof(T) == 1, std::int32_t, T>>;
  using Bits = std::conditional_t<sizeof(Value) == 4, std::uint32_t, std::uint64_t>;
  static constexpr Bits sign = Bits{1} << (8 * sizeof(Value) - 1);
  Bits kept, inverted;

  static Ordered of(Extreme extreme) {
    if (extreme == Extreme::magnitude) return {~sign, 0};
    if (extreme == Extreme::largest) return {~Bits{0}, 0};
    return {~Bits{0}, std::is_floating_point_v<Value> ? sign : ~Bits{0}};
  }

  static __device__ __forceinline__ Value lowest() {
    if constexpr (std::is_floating_point_v<Value>)
      return -std::numeric_limits<Value>::infinity();
    else
      return std::numeric_limits<Value>::min();
  }
  __device__ __forceinline__ Value operator()(T x) const {
    return masked(convert_to<Value>(x), kept, inverted);
  }
  /// The element with this number; not for magnitudes.
  __device__ __forceinline__ Value element(Value value) const { return masked(value, ~Bits{0}, inverted); }

 private:
  static __device__ __forceinline__ Value masked(Value value, Bits kept, Bits inverted) {
    Bits bits;
    __builtin_memcpy(&bits, &value, sizeof bits);
    bits = (bits & kept) ^ inverted;
    __builtin_memcpy(&value, &bits, sizeof bits);
    return value;
  }
};

/// max, min, and the largest magnitude. NaN if one is NaN.
template <class T>
struct Extremum {
  using Input = T;
  using Total = typename Ordered<T>::Value;
  using Output = T;
  static constexpr bool is_sum = false, packed = true;
  Ordered<T> order;

  __device__ Total start() const { return Ordered<T>::lowest(); }
  template <int count, int lanes>
  __device__ __forceinline__ void add(Total& total, const Pack<T, lanes> (&packs)[count], std::int64_t,
                                      std::int64_t) const {
    const auto choose = [](Total a, Total b) { return larger(a, b); };
    Total best[count];
#pragma unroll
    for (int u = 0; u < count; ++u) {
      Total values[lanes];
#pragma unroll
      for (int v = 0; v < lanes; ++v) values[v] = order(packs[u].lane[v]);
      best[u] = tree<lanes>(values, choose);
    }
    total = larger(total, tree<count>(best, choose));
  }
  __device__ void merge(Total& total, const Total& other) const { total = larger(total, other); }
  __device__ Total finish(const Total& total) const { return order.element(total); }
};

/// Whether any element (or every one: `all`) has one of the bits of `mask`, which leaves out the sign of
/// floats.
template <class Bits>
struct AnyOf {
  using Input = Bits;
  using Total = std::uint32_t;
  using Output = bool;
  static constexpr bool is_sum = false, packed = true;
  Bits mask;
  bool all;

  __device__ Total start() const { return 0; }
  /// The total is 1 as soon as the result is settled: a true element seen, or with `all` a false one.
  template <int count, int lanes>
  __device__ __forceinline__ void add(Total& total, const Pack<Bits, lanes> (&packs)[count], std::int64_t,
                                      std::int64_t) const {
#pragma unroll
    for (int u = 0; u < count; ++u)
#pragma unroll
      for (int v = 0; v < lanes; ++v) total |= ((packs[u].lane[v] & mask) != 0) != all;
  }
  __device__ void merge(Total& total, const Total& other) const { total |= other; }
  __device__ bool finish(const Total& total) const { return (total != 0) != all; }
};

/// The place of the largest (Ordered) element: the first of equals, a NaN before everything.
template <class T, class Stored = T>
struct ArgExtremum {
  using Input = Stored;
  using Value = typename Ordered<T>::Value;
  struct Total {
    Value value;
    std::int64_t place;
  };
  using Output = std::int64_t;
  static constexpr bool is_sum = false, packed = true;
  Ordered<T> order;

  static __device__ __forceinline__ bool beats(Value a, Value b) {
    if constexpr (std::is_floating_point_v<Value>)
      return !(a <= b) && b == b;  // larger, or the only NaN
    else
      return a > b;
  }
  __device__ Total start() const { return {Ordered<T>::lowest(), std::numeric_limits<std::int64_t>::max()}; }
  template <int count, int lanes>
  __device__ __forceinline__ void add(Total& total, const Pack<Input, lanes> (&packs)[count],
                                      std::int64_t first, std::int64_t step) const {
    Value best = order(convert_to<T>(packs[0].lane[0]));
    int at = 0;
#pragma unroll
    for (int i = 1; i < count * lanes; ++i) {
      const Value value = order(convert_to<T>(packs[i / lanes].lane[i % lanes]));
      if (beats(value, best)) {
        best = value;
        at = i;
      }
    }
    merge(total, {best, first + at / lanes * step + at % lanes});
  }
  __device__ __forceinline__ void merge(Total& total, const Total& other) const {
    const bool tie = !beats(other.value, total.value) && !beats(total.value, other.value);
    if (tie ? other.place < total.place : beats(other.value, total.value)) total = other;
  }
  __device__ std::int64_t finish(const Total& total) const { return total.place; }
};

/// The variance in one pass: count, mean and squared distances from it, merged by Chan's formulas. A batch
/// uses distances from its own mean, so nothing cancels.
template <class T>
struct Variance {
  using Input = T;
  struct Total {
    double count, mean, squares;
  };
  using Output = T;
  static constexpr bool is_sum = false, packed = true;
  double correction;

  __device__ Total start() const { return {0, 0, 0}; }
  template <int count, int lanes>
  __device__ __forceinline__ void add(Total& total, const Pack<T, lanes> (&packs)[count], std::int64_t,
                                      std::int64_t) const {
    using Value = Compute<T>;
    constexpr int n = count * lanes;
    const auto plus = [](Value a, Value b) { return a + b; };
    Value values[n], squares[n];
#pragma unroll
    for (int i = 0; i < n; ++i) values[i] = convert_to<Value>(packs[i / lanes].lane[i % lanes]);
    const Value centre = tree<n>(values, plus) / n;  // rounded; `off` says how far
#pragma unroll
    for (int i = 0; i < n; ++i) {
      values[i] -= centre;
      squares[i] = values[i] * values[i];
    }
    if constexpr (!std::is_same_v<Value, double>) {
      // Sums and squares of the largest floats overflow f32: infinity minus infinity would be NaN.
      if (!::isfinite(tree<n>(squares, plus))) return add_one_by_one(total, packs);
    }
    const double off = static_cast<double>(tree<n>(values, plus)) / n;
    const double sum = static_cast<double>(tree<n>(squares, plus)) - off * off * n;
    merge(total, {n, static_cast<double>(centre) + off, sum < 0 ? 0 : sum});  // by underflow
  }
  /// From a copy, so that the packs themselves can stay in registers.
  template <int count, int lanes>
  __device__ void add_one_by_one(Total& total, const Pack<T, lanes> (&packs)[count]) const {
    constexpr int n = count * lanes;
    double values[n];
#pragma unroll
    for (int i = 0; i < n; ++i) values[i] = convert_to<double>(packs[i / lanes].lane[i % lanes]);
#pragma unroll 1
    for (int i = 0; i < n; ++i) merge(total, {1, values[i], 0});
  }
  __device__ __forceinline__ void merge(Total& total, const Total& other) const {
    if (other.count == 0) return;
    const double count = total.count + other.count, share = other.count / count;
    const double distance = other.mean - total.mean;
    total.squares += other.squares + distance * distance * total.count * share;
    total.mean += distance * share;
    total.count = count;
  }
  __device__ double finish(const Total& total) const { return total.squares / (total.count - correction); }
};

/// log(sum(exp(x))): the sum relative to the largest element so far.
template <class T>
struct LogSumExp {
  using Input = T;
  using Value = Compute<T>;
  struct Total {
    double sum;  // of exp(x - shift(top))
    Value top;
  };
  using Output = T;
  static constexpr bool is_sum = false, packed = true;

  /// An infinite or NaN maximum would give inf - inf; the shift only needs to be finite and large enough.
  static __device__ __forceinline__ Value shift(Value top) { return ::isfinite(top) ? top : Value{0}; }
  /// A total relative to a larger top.
  static __device__ __forceinline__ double scaled(const Total& total, Value top) {
    return total.sum == 0 ? 0 : total.sum * static_cast<double>(::exp(shift(total.top) - shift(top)));
  }
  __device__ Total start() const { return {0, -std::numeric_limits<Value>::infinity()}; }
  template <int count, int lanes>
  __device__ __forceinline__ void add(Total& total, const Pack<T, lanes> (&packs)[count], std::int64_t,
                                      std::int64_t) const {
    constexpr int n = count * lanes;
    Value values[n];
#pragma unroll
    for (int i = 0; i < n; ++i) values[i] = convert_to<Value>(packs[i / lanes].lane[i % lanes]);
    const Value top = larger(total.top, tree<n>(values, [](Value a, Value b) { return larger(a, b); }));
    const Value away = shift(top);
#pragma unroll
    for (int i = 0; i < n; ++i) values[i] = ::exp(values[i] - away);
    const Value sum = tree<n>(values, [](Value a, Value b) { return a + b; });
    total = {scaled(total, top) + static_cast<double>(sum), top};
  }
  __device__ __forceinline__ void merge(Total& total, const Total& other) const {
    const Value top = larger(total.top, other.top);
    total = {scaled(total, top) + scaled(other, top), top};
  }
  __device__ double finish(const Total& total) const {
    return ::log(total.sum) + static_cast<double>(shift(total.top));
  }
};

}  // namespace ferrite::cuda
