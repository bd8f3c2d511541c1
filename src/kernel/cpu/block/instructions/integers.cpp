// Arithmetic of integers: it wraps around; division and shifts check their operands, for active lanes only.
#include <algorithm>
#include <bit>
#include <limits>
#include <type_traits>

#include "kernel/cpu/block/lanes.hpp"

namespace ferrite::kernel {

namespace {

using enum Builtin;

template <class T, class F>
FERRITE_INLINE void map(const Instruction& i, Lanes& l, F f) {
  using U = std::make_unsigned_t<T>;
  if constexpr (std::is_invocable_v<F, U>)
    for_lanes<T, T>(i, l, [=](T a) { return static_cast<T>(f(static_cast<U>(a))); });
  else
    for_lanes<T, T, T>(i, l,
                       [=](T a, T b) { return static_cast<T>(f(static_cast<U>(a), static_cast<U>(b))); });
}

/// Runs `f` where the operands are valid; the others give 0, or an error if the lane is active.
template <class T, class Fits, class F>
FERRITE_INLINE void checked(const Instruction& i, Lanes& l, Fits fits, F f) {
  T* __restrict out = l.at<T>(i.out);
  const T* __restrict a = l.at<T>(i.a);
  const T* __restrict b = l.at<T>(i.b);
  int unfit = 0;
  for (int k = 0; k < l.count; ++k) {
    const bool is = fits(a[k], b[k]);
    unfit += !is;
    out[k] = is ? f(a[k], b[k]) : T{0};
  }
  if (unfit == 0 || l.none(i)) return;
  const std::uint8_t* lanes = l.lanes_of(i);
  for (int k = 0; k < l.count; ++k)
    if ((lanes == nullptr || lanes[k] != 0) && !fits(a[k], b[k]))
      l.call_lane(i, l.program.calls[static_cast<std::size_t>(i.detail)], k);  // throws
}

template <class T>
FERRITE_INLINE bool divides(T a, T b) {
  if (b == 0) return false;
  return std::is_unsigned_v<T> || !(b == static_cast<T>(-1) && a == std::numeric_limits<T>::min());
}
template <class T>
FERRITE_INLINE T floor_divide(T a, T b) {
  const T q = static_cast<T>(a / b), r = static_cast<T>(a % b);
  return static_cast<T>(q - (std::is_signed_v<T> && r != 0 && (r < 0) != (b < 0)));
}
template <class T>
FERRITE_INLINE T remainder(T a, T b) {
  if constexpr (std::is_signed_v<T>)
    if (b == -1) return 0;
  return static_cast<T>(a % b);
}

template <class T>
Execute instruction(Builtin builtin) {
  using U = std::make_unsigned_t<T>;
  using W = std::conditional_t<(sizeof(T) < 4), std::uint32_t, U>;  // no promotion to signed
  const auto of = []<class F>(F) -> Execute {
    return +[](const Instruction& i, Lanes& l) { map<T>(i, l, F{}); };
  };
  const auto check = []<class Fits, class F>(Fits, F) -> Execute {
    return +[](const Instruction& i, Lanes& l) { checked<T>(i, l, Fits{}, F{}); };
  };
  const auto divisible = [](T a, T b) { return divides(a, b); };
  const auto some = [](T, T b) { return b != 0; };
  const auto in_width = [](T, T b) { return static_cast<U>(b) < 8 * sizeof(T); };
  // clang-format off
  switch (builtin) {
    case neg: return of([](U a) { return W{0} - a; });
    case invert: return of([](U a) { return ~W{a}; });
    case add: return of([](U a, U b) { return W{a} + W{b}; });
    case sub: return of([](U a, U b) { return W{a} - W{b}; });
    case mul: case cw_mul: return of([](U a, U b) { return W{a} * W{b}; });
    case bit_and: return of([](U a, U b) { return W{a} & W{b}; });
    case bit_or: return of([](U a, U b) { return W{a} | W{b}; });
    case bit_xor: return of([](U a, U b) { return W{a} ^ W{b}; });
    case abs: return of([](U a) { return static_cast<T>(a) < 0 ? W{0} - a : W{a}; });
    case sign: return of([](U a) { return static_cast<T>(a) < 0 ? T(-1) : T(1); });
    case step: return of([](U a) { return static_cast<T>(static_cast<T>(a) < 0); });
    case div: case cw_div: return check(divisible, [](T a, T b) { return static_cast<T>(a / b); });
    case floordiv: return check(divisible, [](T a, T b) { return floor_divide(a, b); });
    case mod: return check(some, [](T a, T b) { return remainder(a, b); });
    case lshift: return check(in_width, [](T a, T b) { return static_cast<T>(W{static_cast<U>(a)} << b); });
    case rshift: return check(in_width, [](T a, T b) { return static_cast<T>(a >> b); });
    case bit_count:
      return +[](const Instruction& i, Lanes& l) {
        for_lanes<std::int32_t, T>(i, l, [](T a) { return std::popcount(static_cast<U>(a)); });
      };
    default: return nullptr;
  }
  // clang-format on
}

}  // namespace

Execute integer_instruction(Builtin builtin, ScalarType type) {
  return visit_scalar(type, [&]<ScalarType s>() -> Execute {
    if constexpr (is_integer(s))
      return instruction<typename Form<s>::Lane>(builtin);
    else
      return nullptr;
  });
}

}  // namespace ferrite::kernel
