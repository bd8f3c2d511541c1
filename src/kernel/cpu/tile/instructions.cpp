// Makes the instructions of tile programs, except elementary functions.
#include <algorithm>

#include "kernel/cpu/tile/steps.hpp"

namespace ferrite::kernel {

namespace {

using namespace tile;

template <class F>
TileInstruction binary(TileOperand kind, int index, bool reversed) {
  using enum TileOperand;
  if (kind == place)
    return reversed ? make<Binary<F, place, true>>(index) : make<Binary<F, place, false>>(index);
  return reversed ? make<Binary<F, scalar, true>>(index) : make<Binary<F, scalar, false>>(index);
}

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
TileInstruction tile_round() { return make<RoundToBFloat16>(); }
void run_tiles(const TileInstruction* code, TileFrame& frame, std::int64_t begin, std::int64_t end) {
  // Each end calls on as the last act of its function. Compilers turn that into a jump, except when they
  // instrument code: then this is the depth that the calls reach.
  constexpr std::int64_t at_once = 64 * tile_size;
  frame.first = code;
  for (; begin < end; begin += at_once) {
    frame.end = std::min(end, begin + at_once);
    start(frame, begin, Vectors{});
  }
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
    case Builtin::min:
      return binary<Minimum>(operand, index, reversed);
    case Builtin::max:
      return binary<Maximum>(operand, index, reversed);
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

TileInstruction tile_extreme(bool max, int scalar) {
  return max ? make<Extreme<true>>(scalar) : make<Extreme<false>>(scalar);
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
