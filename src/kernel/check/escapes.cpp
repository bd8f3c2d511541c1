// Arrays that a function makes end with the call: none may escape.
#include <fmt/format.h>

#include <algorithm>

#include "kernel/check/checker.hpp"

namespace ferrite::kernel {

namespace {

/// The function's own array that a value may be or hold, by its variable; -1 if there is none. The analysis
/// ignores control flow, so it errs on the side of refusing.
class LocalArrays {
 public:
  LocalArrays(const Module& module, const Function& function)
      : module_(module), held_(function.variables.size(), -1) {
    for (bool changed = true; changed;) {
      changed = false;
      for_each_stmt(function.body, [&](const Stmt& s) {
        if (s.kind == StmtKind::declare_array) changed |= hold(s.targets[0], s.targets[0].index);
        if (s.kind != StmtKind::assign) return;
        const bool one_each = s.values.size() == s.targets.size();
        for (std::size_t i = 0; i < s.targets.size(); ++i)
          if (holds_array(module_, s.targets[i].type))
            changed |= hold(s.targets[i], in(s.values[one_each ? i : 0]));
      });
    }
  }

  int in(const Expr& value) const {
    const bool tuple = value.type.is(Type::Kind::tuple);
    if (!tuple && !holds_array(module_, value.type)) return -1;
    if (value.kind == ExprKind::variable) return held_[static_cast<std::size_t>(value.index)];
    for (const Expr& part : value.args)  // of a call too: it may give back what it was given
      if (const int found = in(part); found >= 0) return found;
    return -1;
  }

 private:
  bool hold(const Expr& target, int array) {
    const Expr* root = &target;
    while (root->kind == ExprKind::field || root->kind == ExprKind::component) root = &root->args[0];
    if (root->kind != ExprKind::variable || array < 0) return false;
    int& held = held_[static_cast<std::size_t>(root->index)];
    if (held >= 0) return false;
    held = array;
    return true;
  }

  const Module& module_;
  std::vector<int> held_;
};

}  // namespace

void FunctionChecker::refuse_escaping_arrays() const {
  if (kernel_ || std::none_of(function_.results.begin(), function_.results.end(),
                              [&](Type t) { return holds_array(module_.module(), t); }))
    return;
  const LocalArrays arrays(module_.module(), function_);
  for_each_stmt(function_.body, [&](const Stmt& s) {
    if (s.kind != StmtKind::return_) return;
    for (const Expr& v : s.values)
      if (const int found = arrays.in(v); found >= 0)
        fail(v.place,
             fmt::format(
                 "'{}' returns its own array '{}', which ends with the call: take the array as a parameter",
                 function_.name, function_.variables[static_cast<std::size_t>(found)].name));
  });
}

}  // namespace ferrite::kernel
