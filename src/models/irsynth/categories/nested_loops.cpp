// Loops in loops: sums over two or three indices, with ranges that depend on outer ones.
#include "models/irsynth/categories/categories.hpp"

namespace ferrite::irsynth {
namespace {

/// for a in range(n): for b in range(...): total += term
void nest(Sketch& s, int total, int depth, std::int64_t rounds_before, std::size_t from, Range& range) {
  const int rounds = s.draw.between(2, 4);
  const std::int64_t all = rounds_before * rounds;
  Expr end = s.draw.chance(0.5) ? s.whole(rounds) : s.count(rounds);
  const bool triangle = s.cursor.size() > s.grid.size() && s.draw.chance(0.3);
  if (triangle)  // up to the outer index
    end = add(irsynth::apply(Builtin::mod, s.at(s.cursor.back()), s.whole(rounds)), s.whole(1));
  s.loop(std::move(end), rounds, [&](int k) {
    if (s.cursor.size() < 4) s.cursor.push_back({k, rounds});
    if (s.draw.chance(0.4)) s.let(s.expression(1));
    if (depth > 1) {
      if (s.draw.chance(0.3)) s.let(s.input(s.real_type()));
      nest(s, total, depth - 1, all, from, range);
      if (s.draw.chance(0.6)) return;
    }
    Term term =
        s.fitted(s.used_up(from, s.expression(s.draw.between(1, 2))), 20.0 / static_cast<double>(all));
    const auto n = static_cast<double>(all);
    range = join(range, range + term.range * Range{n, n});
    s.update(kernel::variable(s.function(), total), Builtin::add, std::move(term.expr));
  });
}

void make(Sketch& s) {
  s.functions = s.draw.chance(0.4);
  s.most_inputs = 4;
  s.axes(s.level >= 4 && s.draw.chance(0.3) ? 2 : 1);
  const int total = s.declare(s.real_type(), s.fresh({"total", "sum", "acc", "energy", "weight"}));
  s.assign(kernel::variable(s.function(), total), s.number(0));
  Range range{0, 0};
  const int depth = s.draw.between(2, s.level >= 5 ? 3 : 2);
  nest(s, total, depth, 1, s.mark(), range);
  s.alive(total, range, false);
  s.body(s.real_type());
  s.description = depth == 3 ? "three nested loops" : "two nested loops";
}

}  // namespace
const Category all::nested_loops{"nested_loops", "sums over two or three loops in each other", 3, make};
}  // namespace ferrite::irsynth
