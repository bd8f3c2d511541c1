// Constant propagation: which variables are known to hold a literal (or the zero of a composite) at each
// point. Loops start from what holds at their entry and keep what still holds after a round.
#include <algorithm>

#include "kernel/transform/lower.hpp"
#include "kernel/transform/simplify.hpp"

namespace ferrite::kernel {

namespace {

/// A variable that holds a literal, or the zero of a composite.
struct Fact {
  int variable;
  ExprKind kind;
  Type type;
  std::int64_t bits;  // of the literal's number
  Place place;

  Fact(int v, const Expr& e)
      : variable(v), kind(e.kind), type(e.type), bits(e.number.integer), place(e.place) {}
  Expr value() const {
    Expr e;
    e.kind = kind;
    e.type = type;
    e.number.integer = bits;
    e.place = place;
    return e;
  }
  bool is_zero() const {
    if (kind != ExprKind::literal) return true;
    return is_float(type.scalar) ? std::bit_cast<double>(bits) == 0 : bits == 0;
  }
};

/// There are few, and they are copied at every branch: a sorted list.
class Facts {
 public:
  const Fact* find(int variable) const {
    const auto at = place(variable);
    return at != facts_.end() && at->variable == variable ? &*at : nullptr;
  }
  void set(int variable, const Expr& value) {
    forget(variable);
    facts_.insert(place(variable), Fact(variable, value));
  }
  void forget(int variable) {
    const auto at = place(variable);
    if (at != facts_.end() && at->variable == variable) facts_.erase(at);
  }
  std::size_t size() const { return facts_.size(); }
  friend Facts common(const Facts& a, const Facts& b) {
    Facts both;
    auto other = b.facts_.begin();
    for (const Fact& f : a.facts_) {
      while (other != b.facts_.end() && other->variable < f.variable) ++other;
      if (other != b.facts_.end() && other->variable == f.variable && other->kind == f.kind &&
          other->type == f.type && other->bits == f.bits)
        both.facts_.push_back(f);
    }
    return both;
  }

 private:
  std::vector<Fact>::const_iterator place(int variable) const {
    return std::lower_bound(facts_.begin(), facts_.end(), variable,
                            [](const Fact& f, int v) { return f.variable < v; });
  }
  std::vector<Fact> facts_;
};

bool is_constant(const Expr& e) {
  return e.kind == ExprKind::literal || (e.kind == ExprKind::construct && e.args.empty());
}
bool has_jump(const std::vector<Stmt>& body) {
  bool found = false;
  for_each_stmt(body, [&](const Stmt& s) {
    found |= s.kind == StmtKind::break_ || s.kind == StmtKind::continue_ || s.kind == StmtKind::return_;
  });
  return found;
}

class Propagation {
 public:
  explicit Propagation(Function& function) : f_(function) {}
  void run() {
    Facts facts;
    block(f_.body, facts, true);
  }

 private:
  void forget(const Stmt& s, Facts& facts) {
    for (const Expr& t : s.targets) facts.forget(root_of(t).index);
    for (const Expr& v : s.values) forget_draws(v, facts);
  }
  void forget_draws(const Expr& e, Facts& facts) {
    if (e.kind == ExprKind::apply && info(e.builtin).effect == Effect::updates_first)
      facts.forget(e.args[0].index);
    for (const Expr& a : e.args) forget_draws(a, facts);
  }
  Expr read(Expr e, const Facts& facts) {
    if (e.kind == ExprKind::variable) {
      const Fact* known = facts.find(e.index);
      return known != nullptr && known->kind == ExprKind::literal ? known->value() : e;
    }
    const bool draws = e.kind == ExprKind::apply && info(e.builtin).effect == Effect::updates_first;
    for (std::size_t i = draws ? 1 : 0; i < e.args.size(); ++i) e.args[i] = read(std::move(e.args[i]), facts);
    return e;
  }
  void indices(Expr& place, const Facts& facts) {
    if (place.kind == ExprKind::variable) return;
    indices(place.args[0], facts);
    for (std::size_t i = 1; i < place.args.size(); ++i) place.args[i] = fold(read(place.args[i], facts));
  }

  void block(std::vector<Stmt>& body, Facts& facts, bool change) {
    std::vector<Stmt> kept;
    for (Stmt& s : body) {
      if (change) {
        for (Expr& v : s.values)
          if (s.kind != StmtKind::while_) v = fold(read(std::move(v), facts));
        for (Expr& t : s.targets) indices(t, facts);
      }
      if (!statement(s, facts, change) || !change) {
        if (change) kept.push_back(std::move(s));
        continue;
      }
      const bool yes = s.values[0].number.integer != 0;  // an if whose condition is known
      append(kept, std::move(yes ? s.body : s.orelse));
    }
    if (change) body = std::move(kept);
  }

  /// Whether it is an if with a known condition.
  bool statement(Stmt& s, Facts& facts, bool change) {
    switch (s.kind) {
      case StmtKind::if_: {
        const bool known = change && s.values[0].kind == ExprKind::literal;
        Facts yes = facts, no = facts;
        block(s.body, yes, change);
        block(s.orelse, no, change);
        facts = known ? (s.values[0].number.integer != 0 ? std::move(yes) : std::move(no)) : common(yes, no);
        return known;
      }
      case StmtKind::for_:
      case StmtKind::while_:
        loop(s, facts, change);
        return false;
      case StmtKind::update:
        if (change) first_update(s, facts);
        if (s.kind == StmtKind::update) {
          forget(s, facts);
          return false;
        }
        [[fallthrough]];
      case StmtKind::assign:
        forget(s, facts);
        if (s.targets.size() == 1 && s.targets[0].kind == ExprKind::variable && is_constant(s.values[0]))
          facts.set(s.targets[0].index, s.values[0]);
        return false;
      default:
        forget(s, facts);
        return false;
    }
  }
  /// += of a variable that is zero is an assignment.
  void first_update(Stmt& s, const Facts& facts) {
    const Fact* known = facts.find(s.targets[0].index);
    if (s.targets[0].kind != ExprKind::variable || known == nullptr) return;
    const bool sum = s.builtin == Builtin::add || s.builtin == Builtin::sub;
    if (!sum || !known->is_zero()) return;
    s.kind = StmtKind::assign;
    if (s.builtin == Builtin::sub) s.values[0] = apply(Builtin::neg, {std::move(s.values[0])});
    s.builtin = Builtin::neg;
  }
  void loop(Stmt& s, Facts& facts, bool change) {
    const auto forget_loop = [&](Facts& all) {
      forget(s, all);
      for_each_stmt(s.body, [&](const Stmt& inner) { forget(inner, all); });
    };
    if (has_jump(s.body)) {
      forget_loop(facts);
    } else {
      for (;;) {  // what holds at the start of every round
        Facts end = facts;
        forget(s, end);
        block(s.body, end, false);
        Facts next = common(facts, end);
        const bool stable = next.size() == facts.size();
        facts = std::move(next);
        if (stable) break;
      }
    }
    if (!change) return;
    if (s.kind == StmtKind::while_) s.values[0] = fold(read(std::move(s.values[0]), facts));
    Facts inside = facts;
    forget(s, inside);
    block(s.body, inside, true);
    if (has_jump(s.body)) forget_loop(facts);
  }

  Function& f_;
};

}  // namespace

void propagate_constants(Function& function) { Propagation(function).run(); }

}  // namespace ferrite::kernel
