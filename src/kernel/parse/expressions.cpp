// Expressions, in Python's order of precedence.
#include <fmt/format.h>

#include <algorithm>

#include "kernel/parse/parser.hpp"

namespace ferrite::kernel {

using syntax::Expr;
using syntax::ExprKind;

namespace {

struct Operator {
  std::string_view symbol;
  Builtin builtin;
};
constexpr Operator comparisons[] = {{"<", Builtin::lt},  {"<=", Builtin::le}, {">", Builtin::gt},
                                    {">=", Builtin::ge}, {"==", Builtin::eq}, {"!=", Builtin::ne}};
/// From the loosest to the tightest.
struct Level {
  Operator operators[5];
};
constexpr Level binary_levels[] = {
    {{{"|", Builtin::bit_or}}},
    {{{"^", Builtin::bit_xor}}},
    {{{"&", Builtin::bit_and}}},
    {{{"<<", Builtin::lshift}, {">>", Builtin::rshift}}},
    {{{"+", Builtin::add}, {"-", Builtin::sub}}},
    {{{"*", Builtin::mul},
      {"/", Builtin::div},
      {"//", Builtin::floordiv},
      {"%", Builtin::mod},
      {"@", Builtin::mul}}},
};

/// Words of Python that no name can be.
constexpr std::string_view keywords[] = {
    "and",    "as",   "assert", "async",  "await",  "break",   "class",    "continue",
    "def",    "del",  "elif",   "else",   "except", "finally", "for",      "from",
    "global", "if",   "import", "in",     "is",     "lambda",  "nonlocal", "not",
    "or",     "pass", "raise",  "return", "try",    "while",   "with",     "yield"};

bool is_keyword(std::string_view word) {
  for (const std::string_view k : keywords)
    if (k == word) return true;
  return false;
}

}  // namespace

class Parser::Nesting {
 public:
  explicit Nesting(Parser& parser) : parser_(parser) {
    if (++parser_.depth_ > deepest_recursion) {
      --parser_.depth_;
      parser_.fail(parser_.peek().place, "expression nested too deep: store parts of it in variables");
    }
  }
  ~Nesting() { --parser_.depth_; }
  Nesting(const Nesting&) = delete;
  Nesting& operator=(const Nesting&) = delete;

 private:
  Parser& parser_;
};

Expr Parser::node(ExprKind kind, Place place, std::vector<Expr> args) {
  Expr e{kind, place};
  for (const Expr& arg : args) e.depth = std::max(e.depth, arg.depth + 1);
  if (e.depth > deepest_tree) fail(place, "expression nested too deep: store parts of it in variables");
  e.args = std::move(args);
  return e;
}

Expr Parser::expressions() {
  const Place place = peek().place;
  Expr first = expression();
  if (!at(",")) return first;
  std::vector<Expr> parts;
  parts.push_back(std::move(first));
  while (accept(",")) {
    if (at(TokenKind::newline) || at("=") || at(")") || at("]")) break;
    parts.push_back(expression());
  }
  return node(ExprKind::tuple, place, std::move(parts));
}

Expr Parser::expression() {
  const Nesting nesting(*this);
  const Place place = peek().place;
  if (at("lambda")) fail(place, "lambda has no place in a kernel: define a @wp.func");
  Expr value = or_test();
  if (at(":=")) fail(peek().place, "':=' has no place in a kernel: assign in a statement of its own");
  if (!accept("if")) return value;
  std::vector<Expr> parts;
  parts.push_back(or_test());
  expect("else", "in a conditional expression");
  parts.push_back(std::move(value));
  parts.push_back(expression());
  return node(ExprKind::conditional, place, std::move(parts));
}

Expr Parser::or_test() {
  Expr left = and_test();
  while (at("or")) {
    const Place place = take().place;
    std::vector<Expr> args;
    args.push_back(std::move(left));
    args.push_back(and_test());
    left = node(ExprKind::logical_or, place, std::move(args));
  }
  return left;
}

Expr Parser::and_test() {
  Expr left = not_test();
  while (at("and")) {
    const Place place = take().place;
    std::vector<Expr> args;
    args.push_back(std::move(left));
    args.push_back(not_test());
    left = node(ExprKind::logical_and, place, std::move(args));
  }
  return left;
}

Expr Parser::not_test() {
  if (!at("not")) return comparison();
  const Nesting nesting(*this);
  const Place place = take().place;
  std::vector<Expr> args;
  args.push_back(not_test());
  Expr e = node(ExprKind::unary, place, std::move(args));
  e.builtin = Builtin::not_;
  return e;
}

Expr Parser::comparison() {
  std::vector<Expr> args;
  std::vector<Builtin> found;
  args.push_back(binary(0));
  Place place;
  for (bool more = true; more;) {
    more = false;
    for (const auto& [symbol, builtin] : comparisons) {
      if (!at(symbol)) continue;
      const Place here = take().place;
      if (found.empty()) place = here;
      found.push_back(builtin);
      args.push_back(binary(0));
      more = true;
      break;
    }
  }
  if (at("is") || at("in") || (at("not") && at("in", 1)))
    fail(peek().place, "'is' and 'in' have no meaning in a kernel: compare with == or !=");
  if (found.empty()) return std::move(args[0]);
  Expr e = node(ExprKind::compare, place, std::move(args));
  e.comparisons = std::move(found);
  return e;
}

Expr Parser::binary(int level) {
  if (level == static_cast<int>(std::size(binary_levels))) return unary();
  Expr left = binary(level + 1);
  for (;;) {
    const Operator* found = nullptr;
    for (const Operator& o : binary_levels[level].operators)
      if (!o.symbol.empty() && at(o.symbol)) found = &o;
    if (found == nullptr) return left;
    const Place place = take().place;
    std::vector<Expr> args;
    args.push_back(std::move(left));
    args.push_back(binary(level + 1));
    left = node(ExprKind::binary, place, std::move(args));
    left.builtin = found->builtin;
    left.text = found->symbol;
  }
}

Expr Parser::unary() {
  static constexpr Operator operators[] = {{"-", Builtin::neg}, {"+", Builtin::pos}, {"~", Builtin::invert}};
  for (const auto& [symbol, builtin] : operators) {
    if (!at(symbol)) continue;
    const Nesting nesting(*this);
    const Place place = take().place;
    std::vector<Expr> args;
    args.push_back(unary());
    Expr e = node(ExprKind::unary, place, std::move(args));
    e.builtin = builtin;
    return e;
  }
  return power();
}

Expr Parser::power() {
  Expr base = primary();
  if (!at("**")) return base;
  const Nesting nesting(*this);
  const Place place = take().place;
  std::vector<Expr> args;
  args.push_back(std::move(base));
  args.push_back(unary());
  Expr e = node(ExprKind::binary, place, std::move(args));
  e.builtin = Builtin::pow;
  e.text = "**";
  return e;
}

Expr Parser::primary() {
  Expr e = atom();
  for (;;) {
    const Place place = peek().place;
    std::vector<Expr> args;
    if (accept(".")) {
      const Place here = peek().place;
      std::string name = expect_name("an attribute after '.'");
      args.push_back(std::move(e));
      e = node(ExprKind::attribute, here, std::move(args));
      e.text = std::move(name);
    } else if (accept("(")) {
      e = call(std::move(e));
    } else if (accept("[")) {
      if (at("]")) fail(peek().place, "an index is missing");
      args.push_back(std::move(e));
      while (!at("]")) {
        if (at(":")) break;
        args.push_back(expression());
        if (!accept(",")) break;
      }
      if (at(":")) fail(peek().place, "slices are not supported: index single elements");
      expect("]", "after the index");
      e = node(ExprKind::subscript, place, std::move(args));
    } else {
      return e;
    }
  }
}

Expr Parser::call(Expr callee) {
  const Place place = callee.kind == ExprKind::attribute ? callee.args[0].place : callee.place;
  std::vector<Expr> args;
  std::vector<std::string> names;
  args.push_back(std::move(callee));
  while (!at(")")) {
    if (at("*") || at("**")) fail(peek().place, "'*' arguments are not supported: write the arguments out");
    std::string keyword;
    if (at(TokenKind::name) && at("=", 1)) {
      keyword = take().text;
      take();
    } else if (!names.empty() && !names.back().empty()) {
      fail(peek().place, "an argument without a name follows one with a name");
    }
    names.push_back(std::move(keyword));
    args.push_back(expression());
    if (at("for")) fail(peek().place, "comprehensions have no place in a kernel: write a loop");
    if (!accept(",")) break;
  }
  expect(")", "after the arguments");
  Expr e = node(ExprKind::call, place, std::move(args));
  e.keywords = std::move(names);
  return e;
}

Expr Parser::atom() {
  const Token token = peek();
  if (token.kind == TokenKind::number) return number();
  if (token.kind == TokenKind::string) {
    Expr e{ExprKind::string, token.place};
    e.text = string_text();
    return e;
  }
  if (accept("(")) {
    if (at(")")) fail(token.place, "an empty tuple has no place in a kernel");
    const Nesting nesting(*this);
    Expr inner = expressions();
    expect(")", "after the expression");
    inner.parenthesis = token.place;
    return inner;
  }
  if (at("[") || at("{")) fail(token.place, "lists, sets and dicts have no place in a kernel");
  if (token.kind != TokenKind::name || is_keyword(token.text)) fail_expected("an expression");
  take();
  if (at(TokenKind::string) && token.text.size() <= 2)
    fail(token.place, fmt::format("{}-strings have no place in a kernel", token.text));
  if (token.text == "True" || token.text == "False") {
    Expr e{ExprKind::boolean, token.place};
    e.integer = token.text == "True";
    return e;
  }
  if (token.text == "None") return Expr{ExprKind::none, token.place};
  Expr e{ExprKind::name, token.place};
  e.text = token.text;
  return e;
}

}  // namespace ferrite::kernel
