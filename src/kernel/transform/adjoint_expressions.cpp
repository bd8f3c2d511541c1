// Adjoints of expressions: values forward into atoms, contributions back to the leaves.
#include <algorithm>

#include "ferrite/kernel/simplify.hpp"
#include "kernel/transform/adjoint_builder.hpp"

namespace ferrite::kernel {

Expr AdjointBuilder::fresh(const std::string& name, Type type) {
  const int index = add_variable(f_, names_.unique(name), type);
  active_.resize(f_.variables.size(), false);
  assignments_.resize(f_.variables.size(), 1);
  return variable(f_, index);
}

Expr AdjointBuilder::bind(Expr value, Block& out, const std::string& name) {
  if (value.kind == ExprKind::variable || value.kind == ExprKind::literal) return value;
  const Expr t = fresh(name, value.type);
  out.push_back(assign(t, std::move(value)));
  return t;
}

bool AdjointBuilder::is_own(const Expr& place) const {
  if (place.kind == ExprKind::variable) return true;
  if (place.kind == ExprKind::element) return root_of(place).index >= l_.function.parameters;
  return (place.kind == ExprKind::component || place.kind == ExprKind::field) && is_own(place.args[0]);
}

AdjointBuilder::Node AdjointBuilder::build(const Expr& e, Block& forward, bool top) {
  Node n{e, e, varies(e) && has_float(module_, e.type), {}};
  const bool leaf = e.kind == ExprKind::variable || e.kind == ExprKind::literal ||
                    (is_own(e) && e.kind != ExprKind::element);
  if (leaf) {
    n.active = n.active && e.kind != ExprKind::literal && active(root_of(e));
    return n;
  }
  if (n.active && e.kind != ExprKind::element) {
    for (std::size_t i = 0; i < e.args.size(); ++i) {
      const bool index = e.kind == ExprKind::component && i > 0;
      n.args.push_back(index ? Node{e.args[i], e.args[i], false, {}} : build(e.args[i], forward));
      n.expr.args[i] = n.args[i].atom;
    }
  }
  n.atom = n.expr;
  if (top) return n;
  const bool load = e.kind == ExprKind::element;
  n.atom = bind(n.expr, forward,
                load ? f_.variables[static_cast<std::size_t>(root_of(e).index)].name + "_at" : "t");
  return n;
}

void AdjointBuilder::pass(const Node& node, Expr contribution, Block& out) {
  if (!node.active || contribution.type.kind == Type::Kind::none) return;
  contribution = fold(std::move(contribution));
  if (node.args.empty()) return accumulate(node.expr, std::move(contribution), out);
  reverse(node, bind(std::move(contribution), out, "adj_t"), out);
}

void AdjointBuilder::reverse(const Node& n, const Expr& seed, Block& out) {
  if (!n.active) return;
  if (n.args.empty()) return accumulate(n.expr, seed, out);
  const auto index = [](int i) { return literal(ScalarType::i32, std::int64_t{i}); };
  switch (n.expr.kind) {
    case ExprKind::cast:
      return pass(n.args[0], cast(n.args[0].expr.type.scalar, seed), out);
    case ExprKind::apply: {
      std::vector<Expr> atoms;
      for (const Node& a : n.args) atoms.push_back(a.atom);
      const std::vector<Expr> parts = derivative(n.expr.builtin).partials({atoms, n.atom, seed});
      for (std::size_t i = 0; i < parts.size(); ++i) pass(n.args[i], parts[i], out);
      return;
    }
    case ExprKind::component: {  // of a value that is not a variable: a composite of zeros but for this
      const Type type = n.args[0].expr.type;
      const Expr whole = fresh("adj_t", type);
      Expr place = n.expr;
      place.args[0] = whole;
      out.push_back(assign(whole, zero_of(type)));
      out.push_back(assign(std::move(place), seed));
      return pass(n.args[0], whole, out);
    }
    case ExprKind::construct: {
      const Type type = n.expr.type;
      if (type.is_struct()) {
        for (std::size_t i = 0; i < n.args.size(); ++i)
          if (n.args[i].active) pass(n.args[i], field(module_, seed, static_cast<int>(i)), out);
        return;
      }
      const Type given = n.args[0].expr.type;
      if (given.is_composite()) return pass(n.args[0], construct(given, {seed}), out);
      if (n.args.size() == 1)
        return pass(n.args[0], inner(seed, construct(type, {literal(type.scalar, 1.0)})), out);
      for (int i = 0; i < type.components(); ++i)
        pass(n.args[static_cast<std::size_t>(i)],
             type.is_matrix() ? component(seed, {index(i / type.columns), index(i % type.columns)})
                              : component(seed, {index(i)}),
             out);
      return;
    }
    default:
      refuse(n.expr.place, "no gradient: this expression is not differentiated");
  }
}

Expr AdjointBuilder::adjoint_of(const Expr& place) {
  if (place.kind != ExprKind::variable) {
    Expr e = place;
    e.args[0] = adjoint_of(place.args[0]);
    return e;
  }
  const auto [found, is_new] = adjoint_.try_emplace(place.index, 0);
  if (is_new) {
    const Expr made = fresh("adj_" + f_.variables[static_cast<std::size_t>(place.index)].name, place.type);
    found->second = made.index;
    Stmt zero = assign(made, place.type.is_array() ? Expr() : zero_of(place.type));
    if (place.type.is_array()) {
      zero.kind = StmtKind::declare_array;
      zero.values = extents_.at(place.index);
    }
    start_.push_back(std::move(zero));
  }
  return variable(f_, found->second);
}

void AdjointBuilder::accumulate(const Expr& place, Expr value, Block& out) {
  if (place.type.is_struct()) {
    const auto& fields = module_.structs[place.type.structure].fields;
    for (std::size_t i = 0; i < fields.size(); ++i)
      if (has_float(module_, fields[i].type))
        accumulate(field(module_, place, static_cast<int>(i)), field(module_, value, static_cast<int>(i)),
                   out);
    return;
  }
  const bool negative = value.kind == ExprKind::apply && value.builtin == Builtin::neg;
  if (negative) value = Expr(value.args[0]);
  if (is_own(place)) {
    out.push_back(update(negative ? Builtin::sub : Builtin::add, adjoint_of(place), std::move(value)));
    return;
  }
  std::vector<Expr> args = place.args;
  args[0] = adjoint_of(place.args[0]);
  args.push_back(std::move(value));
  out.push_back(evaluate(apply(negative ? Builtin::atomic_sub : Builtin::atomic_add, std::move(args))));
}

}  // namespace ferrite::kernel
