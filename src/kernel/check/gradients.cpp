// @wp.func_grad and @wp.func_replay: checks that they match their function, and gives wp.adjoint[x] its
// meaning.
#include <fmt/format.h>

#include <algorithm>

#include "kernel/check/checker.hpp"

namespace ferrite::kernel {

namespace {

bool is_differentiable(const Module& module, Type type) {
  if (type.kind != Type::Kind::structure) return is_float(type.scalar);
  const auto& fields = module.structs[type.structure].fields;
  return std::any_of(fields.begin(), fields.end(),
                     [&](const Variable& f) { return is_differentiable(module, f.type); });
}

}  // namespace

/// The parameters are those of the function; for a gradient, followed by an adjoint for each result.
void FunctionChecker::check_gradient() {
  const bool gradient = definition_.kind == syntax::Definition::Kind::gradient;
  const auto index = module_.find_function(definition_.of, definition_.of_place);
  if (!index) fail(definition_.of_place, fmt::format("there is no @wp.func '{}'", definition_.of));
  const Function& f = module_.module().functions[static_cast<std::size_t>(*index)];
  std::vector<Type> wanted;
  for (int i = 0; i < f.parameters; ++i) wanted.push_back(f.variables[static_cast<std::size_t>(i)].type);
  if (gradient) wanted.insert(wanted.end(), f.results.begin(), f.results.end());
  std::string list;
  for (const Type t : wanted) list += (list.empty() ? "" : ", ") + show(t);
  bool fits = wanted.size() == static_cast<std::size_t>(function_.parameters);
  for (std::size_t i = 0; fits && i < wanted.size(); ++i) fits = function_.variables[i].type == wanted[i];
  if (!fits)
    fail(definition_.place,
         fmt::format("the {} of '{}' takes ({}): its parameters{}", gradient ? "gradient" : "replay", f.name,
                     list, gradient ? ", then the adjoints of its results" : ""));
  if ((gradient ? f.gradient : f.replay) >= 0)
    fail(definition_.place, fmt::format("'{}' has two {}", f.name, gradient ? "gradients" : "replays"));
  if (gradient && !(definition_.result.empty() || definition_.result[0].kind == Kind::none))
    fail(definition_.result[0].place, "a gradient returns nothing: add to wp.adjoint[...]");
  if (!gradient) return;
  returned_ = true;  // nothing
  function_.adjoints.assign(static_cast<std::size_t>(f.parameters), -1);
}

/// The adjoint of a number, vector or struct can only be added to: its earlier value depends on which other
/// uses of the argument have already run.
void FunctionChecker::check_adjoints() const {
  const auto is_sum = [&](const Expr& e) {
    return e.kind == ExprKind::variable && !e.type.is_array() &&
           std::find(function_.adjoints.begin(), function_.adjoints.end(), e.index) !=
               function_.adjoints.end();
  };
  for_each_stmt(function_.body, [&](const Stmt& s) {
    const auto refuse = [&](const Expr& e) {
      if (is_sum(e))
        fail(s.place, "wp.adjoint[...] of an argument that is not an array is only added to: write += or -=");
    };
    for (const Expr& v : s.values) for_each_expr(v, refuse);
    for (const Expr& t : s.targets) {
      const Expr* root = &t;
      for (; root->kind != ExprKind::variable && !root->args.empty(); root = &root->args[0])
        for (std::size_t i = 1; i < root->args.size(); ++i) for_each_expr(root->args[i], refuse);
      const bool adds =
          s.kind == StmtKind::update && (s.builtin == Builtin::add || s.builtin == Builtin::sub);
      if (!adds) refuse(*root);
    }
  });
}

/// wp.adjoint[x], wp.adjoint[s.field]: a variable that stands for the adjoint of the caller's argument.
std::optional<Expr> FunctionChecker::adjoint_place(const syntax::Expr& e) {
  if (module_.warp_name(e.args[0]) != "adjoint") return std::nullopt;
  if (definition_.kind != syntax::Definition::Kind::gradient)
    fail(e.place, "wp.adjoint stands only in a gradient, a function under @wp.func_grad");
  if (e.args.size() != 2) fail(e.place, "wp.adjoint has one index, a parameter");
  Expr place = value(e.args[1]);
  Expr* root = &place;
  while (root->kind == ExprKind::field || root->kind == ExprKind::component) root = &root->args[0];
  const bool parameter =
      root->kind == ExprKind::variable && static_cast<std::size_t>(root->index) < function_.adjoints.size();
  if (!parameter)
    fail(e.args[1].place,
         fmt::format("wp.adjoint is of a parameter of '{}', or of a part of one", definition_.of));
  if (!is_differentiable(module_.module(), place.type))
    fail(e.args[1].place, fmt::format("{} has no adjoint: only floats do", show(place.type)));
  int& adjoint = function_.adjoints[static_cast<std::size_t>(root->index)];
  if (adjoint < 0) {
    std::string name = "adj_" + function_.variables[static_cast<std::size_t>(root->index)].name;
    while (names_.contains(name)) name += "_";
    const int made = add_variable(function_, name, root->type);
    adjoint = made;
  }
  *root = variable(function_, adjoint);
  return place;
}

}  // namespace ferrite::kernel
