// Atomics: sums, extrema, bits and histograms, with several threads at one place.
#include "models/irsynth/categories/categories.hpp"

namespace ferrite::irsynth {
namespace {

/// One of the cells: by the thread's index, or by a value.
Term cell(Sketch& s, int cells) {
  const Range range{0, cells - 1.0};
  if (s.smooth || s.draw.chance(0.5))
    return {irsynth::apply(
                Builtin::mod,
                s.at(s.cursor[static_cast<std::size_t>(s.draw.below(static_cast<int>(s.cursor.size())))]),
                s.whole(cells)),
            range};
  Term x = s.input(s.real_type());
  Expr scaled =
      mul(sub(std::move(x.expr), s.number(x.range.low)), s.number(cells / (x.range.high - x.range.low)));
  Expr bin = kernel::cast(ScalarType::i32, std::move(scaled));
  bin = irsynth::apply(Builtin::clamp, std::move(bin), s.whole(0), s.whole(cells - 1));
  Term made{std::move(bin), range};
  const int v = s.let(std::move(made), s.fresh({"bin", "cell", "bucket", "slot"})).expr.index;
  return s.read(v);
}

void make(Sketch& s) {
  s.functions = s.draw.chance(0.4);
  s.axes(s.draw.chance(0.3) ? 2 : 1);
  const int cells = s.draw.between(1, 8);
  const bool whole = !s.smooth && s.draw.chance(0.35);
  if (s.draw.chance(0.6)) s.elaborate(s.draw.between(1, 3));
  Term at = cells == 1 ? Term{s.whole(0), {0, 0}} : cell(s, cells);
  if (!whole) {
    Term value = s.conclusion();
    Expr out = s.output(s.real_type(), {cells});
    const int way = s.smooth ? s.draw.of({0, 1}) : s.draw.weighted({3, 2, 2, 2, 1});
    constexpr Builtin ways[] = {Builtin::atomic_add, Builtin::add, Builtin::atomic_min, Builtin::atomic_max,
                                Builtin::atomic_sub};
    s.description = way < 2 ? "atomic sums" : way == 4 ? "atomic differences" : "atomic extrema";
    const auto act = [&] {
      if (way == 1) return s.update(kernel::element(out, list(at.expr)), Builtin::add, value.expr);
      s.evaluate(irsynth::apply(ways[way], out, at.expr, value.expr));
    };
    if (!s.draw.chance(0.3)) return act();
    Expr when = s.condition(1);
    return s.if_else(std::move(when), act);
  }
  // Whatever floats there are decide whether the thread takes part.
  Term share = s.used_up(0, s.leaf());
  Term count = s.draw.chance(0.4) ? Term{s.whole(1), {1, 1}} : s.integer(1);
  Expr out = s.output(kernel::int_type, {cells});
  const bool bits = count.range.low >= 0 && s.draw.chance(0.3);
  const Builtin f = bits ? s.draw.of({Builtin::atomic_or, Builtin::atomic_xor})
                         : s.draw.of({Builtin::atomic_add, Builtin::atomic_add, Builtin::atomic_max,
                                      Builtin::atomic_min, Builtin::atomic_sub});
  Term split = s.some(share.range.low, share.range.high);
  s.description = bits ? "bits set by atomics" : "integer atomics";
  s.if_else(irsynth::apply(Builtin::gt, std::move(share.expr), std::move(split.expr)), [&] {
    s.evaluate(irsynth::apply(f, std::move(out), std::move(at.expr), std::move(count.expr)));
  });
}

}  // namespace
const Category all::atomic{"atomic", "atomic_add, sub, min, max, or, xor; histograms", 6, make};
}  // namespace ferrite::irsynth
