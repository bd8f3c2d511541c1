// The instructions of tile programs as types: the effect of each on a vector of the tile. Included only by
// files that are compiled as kernels.
#pragma once

#if defined(__aarch64__)
#include <arm_neon.h>
#endif

#include <bit>
#include <cmath>

#include "kernel/cpu/tile/code.hpp"

namespace ferrite::kernel::tile {

/// What an instruction sees besides its vector: the frame, the place of the tile, and the number of the
/// vector.
struct Tile {
  const TileFrame& frame;
  std::int64_t at;
  int k;
  template <class T>
  FERRITE_INLINE T* place(int offset) const {
    return reinterpret_cast<T*>(frame.at<TilePlace>(offset)[at]) + k * vector_size;
  }
};

template <class F, class Index = Vectors>
struct Step;
/// F::of(operands, tile, vector) for each of the vectors, then the next instruction.
template <class F, std::size_t... k>
struct Step<F, std::index_sequence<k...>> {
  static void run(const TileInstruction* i, const TileFrame* f, std::int64_t at, FloatsAt<k>... v) {
    return i[1].run(i + 1, f, at, F::of(i->operands.data(), Tile{*f, at, static_cast<int>(k)}, v)...);
  }
};

template <class F>
TileInstruction make(int a = 0, int b = 0) {
  return {Step<F>::run, {a, b}};
}

template <TileOperand kind>
FERRITE_INLINE Floats operand_at(const Tile& t, int offset) {
  if constexpr (kind == TileOperand::scalar)
    return t.frame.at<Floats>(offset);
  else
    return load_floats(t.place<float>(offset));
}
FERRITE_INLINE Floats mask_of(Bits b) { return std::bit_cast<Floats>(b); }
FERRITE_INLINE Bits bits_of_floats(Floats x) { return std::bit_cast<Bits>(x); }

struct Load {
  FERRITE_INLINE static Floats of(const int* o, const Tile& t, Floats) {
    return load_floats(t.place<float>(o[0]));
  }
};
struct LoadScalar {
  FERRITE_INLINE static Floats of(const int* o, const Tile& t, Floats) { return t.frame.at<Floats>(o[0]); }
};
struct LoadBFloat16 {
  FERRITE_INLINE static Floats of(const int* o, const Tile& t, Floats) {
    const auto* x = t.place<const BFloat16>(o[0]);
    float wide[vector_size];
    for (int j = 0; j < vector_size; ++j) wide[j] = to_float(x[j]);
    return load_floats(wide);
  }
};
/// Stores v where `to` says, as elements that are rounded already.
FERRITE_INLINE void store(float* to, Floats v) { store_floats(to, v); }
FERRITE_INLINE void store(BFloat16* to, Floats v) {
  float wide[vector_size];
  store_floats(wide, v);
  for (int j = 0; j < vector_size; ++j)
    to[j].bits = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(wide[j]) >> 16);
}
template <class T, class Index = Vectors>
struct Store;
/// The tile stays in registers. This is not a Step: the compiler must assume that the store could change the
/// frame, and would read it again for each vector.
template <class T, std::size_t... k>
struct Store<T, std::index_sequence<k...>> {
  static void run(const TileInstruction* i, const TileFrame* f, std::int64_t at, FloatsAt<k>... v) {
    T* const to = reinterpret_cast<T*>(f->at<TilePlace>(i->operands[0])[at]);
    const auto next = i[1].run;
    (store(to + k * vector_size, v), ...);
    return next(i + 1, f, at, v...);
  }
};
struct RoundToBFloat16 {  // as to_bfloat16
  FERRITE_INLINE static Floats of(const int*, const Tile&, Floats v) {
    const Bits u = bits_of_floats(v), odd = (u >> 16) & 1;
    const Bits rounded = (u + 0x7fff + odd) & static_cast<std::int32_t>(0xffff0000u);
    const Bits nan = (u & static_cast<std::int32_t>(0xffff0000u)) | 0x400000;
    const Bits is_nan = (u & 0x7fffffff) > 0x7f800000;
    return mask_of((is_nan & nan) | (~is_nan & rounded));
  }
};

// clang-format off
struct Add { FERRITE_INLINE static Floats of(Floats a, Floats b) { return a + b; } };
struct Subtract { FERRITE_INLINE static Floats of(Floats a, Floats b) { return a - b; } };
struct Multiply { FERRITE_INLINE static Floats of(Floats a, Floats b) { return a * b; } };
struct Divide { FERRITE_INLINE static Floats of(Floats a, Floats b) { return a / b; } };
struct Less { FERRITE_INLINE static Floats of(Floats a, Floats b) { return mask_of(a < b); } };
struct LessEqual { FERRITE_INLINE static Floats of(Floats a, Floats b) { return mask_of(a <= b); } };
struct Equal { FERRITE_INLINE static Floats of(Floats a, Floats b) { return mask_of(a == b); } };
struct Unequal { FERRITE_INLINE static Floats of(Floats a, Floats b) { return mask_of(a != b); } };
// clang-format on

FERRITE_INLINE Floats choice_of(Bits mask, Floats a, Floats b) {
  return mask_of((mask & bits_of_floats(a)) | (~mask & bits_of_floats(b)));
}
/// A number rather than a NaN, as fmin and fmax.
struct Minimum {
  FERRITE_INLINE static Floats of(Floats a, Floats b) {
    return choice_of((a < b) | ((b != b) & (a == a)), a, b);
  }
};
struct Maximum {
  FERRITE_INLINE static Floats of(Floats a, Floats b) { return choice_of((a < b) | (a != a), b, a); }
};

template <class F, TileOperand kind, bool reversed>
struct Binary {
  FERRITE_INLINE static Floats of(const int* o, const Tile& t, Floats v) {
    const Floats other = operand_at<kind>(t, o[0]);
    return reversed ? F::of(other, v) : F::of(v, other);
  }
};
template <TileOperand a, TileOperand b>
struct Select {
  FERRITE_INLINE static Floats of(const int* o, const Tile& t, Floats v) {
    const Bits mask = bits_of_floats(v);
    return choice_of(mask, operand_at<a>(t, o[0]), operand_at<b>(t, o[1]));
  }
};

template <class F, bool tile_is_right, bool tile_if_true, TileOperand kind, TileOperand other>
struct Choose {
  FERRITE_INLINE static Floats of(const int* o, const Tile& t, Floats v) {
    const Floats x = operand_at<kind>(t, o[0]), c = operand_at<other>(t, o[1]);
    const Bits mask = bits_of_floats(tile_is_right ? F::of(x, v) : F::of(v, x));
    return tile_if_true ? choice_of(mask, v, c) : choice_of(mask, c, v);
  }
};
/// v <= c ? c : v, or with min c <= v ? c : v. c is a scalar, not NaN, and not a zero of the sign that loses.
template <bool max>
struct Extreme {
  FERRITE_INLINE static Floats of(const int* o, const Tile& t, Floats v) {
    const Floats c = t.frame.at<Floats>(o[0]);
#if defined(__aarch64__)
    return max ? vmaxq_f32(v, c) : vminq_f32(v, c);
#else
    return choice_of(max ? v <= c : c <= v, c, v);
#endif
  }
};

template <class F>
struct Unary {
  FERRITE_INLINE static Floats of(const int*, const Tile&, Floats v) { return F::of(v); }
};
/// f(element), in a loop that compilers make a vector instruction.
template <class F>
FERRITE_INLINE Floats each(Floats v, F f) {
  float x[vector_size];
  store_floats(x, v);
  for (float& e : x) e = f(e);
  return load_floats(x);
}
constexpr std::int32_t magnitude = 0x7fffffff, infinity = 0x7f800000;
// clang-format off
struct Negate { FERRITE_INLINE static Floats of(Floats v) { return -v; } };
struct Absolute { FERRITE_INLINE static Floats of(Floats v) { return mask_of(bits_of_floats(v) & magnitude); } };
struct Not { FERRITE_INLINE static Floats of(Floats v) { return mask_of(~bits_of_floats(v)); } };
struct IsNan { FERRITE_INLINE static Floats of(Floats v) { return mask_of(v != v); } };
struct IsInf { FERRITE_INLINE static Floats of(Floats v) { return mask_of((bits_of_floats(v) & magnitude) == infinity); } };
struct IsFinite { FERRITE_INLINE static Floats of(Floats v) { return mask_of((bits_of_floats(v) & magnitude) < infinity); } };
struct SquareRoot { FERRITE_INLINE static Floats of(Floats v) { return each(v, [](float x) { return std::sqrt(x); }); } };
struct Floor { FERRITE_INLINE static Floats of(Floats v) { return each(v, [](float x) { return std::floor(x); }); } };
struct Ceil { FERRITE_INLINE static Floats of(Floats v) { return each(v, [](float x) { return std::ceil(x); }); } };
struct Rint { FERRITE_INLINE static Floats of(Floats v) { return each(v, [](float x) { return std::nearbyint(x); }); } };
// clang-format on

}  // namespace ferrite::kernel::tile
