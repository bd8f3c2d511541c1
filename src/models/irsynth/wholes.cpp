// Expressions of 32-bit integers, which never overflow and never divide by zero, and conditions.
#include "models/irsynth/sketch.hpp"

namespace ferrite::irsynth {

namespace {

constexpr double largest_whole = 100'000;

}  // namespace

Term Sketch::integer(int depth) {
  if (depth <= 0) {
    switch (draw.weighted({6, 3, 2})) {
      case 0:
        if (auto old = live(kernel::int_type)) return std::move(*old);
        break;
      case 1: {
        const int n = draw.between(1, 12);
        return {whole(n), {static_cast<double>(n), static_cast<double>(n)}};
      }
      default:
        break;
    }
    return input(kernel::int_type);
  }
  Term a = integer(depth - 1);
  if (a.expr.kind == kernel::ExprKind::literal) a = input(kernel::int_type);
  const auto with_literal = [&](Builtin f, int low, int high, auto range) {
    const int n = draw.between(low, high);
    return Term{irsynth::apply(f, std::move(a.expr), whole(n)), range(static_cast<double>(n))};
  };
  const bool natural = a.range.low >= 0;
  switch (draw.weighted({4, 3, 3, 2, natural ? 3 : 0, natural ? 2 : 0, natural && a.range.high < 1000 ? 1 : 0,
                         2, 1, natural ? 1 : 0})) {
    case 0: {
      Term b = integer(0);
      if (!(a.range + b.range).within(largest_whole)) return a;
      return add(std::move(a), std::move(b));
    }
    case 1: {
      Term b = integer(0);
      if (!(a.range - b.range).within(largest_whole)) return a;
      return sub(std::move(a), std::move(b));
    }
    case 2: {
      Term b = integer(0);
      if (!(a.range * b.range).within(largest_whole)) return a;
      return mul(std::move(a), std::move(b));
    }
    case 3:  // rounds down, whatever the sign
      return with_literal(Builtin::floordiv, 2, 7, [&](double n) {
        return Range{std::floor(a.range.low / n), std::floor(a.range.high / n)};
      });
    case 4:
      return with_literal(Builtin::mod, 2, 9, [](double n) { return Range{0, n - 1}; });
    case 5:
      return with_literal(draw.of({Builtin::bit_and, Builtin::bit_and, Builtin::bit_or, Builtin::bit_xor}), 1,
                          31, [&](double) {
                            return Range{0, 2 * a.range.high + 31};
                          });
    case 6:
      return with_literal(Builtin::lshift, 1, 3, [&](double n) {
        return Range{0, a.range.high * std::exp2(n)};
      });
    case 7: {
      Term b = integer(0);
      const bool least = draw.chance(0.5);
      return {irsynth::apply(least ? Builtin::min : Builtin::max, std::move(a.expr), std::move(b.expr)),
              join(a.range, b.range)};
    }
    case 8:
      return {irsynth::apply(Builtin::abs, std::move(a.expr)), absolute(a.range)};
    default:
      return with_literal(Builtin::rshift, 1, 2, [&](double) { return Range{0, a.range.high}; });
  }
}

Expr Sketch::condition(int depth) {
  if (depth > 0 && draw.chance(0.25)) {
    Expr e;
    e.kind = draw.chance(0.5) ? kernel::ExprKind::logical_and : kernel::ExprKind::logical_or;
    e.type = kernel::bool_type;
    e.args.push_back(condition(depth - 1));
    e.args.push_back(condition(depth - 1));
    return e;
  }
  constexpr Builtin orders[] = {Builtin::lt, Builtin::le, Builtin::gt, Builtin::ge};
  const Builtin order = draw.of(std::span<const Builtin>(orders));
  if (draw.chance(0.3)) {
    if (auto n = live(kernel::int_type)) {
      if (n->range.low >= 0 && draw.chance(0.6)) {
        const int every = draw.between(2, 5), rest = draw.below(every);
        return irsynth::apply(draw.chance(0.7) ? Builtin::eq : Builtin::ne,
                              irsynth::apply(Builtin::mod, std::move(n->expr), whole(every)), whole(rest));
      }
      const auto middle = static_cast<std::int64_t>((n->range.low + n->range.high) / 2);
      return irsynth::apply(order, std::move(n->expr), whole(middle));
    }
  }
  Term a = draw.chance(0.3) ? expression(1) : leaf();
  if (a.expr.kind == kernel::ExprKind::literal) a = input(real_type());
  if (draw.chance(0.35)) {
    Term b = leaf();
    if (b.expr != a.expr) return irsynth::apply(order, std::move(a.expr), std::move(b.expr));
  }
  const double width = a.range.high - a.range.low;
  Term split = some(a.range.low + 0.2 * width, a.range.high - 0.2 * width);
  Expr compared = irsynth::apply(order, std::move(a.expr), std::move(split.expr));
  return draw.chance(0.1) ? irsynth::apply(Builtin::not_, std::move(compared)) : std::move(compared);
}

}  // namespace ferrite::irsynth
