// The instructions of tile programs but for elementary functions.
#include <algorithm>
#include <cmath>

#include "kernel/tile_code.hpp"

namespace ferrite::kernel {

namespace {

/// What an instruction sees beside its vector: the frame, where the tile is, and which of its vectors this
/// is.
struct Tile {
  const TileFrame& frame;
  std::int64_t at;
  int k;
  template <class T>
  FERRITE_INLINE T* place(int index) const {
    return reinterpret_cast<T*>(frame.places[index][at]) + k * vector_size;
  }
};

template <class F, class Index = Vectors>
struct Step;
/// F::of(operands, tile, vector) for each of the vectors, then the next instruction. F::operands says how
/// many it has.
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
FERRITE_INLINE Floats operand_at(const Tile& t, int index) {
  if constexpr (kind == TileOperand::scalar)
    return t.frame.scalars[index];
  else
    return load_floats(t.place<float>(index));
}
FERRITE_INLINE Floats mask_of(Bits b) { return std::bit_cast<Floats>(b); }
FERRITE_INLINE Bits bits_of_floats(Floats x) { return std::bit_cast<Bits>(x); }

struct Load {
  static constexpr int operands = 1;
  FERRITE_INLINE static Floats of(const int* o, const Tile& t, Floats) {
    return load_floats(t.place<float>(o[0]));
  }
};
struct LoadScalar {
  static constexpr int operands = 1;
  FERRITE_INLINE static Floats of(const int* o, const Tile& t, Floats) { return t.frame.scalars[o[0]]; }
};
struct LoadBFloat16 {
  static constexpr int operands = 1;
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
/// Not a Step: what is stored might be the frame, for all that the compiler knows, which it would read again
/// for each vector.
template <class T, std::size_t... k>
struct Store<T, std::index_sequence<k...>> {
  static void run(const TileInstruction* i, const TileFrame* f, std::int64_t at, FloatsAt<k>... v) {
    T* const to = reinterpret_cast<T*>(f->places[i->operands[0]][at]);
    const auto next = i[1].run;
    (store(to + k * vector_size, v), ...);
    return next(i + 1, f, at, v...);
  }
};
struct RoundToBFloat16 {  // as to_bfloat16
  static constexpr int operands = 0;
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

template <class F, TileOperand kind, bool reversed>
struct Binary {
  static constexpr int operands = 1;
  FERRITE_INLINE static Floats of(const int* o, const Tile& t, Floats v) {
    const Floats other = operand_at<kind>(t, o[0]);
    return reversed ? F::of(other, v) : F::of(v, other);
  }
};
template <class F>
TileInstruction binary(TileOperand kind, int index, bool reversed) {
  using enum TileOperand;
  if (kind == place)
    return reversed ? make<Binary<F, place, true>>(index) : make<Binary<F, place, false>>(index);
  return reversed ? make<Binary<F, scalar, true>>(index) : make<Binary<F, scalar, false>>(index);
}

template <TileOperand a, TileOperand b>
struct Select {
  static constexpr int operands = 2;
  FERRITE_INLINE static Floats of(const int* o, const Tile& t, Floats v) {
    const Bits mask = bits_of_floats(v);
    return mask_of((mask & bits_of_floats(operand_at<a>(t, o[0]))) |
                   (~mask & bits_of_floats(operand_at<b>(t, o[1]))));
  }
};

template <class F, bool tile_is_right, bool tile_if_true, TileOperand kind, TileOperand other>
struct Choose {
  static constexpr int operands = 2;
  FERRITE_INLINE static Floats of(const int* o, const Tile& t, Floats v) {
    const Floats x = operand_at<kind>(t, o[0]), c = operand_at<other>(t, o[1]);
    const Bits mask = bits_of_floats(tile_is_right ? F::of(x, v) : F::of(v, x));
    const Floats a = tile_if_true ? v : c, b = tile_if_true ? c : v;
    return mask_of((mask & bits_of_floats(a)) | (~mask & bits_of_floats(b)));
  }
};
template <class F, bool tile_is_right, bool tile_if_true>
TileInstruction choose(TileOperand a, int first, TileOperand b, int second) {
  using enum TileOperand;
  if (a == place)
    return b == place ? make<Choose<F, tile_is_right, tile_if_true, place, place>>(first, second)
                      : make<Choose<F, tile_is_right, tile_if_true, place, scalar>>(first, second);
  return b == place ? make<Choose<F, tile_is_right, tile_if_true, scalar, place>>(first, second)
                    : make<Choose<F, tile_is_right, tile_if_true, scalar, scalar>>(first, second);
}
template <class F>
TileInstruction choose(bool tile_is_right, bool tile_if_true, TileOperand a, int first, TileOperand b,
                       int second) {
  if (tile_is_right)
    return tile_if_true ? choose<F, true, true>(a, first, b, second)
                        : choose<F, true, false>(a, first, b, second);
  return tile_if_true ? choose<F, false, true>(a, first, b, second)
                      : choose<F, false, false>(a, first, b, second);
}

template <class F>
struct Unary {
  static constexpr int operands = 0;
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

/// First, then Second: half the calls.
template <class First, class Second>
struct Pair {
  FERRITE_INLINE static Floats of(const int* o, const Tile& t, Floats v) {
    return Second::of(o + First::operands, t, First::of(o, t, v));
  }
};
template <class... F>
struct Members {};
/// What chains are mostly made of.
using Frequent =
    Members<Load, Binary<Add, TileOperand::scalar, false>, Binary<Subtract, TileOperand::scalar, false>,
            Binary<Multiply, TileOperand::scalar, false>, Binary<Add, TileOperand::place, false>,
            Binary<Subtract, TileOperand::place, false>, Binary<Multiply, TileOperand::place, false>,
            Choose<LessEqual, false, false, TileOperand::scalar, TileOperand::scalar>,
            Choose<LessEqual, true, false, TileOperand::scalar, TileOperand::scalar>, Unary<Negate>,
            Unary<Absolute>, RoundToBFloat16>;

template <class First, class Second>
TileInstruction pair_of(const TileInstruction& a, const TileInstruction& b) {
  TileInstruction both{Step<Pair<First, Second>>::run, a.operands};
  std::copy_n(b.operands.begin(), Second::operands, both.operands.begin() + First::operands);
  return both;
}
template <class First, class... Second>
bool find_pair(const TileInstruction& a, const TileInstruction& b, TileInstruction& out, Members<Second...>) {
  return (... || (b.run == Step<Second>::run && (out = pair_of<First, Second>(a, b), true)));
}
template <class... First>
TileInstruction find_pair(const TileInstruction& a, const TileInstruction& b, Members<First...> members) {
  TileInstruction out{};
  static_cast<void>((... || (a.run == Step<First>::run && find_pair<First>(a, b, out, members))));
  return out;
}

/// The next tile, if there is one.
template <std::size_t... k>
struct Ends {
  static void run(const TileInstruction*, const TileFrame* f, std::int64_t at, FloatsAt<k>... v) {
    if ((at += tile_size) < f->end) f->first->run(f->first, f, at, v...);
  }
};
template <std::size_t... k>
TileInstruction end_of(std::index_sequence<k...>) {
  return {Ends<k...>::run};
}
template <std::size_t... k>
void start(const TileFrame& frame, std::int64_t at, std::index_sequence<k...>) {
  frame.first->run(frame.first, &frame, at, FloatsAt<k>{}...);
}

}  // namespace

TileInstruction tile_load(ScalarType type, int place) {
  return type == ScalarType::bf16 ? make<LoadBFloat16>(place) : make<Load>(place);
}
TileInstruction tile_store(ScalarType type, int place) {
  return {type == ScalarType::bf16 ? Store<BFloat16>::run : Store<float>::run, {place}};
}
TileInstruction tile_scalar(int scalar) { return make<LoadScalar>(scalar); }
TileInstruction tile_end() { return end_of(Vectors{}); }
TileInstruction tile_pair(const TileInstruction& first, const TileInstruction& second) {
  return find_pair(first, second, Frequent{});
}
TileInstruction tile_round() { return make<RoundToBFloat16>(); }
void run_tiles(const TileInstruction* code, TileFrame& frame, std::int64_t begin, std::int64_t end) {
  frame.first = code;
  frame.end = end;
  start(frame, begin, Vectors{});
}

TileInstruction tile_select(TileOperand a, int first, TileOperand b, int second) {
  using enum TileOperand;
  if (a == place)
    return b == place ? make<Select<place, place>>(first, second)
                      : make<Select<place, scalar>>(first, second);
  return b == place ? make<Select<scalar, place>>(first, second)
                    : make<Select<scalar, scalar>>(first, second);
}

TileInstruction tile_binary(Builtin builtin, TileOperand operand, int index, bool reversed) {
  switch (builtin) {
    case Builtin::add:
      return binary<Add>(operand, index, false);
    case Builtin::sub:
      return binary<Subtract>(operand, index, reversed);
    case Builtin::mul:
      return binary<Multiply>(operand, index, false);
    case Builtin::div:
      return binary<Divide>(operand, index, reversed);
    case Builtin::lt:
      return binary<Less>(operand, index, reversed);
    case Builtin::le:
      return binary<LessEqual>(operand, index, reversed);
    case Builtin::gt:
      return binary<Less>(operand, index, !reversed);
    case Builtin::ge:
      return binary<LessEqual>(operand, index, !reversed);
    case Builtin::eq:
      return binary<Equal>(operand, index, false);
    case Builtin::ne:
      return binary<Unequal>(operand, index, false);
    default:
      return {};
  }
}

TileInstruction tile_choose(TileChoice c, TileOperand operand, int index, TileOperand other, int second) {
  switch (c.compare) {
    case Builtin::lt:
      return choose<Less>(c.tile_is_right, c.tile_if_true, operand, index, other, second);
    case Builtin::le:
      return choose<LessEqual>(c.tile_is_right, c.tile_if_true, operand, index, other, second);
    case Builtin::gt:
      return choose<Less>(!c.tile_is_right, c.tile_if_true, operand, index, other, second);
    case Builtin::ge:
      return choose<LessEqual>(!c.tile_is_right, c.tile_if_true, operand, index, other, second);
    case Builtin::eq:
      return choose<Equal>(c.tile_is_right, c.tile_if_true, operand, index, other, second);
    case Builtin::ne:
      return choose<Unequal>(c.tile_is_right, c.tile_if_true, operand, index, other, second);
    default:
      return {};
  }
}

TileInstruction tile_unary(Builtin builtin) {
  switch (builtin) {
    case Builtin::neg:
      return make<Unary<Negate>>();
    case Builtin::abs:
      return make<Unary<Absolute>>();
    case Builtin::not_:
      return make<Unary<Not>>();
    case Builtin::isnan:
      return make<Unary<IsNan>>();
    case Builtin::isinf:
      return make<Unary<IsInf>>();
    case Builtin::isfinite:
      return make<Unary<IsFinite>>();
    case Builtin::sqrt:
      return make<Unary<SquareRoot>>();
    case Builtin::floor:
      return make<Unary<Floor>>();
    case Builtin::ceil:
      return make<Unary<Ceil>>();
    case Builtin::rint:
      return make<Unary<Rint>>();
    default:
      return tile_math(builtin);
  }
}

}  // namespace ferrite::kernel
