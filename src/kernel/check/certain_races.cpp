// Stores of all threads to one element, found in the text of a kernel.
#include <fmt/format.h>

#include <algorithm>

#include "ferrite/kernel/parse.hpp"
#include "ferrite/kernel/races.hpp"
#include "kernel/transform/lower.hpp"

namespace ferrite::kernel {

namespace {

class CertainRaces {
 public:
  CertainRaces(const Module& module, const Function& kernel)
      : module_(module), kernel_(kernel), differs_(kernel.variables.size(), false) {
    for_each_stmt(kernel.body, [&](const Stmt& s) {
      for (const Expr& t : s.targets)
        if (in_array(t)) written_.insert(root_of(t).index);
    });
    for_each_expr(kernel.body, [&](const Expr& e) {
      if (e.kind == ExprKind::apply && info(e.builtin).effect == Effect::writes_array)
        written_.insert(root_of(e.args[0]).index);
    });
    for (std::vector<bool> before; before != differs_;) {  // until nothing new is found
      before = differs_;
      apart_ = false;
      walk(kernel.body, false, nullptr);
    }
  }

  std::vector<KernelError> find() {
    std::vector<KernelError> found;
    apart_ = false;
    walk(kernel_.body, false, &found);
    return found;
  }

 private:
  /// Whether threads may have different values for it.
  bool differs(const Expr& e) const {
    if (e.kind == ExprKind::variable) return differs_[static_cast<std::size_t>(e.index)];
    if (e.kind == ExprKind::call && !is_pure(module_, e)) return true;
    if (e.kind == ExprKind::apply && (e.builtin == Builtin::tid || info(e.builtin).effect != Effect::none))
      return true;
    if (e.kind == ExprKind::element && written_.contains(root_of(e).index)) return true;
    return std::any_of(e.args.begin(), e.args.end(), [&](const Expr& a) { return differs(a); });
  }
  /// `some`: only some of the threads may get here. After a jump that not all threads take, this holds for
  /// the rest.
  void walk(const std::vector<Stmt>& body, bool some, std::vector<KernelError>* found) {
    for (const Stmt& s : body) {
      const bool here = some || apart_;
      const bool differing =
          std::any_of(s.values.begin(), s.values.end(), [&](const Expr& v) { return differs(v); });
      for (const Expr& t : s.targets) {
        if (!in_array(t)) {
          differs_[static_cast<std::size_t>(root_of(t).index)] =
              differs_[static_cast<std::size_t>(root_of(t).index)] || differing || here;
        } else if (found != nullptr && s.kind == StmtKind::assign && !here && differing && is_one_place(t)) {
          found->emplace_back(
              module_.source.get(), t.place,
              fmt::format(
                  "race in '{}': every thread writes {}, each a value of its own: with more than one thread "
                  "the result depends on their order, and the gradient is not defined; use "
                  "wp.atomic_add, or an index of the thread",
                  kernel_.name, print(module_, t, kernel_)));
        }
      }
      const bool jump =
          s.kind == StmtKind::return_ || s.kind == StmtKind::break_ || s.kind == StmtKind::continue_;
      if (jump && here) apart_ = true;
      walk(s.body, here || differing, found);
      walk(s.orelse, here || differing, found);
    }
  }
  /// An element of an argument at indices that all threads share.
  bool is_one_place(const Expr& t) const {
    if (std::any_of(t.args.begin() + 1, t.args.end(), [&](const Expr& i) { return differs(i); }))
      return false;
    if (t.kind != ExprKind::element) return is_one_place(t.args[0]);
    const Expr& root = root_of(t);
    return root.kind == ExprKind::variable && root.index < kernel_.parameters;
  }

  const Module& module_;
  const Function& kernel_;
  std::vector<bool> differs_;
  std::set<int> written_;
  bool apart_ = false;
};

}  // namespace

std::vector<KernelError> certain_races(const Module& module, const Function& kernel) {
  return CertainRaces(module, kernel).find();
}

}  // namespace ferrite::kernel
