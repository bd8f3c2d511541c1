// Expressions of floats. Each operation checks the ranges of its operands first: if it would be undefined, or
// leave the range in which f32 is accurate, the operand is guarded in one of several ways.
#include "models/irsynth/sketch.hpp"

namespace ferrite::irsynth {

namespace {

constexpr double largest_real = 50;  // of values that go on

}  // namespace

Term Sketch::some(double low, double high) {
  const double digits = draw.of({4.0, 10.0, 20.0, 100.0});
  const double at = low + (high - low) * (draw.word() * 0x1p-32);
  double value = std::round(at * digits) / digits;
  if (value == 0 || value < low || value > high) value = std::round((low + high) * 50) / 100;
  return {number(value), {value, value}};
}

Term Sketch::leaf() {
  switch (draw.weighted({10, 4, 2, 2, 1, 1})) {
    case 0:
      if (auto old = live(real_type())) return std::move(*old);
      break;
    case 1:
      return input(real_type());
    case 2:
      return some(-2, 2);
    case 3:
      if (auto part = composite_scalar()) return std::move(*part);
      break;
    case 4:
      if (function_ == &kernel_ && parameters_.size() < 7) {
        const Range range = draw.of({Range{0.5, 1.5}, Range{0.1, 0.9}, Range{-1, 1}});
        return parameter(fresh({"alpha", "beta", "scale", "gain", "dt", "bias", "k0", "omega", "c0", "mu"}),
                         real_type(), range);
      }
      break;
    default:
      if (!cursor.empty() && function_ == &kernel_) {  // the thread's place as a number
        const Index i = cursor[static_cast<std::size_t>(draw.below(static_cast<int>(cursor.size())))];
        const double scale = draw.of({0.1, 0.05, 0.25, 0.02});
        const Term place = as_real({at(i), {0, static_cast<double>(i.extent - 1)}});
        return {mul(place.expr, number(scale)), place.range * Range{scale, scale}};
      }
  }
  return input(real_type());
}

namespace {

/// -x, but never two of them.
Term negated(Term x) {
  if (x.expr.kind == kernel::ExprKind::apply && x.expr.builtin == Builtin::neg) {
    Expr inner = std::move(x.expr.args[0]);
    x.expr = std::move(inner);
  } else {
    x.expr = irsynth::apply(Builtin::neg, std::move(x.expr));
  }
  x.range = -x.range;
  return x;
}

}  // namespace

Term Sketch::as_real(Term n) {
  if (n.expr.kind == kernel::ExprKind::variable && unrolled_.contains(n.expr.index))
    n = {add(std::move(n.expr), whole(1)), n.range + Range{1, 1}};
  return {kernel::cast(real, std::move(n.expr)), n.range};
}

Term Sketch::operand(int depth) {
  Term x = expression(depth);
  return x.expr.kind == kernel::ExprKind::literal ? input(real_type()) : std::move(x);
}

Term Sketch::positive(Term x) {
  if (x.range.above(0.1)) return x;
  Term c = some(0.2, 1.5);
  switch (draw.weighted({3, 2, x.range.within(3) && functions ? 2 : 0,
                         functions && x.range.within(16) ? 1 : 0, x.expr.args.empty() ? 2 : 0, 1})) {
    case 0:
      return {add(irsynth::apply(Builtin::abs, std::move(x.expr)), std::move(c.expr)),
              absolute(x.range) + c.range};
    case 1:
      return {irsynth::apply(Builtin::max, std::move(x.expr), std::move(c.expr)),
              {c.range.low, std::max(x.range.high, c.range.high)}};
    case 2:
      return {irsynth::apply(Builtin::exp, std::move(x.expr)),
              mapped(x.range, [](double v) { return std::exp(v); })};
    case 3:
      return {add(irsynth::apply(Builtin::cos, std::move(x.expr)), number(1.5)), {0.5, 2.5}};
    case 4: {
      Expr square = mul(x.expr, x.expr);
      const Range r = absolute(x.range);
      return {add(std::move(square), std::move(c.expr)), r * r + c.range};
    }
    default:
      return {irsynth::apply(Builtin::clamp, std::move(x.expr), std::move(c.expr), number(4)),
              {c.range.low, 4}};
  }
}

Term Sketch::apart(Term x) { return x.range.apart(0.25) ? x : kept(positive(std::move(x))); }

Term Sketch::kept(Term x) {
  if (x.range.within(largest_real)) return x;
  const double size = x.range.size();
  const Term limit = some(2, 8);
  const int way = functions ? draw.weighted({2, 2, size < 200 ? 2 : 0, 1}) : draw.weighted({2, 0, 0, 3});
  switch (way) {
    case 0:
      return {irsynth::apply(Builtin::clamp, std::move(x.expr), number(-limit.range.low), limit.expr),
              symmetric(limit.range.low)};
    case 1:
      return {irsynth::apply(Builtin::tanh, std::move(x.expr)), symmetric(1)};
    case 2:
      return {irsynth::apply(Builtin::sin, std::move(x.expr)), symmetric(1)};
    default:
      return scaled(std::move(x), 10);
  }
}

Term Sketch::combined(Term a, Term b) {
  if (a.expr.kind == kernel::ExprKind::literal) a = input(real_type());
  if (a.expr == b.expr) b = some(0.5, 3);
  switch (draw.weighted({5, 4, 5, 3, 1, 1})) {
    case 0:
      return kept(add(std::move(a), std::move(b)));
    case 1:
      return kept(sub(std::move(a), std::move(b)));
    case 2:
      return kept(mul(std::move(a), std::move(b)));
    case 3:
      if (b.expr.kind == kernel::ExprKind::literal) b = some(0.5, 3);
      b = apart(std::move(b));
      return kept({div(std::move(a.expr), std::move(b.expr)), a.range / b.range});
    case 4:
      return {irsynth::apply(Builtin::min, std::move(a.expr), std::move(b.expr)),
              {std::min(a.range.low, b.range.low), std::min(a.range.high, b.range.high)}};
    default:
      return {irsynth::apply(Builtin::max, std::move(a.expr), std::move(b.expr)),
              {std::max(a.range.low, b.range.low), std::max(a.range.high, b.range.high)}};
  }
}

Term Sketch::unary(int depth) {
  Term x = operand(depth - 1);
  const auto made = [&](Builtin f, Range range) { return Term{irsynth::apply(f, std::move(x.expr)), range}; };
  const auto grown = [&](Builtin f, double (*value)(double)) { return made(f, mapped(x.range, value)); };
  if (!functions) {
    switch (draw.below(3)) {
      case 0:
        return negated(std::move(x));
      case 1:
        return made(Builtin::abs, absolute(x.range));
      default:
        if (!x.expr.args.empty() || !x.range.within(7)) return negated(std::move(x));
        x.expr = mul(x.expr, x.expr);
        x.range = absolute(x.range) * absolute(x.range);
        return x;
    }
  }
  const bool small = x.range.within(3), modest = x.range.within(16);
  switch (draw.weighted({modest ? 6 : 0, modest ? 6 : 0, 3, 2, small ? 4 : 0, 4, 4, 2, 1, small ? 1 : 0,
                         small ? 1 : 0, 1, 1, smooth ? 0 : 2, 1, 1, x.range.within(1.2) ? 2 : 0,
                         x.range.within(0.9) ? 3 : 0, 2})) {
    case 0:
      return made(Builtin::sin, symmetric(1));
    case 1:
      return made(Builtin::cos, symmetric(1));
    case 2:
      return made(Builtin::tanh, symmetric(1));
    case 3:
      return grown(Builtin::atan, [](double v) { return std::atan(v); });
    case 4:
      return grown(Builtin::exp, [](double v) { return std::exp(v); });
    case 5:
      x = positive(std::move(x));
      return grown(Builtin::sqrt, [](double v) { return std::sqrt(v); });
    case 6:
      x = positive(std::move(x));
      return grown(draw.of({Builtin::log, Builtin::log, Builtin::log2, Builtin::log10}),
                   [](double v) { return std::log2(v); });  // the widest of them
    case 7:
      return made(Builtin::abs, absolute(x.range));
    case 8:
      x = positive(std::move(x));
      return grown(Builtin::cbrt, [](double v) { return std::cbrt(v); });
    case 9:
      return grown(Builtin::sinh, [](double v) { return std::sinh(v); });
    case 10:
      return made(Builtin::cosh, {1, std::cosh(x.range.size())});
    case 11:
      return made(Builtin::erf, symmetric(1));
    case 12:
      return made(Builtin::radians, x.range * Range{0.0175, 0.0175});
    case 13:
      return made(draw.of({Builtin::floor, Builtin::ceil, Builtin::round, Builtin::trunc, Builtin::rint}),
                  {std::floor(x.range.low), std::ceil(x.range.high)});
    case 14:
      return negated(std::move(x));
    case 15: {
      x = positive(std::move(x));
      const double power = draw.of({0.5, 1.5, 2.0, 2.5, -0.5, -1.0});
      const Range r = mapped(x.range, [&](double v) { return std::pow(v, power); });
      return kept({irsynth::apply(Builtin::pow, std::move(x.expr), number(power)),
                   join({r.low, r.low}, {r.high, r.high})});
    }
    case 16:
      return grown(Builtin::tan, [](double v) { return std::tan(v); });
    case 17:
      return draw.chance(0.5) ? grown(Builtin::asin, [](double v) { return std::asin(v); })
                              : made(Builtin::acos, {0.4, 2.8});
    default:
      return negated(std::move(x));
  }
}

Term Sketch::binary(int depth) {
  Term a = operand(depth - 1), b = draw.chance(0.5) ? expression(depth - 1) : leaf();
  if (functions && draw.chance(0.12)) {
    a = apart(std::move(a));
    const Range r{-3.2, 3.2};
    return {irsynth::apply(Builtin::atan2, std::move(b.expr), std::move(a.expr)), r};
  }
  return combined(std::move(a), std::move(b));
}

Term Sketch::ternary(int depth) {
  Term a = operand(depth - 1);
  switch (draw.weighted({2, 2, functions && !smooth ? 1 : 0, level >= 2 ? 3 : 0, level >= 2 ? 1 : 0})) {
    case 0: {
      const Term low = some(-2, -0.2), high = some(0.2, 2);
      return {irsynth::apply(Builtin::clamp, std::move(a.expr), low.expr, high.expr),
              {std::clamp(a.range.low, low.range.low, high.range.low),
               std::clamp(a.range.high, low.range.low, high.range.low)}};
    }
    case 1: {
      Term b = leaf(), t = some(0.1, 0.9);
      return {irsynth::apply(Builtin::lerp, std::move(a.expr), std::move(b.expr), std::move(t.expr)),
              join(a.range, b.range)};
    }
    case 2:
      return {irsynth::apply(Builtin::smoothstep, number(-0.5), some(0.5, 2).expr, std::move(a.expr)),
              {0, 1}};
    case 3: {
      Term b = leaf();
      return {irsynth::apply(Builtin::where, condition(1), std::move(a.expr), std::move(b.expr)),
              join(a.range, b.range)};
    }
    default: {
      Term b = leaf();
      Expr e;
      e.kind = kernel::ExprKind::conditional;
      e.type = a.type();
      e.args = list(condition(1), std::move(a.expr), std::move(b.expr));
      return {std::move(e), join(a.range, b.range)};
    }
  }
}

Term Sketch::expression(int depth) {
  if (depth <= 0) return leaf();
  const bool calls = !functions_.empty();
  switch (draw.weighted({functions ? 5 : 2, 8, 2, calls ? 3 : 0, smooth ? 0 : 1})) {
    case 0:
      return kept(unary(depth));
    case 1:
      return binary(depth);
    case 2:
      return ternary(depth);
    case 3:
      return call(depth - 1);
    default: {
      Term n = integer(1);
      if (!n.range.within(largest_real)) return binary(depth);
      return as_real(std::move(n));
    }
  }
}

}  // namespace ferrite::irsynth
