// Scans: every thread runs along its row and stores its running result at each place.
#include "models/irsynth/categories/categories.hpp"

namespace ferrite::irsynth {
namespace {

void make(Sketch& s) {
  s.functions = s.draw.chance(0.4);
  s.axes(1);
  const int length = s.draw.between(4, 10);
  Expr out = s.output(s.real_type(), {s.grid[0], length});
  const int acc = s.declare(s.real_type(), s.fresh({"run", "carry", "acc", "state", "prefix"}));
  const auto carry = [&] { return kernel::variable(s.function(), acc); };
  const int way = s.draw.weighted({3, 3, 1, 1});  // sum, decaying, max, min
  static constexpr std::string_view words[] = {"running sum", "decaying average", "running maximum",
                                               "running minimum"};
  Term start = way < 2 ? Term{s.number(0), {0, 0}} : s.some(-1, 0.5);
  s.assign(carry(), start.expr);
  if (s.level >= 5 && s.draw.chance(0.5)) s.make_function();
  const Term decay = s.some(0.3, 0.9);
  const bool exclusive = s.draw.chance(0.3), backward = s.draw.chance(0.25);
  Expr end = s.draw.chance(0.5) ? irsynth::apply(Builtin::shape, out, s.whole(1)) : s.count(length);
  const auto body = [&](int k) {
    s.cursor.push_back({k, length});
    const std::size_t from = s.mark();
    s.let(s.input(s.real_type()));
    if (s.draw.chance(0.5)) s.elaborate(1);
    Term change = s.fitted(s.used_up(from, s.expression(1)), 4);
    if (exclusive) s.store(out, carry());
    if (way == 0) {
      s.update(carry(), Builtin::add, std::move(change.expr));
    } else if (way == 1) {
      Expr rest = mul(carry(), decay.expr);
      s.assign(carry(), add(std::move(rest), std::move(change.expr)));
    } else {
      s.assign(carry(),
               irsynth::apply(way == 2 ? Builtin::max : Builtin::min, carry(), std::move(change.expr)));
    }
    if (!exclusive) s.store(out, carry());
  };
  const Range values{0, length - 1.0};
  if (backward)
    s.loop(sub(std::move(end), s.whole(1)), s.whole(-1), s.whole(-1), values, body);
  else
    s.loop(s.whole(0), std::move(end), s.whole(1), values, body);
  s.description =
      std::string(words[way]) + (exclusive ? ", exclusive" : "") + (backward ? ", from the end" : "");
  if (s.draw.chance(0.5)) return;
  s.alive(acc, symmetric(4.0 * length), false);
  s.body(s.real_type());
}

}  // namespace
const Category all::scan{"scan", "running sums, averages and extrema along rows", 4, make};
}  // namespace ferrite::irsynth
