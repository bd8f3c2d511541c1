// Statements: the variables of a function, valid assignments, and control flow.
#include <fmt/format.h>

#include <algorithm>

#include "kernel/check/checker.hpp"
#include "kernel/ir/user_operators.hpp"

namespace ferrite::kernel {

using SyntaxKind = syntax::StmtKind;

namespace {

/// Whether a statement leaves the loop that the body belongs to.
bool breaks(const std::vector<Stmt>& body) {
  return std::any_of(body.begin(), body.end(), [](const Stmt& s) {
    return s.kind == StmtKind::break_ || (s.kind == StmtKind::if_ && (breaks(s.body) || breaks(s.orelse)));
  });
}

/// Smaller than the parser's limit, because printing may add casts and parentheses.
constexpr int deepest_expression = 150;
int depth_of(const Expr& e) {
  int deepest = 0;
  for (const Expr& arg : e.args) deepest = std::max(deepest, depth_of(arg));
  return deepest + 1;
}

bool is_barrier(const Stmt& s) { return s.kind == StmtKind::evaluate && has_barrier(s); }

bool is_place(const Expr& e) {
  if (e.kind == ExprKind::field || e.kind == ExprKind::component) return is_place(e.args[0]);
  return e.kind == ExprKind::variable || e.kind == ExprKind::element;
}

}  // namespace

Function FunctionChecker::run() {
  kernel_ = definition_.kind == syntax::Definition::Kind::kernel;
  function_.name = definition_.name;
  function_.place = definition_.place;
  function_.enable_backward = definition_.enable_backward;
  check_name(definition_.name, definition_.place);
  for (const syntax::Parameter& p : definition_.parameters) {
    check_name(p.name, p.place);
    const Type type = module_.annotation(p.annotation, p.any ? &*p.any : nullptr);
    if (!names_.emplace(p.name, add_variable(function_, p.name, type)).second)
      fail(p.place, fmt::format("two parameters are called '{}'", p.name));
  }
  function_.parameters = static_cast<int>(function_.variables.size());
  if (!definition_.of.empty()) check_gradient();
  if (!definition_.result.empty() && definition_.result[0].kind != syntax::ExprKind::none) {
    const syntax::Expr& result = definition_.result[0];
    if (kernel_) fail(result.place, "kernels return nothing: write results to arrays");
    const bool several = result.kind == syntax::ExprKind::subscript &&
                         result.args[0].kind == syntax::ExprKind::name &&
                         (result.args[0].text == "tuple" || result.args[0].text == "Tuple");
    for (std::size_t i = several ? 1 : 0; i < (several ? result.args.size() : 1); ++i)
      function_.results.push_back(module_.annotation(several ? result.args[i] : result));
    returned_ = true;
  }
  function_.body = block(definition_.body);
  declare_block_arrays();
  if (!function_.results.empty() && !always_returns(function_.body))
    fail(definition_.place,
         fmt::format("'{}' can end without a value: add a return at the end", function_.name));
  refuse_escaping_arrays();
  check_adjoints();
  if (definition_.kind == syntax::Definition::Kind::replay &&
      function_.results !=
          module_.module()
              .functions[static_cast<std::size_t>(*module_.find_function(definition_.of, {}))]
              .results)
    fail(definition_.place, fmt::format("the replay of '{}' returns other types", definition_.of));
  return std::move(function_);
}

bool FunctionChecker::always_returns(const std::vector<Stmt>& body) const {
  if (body.empty()) return false;
  const Stmt& last = body.back();
  if (last.kind == StmtKind::return_) return true;
  if (last.kind == StmtKind::while_)  // while True
    return last.values[0].kind == ExprKind::literal && last.values[0].number.integer != 0 &&
           !breaks(last.body);
  return last.kind == StmtKind::if_ && always_returns(last.body) && always_returns(last.orelse);
}

std::vector<Stmt> FunctionChecker::block(const std::vector<syntax::Stmt>& body) {
  std::vector<Stmt> out;
  ++level_;
  for (const syntax::Stmt& s : body) {
    try {
      statement(s, out);
    } catch (const ValueError& e) {  // of a maker of expressions, which knows no place
      fail(s.place, e.what());
    }
  }
  --level_;
  return out;
}

void FunctionChecker::statement(const syntax::Stmt& s, std::vector<Stmt>& out) {
  const auto made = [&](Stmt stmt) {
    stmt.place = s.place;
    for (const auto* list : {&stmt.targets, &stmt.values})
      for (const Expr& e : *list)
        if (depth_of(e) > deepest_expression)
          fail(e.place, "expression nested too deep: store parts of it in variables");
    out.push_back(std::move(stmt));
  };
  std::vector<Stmt> tiled;
  if (tile_statement(s, tiled)) {
    for_each_stmt(tiled, [&](Stmt& one) { one.place = s.place; });
    for (Stmt& one : tiled)
      if (!is_barrier(one) || out.empty() || !is_barrier(out.back())) made(std::move(one));  // one is enough
    return;
  }
  Stmt r;
  switch (s.kind) {
    case SyntaxKind::pass:
      return;
    case SyntaxKind::expression: {
      if (s.values[0].kind == Kind::string) return;  // a docstring
      r.kind = StmtKind::evaluate;
      r.values.push_back(check(s.values[0]));
      const Expr& e = r.values[0];
      const bool call =
          e.kind == ExprKind::call || (e.kind == ExprKind::apply && info(e.builtin).symbol.empty());
      if (!call) fail(s.place, "this expression does nothing: assign it or remove it");
      if (e.kind == ExprKind::apply && info(e.builtin).effect == Effect::none)
        fail(s.place, fmt::format("the value of wp.{} is not used", info(e.builtin).name));
      return made(std::move(r));
    }
    case SyntaxKind::assign:
      if (auto array = declare_array(s)) return made(std::move(*array));
      return made(assign(s));
    case SyntaxKind::update:
      return made(update(s));
    case SyntaxKind::if_:
      for (Stmt& one : branches(s, 0)) made(std::move(one));
      return;
    case SyntaxKind::for_:
      return made(for_loop(s));
    case SyntaxKind::while_:
      r.kind = StmtKind::while_;
      r.values.push_back(condition(s.values[0]));
      ++loops_;
      r.body = block(s.branches[0]);
      --loops_;
      return made(std::move(r));
    case SyntaxKind::break_:
    case SyntaxKind::continue_:
      r.kind = s.kind == SyntaxKind::break_ ? StmtKind::break_ : StmtKind::continue_;
      return made(std::move(r));
    case SyntaxKind::return_:
      return made(return_statement(s));
    case SyntaxKind::assert_:
      return made(assertion(s));
  }
}

/// Whether a wp.static(...) holds; nothing for any other condition.
std::optional<bool> FunctionChecker::static_condition(const syntax::Expr& e) const {
  if (e.kind != Kind::call || module_.warp_name(e.args[0]) != "static") return std::nullopt;
  check_static(e);
  const auto known = module_.constant(e);
  if (!known) return std::nullopt;
  return known->is_true();
}

/// The branches from `from` on, as one if statement; elif is an if inside else.
std::vector<Stmt> FunctionChecker::branches(const syntax::Stmt& s, std::size_t from) {
  if (from == s.values.size())
    return from < s.branches.size() ? block(s.branches[from]) : std::vector<Stmt>();
  if (const auto known = static_condition(s.values[from])) {  // the other branches may be meaningless
    if (!*known) return branches(s, from + 1);
    return block(s.branches[from]);
  }
  Stmt r;
  r.kind = StmtKind::if_;
  r.place = s.values[from].place;
  r.values.push_back(condition(s.values[from]));
  r.body = block(s.branches[from]);
  ++level_;
  r.orelse = branches(s, from + 1);
  --level_;
  std::vector<Stmt> one;
  one.push_back(std::move(r));
  return one;
}

Expr FunctionChecker::target(const syntax::Expr& e, Type type) {
  if (e.kind == Kind::name) {
    check_name(e.text, e.place);
    const auto [found, is_new] = names_.emplace(e.text, 0);
    if (is_new && constants_read_.contains(e.text))
      fail(e.place, fmt::format("'{}' is read above as a constant, and this would make it a variable of the "
                                "whole function: use another name",
                                e.text));
    if (is_new) found->second = add_variable(function_, e.text, type);
    Expr v = variable(function_, found->second);
    v.place = e.place;
    refuse_tile(v, e.place);
    if (v.type != type)
      fail(e.place, fmt::format("variable '{}' is {} and cannot become {}: use another name or cast", e.text,
                                show(v.type), show(type)));
    return v;
  }
  Expr place = value(e);
  if (!is_place(place))
    fail(e.place, "only variables, elements of arrays, and their fields and components can be assigned");
  refuse_tile(place, e.place);
  if (place.type != type) {
    const bool scalars = place.type.is_scalar() && type.is_scalar();
    fail(e.place, fmt::format("a value of type {} cannot be stored in {}{}", show(type), show(place.type),
                              scalars ? fmt::format(": write {}(...)", show(place.type)) : ""));
  }
  return place;
}

std::vector<Type> FunctionChecker::result_types(const Expr& call) const {
  if (!call.type.is(Type::Kind::tuple)) return {call.type};
  if (call.kind == ExprKind::call)
    return module_.module().functions[static_cast<std::size_t>(call.index)].results;
  return std::vector<Type>(call.type.rows, int_type);  // tid
}

Stmt FunctionChecker::assign(const syntax::Stmt& s) {
  Stmt r;
  r.kind = StmtKind::assign;
  const syntax::Expr& right = s.values[0];
  if (right.kind == Kind::tuple) {
    for (const syntax::Expr& e : right.args) r.values.push_back(value(e));
  } else {
    r.values.push_back(check(right));
    Expr& v = r.values[0];
    if (v.type.kind == Type::Kind::none) fail(right.place, "this call gives no value");
    const bool is_tid = v.kind == ExprKind::apply && v.builtin == Builtin::tid;
    if (is_tid && s.targets.size() > 4) fail(s.targets[4].place, "threads have at most 4 indices");
    if (is_tid && s.targets.size() > 1) v.type = Type::tuple(s.targets.size());
  }
  std::vector<Type> types;
  for (const Expr& v : r.values)
    for (const Type t : result_types(v)) types.push_back(t);
  if (types.size() != s.targets.size())
    fail(s.place, fmt::format("{} {} for {} {}", types.size(), types.size() == 1 ? "value" : "values",
                              s.targets.size(), s.targets.size() == 1 ? "target" : "targets"));
  for (std::size_t i = 0; i < types.size(); ++i) r.targets.push_back(target(s.targets[i], types[i]));
  return r;
}

Stmt FunctionChecker::update(const syntax::Stmt& s) {
  Stmt r;
  r.kind = StmtKind::update;
  r.builtin = s.builtin;
  if (s.targets[0].kind == Kind::tuple) fail(s.place, "an update has one target");
  Expr place = value(s.targets[0]);
  Expr right = value(s.values[0]);
  const syntax::Expr operands[2] = {s.targets[0], s.values[0]};
  if (!keeps_operator(s.builtin, place))
    if (auto call = user_operation(s.builtin, place, right, s.place)) {
      if (!is_pure(module_.module(), place))
        fail(s.targets[0].place, "the target is read and written: store its index in a variable first");
      if (!is_place(place) || call->type != place.type)
        fail(s.place,
             fmt::format("the result of '{}' does not fit {}", info(s.builtin).name, show(place.type)));
      refuse_tile(place, s.targets[0].place);
      r.kind = StmtKind::assign;
      r.builtin = Builtin::neg;
      call->place = s.place;
      r.targets.push_back(std::move(place));
      r.values.push_back(std::move(*call));
      return r;
    }
  const Expr both = operation(s.builtin, place, right, operands, s.place);
  if (both.type != place.type)
    fail(s.place, fmt::format("the result is {}, which does not fit {}", show(both.type), show(place.type)));
  if (!is_place(place))
    fail(s.targets[0].place,
         "only variables, elements of arrays, and their fields and components can be assigned");
  refuse_tile(place, s.targets[0].place);
  r.targets.push_back(std::move(place));
  r.values.push_back(std::move(right));
  return r;
}

Stmt FunctionChecker::for_loop(const syntax::Stmt& s) {
  const syntax::Expr& range = s.values[0];
  if (range.kind != Kind::call || range.args[0].kind != Kind::name || range.args[0].text != "range")
    fail(range.place, "loops run over range(...)");
  if (s.targets[0].kind != Kind::name) fail(s.targets[0].place, "a loop has one variable, a name");
  if (range.args.size() < 2 || range.args.size() > 4) fail(range.place, "range takes 1 to 3 integers");
  Stmt r;
  r.kind = StmtKind::for_;
  for (std::size_t i = 1; i < range.args.size(); ++i) {
    Expr bound = value(range.args[i]);
    if (!bound.type.is_int())
      fail(range.args[i].place,
           fmt::format("range takes integers, not {}: write int(...)", show(bound.type)));
    if (i > 1 && bound.type != r.values[0].type)
      fail(range.args[i].place,
           fmt::format("range of {} and {}: one type is needed", show(r.values[0].type), show(bound.type)));
    r.values.push_back(std::move(bound));
  }
  const Type type = r.values[0].type;
  if (r.values.size() == 1) r.values.insert(r.values.begin(), literal(type.scalar, std::int64_t{0}));
  if (r.values.size() == 2) r.values.push_back(literal(type.scalar, std::int64_t{1}));
  if (r.values[2].kind == ExprKind::literal && r.values[2].number.integer == 0)
    fail(range.args[3].place, "the step of a range is not zero");
  r.targets.push_back(target(s.targets[0], type));
  ++loops_;
  r.body = block(s.branches[0]);
  --loops_;
  return r;
}

Stmt FunctionChecker::return_statement(const syntax::Stmt& s) {
  Stmt r;
  r.kind = StmtKind::return_;
  if (!s.values.empty()) {
    if (kernel_) fail(s.values[0].place, "kernels return nothing: write results to arrays");
    const bool several = s.values[0].kind == Kind::tuple;
    for (std::size_t i = 0; i < (several ? s.values[0].args.size() : 1); ++i)
      r.values.push_back(value(several ? s.values[0].args[i] : s.values[0]));
  }
  std::vector<Type> types;
  for (const Expr& v : r.values) types.push_back(v.type);
  if (!returned_) function_.results = types;
  returned_ = true;
  const auto list = [&](const std::vector<Type>& all) {
    std::string text;
    for (const Type t : all) text += (text.empty() ? "" : ", ") + show(t);
    return all.empty() ? std::string("nothing") : text;
  };
  if (types != function_.results)
    fail(s.place,
         fmt::format("'{}' returns {}, here {}", function_.name, list(function_.results), list(types)));
  return r;
}

Stmt FunctionChecker::assertion(const syntax::Stmt& s) {
  Stmt r;
  r.kind = StmtKind::assert_;
  r.values.push_back(condition(s.values[0]));
  if (s.values.size() == 2) {
    if (s.values[1].kind != Kind::string) fail(s.values[1].place, "the message of an assertion is a string");
    r.text = s.values[1].text;
  }
  return r;
}

}  // namespace ferrite::kernel
