// Branches and loops. Both branches of an if are written as ifs of their own, and names that they bind apart
// are joined by where(); loops over few constants are unrolled, others jump with goto and store what they
// changed back to the numbers they began with.
#include <fmt/format.h>

#include "models/irsynth/warp_form/lowering.hpp"

namespace ferrite::irsynth::warp {

using syntax::Stmt;
using syntax::StmtKind;

namespace {

constexpr std::int64_t longest_unrolled = 16;

/// Whether the body has a break or continue of its own, outside of inner loops.
bool jumps(const std::vector<Stmt>& body, StmtKind kind) {
  for (const Stmt& s : body) {
    if (s.kind == kind) return true;
    if (s.kind != StmtKind::if_) continue;
    for (const auto& branch : s.branches)
      if (jumps(branch, kind)) return true;
  }
  return false;
}

void assigned_names(const std::vector<Stmt>& body, std::set<std::string>& names) {
  for (const Stmt& s : body) {
    for (const syntax::Expr& target : s.targets)
      if (target.kind == syntax::ExprKind::name) names.insert(target.text);
    for (const auto& branch : s.branches) assigned_names(branch, names);
  }
}

}  // namespace

void Lowering::begin_if(Variable* condition, bool negated) {
  forward(fmt::format("if ({}{}) {{", negated ? "!" : "", load(condition)->name()));
  reverse("}");
  indent_ += "    ";
}

void Lowering::end_if(Variable* condition, bool negated) {
  indent_.resize(indent_.size() - 4);
  forward("}");
  reverse(fmt::format("if ({}{}) {{", negated ? "!" : "", load(condition)->name()));
}

void Lowering::if_(const Stmt& s, std::size_t branch) {
  if (branch > 0) at(start_of(s.values[branch]));
  Variable* condition = value(s.values[branch]);
  const bool chained = branch + 1 < s.values.size(), has_else = branch + 1 < s.branches.size();
  const auto otherwise = [&] {
    if (chained)
      if_(s, branch + 1);
    else if (has_else)
      statements(s.branches[branch + 1]);
  };
  if (condition->constant) {
    if (condition->constant->truth())
      statements(s.branches[branch]);
    else
      otherwise();
    return;
  }
  const Symbols before = symbols_;
  begin_if(condition, false);
  statements(s.branches[branch]);
  end_if(condition, false);
  const Symbols after_if = symbols_;
  symbols_ = before;
  if (chained || has_else) {
    begin_if(condition, true);
    otherwise();
    end_if(condition, true);
  }
  const Symbols after_else = symbols_;
  Symbols merged = before;
  const auto merge = [&](const std::string& name) {
    Variable *first = after_if.find(name), *second = after_else.find(name);
    if (first == second || second == nullptr)
      merged.set(name, first);
    else if (first == nullptr)
      merged.set(name, second);
    else
      merged.set(name, call(library("where"), {condition, first, second}, stripped(first->type)));
  };
  for (const auto& entry : after_if) merge(entry.first);
  for (const auto& entry : after_else)
    if (after_if.find(entry.first) == nullptr) merge(entry.first);
  symbols_ = merged;
}

/// The value of a range's bound if Warp knows it; else what it was evaluated to.
std::optional<std::int64_t> Lowering::known_integer(const syntax::Expr& e, Variable*& evaluated) {
  if (e.kind == Kind::integer) return static_cast<std::int64_t>(e.integer);
  if (e.kind == Kind::unary && e.builtin == Builtin::neg && e.args[0].kind == Kind::integer)
    return -static_cast<std::int64_t>(e.args[0].integer);
  const bool path = e.kind == Kind::name || (e.kind == Kind::attribute && e.args[0].kind == Kind::name);
  const std::string& root = e.kind == Kind::name ? e.text : path ? e.args[0].text : e.text;
  if (path && symbols_.find(root) == nullptr) {
    Type type;
    if (const auto c = static_value(e, &type)) return c->integer;
  }
  evaluated = value(e);
  if (evaluated->constant && evaluated->constant->kind == Constant::Kind::integer)
    return evaluated->constant->integer;
  return std::nullopt;
}

void Lowering::for_(const Stmt& s) {
  const syntax::Expr& range = s.values[0];
  std::vector<std::optional<std::int64_t>> known;
  std::vector<Variable*> bounds;
  bool all = true;
  for (std::size_t i = 1; i < range.args.size(); ++i) {
    Variable* evaluated = nullptr;
    known.push_back(known_integer(range.args[i], evaluated));
    bounds.push_back(evaluated);
    all = all && known.back();
  }
  const bool breaks = jumps(s.branches[0], StmtKind::break_);
  if (all) {
    ConstantRange r{0, *known[0], 1, 0};
    if (known.size() > 1) r = {*known[0], *known[1], known.size() > 2 ? *known[2] : 1, 0};
    const std::int64_t span = r.step > 0 ? r.stop - r.start : r.start - r.stop;
    const std::int64_t stride = r.step > 0 ? r.step : -r.step;
    const std::int64_t count = span > 0 ? (span + stride - 1) / stride : 0;
    if (count <= longest_unrolled && !breaks) return unrolled(s, r.start, count, r.step);
    out_.rolled_constant_loop |= count > longest_unrolled;
    if (!breaks && !jumps(s.branches[0], StmtKind::continue_)) {
      r.last = r.start + (count - 1) * r.step;
      return rolled(s, add(value_of(int_type)), r);
    }
  }
  for (std::size_t i = 0; i < bounds.size(); ++i)
    if (known[i]) bounds[i] = add(integer(*known[i]));
  rolled(s, call(library("range", false), bounds, ValueType{ValueType::Form::range}), std::nullopt);
}

void Lowering::unrolled(const Stmt& s, std::int64_t start, std::int64_t count, std::int64_t step) {
  const std::string& counter = s.targets[0].text;
  if (count > 0) counters_.insert(counter);
  std::vector<Stmt> guarded;
  std::string active;
  if (count > 0 && jumps(s.branches[0], StmtKind::continue_)) {
    active = fmt::format("_wp_continue_{}", labels_++);
    bool continues = false;
    guarded = without_continue(s.branches[0], active, continues);
  }
  for (std::int64_t k = 0; k < count; ++k) {
    symbols_.set(counter, add(integer(start + k * step)));
    if (!active.empty()) symbols_.set(active, add(boolean(true)));
    statements(active.empty() ? s.branches[0] : guarded);
  }
  if (!active.empty()) symbols_.erase(active);
}

/// The body with a flag in place of continue, and what follows it guarded by the flag.
std::vector<Stmt> Lowering::without_continue(const std::vector<Stmt>& body, const std::string& active,
                                             bool& continues, std::size_t from) {
  std::vector<Stmt> made;
  const auto flag = [&](Place place) {
    syntax::Expr e{Kind::name, place};
    e.text = active;
    return e;
  };
  for (std::size_t i = from; i < body.size(); ++i) {
    const Stmt& s = body[i];
    if (s.kind == StmtKind::continue_) {
      Stmt clear{StmtKind::assign, s.place};
      clear.targets.push_back(flag(s.place));
      clear.values.push_back(syntax::Expr{Kind::boolean, s.place});
      made.push_back(std::move(clear));
      continues = true;
      return made;
    }
    made.push_back(s);
    if (s.kind != StmtKind::if_) continue;
    bool inside = false;
    for (auto& branch : made.back().branches) branch = without_continue(branch, active, inside);
    if (!inside) continue;
    continues = true;
    bool unused = false;
    std::vector<Stmt> rest = without_continue(body, active, unused, i + 1);
    if (rest.empty()) return made;
    const Place place = start_of(body[i + 1]);
    Stmt guard{StmtKind::if_, place};
    guard.values.push_back(flag(place));
    guard.branches.push_back(std::move(rest));
    made.push_back(std::move(guard));
    return made;
  }
  return made;
}

void Lowering::rolled(const Stmt& s, Variable* range, const std::optional<ConstantRange>& constants) {
  unfreeze_counters(s.branches[0]);
  if (constants) forward(fmt::format("{} = {};", range->name(), constants->start));
  const std::string label = begin_block("for").label;
  loop_labels_.push_back(label);
  forward(fmt::format("start_{}:;", label));
  indent_ += "    ";
  Variable* counter = nullptr;
  if (constants) {
    forward(fmt::format("if ({} {} {}) goto end_{};", range->name(),
                        constants->step > 0 ? ">=" : "<=", constants->stop, label));
    counter = add(value_of(int_type));
    forward(fmt::format("{} = {};", counter->name(), range->name()));
    forward(fmt::format("{} += {};", range->name(), constants->step));
  } else {
    forward(fmt::format("if (iter_cmp({}) == 0) goto end_{};", range->name(), label));
    counter = call(library("iter_next", false), {range}, value_of(int_type));
  }
  begin_block();
  symbols_.set(s.targets[0].text, counter);
  loop_symbols_.push_back(symbols_);
  statements(s.branches[0]);
  store_back(loop_symbols_.back());
  loop_symbols_.pop_back();

  const Block body = end_block(), head = end_block();
  loop_labels_.pop_back();
  Block& outer = blocks_.back();
  outer.forward.insert(outer.forward.end(), head.forward.begin(), head.forward.end());
  outer.forward.insert(outer.forward.end(), body.forward.begin(), body.forward.end());
  forward_only(fmt::format("goto start_{};", label));
  indent_.resize(indent_.size() - 4);
  forward_only(fmt::format("end_{}:;", label));

  std::vector<std::string> back;  // the reverse of the loop, first line first
  const auto line = [&](const std::string& text) { back.push_back(indent_ + text); };
  if (constants) {
    line(fmt::format("{} = {};", range->name(), constants->last));
    line(fmt::format("start_{}:;", label));
    line(fmt::format("\tif ({} {} {}) goto end_{};", range->name(), constants->step > 0 ? "<" : ">",
                     constants->start, label));
    line(fmt::format("\t{} = {};", counter->name(), range->name()));
    line(fmt::format("\t{} -= {};", range->name(), constants->step));
  } else {
    line(fmt::format("{0} = wp::iter_reverse({0});", range->name()));
    back.insert(back.end(), head.forward.begin(), head.forward.end());
  }
  for (const Variable* v : body.variables) line(fmt::format("\t{} = {{}};", v->adjoint()));
  back.insert(back.end(), body.replay.begin(), body.replay.end());
  back.insert(back.end(), body.reverse.rbegin(), body.reverse.rend());
  line(fmt::format("\tgoto start_{};", label));
  line(fmt::format("end_{}:;", label));
  outer.reverse.insert(outer.reverse.end(), back.rbegin(), back.rend());
  outer.variables.insert(outer.variables.end(), head.variables.begin(), head.variables.end());
  outer.variables.insert(outer.variables.end(), body.variables.begin(), body.variables.end());
}

void Lowering::while_(const Stmt& s) {
  unfreeze_counters(s.branches[0]);
  Block& begun = begin_block("while");
  const std::string label = begun.label;
  loop_labels_.push_back(label);
  begun.forward.push_back(fmt::format("start_{}:;", label));
  const Variable* condition = load(value(s.values[0]));
  blocks_.back().forward.push_back(fmt::format("if (({}) == false) goto end_{};", condition->name(), label));
  begin_block();
  indent_ += "    ";
  loop_symbols_.push_back(symbols_);
  statements(s.branches[0]);
  store_back(loop_symbols_.back());
  loop_symbols_.pop_back();
  indent_.resize(indent_.size() - 4);

  const Block body = end_block(), head = end_block();
  loop_labels_.pop_back();
  Block& outer = blocks_.back();
  const std::string again = fmt::format("goto start_{};", label), end = fmt::format("end_{}:;", label);
  outer.forward.insert(outer.forward.end(), head.forward.begin(), head.forward.end());
  outer.forward.insert(outer.forward.end(), body.forward.begin(), body.forward.end());
  outer.forward.push_back(again);
  outer.forward.push_back(end);
  std::vector<std::string> back = head.forward;
  for (const Variable* v : body.variables) back.push_back(v->adjoint() + " = {};");
  back.insert(back.end(), body.replay.begin(), body.replay.end());
  back.insert(back.end(), body.reverse.rbegin(), body.reverse.rend());
  back.push_back(again);
  back.push_back(end);
  outer.reverse.insert(outer.reverse.end(), back.rbegin(), back.rend());
}

void Lowering::leave(const Stmt& s, bool to_start) {
  if (loop_labels_.empty()) fail(s.place, "this jump has no Warp form");
  store_back(loop_symbols_.back());
  forward(fmt::format("goto {}_{};", to_start ? "start" : "end", loop_labels_.back()));
}

/// Writes the variables that a loop bound again back to the ones they were when it began.
void Lowering::store_back(const Symbols& before) {
  const Symbols snapshot = before;
  for (const auto& [name, first] : snapshot) {
    Variable* now = symbols_.find(name);
    if (now == first || (counters_.contains(name) && first->constant)) continue;
    if (first->constant)
      fail({line_, 1}, fmt::format("Warp refuses to change '{0}' in a loop, because it began as a literal: "
                                   "write {0} = float(...) or int(...)",
                                   name));
    call(library("assign"), {first, now}, std::vector<ValueType>{});
    symbols_.set(name, first);
  }
}

/// Counters of unrolled loops that a dynamic loop changes become variables before it.
void Lowering::unfreeze_counters(const std::vector<Stmt>& body) {
  std::set<std::string> names;
  assigned_names(body, names);
  for (const std::string& name : names) {
    Variable* v = symbols_.find(name);
    if (counters_.contains(name) && v != nullptr && v->constant) symbols_.set(name, copy(v));
  }
}

}  // namespace ferrite::irsynth::warp
