// Adjoints of statements, except loops.
#include <algorithm>

#include "kernel/transform/adjoint_builder.hpp"

namespace ferrite::kernel {

namespace {

bool reads(const Expr& e, int variable) {
  bool found = false;
  for_each_expr(
      e, [&](const Expr& part) { found |= part.kind == ExprKind::variable && part.index == variable; });
  return found;
}

}  // namespace

AdjointBuilder::Sweep AdjointBuilder::block(const Block& body) {
  Sweep all;
  for (const Stmt& s : body) {
    Sweep one;
    statement(s, one);
    append(all.forward, std::move(one.forward));
    append(one.reverse, std::move(all.reverse));
    all.reverse = std::move(one.reverse);
  }
  return all;
}

/// A store, an update or an atomic of a parameter; or a value that cannot be computed again.
bool AdjointBuilder::is_external(const Stmt& s) const {
  if (s.kind == StmtKind::evaluate || s.kind == StmtKind::update) return true;
  if (s.kind != StmtKind::assign) return false;
  return !is_own(s.targets[0]) ||
         (s.targets[0].kind == ExprKind::variable && l_.unrepeatable.contains(s.targets[0].index));
}

AdjointBuilder::Block AdjointBuilder::plain(const Block& body) {
  Block kept;
  for (const Stmt& s : body) {
    if (const CustomCall* call = l_.custom(s)) append(kept, plain(call->forward));
    if (is_external(s)) continue;
    if (s.kind == StmtKind::declare_array) {
      append(kept,
             fill(s.targets[0], s.values, [&](const auto&) { return zero_of(s.targets[0].type.element()); }));
      continue;
    }
    Stmt copy = s;
    copy.body = plain(s.body);
    copy.orelse = plain(s.orelse);
    kept.push_back(std::move(copy));
  }
  return kept;
}

void AdjointBuilder::statement(const Stmt& s, Sweep& sweep) {
  switch (s.kind) {
    case StmtKind::assign:
      if (s.targets.size() > 1) {  // tid
        for (const Expr& t : s.targets) save(t, sweep);
        sweep.forward.push_back(s);
        return;
      }
      return is_own(s.targets[0]) ? assignment(s, sweep) : array_store(s, sweep);
    case StmtKind::update: {
      if (!has_float(module_, s.targets[0].type)) return;
      const Node value = build(s.values[0], sweep.forward);
      Expr seed = adjoint_of(s.targets[0]);
      if (!value.active) return;
      if (s.builtin == Builtin::sub) seed = apply(Builtin::neg, {std::move(seed)});
      return pass(value, std::move(seed), sweep.reverse);
    }
    case StmtKind::evaluate:
      if (const CustomCall* call = l_.custom(s)) return custom(*call, sweep);
      return atomic(s, sweep);
    case StmtKind::declare_array:
      return declare(s, sweep);
    case StmtKind::if_:
      return branch(s, sweep);
    case StmtKind::for_:
      return for_loop(s, sweep);
    default:
      return while_loop(s, sweep);
  }
}

/// Saves the contents of the place, if its variable ever changes.
void AdjointBuilder::save(const Expr& place, Sweep& sweep) {
  const Expr& root = root_of(place);
  if (assignments_[static_cast<std::size_t>(root.index)] < 2 && place.kind == ExprKind::variable) return;
  const Expr saved = fresh(f_.variables[static_cast<std::size_t>(root.index)].name + "_before", place.type);
  sweep.forward.push_back(assign(saved, place));
  sweep.reverse.insert(sweep.reverse.begin(), assign(place, saved));
}

void AdjointBuilder::assignment(const Stmt& s, Sweep& sweep) {
  const Expr &target = s.targets[0], &value = s.values[0], &root = root_of(target);
  if (value.kind == ExprKind::apply && info(value.builtin).effect == Effect::writes_array)
    return atomic(s, sweep);
  const bool draw = value.kind == ExprKind::apply && info(value.builtin).effect == Effect::updates_first;
  Block values, adjoints;
  if (active(root)) {
    Node node = build(value, values, true);
    const bool once =
        target.kind == ExprKind::variable && assignments_[static_cast<std::size_t>(root.index)] == 1;
    node.atom = once ? target : fresh("t", value.type);
    const Expr adj = adjoint_of(target);
    if (reads(value, root.index)) {
      const Expr held = fresh("adj_t", adj.type);
      adjoints.push_back(assign(held, adj));
      adjoints.push_back(assign(adj, zero_of(target.type)));
      reverse(node, held, adjoints);
    } else {
      reverse(node, adj, adjoints);
      adjoints.push_back(assign(adj, zero_of(target.type)));
    }
    append(sweep.forward, std::move(values));
    bool needed = false;  // the result, by its own derivative
    for_each_expr(adjoints, [&](const Expr& e) {
      needed |= e.kind == ExprKind::variable && e.index == node.atom.index;
    });
    save(target, sweep);
    if (draw) save(value.args[0], sweep);
    if (needed && !once) {
      sweep.forward.push_back(assign(node.atom, node.expr));
      node.expr = node.atom;
    }
    if (!is_external(s)) sweep.forward.push_back(assign(target, node.expr));
  } else {
    save(target, sweep);
    if (draw) save(value.args[0], sweep);
    if (!is_external(s)) sweep.forward.push_back(s);
  }
  append(sweep.reverse, std::move(adjoints));
}

/// The old element is overwritten: its adjoint ends here and passes to the value.
void AdjointBuilder::array_store(const Stmt& s, Sweep& sweep) {
  const Expr& target = s.targets[0];
  if (!has_float(module_, target.type)) return;
  const Node value = build(s.values[0], sweep.forward);
  const Expr adj = adjoint_of(target);
  if (value.active) {
    const Expr seed = bind(adj, sweep.reverse, "adj_t");
    sweep.reverse.push_back(assign(adj, zero_of(target.type)));
    reverse(value, seed, sweep.reverse);
  } else {
    sweep.reverse.push_back(assign(adj, zero_of(target.type)));
  }
}

void AdjointBuilder::atomic(const Stmt& s, Sweep& sweep) {
  const Expr& e = s.values[0];
  if (!has_float(module_, e.type)) return;
  if (derivative(e.builtin).kind != Derivative::Kind::statement)
    refuse(s.place, "no gradient: wp." + std::string(info(e.builtin).name) + " of floats cannot be undone");
  const Node value = build(e.args.back(), sweep.forward);
  if (!value.active) return;
  const Expr place = element(e.args[0], {e.args.begin() + 1, e.args.end() - 1});
  Expr seed = adjoint_of(place);
  if (e.builtin == Builtin::atomic_sub) seed = apply(Builtin::neg, {std::move(seed)});
  if (e.builtin == Builtin::atomic_min || e.builtin == Builtin::atomic_max)
    seed = apply(Builtin::where, {apply(Builtin::eq, {place, value.atom}), std::move(seed), zero_of(e.type)});
  pass(value, std::move(seed), sweep.reverse);
}

void AdjointBuilder::branch(const Stmt& s, Sweep& sweep) {
  Expr condition = s.values[0];
  std::set<int> changed = changed_in(s.body);
  changed.merge(changed_in(s.orelse));
  if (std::any_of(changed.begin(), changed.end(), [&](int v) { return reads(condition, v); })) {
    const Expr taken = fresh("taken", bool_type);
    sweep.forward.push_back(assign(taken, std::move(condition)));
    condition = taken;
  }
  ++depth_;
  Sweep yes = block(s.body), no = block(s.orelse);
  --depth_;
  sweep.forward.push_back(if_else(condition, std::move(yes.forward), std::move(no.forward)));
  sweep.reverse.push_back(if_else(condition, std::move(yes.reverse), std::move(no.reverse)));
}

AdjointBuilder::Block AdjointBuilder::as_it_is(const Block& body) {
  Block out;
  for (const Stmt& s : body) {
    if (s.kind == StmtKind::declare_array) {
      start_.push_back(s);
      append(out,
             fill(s.targets[0], s.values, [&](const auto&) { return zero_of(s.targets[0].type.element()); }));
      continue;
    }
    Stmt copy = s;
    copy.body = as_it_is(s.body);
    copy.orelse = as_it_is(s.orelse);
    out.push_back(std::move(copy));
  }
  return out;
}

/// A function with its own gradient: it receives the adjoints of the results and passes them on.
void AdjointBuilder::custom(const CustomCall& call, Sweep& sweep) {
  for (const Expr& r : call.results) save(r, sweep);
  append(sweep.forward, plain(call.forward));
  for_each_stmt(call.forward, [&](const Stmt& s) {
    if (s.kind == StmtKind::declare_array) start_.push_back(s);
  });
  for (std::size_t i = 0; i < call.results.size(); ++i) {
    const Expr& r = call.results[i];
    const Expr seed = whole(call.seeds[i]);
    if (!has_float(module_, r.type)) {
      sweep.reverse.push_back(assign(seed, zero_of(r.type)));
      continue;
    }
    sweep.reverse.push_back(assign(seed, adjoint_of(r)));
    sweep.reverse.push_back(assign(adjoint_of(r), zero_of(r.type)));
  }
  Block gradient = as_it_is(call.gradient);
  for_each_expr(gradient, [&](Expr& e) {
    if (e.kind != ExprKind::variable) return;
    const auto found = call.adjoints.find(e.index);
    if (found != call.adjoints.end()) e = adjoint_of(call.arguments[found->second]);
  });
  append(sweep.reverse, std::move(gradient));
}

void AdjointBuilder::declare(const Stmt& s, Sweep& sweep) {
  const Expr& array = s.targets[0];
  const auto zero = [&](const auto&) { return zero_of(array.type.element()); };
  if (depth_ == 0) {
    sweep.forward.push_back(s);
    return;
  }
  start_.push_back(s);
  sweep.forward = fill(array, s.values, zero);
  if (active(array)) sweep.reverse = fill(adjoint_of(array), s.values, zero);
}

}  // namespace ferrite::kernel
