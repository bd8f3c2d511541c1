// Walks a kernel and the functions it calls, following arrays through arguments and variables.
#include "kernel/ir/array_use.hpp"

#include <set>

namespace ferrite::kernel {

namespace {

class Walk {
 public:
  Walk(const Module& module, std::vector<ArrayUse>& uses) : module_(module), uses_(uses) {}

  using Sources = std::set<int>;  // parameters of the kernel that a variable may stand for

  void function(const Function& f, std::vector<Sources> variables) {
    variables.resize(f.variables.size());
    // Variables may be assigned arrays anywhere; a second walk uses the results of the first.
    for (int round = 0; round < 2; ++round)
      for_each_stmt(f.body, [&](const Stmt& s) { statement(s, variables); });
  }

 private:
  static const Expr& root(const Expr& e) {
    const Expr* at = &e;
    while (at->kind == ExprKind::field || at->kind == ExprKind::component || at->kind == ExprKind::element)
      at = &at->args[0];
    return *at;
  }
  static bool in_array(const Expr& e) {
    if (e.kind == ExprKind::element) return true;
    return (e.kind == ExprKind::field || e.kind == ExprKind::component) && in_array(e.args[0]);
  }
  template <class F>
  void mark(const Expr& place, const std::vector<Sources>& variables, F f) {
    const Expr& from = root(place);
    if (from.kind != ExprKind::variable) return;
    for (const int p : variables[static_cast<std::size_t>(from.index)]) f(uses_[static_cast<std::size_t>(p)]);
  }

  void statement(const Stmt& s, std::vector<Sources>& variables) {
    for (const Expr& v : s.values) expression(v, variables);
    const bool sum = s.builtin == Builtin::add || s.builtin == Builtin::sub;
    for (std::size_t i = 0; i < s.targets.size(); ++i) {
      const Expr& t = s.targets[i];
      for (const Expr* at = &t; at->kind != ExprKind::variable && !at->args.empty(); at = &at->args[0])
        for (std::size_t k = 1; k < at->args.size(); ++k) expression(at->args[k], variables);
      if (in_array(t)) {
        mark(t, variables, [&](ArrayUse& use) {
          if (s.kind == StmtKind::update && sum)
            use.adds = true;
          else
            use.writes = true, use.reads |= s.kind == StmtKind::update;
        });
      } else if (t.kind == ExprKind::variable && s.kind == StmtKind::assign &&
                 s.values.size() == s.targets.size()) {
        stand_for(t, s.values[i], variables);
      }
    }
  }

  /// A variable that gets an array, or a struct with arrays.
  void stand_for(const Expr& target, const Expr& value, std::vector<Sources>& variables) {
    if (!value.type.is_array() && !value.type.is_struct()) return;
    for_each_expr(value, [&](const Expr& part) {
      if (part.kind == ExprKind::variable) {
        const Sources from = variables[static_cast<std::size_t>(part.index)];
        variables[static_cast<std::size_t>(target.index)].insert(from.begin(), from.end());
      }
    });
  }

  void expression(const Expr& e, std::vector<Sources>& variables) {
    for_each_expr(e, [&](const Expr& part) {
      if (part.kind == ExprKind::element) mark(part, variables, [](ArrayUse& use) { use.reads = true; });
      if (part.kind == ExprKind::apply && info(part.builtin).effect == Effect::writes_array)
        mark(part.args[0], variables, [&](ArrayUse& use) { atomic(part.builtin, use); });
      if (part.kind == ExprKind::call) {
        std::vector<Sources> arguments;
        for (const Expr& a : part.args) {
          const Expr& from = root(a);
          const bool passes = from.kind == ExprKind::variable && (a.type.is_array() || a.type.is_struct());
          arguments.push_back(passes ? variables[static_cast<std::size_t>(from.index)] : Sources{});
        }
        function(module_.functions[static_cast<std::size_t>(part.index)], std::move(arguments));
      }
    });
  }

  static void atomic(Builtin builtin, ArrayUse& use) {
    if (builtin == Builtin::atomic_add || builtin == Builtin::atomic_sub)
      use.adds = true;
    else if (builtin == Builtin::atomic_min || builtin == Builtin::atomic_max)
      use.extremes = true;
    else
      use.reads = use.writes = true;
  }

  const Module& module_;
  std::vector<ArrayUse>& uses_;
};

}  // namespace

std::vector<ArrayUse> array_uses(const Module& module, const Function& kernel) {
  std::vector<ArrayUse> uses(static_cast<std::size_t>(kernel.parameters));
  std::vector<Walk::Sources> variables;
  for (int p = 0; p < kernel.parameters; ++p) variables.push_back({p});
  Walk(module, uses).function(kernel, std::move(variables));
  return uses;
}

}  // namespace ferrite::kernel
