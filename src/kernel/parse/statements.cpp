// Statements and blocks.
#include <fmt/format.h>

#include "kernel/parse/parser.hpp"

namespace ferrite::kernel {

using syntax::Expr;
using syntax::Stmt;
using syntax::StmtKind;

namespace {

struct Update {
  std::string_view symbol;
  Builtin builtin;
};
constexpr Update updates[] = {{"+=", Builtin::add},     {"-=", Builtin::sub},       {"*=", Builtin::mul},
                              {"/=", Builtin::div},     {"//=", Builtin::floordiv}, {"%=", Builtin::mod},
                              {"**=", Builtin::pow},    {"&=", Builtin::bit_and},   {"|=", Builtin::bit_or},
                              {"^=", Builtin::bit_xor}, {"<<=", Builtin::lshift},   {">>=", Builtin::rshift},
                              {"@=", Builtin::mul}};

/// Python's statements that kernels cannot have, and what to write instead.
struct Refused {
  std::string_view word, reason;
};
constexpr Refused refused[] = {
    {"def", "functions are not nested: define a @wp.func at the top level"},
    {"class", "structs are defined at the top level, with @wp.struct"},
    {"try", "kernels have no exceptions"},
    {"raise", "kernels have no exceptions: use assert"},
    {"with", "'with' has no place in a kernel"},
    {"import", "imports stand at the top of the file"},
    {"from", "imports stand at the top of the file"},
    {"global", "kernels change arrays, not global variables"},
    {"nonlocal", "kernels change arrays, not variables outside"},
    {"del", "'del' has no place in a kernel"},
    {"yield", "kernels do not yield: write to an array"},
    {"async", "'async' has no place in a kernel"},
    {"await", "'await' has no place in a kernel"},
};

}  // namespace

void Parser::fail(Place place, std::string_view problem) const {
  throw KernelError(&source_, place, problem);
}

void Parser::fail_expected(std::string_view what) const {
  const Token& token = peek();
  if (token.kind == TokenKind::unknown) fail(token.place, token.text);
  const std::string found = token.kind == TokenKind::newline  ? "the end of the line"
                            : token.kind == TokenKind::indent ? "an indented line"
                            : token.kind == TokenKind::dedent ? "the end of the block"
                            : token.kind == TokenKind::end    ? "the end of the file"
                                                              : fmt::format("'{}'", token.text);
  fail(token.place, fmt::format("expected {}, found {}", what, found));
}

Token Parser::expect(std::string_view text, std::string_view where) {
  if (!at(text)) fail_expected(fmt::format("'{}' {}", text, where));
  return take();
}

std::string Parser::expect_name(std::string_view what) {
  if (!at(TokenKind::name)) fail_expected(what);
  return std::string(take().text);
}

void Parser::end_of_line() {
  if (accept(";") && !at(TokenKind::newline)) return;
  if (!at(TokenKind::newline)) fail_expected("the end of the statement");
  take();
}

std::vector<Stmt> Parser::block() {
  expect(":", "before the block");
  std::vector<Stmt> body;
  if (!at(TokenKind::newline)) {  // on the same line: simple statements only
    const int line = peek().place.line;
    do {
      body.push_back(simple_statement());
      end_of_line();
    } while (peek().place.line == line && !at(TokenKind::newline) && !at(TokenKind::end) &&
             !at(TokenKind::dedent) && !at(TokenKind::indent));
    return body;
  }
  take();
  if (!at(TokenKind::indent)) fail_expected("an indented block");
  if (blocks_ >= deepest_block)
    fail(peek().place, "blocks nested too deep: move the inner ones to a @wp.func");
  take();
  ++blocks_;
  while (!at(TokenKind::dedent) && !at(TokenKind::end)) statement(body);
  --blocks_;
  take();
  return body;
}

void Parser::statement(std::vector<Stmt>& body) {
  const Token token = peek();
  if (at(TokenKind::indent)) fail(token.place, "this line is indented further than the one before");
  if (at("if")) {
    body.push_back(if_statement());
  } else if (at("for") || at("while")) {
    body.push_back(loop());
  } else {
    body.push_back(simple_statement());
    end_of_line();
  }
}

Stmt Parser::simple_statement() {
  const Token token = peek();
  for (const auto& [word, reason] : refused)
    if (at(word)) fail(token.place, reason);
  Stmt s{StmtKind::pass, token.place};
  if (accept("pass")) return s;
  if (at("break") || at("continue")) {
    if (loops_ == 0) fail(token.place, fmt::format("'{}' outside a loop", token.text));
    s.kind = take().text == "break" ? StmtKind::break_ : StmtKind::continue_;
    return s;
  }
  if (accept("return")) {
    s.kind = StmtKind::return_;
    if (!at(TokenKind::newline) && !at(";")) s.values.push_back(expressions());
    return s;
  }
  if (accept("assert")) {
    s.kind = StmtKind::assert_;
    s.values.push_back(expression());
    if (accept(",")) s.values.push_back(expression());
    return s;
  }
  return assignment();
}

Stmt Parser::assignment() {
  Stmt s{StmtKind::expression, peek().place};
  Expr first = expressions();
  if (at(":")) fail(peek().place, "annotated assignments are not supported: write `name = type(value)`");
  for (const auto& [symbol, builtin] : updates) {
    if (!at(symbol)) continue;
    s.place = take().place;
    s.kind = StmtKind::update;
    s.builtin = builtin;
    s.targets.push_back(std::move(first));
    s.values.push_back(expressions());
    return s;
  }
  if (!at("=")) {
    s.values.push_back(std::move(first));
    return s;
  }
  s.kind = StmtKind::assign;
  s.place = take().place;
  if (first.kind == syntax::ExprKind::tuple)
    s.targets = std::move(first.args);
  else
    s.targets.push_back(std::move(first));
  s.values.push_back(expressions());
  if (at("=")) fail(peek().place, "assign to one target at a time");
  return s;
}

Stmt Parser::if_statement() {
  Stmt s{StmtKind::if_, peek().place};
  do {
    take();
    if (s.values.size() == syntax::longest_chain)
      fail(peek().place, "too many branches: use a loop or an array");
    s.values.push_back(expression());
    s.branches.push_back(block());
  } while (at("elif"));
  if (accept("else")) s.branches.push_back(block());
  return s;
}

Stmt Parser::loop() {
  const Token token = take();
  Stmt s{token.text == "for" ? StmtKind::for_ : StmtKind::while_, token.place};
  if (s.kind == StmtKind::for_) {
    s.targets.push_back(primary());
    expect("in", "after the loop variable");
  }
  s.values.push_back(expression());
  ++loops_;
  s.branches.push_back(block());
  --loops_;
  if (at("else")) fail(peek().place, "'else' of a loop is not supported: use a flag");
  return s;
}

}  // namespace ferrite::kernel
