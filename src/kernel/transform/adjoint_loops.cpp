// Adjoints of loops. A round is reversed from its initial values: variables are restored to their state
// before the loop, earlier rounds run again, then the round itself. Values of earlier rounds that no round
// needs are dead code and disappear, and with them the loops that run again.
#include <algorithm>

#include "kernel/transform/adjoint_builder.hpp"

namespace ferrite::kernel {

namespace {

Expr binary(Builtin b, Expr x, Expr y) { return apply(b, {std::move(x), std::move(y)}); }
Expr whole_number(std::int64_t n, Type like) { return literal(like.scalar, n); }

}  // namespace

std::set<int> AdjointBuilder::changed_in(const Block& body) const {
  std::set<int> changed;
  for_each_stmt(body, [&](const Stmt& s) {
    for (const Expr& t : s.targets)
      if (is_own(t)) changed.insert(root_of(t).index);
  });
  for_each_expr(body, [&](const Expr& e) {
    if (e.kind == ExprKind::apply && info(e.builtin).effect == Effect::updates_first)
      changed.insert(e.args[0].index);
  });
  return changed;
}

/// Loops that give every element of an array a value.
AdjointBuilder::Block AdjointBuilder::fill(const Expr& array, const std::vector<Expr>& extents,
                                           const std::function<Expr(std::vector<Expr>)>& value) {
  while (counters_.size() < extents.size()) counters_.push_back(fresh("at", int_type));
  const std::vector<Expr> at(counters_.begin(),
                             counters_.begin() + static_cast<std::ptrdiff_t>(extents.size()));
  Block body;
  body.push_back(assign(element(array, at), value(at)));
  for (std::size_t axis = extents.size(); axis-- > 0;) {
    Stmt loop = for_range(at[axis], whole_number(0, int_type), extents[axis], whole_number(1, int_type),
                          std::move(body));
    body.clear();
    body.push_back(std::move(loop));
  }
  return body;
}

AdjointBuilder::Block AdjointBuilder::snapshot(const std::set<int>& variables, Block& forward) {
  Block restore;
  for (const int v : variables) {
    const Expr original = whole(v);
    if (l_.unrepeatable.contains(v)) continue;
    const Expr copy = fresh(f_.variables[static_cast<std::size_t>(v)].name + "_first", original.type);
    if (!original.type.is_array()) {
      forward.push_back(assign(copy, original));
      restore.push_back(assign(original, copy));
      continue;
    }
    const std::vector<Expr>& extents = extents_.at(v);
    Stmt declaration = assign(copy, Expr());
    declaration.kind = StmtKind::declare_array;
    declaration.values = extents;
    start_.push_back(std::move(declaration));
    append(forward, fill(copy, extents, [&](const auto& at) { return element(original, at); }));
    append(restore, fill(original, extents, [&](const auto& at) { return element(copy, at); }));
  }
  return restore;
}

void AdjointBuilder::for_loop(const Stmt& s, Sweep& sweep) {
  const Expr& k = s.targets[0];
  const Type type = k.type;
  std::set<int> changed = changed_in(s.body);
  changed.insert(k.index);
  Stmt loop = s;
  const char* const names[] = {"start", "stop", "step"};
  for (std::size_t i = 0; i < 3; ++i) {
    bool moves = false;
    for_each_expr(loop.values[i],
                  [&](const Expr& e) { moves |= e.kind == ExprKind::variable && changed.contains(e.index); });
    if (!moves) continue;
    const Expr held = fresh(names[i], type);
    sweep.forward.push_back(assign(held, std::move(loop.values[i])));
    loop.values[i] = held;
  }
  const Expr start = loop.values[0], stop = loop.values[1], step = loop.values[2];
  if (step.kind != ExprKind::literal || is_unsigned(type.scalar))
    return counted(std::move(loop), start, step, sweep);

  // The last value, from which the loop goes back to the start.
  const std::int64_t by = step.number.integer;
  const Expr one = whole_number(by > 0 ? 1 : -1, type);
  const Expr distance = binary(Builtin::sub, binary(Builtin::sub, stop, one), start);
  const Expr last = by == 1 || by == -1
                        ? binary(Builtin::sub, stop, one)
                        : binary(Builtin::add, start,
                                 binary(Builtin::mul, binary(Builtin::floordiv, distance, step), step));
  ++depth_;
  Sweep round = block(s.body);
  --depth_;
  const Block restore = snapshot(changed, sweep.forward);
  loop.body = plain(s.body);
  sweep.forward.push_back(loop);

  const Expr back = fresh(f_.variables[static_cast<std::size_t>(k.index)].name + "_back", type);
  Block body = restore;
  loop.values = {start, back, step};
  body.push_back(std::move(loop));  // the rounds before
  body.push_back(assign(k, back));
  append(body, std::move(round.forward));
  append(body, std::move(round.reverse));
  sweep.reverse.push_back(
      for_range(back, last, binary(Builtin::sub, start, one), whole_number(-by, type), std::move(body)));
  append(sweep.reverse, restore);
}

/// A range whose direction is not known, by counting its rounds.
void AdjointBuilder::counted(Stmt loop, const Expr& start, const Expr& step, Sweep& sweep) {
  const Expr k = loop.targets[0], zero = whole_number(0, int_type), one = whole_number(1, int_type);
  const auto value = [&](const Expr& round) {
    return binary(Builtin::add, start, binary(Builtin::mul, cast(k.type.scalar, round), step));
  };
  ++depth_;
  Sweep round = block(loop.body);
  --depth_;
  std::set<int> changed = changed_in(loop.body);
  changed.insert(k.index);
  const Block restore = snapshot(changed, sweep.forward), again = plain(loop.body);
  const Expr rounds = fresh("rounds", int_type), back = fresh("back", int_type),
             before = fresh("before", int_type);
  sweep.forward.push_back(assign(rounds, zero));
  loop.body = again;
  loop.body.push_back(update(Builtin::add, rounds, one));
  sweep.forward.push_back(std::move(loop));

  Block earlier = again, body = restore;
  earlier.insert(earlier.begin(), assign(k, value(before)));
  body.push_back(for_range(before, zero, back, one, std::move(earlier)));
  body.push_back(assign(k, value(back)));
  append(body, std::move(round.forward));
  append(body, std::move(round.reverse));
  const Expr minus = whole_number(-1, int_type);
  sweep.reverse.push_back(for_range(back, binary(Builtin::sub, rounds, one), minus, minus, std::move(body)));
  append(sweep.reverse, restore);
}

void AdjointBuilder::while_loop(const Stmt& s, Sweep& sweep) {
  const Expr zero = whole_number(0, int_type), one = whole_number(1, int_type),
             minus = whole_number(-1, int_type);
  ++depth_;
  Sweep round = block(s.body);
  --depth_;
  const Block restore = snapshot(changed_in(s.body), sweep.forward), again = plain(s.body);
  const Expr rounds = fresh("rounds", int_type), back = fresh("back", int_type),
             before = fresh("before", int_type);
  sweep.forward.push_back(assign(rounds, zero));
  Stmt loop = s;
  loop.body = again;
  loop.body.push_back(update(Builtin::add, rounds, one));
  sweep.forward.push_back(std::move(loop));

  Block body = restore;
  body.push_back(for_range(before, zero, back, one, again));
  append(body, std::move(round.forward));
  append(body, std::move(round.reverse));
  sweep.reverse.push_back(for_range(back, binary(Builtin::sub, rounds, one), minus, minus, std::move(body)));
  append(sweep.reverse, restore);
}

}  // namespace ferrite::kernel
