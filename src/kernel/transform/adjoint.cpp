// The adjoint transformation: its parameters, the variables with adjoints, and the assembly of the parts.
#include <fmt/format.h>

#include <algorithm>

#include "kernel/transform/adjoint_builder.hpp"
#include "kernel/transform/simplify.hpp"

namespace ferrite::kernel {

bool has_float(const Module& module, Type type) {
  if (type.kind != Type::Kind::structure)
    return type.kind != Type::Kind::none && type.kind != Type::Kind::tuple && is_float(type.scalar);
  const auto& fields = module.structs[type.structure].fields;
  return std::any_of(fields.begin(), fields.end(),
                     [&](const Variable& f) { return has_float(module, f.type); });
}

namespace {

void add_adjoints(const Module& module, AdjointParameter path, std::vector<AdjointParameter>& out) {
  if (!has_float(module, path.type)) return;
  if (!path.type.is_struct()) {
    if (path.type.is_array() && path.type.kind == Type::Kind::structure) return;  // refused when used
    if (!path.type.is_array()) path.type = path.type.array(1);
    out.push_back(std::move(path));
    return;
  }
  const auto& fields = module.structs[path.type.structure].fields;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    AdjointParameter part = path;
    part.fields.push_back(static_cast<int>(i));
    part.name += "_" + fields[i].name;
    part.type = fields[i].type;
    add_adjoints(module, std::move(part), out);
  }
}

/// Moves the variables from `first` on up by `more`.
void renumber(CustomCall& call, int first, int more) {
  const auto moved = [&](int v) { return v >= first ? v + more : v; };
  for (auto* list : {&call.arguments, &call.results})
    for (Expr& e : *list) e.index = moved(e.index);
  for (auto* block : {&call.forward, &call.gradient})
    for_each_expr(*block, [&](Expr& e) {
      if (e.kind == ExprKind::variable) e.index = moved(e.index);
    });
  for (int& v : call.seeds) v = moved(v);
  std::map<int, std::size_t> adjoints;
  for (const auto& [v, argument] : call.adjoints) adjoints.emplace(moved(v), argument);
  call.adjoints = std::move(adjoints);
}

}  // namespace

std::vector<AdjointParameter> adjoint_parameters(const Module& module, const Function& kernel) {
  std::vector<AdjointParameter> all;
  Names names(kernel);
  for (int i = 0; i < kernel.parameters; ++i) {
    const Variable& p = kernel.variables[static_cast<std::size_t>(i)];
    add_adjoints(module, {i, {}, "adj_" + p.name, p.type}, all);
  }
  for (AdjointParameter& p : all) p.name = names.unique(p.name);
  return all;
}

AdjointBuilder::AdjointBuilder(const Module& module, const Function& kernel)
    : module_(module), l_(lower(module, kernel)), names_(l_.function) {
  add_parameters(kernel);
  assignments_.assign(f_.variables.size(), 0);
  for_each_stmt(l_.function.body, [&](const Stmt& s) {
    for (const Expr& t : s.targets) ++assignments_[static_cast<std::size_t>(root_of(t).index)];
    if (s.kind == StmtKind::declare_array) extents_[s.targets[0].index] = s.values;
  });
  for_each_expr(l_.function.body, [&](const Expr& e) {
    if (e.kind == ExprKind::apply && info(e.builtin).effect == Effect::updates_first)
      ++assignments_[static_cast<std::size_t>(e.args[0].index)];
  });
  for (int i = 0; i < l_.function.parameters; ++i) ++assignments_[static_cast<std::size_t>(i)];
  check_arrays();
  find_active();
}

void AdjointBuilder::refuse(Place place, std::string_view why) const {
  throw KernelError(module_.source.get(), place, why);
}

/// The adjoint parameters come after the parameters, so locals move up.
void AdjointBuilder::add_parameters(const Function& kernel) {
  parameters_ = adjoint_parameters(module_, kernel);
  Function& from = l_.function;
  const int first = from.parameters, more = static_cast<int>(parameters_.size());
  for_each_expr(from.body, [&](Expr& e) {
    if (e.kind == ExprKind::variable && e.index >= first) e.index += more;
  });
  for (CustomCall& c : l_.customs) renumber(c, first, more);
  std::map<int, Unrepeatable> moved;
  for (auto& [v, why] : l_.unrepeatable) moved.emplace(v + more, std::move(why));
  l_.unrepeatable = std::move(moved);
  std::vector<Variable> added;
  for (const AdjointParameter& p : parameters_) {
    if (p.fields.empty() && from.variables[static_cast<std::size_t>(p.parameter)].type.is_array())
      adjoint_[p.parameter] = first + static_cast<int>(added.size());
    added.push_back({names_.unique(p.name), p.type});
  }
  from.variables.insert(from.variables.begin() + first, added.begin(), added.end());
  f_.name = kernel.name + "_backward";
  f_.place = kernel.place;
  f_.variables = from.variables;
  f_.parameters = first + more;
}

void AdjointBuilder::check_arrays() const {
  const Function& f = l_.function;
  for (int i = 0; i < f.parameters; ++i) {
    const Variable& p = f.variables[static_cast<std::size_t>(i)];
    if (p.type.is_array() && p.type.kind == Type::Kind::structure && has_float(module_, p.type))
      refuse(
          f.place,
          fmt::format("no gradient: '{}' is an array of structs of floats; use an array per field", p.name));
  }
  std::set<int> extrema;
  for_each_stmt(f.body, [&](const Stmt& s) {
    if (s.kind == StmtKind::evaluate && s.values[0].kind == ExprKind::apply &&
        (s.values[0].builtin == Builtin::atomic_min || s.values[0].builtin == Builtin::atomic_max))
      extrema.insert(s.values[0].args[0].index);
  });
  for_each_stmt(f.body, [&](const Stmt& s) {
    for (const Expr& t : s.targets)
      if (in_array(t) && extrema.contains(root_of(t).index) && has_float(module_, t.type))
        refuse(s.place, fmt::format("no gradient: '{}' is written here and by wp.atomic_min or atomic_max",
                                    f.variables[static_cast<std::size_t>(root_of(t).index)].name));
  });
}

/// Whether the value depends on a parameter in a way that has a derivative.
bool AdjointBuilder::varies(const Expr& e) const {
  switch (e.kind) {
    case ExprKind::variable:
      return active(e);
    case ExprKind::element:
      return has_float(module_, e.type) && (root_of(e).index < l_.function.parameters || active(root_of(e)));
    case ExprKind::component:
    case ExprKind::field:
      return varies(e.args[0]);
    case ExprKind::cast:
      return e.type.is_float() && e.args[0].type.is_float() && varies(e.args[0]);
    case ExprKind::apply:
      return derivative(e.builtin).kind == Derivative::Kind::partials && has_float(module_, e.type) &&
             std::any_of(e.args.begin(), e.args.end(), [&](const Expr& a) { return varies(a); });
    case ExprKind::construct:
      return has_float(module_, e.type) &&
             std::any_of(e.args.begin(), e.args.end(), [&](const Expr& a) { return varies(a); });
    default:
      return false;
  }
}

void AdjointBuilder::mark_useful(const Expr& e, std::vector<bool>& useful) const {
  if (e.kind == ExprKind::apply && derivative(e.builtin).kind != Derivative::Kind::partials) return;
  if (e.kind == ExprKind::variable || e.kind == ExprKind::element)
    useful[static_cast<std::size_t>(root_of(e).index)] = true;
  else
    for (const Expr& a : e.args) mark_useful(a, useful);
}

/// Active: depends on a parameter, and something written depends on it.
void AdjointBuilder::find_active() {
  const Function& f = l_.function;
  active_.assign(f.variables.size(), false);
  for (int i = 0; i < f.parameters; ++i)
    active_[static_cast<std::size_t>(i)] = has_float(module_, f.variables[static_cast<std::size_t>(i)].type);
  const auto until_stable = [&](std::vector<bool>& set, const auto& visit) {
    for (std::vector<bool> before; before != set;) {
      before = set;
      for_each_stmt(f.body, visit);
    }
  };
  until_stable(active_, [&](const Stmt& s) {
    if (l_.custom(s) != nullptr)  // as its gradient says, whatever the function computes
      for (const Expr& r : s.targets) active_[static_cast<std::size_t>(r.index)] = has_float(module_, r.type);
    if (s.kind == StmtKind::assign && s.targets.size() == 1 && varies(s.values[0]))
      active_[static_cast<std::size_t>(root_of(s.targets[0]).index)] = true;
  });
  std::vector<bool> useful(f.variables.size(), false);
  until_stable(useful, [&](const Stmt& s) {
    if (const CustomCall* call = l_.custom(s)) {
      for (const Expr& a : call->arguments) useful[static_cast<std::size_t>(a.index)] = true;
      return;
    }
    const bool atomic = s.kind == StmtKind::evaluate && s.values[0].kind == ExprKind::apply;
    if (atomic) return mark_useful(s.values[0].args.back(), useful);
    if ((s.kind != StmtKind::assign && s.kind != StmtKind::update) || s.targets.size() != 1) return;
    const Expr& root = root_of(s.targets[0]);
    const bool outside = in_array(s.targets[0]) && root.index < f.parameters;
    if (outside || useful[static_cast<std::size_t>(root.index)]) mark_useful(s.values[0], useful);
  });
  for (const auto& [v, why] : l_.unrepeatable)  // of atomics: what they give has a gradient that is not known
    if (useful[static_cast<std::size_t>(v)] && !active_[static_cast<std::size_t>(v)] &&
        has_float(module_, whole(v).type))
      refuse(why.place, why.reason);
  for (std::size_t i = 0; i < active_.size(); ++i) active_[i] = active_[i] && useful[i];
}

/// Moves the adjoints of scalars and structs to their arrays.
void AdjointBuilder::finish_parameters(Block& out) {
  const Expr first = literal(ScalarType::i32, std::int64_t{0});
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const AdjointParameter& p = parameters_[i];
    if (whole(p.parameter).type.is_array() || !active(whole(p.parameter))) continue;
    Expr value = adjoint_of(whole(p.parameter));
    for (const int at : p.fields) value = field(module_, std::move(value), at);
    const Expr array = whole(l_.function.parameters + static_cast<int>(i));
    out.push_back(evaluate(apply(Builtin::atomic_add, {array, first, std::move(value)})));
  }
}

void AdjointBuilder::check_repeatable(const Function& f) const {
  const auto check = [&](const Expr& e) {
    if (e.kind != ExprKind::variable) return;
    if (const auto found = l_.unrepeatable.find(e.index); found != l_.unrepeatable.end())
      refuse(found->second.place, found->second.reason);
  };
  for_each_expr(f.body, check);
}

Function AdjointBuilder::run() {
  Sweep sweep = block(l_.function.body);
  finish_parameters(sweep.reverse);
  // Variables may be saved before they were assigned.
  for (int i = f_.parameters; i < static_cast<int>(l_.function.variables.size()); ++i)
    if (!whole(i).type.is_array() && !l_.unrepeatable.contains(i))
      f_.body.push_back(assign(whole(i), zero_of(whole(i).type)));
  append(f_.body, std::move(start_));
  append(f_.body, std::move(sweep.forward));
  append(f_.body, std::move(sweep.reverse));
  shorten(module_, f_);
  check_repeatable(f_);
  remove_unused_variables(f_);
  return std::move(f_);
}

Module adjoint(const Module& module, const Function& kernel) {
  Module result;
  result.structs = module.structs;
  result.source = module.source;
  result.kernels.push_back(AdjointBuilder(module, kernel).run());
  return result;
}

}  // namespace ferrite::kernel
