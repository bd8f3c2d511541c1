// Statements that fill a body: values, branches, loops, as the level allows; and the final value that uses
// everything unused.
#include "models/irsynth/sketch.hpp"

namespace ferrite::irsynth {

Term Sketch::used_up(std::size_t from, Term result) {
  for (std::size_t k = from; k < live_.size(); ++k) {
    if (live_[k].used) continue;
    Term t = read(live_[k].variable);
    if (t.type().is_composite()) t = scalar_of(std::move(t));
    if (t.type().is_bool())
      t = {irsynth::apply(Builtin::where, std::move(t.expr), number(1), number(0.5)), {0.5, 1}};
    if (t.type().is_int()) {
      t = as_real(std::move(t));
      if (!t.range.within(10)) t = scaled(std::move(t), 5);
    }
    result = combined(std::move(result), std::move(t));
  }
  return result;
}

Term Sketch::conclusion(Type type) {
  if (type == real_type()) {
    Term first = live(type, true).value_or(Term{});
    if (first.type() != type) first = expression(1);
    return used_up(0, std::move(first));
  }
  if (type.is_int()) {
    Term n = integer(2);
    for (Live& l : live_) {
      if (l.used || function_->variables[static_cast<std::size_t>(l.variable)].type != type) continue;
      Term m = read(l.variable);
      if ((n.range + m.range).within(1e6)) n = add(std::move(n), std::move(m));
    }
    return n;
  }
  Term v = composite(type, 1);
  for (Live& l : live_) {
    if (l.used || function_->variables[static_cast<std::size_t>(l.variable)].type != type) continue;
    Term w = read(l.variable);
    v = add(std::move(v), std::move(w));
  }
  bool rest = false;
  for (const Live& l : live_) rest |= !l.used;
  if (!rest) return v;
  Term s = used_up(0, some(0.5, 1.5));
  if (draw.chance(0.5)) s = let(std::move(s)), s = read(s.expr.index);
  return mul(std::move(s), std::move(v));
}

void Sketch::body(Type type) {
  if (level > 0) {
    elaborate(draw.between(1, 2 + level / 2));
    Term last = conclusion(type);
    if (draw.chance(0.3)) last = let(std::move(last)), last = read(last.expr.index);
    return store(output(type), std::move(last.expr));
  }
  const int depth = draw.between(2, 4);
  Term value = type == real_type() ? expression(depth)
               : type.is_int()     ? integer(depth)
                                   : composite(type, depth - 1);
  store(output(type), std::move(value.expr));
}

void Sketch::elaborate(int statements) {
  for (int k = 0; k < statements; ++k) {
    const bool top = nested_ == 0;
    switch (draw.weighted({6, top ? 2 : 0, level >= 2 ? 3 : 0, level >= 3 && nested_ < 2 ? 3 : 0,
                           level >= 3 && top ? 1 : 0, composites ? 4 : 0, smooth ? 0 : 1,
                           level >= 5 && top && functions_.size() < 2 ? 2 : 0})) {
      case 0:
        let(expression(draw.between(1, 2)));
        break;
      case 1:
        if (auto v = live(real_type())) {
          if (v->expr.index < function_->parameters || v->range.size() > 10) break;
          const int index = v->expr.index;
          Term change = expression(1);
          const bool add = draw.chance(0.6);
          const Range after = add ? v->range + change.range : v->range - change.range;
          if (!after.within(50)) break;
          update(std::move(v->expr), add ? Builtin::add : Builtin::sub, std::move(change.expr));
          changed(index, after);
        }
        break;
      case 2:
        branch();
        break;
      case 3:
        accumulate();
        break;
      case 4:
        iterate();
        break;
      case 5: {
        const Type type = draw.of({Type::vector(2, real), Type::vector(3, real), Type::vector(3, real),
                                   Type::vector(4, real), Type::matrix(2, real), Type::matrix(3, real)});
        let(composite(type, 1));
        break;
      }
      case 6:
        let(integer(2));
        break;
      default:
        make_function();
        let(call(1));
    }
  }
}

/// A value that is one thing or another, or a variable that changes in one case.
void Sketch::branch() {
  const auto side = [&](int variable, Range& range) {
    const std::size_t from = mark();
    if (level >= 3 && draw.chance(0.3)) elaborate(1);
    Term value = kept(used_up(from, expression(draw.between(1, 2))));
    range = value.range;
    assign(kernel::variable(*function_, variable), std::move(value.expr));
  };
  Expr when = condition(1);
  Range then_range, else_range;
  const bool fresh_variable = draw.chance(0.6);
  int v = -1;
  Range before;
  for (std::size_t l = loop_mark_; l < live_.size() && !fresh_variable; ++l)
    if (live_[l].variable >= function_->parameters &&
        function_->variables[static_cast<std::size_t>(live_[l].variable)].type == real_type()) {
      v = live_[l].variable;
      before = live_[l].range;
    }
  if (v < 0) {
    v = declare(real_type());
    const bool chain = draw.chance(0.3);
    Range middle;
    if_else(
        std::move(when), [&] { side(v, then_range); },
        [&] {
          if (!chain) return side(v, else_range);
          Expr second = condition(0);
          if_else(
              std::move(second), [&] { side(v, middle); }, [&] { side(v, else_range); });
        });
    alive(v, chain ? join(middle, join(then_range, else_range)) : join(then_range, else_range), false);
  } else if (draw.chance(0.5)) {
    if_else(
        std::move(when), [&] { side(v, then_range); }, [&] { side(v, else_range); });
    changed(v, join(then_range, else_range));
  } else {
    if_else(std::move(when), [&] { side(v, then_range); });
    changed(v, join(before, then_range));
  }
}

/// acc = 0; for k in range(...): acc += ...
void Sketch::accumulate() {
  const int rounds = draw.between(2, 6);
  const auto n = static_cast<double>(rounds);
  const int way = draw.weighted({5, 2, 1, 1});  // sum, damped sum, max, min
  Term start = way == 0 ? Term{number(0), {0, 0}} : some(0.1, 1);
  const int acc = declare(real_type());
  assign(kernel::variable(*function_, acc), std::move(start.expr));
  const bool in_kernel = function_ == &kernel_;
  const int bound =
      draw.weighted({3, in_kernel && parameters_.size() < 7 ? 3 : 0, in_kernel && !cursor.empty() ? 1 : 0});
  Expr end = whole(rounds);
  if (bound == 1) end = count(rounds);
  if (bound == 2) end = add(irsynth::apply(Builtin::mod, at(cursor[0]), whole(rounds)), whole(1));
  Range total = start.range;
  loop(std::move(end), rounds, [&](int k) {
    if (level >= 4 && in_kernel && cursor.size() < 4 && draw.chance(0.6)) cursor.push_back({k, rounds});
    const std::size_t from = mark();
    if (draw.chance(0.4)) elaborate(1);
    if (draw.chance(0.12)) {
      Stmt jump;
      jump.kind = draw.chance(0.5) ? kernel::StmtKind::continue_ : kernel::StmtKind::break_;
      if_else(condition(0), [&] { emit(std::move(jump)); });
    }
    Term change = fitted(used_up(from, expression(draw.between(1, 2))), way == 0 ? 25 / n : 5);
    Expr target = kernel::variable(*function_, acc);
    if (way == 0) {
      total = join(total, total + change.range * Range{n, n});
      const bool add = draw.chance(0.8);
      if (!add) total = join(total, -total);
      return update(std::move(target), add ? Builtin::add : Builtin::sub, std::move(change.expr));
    }
    if (way == 1) {
      const Term decay = some(0.2, 0.8);
      total = symmetric(std::max(start.range.size(), change.range.size() / (1 - decay.range.low)));
      Expr kept_part = mul(target, decay.expr);
      return assign(target, add(std::move(kept_part), std::move(change.expr)));
    }
    total = join(total, change.range);
    assign(target, irsynth::apply(way == 2 ? Builtin::max : Builtin::min, target, std::move(change.expr)));
  });
  alive(acc, total, false);
}

/// while |x| > limit and steps < most: x shrinks
void Sketch::iterate() {
  Term first = expression(1);
  const double size = first.range.size();
  const int x = let(std::move(first)).expr.index;
  const int steps = let({whole(0), {0, 0}}, fresh({"steps", "rounds", "iters", "n_it"})).expr.index;
  const int most = draw.between(3, 8);
  const Term shrink = some(0.3, 0.7), shift = some(0.05, 0.2), limit = some(0.5, 1.5);
  const auto variable = [&](int v) { return kernel::variable(*function_, v); };
  Stmt s;
  s.kind = kernel::StmtKind::while_;
  Expr both;
  both.kind = kernel::ExprKind::logical_and;
  both.type = kernel::bool_type;
  both.args = list(irsynth::apply(Builtin::gt, irsynth::apply(Builtin::abs, variable(x)), limit.expr),
                   irsynth::apply(Builtin::lt, variable(steps), whole(most)));
  s.values.push_back(std::move(both));
  inside(s.body, [&] {
    Expr smaller = mul(variable(x), shrink.expr);
    assign(variable(x),
           irsynth::apply(draw.chance(0.5) ? Builtin::add : Builtin::sub, std::move(smaller), shift.expr));
    update(variable(steps), Builtin::add, whole(1));
  });
  emit(std::move(s));
  changed(x, symmetric(std::max(size, 1.0)));
  changed(steps, {0, static_cast<double>(most)});
}

}  // namespace ferrite::irsynth
