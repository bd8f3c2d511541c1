#include "dist/rank_sum.hpp"

#include <type_traits>

namespace ferrite::dist {

namespace {

/// What elements are compared and added in.
template <class T>
FERRITE_INLINE auto widen(T x) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>)
    return to_float(x);
  else
    return x;
}

/// Blocks stay in the cache while all ranks are added, and loops of a fixed length become vectors.
constexpr std::int64_t block = 512;

/// combine(a, b) for every element; `a` is what the ranks before have given.
template <class T, class Acc, class Combine, class Finish>
void reduce_blocks(std::span<const std::byte* const> parts, std::byte* out, std::int64_t count,
                   const Combine& combine, const Finish& finish) {
  Acc sums[block];
  const auto reduce = [&](std::int64_t begin, auto length) {
    const auto* first = reinterpret_cast<const T*>(parts[0]) + begin;
    for (std::int64_t i = 0; i < length; ++i) sums[i] = static_cast<Acc>(widen(first[i]));
    for (const std::byte* part : parts.subspan(1)) {
      const auto* x = reinterpret_cast<const T*>(part) + begin;
      for (std::int64_t i = 0; i < length; ++i) sums[i] = combine(sums[i], static_cast<Acc>(widen(x[i])));
    }
    auto* to = reinterpret_cast<T*>(out) + begin;
    for (std::int64_t i = 0; i < length; ++i) to[i] = convert<T>(finish(sums[i]));
  };
  std::int64_t begin = 0;
  for (; begin + block <= count; begin += block) reduce(begin, std::integral_constant<std::int64_t, block>());
  reduce(begin, count - begin);
}

template <class Acc>
FERRITE_INLINE bool is_nan([[maybe_unused]] Acc x) {
  return x != x;
}

template <class T>
void reduce_as(ReduceOp op, std::span<const std::byte* const> parts, std::byte* out, std::int64_t count) {
  using Element = decltype(widen(T{}));  // NaN wins over every number
  const auto keep = [](auto x) { return x; };
  if (op == ReduceOp::max) {
    const auto larger = [](Element a, Element b) { return b > a || is_nan(b) ? (is_nan(a) ? a : b) : a; };
    reduce_blocks<T, Element>(parts, out, count, larger, keep);
  } else if (op == ReduceOp::min) {
    const auto smaller = [](Element a, Element b) { return b < a || is_nan(b) ? (is_nan(a) ? a : b) : a; };
    reduce_blocks<T, Element>(parts, out, count, smaller, keep);
  } else if constexpr (std::is_floating_point_v<Element>) {
    const auto ranks = static_cast<Element>(parts.size());
    const auto add = [](Element a, Element b) { return a + b; };
    if (op == ReduceOp::mean)
      reduce_blocks<T, Element>(parts, out, count, add, [ranks](Element x) { return x / ranks; });
    else
      reduce_blocks<T, Element>(parts, out, count, add, keep);
  } else if constexpr (!std::is_same_v<Element, bool>) {
    using Acc = std::make_unsigned_t<Element>;  // wraps around
    const auto add = [](Acc a, Acc b) { return static_cast<Acc>(a + b); };
    reduce_blocks<T, Acc>(parts, out, count, add, keep);
  }
}

}  // namespace

void reduce_in_rank_order(DType dtype, ReduceOp op, std::span<const std::byte* const> parts, std::byte* out,
                          std::int64_t count) {
  visit_dtype(dtype, [&]<class T>() { reduce_as<T>(op, parts, out, count); });
}

void divide(DType dtype, std::byte* data, std::int64_t count, int divisor) {
  visit_dtype(dtype, [&]<class T>() {
    if constexpr (std::is_floating_point_v<T>) {
      auto* x = reinterpret_cast<T*>(data);
      for (std::int64_t i = 0; i < count; ++i) x[i] /= static_cast<T>(divisor);
    }
  });
}

}  // namespace ferrite::dist
