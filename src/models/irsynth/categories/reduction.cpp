// Reductions: of a row by its thread, or of everything into a few numbers by atomics.
#include "models/irsynth/categories/categories.hpp"

namespace ferrite::irsynth {
namespace {

struct Reduction {
  std::string_view word;
  double start;
};

/// The thread's result for its row, as a live variable.
void row(Sketch& s, int length) {
  constexpr Reduction ways[] = {{"sum", 0},     {"maximum", -10},      {"minimum", 10},
                                {"product", 1}, {"sum of squares", 0}, {"sum of exponentials", 0}};
  const int way = s.draw.below(6);
  const auto n = static_cast<double>(length);
  const int acc = s.declare(s.real_type(), s.fresh({"total", "acc", "best", "norm", "sum"}));
  const auto value = [&] { return kernel::variable(s.function(), acc); };
  s.assign(value(), s.number(ways[way].start));
  Expr end = s.draw.chance(0.5) ? s.whole(length) : s.count(length);
  Range range{ways[way].start, ways[way].start};
  s.loop(std::move(end), length, [&](int k) {
    s.cursor.push_back({k, length});
    const std::size_t from = s.mark();
    s.let(s.input(s.real_type()));
    if (s.draw.chance(0.4)) s.elaborate(1);
    Term term = s.fitted(s.used_up(from, s.expression(1)), 3);
    switch (way) {
      case 0:
        range = term.range * Range{n, n};
        range = join(range, {0, 0});
        return s.update(value(), Builtin::add, std::move(term.expr));
      case 1:
      case 2:
        range = join(range, term.range);
        return s.assign(
            value(), irsynth::apply(way == 1 ? Builtin::max : Builtin::min, value(), std::move(term.expr)));
      case 3: {  // of factors near 1
        term = s.fitted(std::move(term), 0.2);
        range = {std::pow(0.8, n), std::pow(1.2, n)};
        return s.update(value(), Builtin::mul, add(s.number(1), std::move(term.expr)));
      }
      case 4: {
        Term t = s.let(std::move(term));
        t = s.read(t.expr.index);
        range = {0, 9 * n};
        return s.update(value(), Builtin::add, mul(t.expr, t.expr));
      }
      default:
        range = {0, n * 21};
        return s.update(value(), Builtin::add, irsynth::apply(Builtin::exp, std::move(term.expr)));
    }
  });
  s.description = std::string(ways[way].word) + " of each row";
  if (way == 5 && s.draw.chance(0.7)) {
    Expr safe = add(value(), s.number(0.1));
    s.let({irsynth::apply(Builtin::log, std::move(safe)), {-2.4, 6}});
  } else if (way == 4 && s.draw.chance(0.5)) {
    Expr safe = add(value(), s.number(0.1));
    s.let({irsynth::apply(Builtin::sqrt, std::move(safe)), {0.3, 3 * std::sqrt(n) + 1}});
  } else if (way == 0 && s.draw.chance(0.4)) {
    s.let({div(value(), s.number(n)), range / Range{n, n}});
  } else {
    s.alive(acc, range, false);
  }
}

void make(Sketch& s) {
  s.functions = s.draw.chance(0.5);
  s.most_inputs = 4;
  s.axes(s.draw.chance(0.2) ? 2 : 1);
  if (s.draw.chance(0.7)) {
    row(s, s.draw.between(3, 8));
    if (s.draw.chance(0.6)) return s.body(s.real_type());
  }
  s.elaborate(s.draw.between(1, 3));
  Term value = s.conclusion();
  const int cells = s.draw.of({1, 1, 4});
  Expr out = s.output(s.real_type(), {cells});
  Expr cell = cells == 1 ? s.whole(0) : irsynth::apply(Builtin::mod, s.at(s.cursor[0]), s.whole(cells));
  const Builtin f =
      s.smooth
          ? Builtin::atomic_add
          : s.draw.of({Builtin::atomic_add, Builtin::atomic_add, Builtin::atomic_max, Builtin::atomic_min});
  s.description += s.description.empty() ? "all threads into a few numbers" : ", all into a few numbers";
  s.evaluate(irsynth::apply(f, std::move(out), std::move(cell), std::move(value.expr)));
}

}  // namespace
const Category all::reduction{"reduction", "sums, products, extrema and norms of rows and of everything", 6,
                              make};
}  // namespace ferrite::irsynth
