// Dead code: a statement stays if it has an effect or if a variable it writes is read later. Liveness of
// loops is the smallest set that holds around them.
#include <algorithm>

#include "kernel/transform/lower.hpp"
#include "kernel/transform/simplify.hpp"

namespace ferrite::kernel {

namespace {

using Live = std::vector<bool>;

void join(Live& a, const Live& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = a[i] || b[i];
}

class DeadCode {
 public:
  DeadCode(const Module& module, Function& function) : module_(module), f_(function) {}
  void run() {
    Live live(f_.variables.size(), false);
    block(f_.body, live, true);
  }

 private:
  struct Loop {
    Live head, after;
  };

  static void use(const Expr& e, Live& live) {
    for_each_expr(e, [&](const Expr& part) {
      if (part.kind == ExprKind::variable) live[static_cast<std::size_t>(part.index)] = true;
    });
  }
  bool is_live(const Expr& v, const Live& live) const { return live[static_cast<std::size_t>(v.index)]; }
  /// An effect beyond this thread's variables.
  bool has_effect(const Expr& e) const {
    bool effect = false;
    for_each_expr(e, [&](const Expr& part) {
      if (part.kind == ExprKind::apply) {
        const Effect kind = info(part.builtin).effect;
        effect |= kind != Effect::none && kind != Effect::updates_first;
      } else if (part.kind == ExprKind::call) {
        effect |= !is_pure(module_, part);
      }
    });
    return effect;
  }
  bool writes_live(const Stmt& s, const Live& live) const {
    for (const Expr& t : s.targets) {
      const Expr& root = root_of(t);
      if ((in_array(t) && escapes(root)) || is_live(root, live)) return true;
    }
    bool draws = false;
    for (const Expr& v : s.values)
      for_each_expr(v, [&](const Expr& part) {
        draws |= part.kind == ExprKind::apply && info(part.builtin).effect == Effect::updates_first &&
                 is_live(part.args[0], live);
      });
    return draws;
  }
  /// An array that others can see: a parameter, a shared one, or a possible alias of such.
  bool escapes(const Expr& array) const {
    if (array.index < f_.parameters) return true;
    bool own = false;
    for_each_stmt(f_.body, [&](const Stmt& s) {
      own |= s.kind == StmtKind::declare_array && !s.shared && s.targets[0].index == array.index;
    });
    return !own;
  }

  void block(std::vector<Stmt>& body, Live& live, bool change) {
    for (std::size_t i = body.size(); i-- > 0;)
      if (!statement(body[i], live, change) && change)
        body.erase(body.begin() + static_cast<std::ptrdiff_t>(i));
  }

  /// Whether it stays.
  bool statement(Stmt& s, Live& live, bool change) {
    switch (s.kind) {
      case StmtKind::if_:
        return branch(s, live, change);
      case StmtKind::for_:
      case StmtKind::while_:
        return loop(s, live, change);
      case StmtKind::break_:
        live = loops_.back().after;
        return true;
      case StmtKind::continue_:
        live = loops_.back().head;
        return true;
      case StmtKind::return_:
        live.assign(live.size(), false);
        break;
      case StmtKind::assert_:
        break;
      default: {
        const bool effect =
            std::any_of(s.values.begin(), s.values.end(), [&](const Expr& v) { return has_effect(v); });
        if (!effect && !writes_live(s, live)) return false;
      }
    }
    for (const Expr& t : s.targets) {
      if (t.kind == ExprKind::variable && s.kind != StmtKind::update)
        live[static_cast<std::size_t>(t.index)] = false;
    }
    for (const Expr& t : s.targets)
      if (t.kind != ExprKind::variable || s.kind == StmtKind::update) use(t, live);
    for (const Expr& v : s.values) use(v, live);
    return true;
  }

  bool branch(Stmt& s, Live& live, bool change) {
    Live other = live;
    block(s.body, live, change);
    block(s.orelse, other, change);
    join(live, other);
    if (change && s.body.empty() && s.orelse.empty() && !has_effect(s.values[0])) return false;
    if (change && s.body.empty() && !s.orelse.empty()) {
      std::swap(s.body, s.orelse);
      s.values[0] = fold(apply(Builtin::not_, {std::move(s.values[0])}));
    }
    use(s.values[0], live);
    return true;
  }

  /// A loop that changes nothing anybody reads is assumed to end, and is removed.
  bool does_nothing(const Stmt& s, const Live& live) const {
    bool needed = writes_live(s, live);
    for (const Expr& v : s.values) needed |= has_effect(v);
    for_each_stmt(s.body, [&](const Stmt& inner) {
      needed |=
          inner.kind == StmtKind::return_ || inner.kind == StmtKind::assert_ || writes_live(inner, live);
      for (const Expr& v : inner.values) needed |= has_effect(v);
    });
    return !needed;
  }
  bool loop(Stmt& s, Live& live, bool change) {
    if (does_nothing(s, live)) return false;
    const bool counts = s.kind == StmtKind::for_;
    const std::size_t variable = counts ? static_cast<std::size_t>(s.targets[0].index) : 0;
    Live head = live;
    if (!counts) use(s.values[0], head);
    loops_.push_back({head, live});
    for (;;) {
      Live round = head;
      loops_.back().head = head;
      block(s.body, round, false);
      if (counts) round[variable] = false;
      join(round, head);
      if (round == head) break;
      head = std::move(round);
    }
    Live round = head;
    block(s.body, round, change);
    loops_.pop_back();
    live = std::move(head);
    if (counts)
      for (const Expr& v : s.values) use(v, live);
    return true;
  }

  const Module& module_;
  Function& f_;
  std::vector<Loop> loops_;
};

}  // namespace

void remove_dead_code(const Module& module, Function& function) { DeadCode(module, function).run(); }

/// for a in ...: b = a; ... is a loop over b if nobody else reads a.
void rename_loop_variables(Function& function) {
  std::vector<int> uses(function.variables.size(), 0);
  for_each_expr(function.body, [&](const Expr& e) {
    if (e.kind == ExprKind::variable) ++uses[static_cast<std::size_t>(e.index)];
  });
  for_each_stmt(function.body, [&](Stmt& s) {
    if (s.kind != StmtKind::for_ || s.body.empty() || s.body[0].kind != StmtKind::assign) return;
    const Stmt& copy = s.body[0];
    const bool plain = copy.targets.size() == 1 && copy.targets[0].kind == ExprKind::variable &&
                       copy.values[0].kind == ExprKind::variable &&
                       copy.values[0].index == s.targets[0].index;
    if (!plain || uses[static_cast<std::size_t>(s.targets[0].index)] != 2) return;  // the loop and the copy
    s.targets[0] = copy.targets[0];
    s.body.erase(s.body.begin());
  });
}

void remove_unused_variables(Function& function) {
  std::vector<int> index(function.variables.size(), -1);
  for (int i = 0; i < function.parameters; ++i) index[static_cast<std::size_t>(i)] = i;
  std::vector<Variable> kept(function.variables.begin(), function.variables.begin() + function.parameters);
  for_each_expr(function.body, [&](const Expr& e) {
    if (e.kind != ExprKind::variable || index[static_cast<std::size_t>(e.index)] >= 0) return;
    index[static_cast<std::size_t>(e.index)] = static_cast<int>(kept.size());
    kept.push_back(function.variables[static_cast<std::size_t>(e.index)]);
  });
  for_each_expr(function.body, [&](Expr& e) {
    if (e.kind == ExprKind::variable) e.index = index[static_cast<std::size_t>(e.index)];
  });
  function.variables = std::move(kept);
}

}  // namespace ferrite::kernel
