// Removes jumps: statements after one that may leave go into the branch that does not leave, or under a flag.
#include <optional>
#include <span>

#include "kernel/transform/lower.hpp"

namespace ferrite::kernel {

std::string Names::unique(const std::string& wish) {
  std::string name = wish;
  for (int i = 1; !taken_.insert(name).second; ++i) name = wish + "_" + std::to_string(i);
  return name;
}

Stmt assign(Expr target, Expr value) {
  Stmt s;
  s.place = value.place;
  s.targets.push_back(std::move(target));
  s.values.push_back(std::move(value));
  return s;
}
Stmt update(Builtin builtin, Expr target, Expr value) {
  Stmt s = assign(std::move(target), std::move(value));
  s.kind = StmtKind::update;
  s.builtin = builtin;
  return s;
}
Stmt evaluate(Expr value) {
  Stmt s;
  s.kind = StmtKind::evaluate;
  s.place = value.place;
  s.values.push_back(std::move(value));
  return s;
}
Stmt if_else(Expr condition, std::vector<Stmt> body, std::vector<Stmt> orelse) {
  Stmt s = evaluate(std::move(condition));
  s.kind = StmtKind::if_;
  s.body = std::move(body);
  s.orelse = std::move(orelse);
  return s;
}
Stmt for_range(Expr variable, Expr start, Expr stop, Expr step, std::vector<Stmt> body) {
  Stmt s;
  s.kind = StmtKind::for_;
  s.place = variable.place;
  s.targets.push_back(std::move(variable));
  s.values = {std::move(start), std::move(stop), std::move(step)};
  s.body = std::move(body);
  return s;
}
const Expr& root_of(const Expr& place) {
  return place.kind == ExprKind::variable || place.args.empty() ? place : root_of(place.args[0]);
}
bool in_array(const Expr& place) {
  if (place.kind == ExprKind::element) return true;
  return (place.kind == ExprKind::field || place.kind == ExprKind::component) && in_array(place.args[0]);
}
void append(std::vector<Stmt>& to, std::vector<Stmt> more) {
  to.insert(to.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

namespace {

class JumpRemover {
 public:
  explicit JumpRemover(const Function& function) : f_(function), names_(function) {
    for (std::size_t i = 0; i < f_.results.size(); ++i)
      results_.push_back(add_variable(f_, names_.unique(function.name + "_result"), f_.results[i]));
  }

  Structured run() {
    const std::vector<Stmt> body = std::move(f_.body);
    Block all = block(body, nullptr);
    if (running_) all.statements.insert(all.statements.begin(), set(*running_, true));
    f_.body = std::move(all.statements);
    return {std::move(f_), std::move(results_)};
  }

 private:
  using Flag = std::optional<int>;
  struct Loop {
    Flag unbroken, in_round;  // false after break, after continue
  };
  struct Block {
    std::vector<Stmt> statements;
    std::set<int> flags;  // that it may clear
    bool leaves = false;  // on every path
  };

  Stmt set(int flag, bool value) { return assign(variable(f_, flag), literal(value)); }
  int need(Flag& flag, const char* name) {
    if (!flag) flag = add_variable(f_, names_.unique(name), bool_type);
    return *flag;
  }
  Expr all(const std::set<int>& flags, std::optional<Expr> last = {}) {
    for (auto i = flags.rbegin(); i != flags.rend(); ++i) {
      if (!last) {
        last = variable(f_, *i);
        continue;
      }
      Expr both;
      both.kind = ExprKind::logical_and;
      both.type = bool_type;
      both.args = {variable(f_, *i), std::move(*last)};
      last = std::move(both);
    }
    return *last;
  }
  std::vector<Stmt> guarded(const std::set<int>& flags, std::vector<Stmt> body) {
    if (flags.empty() || body.empty()) return body;
    std::vector<Stmt> one;
    one.push_back(if_else(all(flags), std::move(body)));
    return one;
  }

  Block block(std::span<const Stmt> body, Loop* loop) {
    Block out;
    for (std::size_t i = 0; i < body.size(); ++i) {
      const Stmt& s = body[i];
      const auto rest = [&] { return block(body.subspan(i + 1), loop); };
      switch (s.kind) {
        case StmtKind::return_:
          return_values(s, out.statements);
          leave(out, need(running_, "running"));
          return out;
        case StmtKind::break_:
          leave(out, need(loop->unbroken, "unbroken"));
          return out;
        case StmtKind::continue_:
          leave(out, need(loop->in_round, "in_round"));
          return out;
        case StmtKind::if_: {
          Stmt made = s;
          Block yes = block(s.body, loop), no = block(s.orelse, loop);
          if (yes.flags.empty() && no.flags.empty()) {
            made.body = std::move(yes.statements);
            made.orelse = std::move(no.statements);
            out.statements.push_back(std::move(made));
            continue;
          }
          return branch(std::move(out), std::move(made), std::move(yes), std::move(no), rest());
        }
        case StmtKind::for_:
        case StmtKind::while_: {
          const bool left = loop_statement(s, out);
          if (!left) continue;
          Block after = rest();
          append(out.statements, guarded({*running_}, std::move(after.statements)));
          out.flags.merge(after.flags);
          out.leaves = after.leaves;
          return out;
        }
        default:
          out.statements.push_back(s);
      }
    }
    return out;
  }

  void return_values(const Stmt& s, std::vector<Stmt>& out) {
    Stmt values = s;
    values.kind = StmtKind::assign;
    for (const int r : results_) values.targets.push_back(variable(f_, r));
    if (!s.values.empty()) out.push_back(std::move(values));
  }
  void leave(Block& out, int flag) {
    out.statements.push_back(set(flag, false));
    out.flags.insert(flag);
    out.leaves = true;
  }

  Block branch(Block out, Stmt s, Block yes, Block no, Block rest) {
    std::set<int> either = yes.flags;
    either.insert(no.flags.begin(), no.flags.end());
    std::vector<Stmt> after;
    if (!yes.leaves && !no.leaves)
      after = guarded(either, std::move(rest.statements));
    else if (!yes.leaves)
      append(yes.statements, guarded(yes.flags, std::move(rest.statements)));
    else if (!no.leaves)
      append(no.statements, guarded(no.flags, std::move(rest.statements)));
    out.leaves = (yes.leaves && no.leaves) || rest.leaves;
    s.body = std::move(yes.statements);
    s.orelse = std::move(no.statements);
    out.statements.push_back(std::move(s));
    append(out.statements, std::move(after));
    out.flags.merge(either);
    out.flags.merge(rest.flags);
    return out;
  }

  /// Whether the loop may return.
  bool loop_statement(const Stmt& s, Block& out) {
    Loop inner;
    Block body = block(s.body, &inner);
    if (inner.in_round) {
      body.flags.erase(*inner.in_round);
      body.statements.insert(body.statements.begin(), set(*inner.in_round, true));
    }
    Stmt made = s;
    if (inner.unbroken) out.statements.push_back(set(*inner.unbroken, true));
    if (!body.flags.empty() && s.kind == StmtKind::while_) made.values[0] = all(body.flags, s.values[0]);
    made.body = s.kind == StmtKind::while_ ? std::move(body.statements)
                                           : guarded(body.flags, std::move(body.statements));
    out.statements.push_back(std::move(made));
    if (inner.unbroken) body.flags.erase(*inner.unbroken);
    out.flags.merge(body.flags);
    return running_ && out.flags.contains(*running_);
  }

  Function f_;
  Names names_;
  std::vector<int> results_;
  Flag running_;
};

}  // namespace

Structured remove_jumps(const Function& function) { return JumpRemover(function).run(); }

}  // namespace ferrite::kernel
