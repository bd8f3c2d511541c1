// The end of a program: removes unused parts and numbers variables as the parser would.
#include <algorithm>

#include "kernel/transform/simplify.hpp"
#include "models/irsynth/sketch.hpp"

namespace ferrite::irsynth {

namespace {

/// Calls f for the index of every variable that is read, or whose elements are written.
template <class F>
void for_each_use(const kernel::Function& function, F f) {
  const auto visit = [&](const Expr& e) {
    if (e.kind == kernel::ExprKind::variable) f(static_cast<std::size_t>(e.index));
  };
  kernel::for_each_stmt(function.body, [&](const Stmt& s) {
    for (const Expr& v : s.values) kernel::for_each_expr(v, visit);
    for (const Expr& t : s.targets)
      if (t.kind != kernel::ExprKind::variable) kernel::for_each_expr(t, visit);
  });
}

}  // namespace

/// A discarded draw may leave a variable, a parameter or a function that nothing needs.
void Sketch::remove_unused() {
  for (kernel::Function& f : module_.functions) kernel::remove_dead_code(module_, f);
  kernel::remove_dead_code(module_, kernel_);
  std::vector<bool> used(kernel_.variables.size());
  for_each_use(kernel_, [&](std::size_t v) { used[v] = true; });
  std::erase_if(parameters_, [&](const auto& p) { return !used[static_cast<std::size_t>(p.first)]; });
  // Functions call only those before them.
  std::vector<int> place(module_.functions.size(), -1);
  const auto mark_calls = [&](kernel::Function& f) {
    kernel::for_each_expr(f.body, [&](const Expr& e) {
      if (e.kind == kernel::ExprKind::call) place[static_cast<std::size_t>(e.index)] = 0;
    });
  };
  mark_calls(kernel_);
  for (std::size_t i = place.size(); i-- > 0;)
    if (place[i] == 0) mark_calls(module_.functions[i]);
  std::vector<kernel::Function> kept;
  for (std::size_t i = 0; i < place.size(); ++i) {
    if (place[i] < 0) continue;
    place[i] = static_cast<int>(kept.size());
    kept.push_back(std::move(module_.functions[i]));
  }
  module_.functions = std::move(kept);
  const auto renumber_calls = [&](kernel::Function& f) {
    kernel::for_each_expr(f.body, [&](Expr& e) {
      if (e.kind == kernel::ExprKind::call) e.index = place[static_cast<std::size_t>(e.index)];
    });
  };
  for (kernel::Function& f : module_.functions) renumber_calls(f);
  renumber_calls(kernel_);
}

/// Parameters first, then locals in the order in which the text assigns them: as the parser numbers them.
void Sketch::renumber(kernel::Function& f, std::vector<Argument>* arguments) {
  std::vector<int> order;
  if (arguments) {
    if (draw.chance(0.6))  // outputs last
      std::stable_sort(parameters_.begin(), parameters_.end(),
                       [](const auto& a, const auto& b) { return a.second.output < b.second.output; });
    for (auto& [variable, argument] : parameters_) {
      order.push_back(variable);
      arguments->push_back(std::move(argument));
    }
  } else {
    for (int i = 0; i < f.parameters; ++i) order.push_back(i);
  }
  f.parameters = static_cast<int>(order.size());
  std::vector<int> place(f.variables.size(), -1);
  for (std::size_t i = 0; i < order.size(); ++i)
    place[static_cast<std::size_t>(order[i])] = static_cast<int>(i);
  kernel::for_each_stmt(f.body, [&](const Stmt& s) {
    for (const Expr& target : s.targets) {
      if (target.kind != kernel::ExprKind::variable || place[static_cast<std::size_t>(target.index)] >= 0)
        continue;
      place[static_cast<std::size_t>(target.index)] = static_cast<int>(order.size());
      order.push_back(target.index);
    }
  });
  kernel::for_each_expr(f.body, [&](Expr& e) {
    if (e.kind == kernel::ExprKind::variable) e.index = place[static_cast<std::size_t>(e.index)];
  });
  std::vector<kernel::Variable> variables;
  for (const int v : order) variables.push_back(std::move(f.variables[static_cast<std::size_t>(v)]));
  f.variables = std::move(variables);
}

Program Sketch::finish(const Category& category) {
  Program program;
  remove_unused();
  for (kernel::Function& f : module_.functions) renumber(f, nullptr);
  renumber(kernel_, &program.arguments);
  kernel_.name =
      fresh({"apply", "compute", "update", "evaluate", "transform", "process", "step_kernel", "run_kernel",
             "blend", "solve", "assemble", "gather_terms", "advance", "combine", "sweep", "relax"});
  kernel_.name = std::string(category.name) + "_" + kernel_.name;
  module_.kernels.push_back(std::move(kernel_));
  program.module = std::move(module_);
  program.category = category.name;
  program.description = std::move(description);
  program.level = level;
  program.grid = std::move(grid);
  program.block_dim = block_dim;
  return program;
}

}  // namespace ferrite::irsynth
