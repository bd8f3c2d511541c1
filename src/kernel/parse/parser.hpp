// The parser of the Warp dialect: recursive descent over the tokens. Limits on nesting turn a hostile text
// into an error.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/parse/lexer.hpp"
#include "kernel/parse/syntax.hpp"

namespace ferrite::kernel {

class Parser {
 public:
  explicit Parser(const Source& source) : source_(source), tokens_(tokenize(source.text)) {}

  /// Definitions that do not parse are left out and their errors kept.
  syntax::File file(std::vector<KernelError>& errors);

 private:
  // Each nested call goes through sixteen functions of the parser: 3 MiB of stack in all, under a sanitizer.
  static constexpr int deepest_recursion = 120, deepest_tree = 320, deepest_block = 60;

  // module.cpp
  void import_line(syntax::File& file);
  void skip_line();
  bool decorators(const syntax::File& file, syntax::Definition& definition);
  void definition(syntax::Definition& definition);
  std::vector<syntax::Parameter> parameters();
  std::vector<syntax::Parameter> fields();

  // host.cpp
  std::optional<syntax::Expr> binding(const std::string& parameter, Place place);
  void check_bindings() const;
  void host_function();
  void host_block();
  std::vector<Token> bound_names() const;
  void host_line(syntax::File& file);
  std::optional<syntax::Expr> host_value();

  // statements.cpp
  std::vector<syntax::Stmt> block();
  void statement(std::vector<syntax::Stmt>& body);
  syntax::Stmt simple_statement();
  syntax::Stmt assignment();
  syntax::Stmt if_statement();
  syntax::Stmt loop();

  // expressions.cpp
  syntax::Expr expression();
  syntax::Expr expressions();  // a tuple if there is a comma
  syntax::Expr or_test();
  syntax::Expr and_test();
  syntax::Expr not_test();
  syntax::Expr comparison();
  syntax::Expr binary(int level);
  syntax::Expr unary();
  syntax::Expr power();
  syntax::Expr primary();
  syntax::Expr atom();
  syntax::Expr call(syntax::Expr callee);
  syntax::Expr node(syntax::ExprKind kind, Place place, std::vector<syntax::Expr> args = {});

  // literals.cpp
  syntax::Expr number();
  std::string string_text();

  // Tokens.
  const Token& peek(std::size_t ahead = 0) const {
    return tokens_[at_ + ahead < tokens_.size() ? at_ + ahead : tokens_.size() - 1];
  }
  bool at(TokenKind kind) const { return peek().kind == kind; }
  bool at(std::string_view text, std::size_t ahead = 0) const {
    const Token& t = peek(ahead);
    return (t.kind == TokenKind::symbol || t.kind == TokenKind::name) && t.text == text;
  }
  Token take() {
    const Token token = peek();
    if (at_ + 1 < tokens_.size()) ++at_;
    return token;
  }
  bool accept(std::string_view text) {
    const bool found = at(text);
    if (found) take();
    return found;
  }
  /// Takes the token or fails: "expected ')' after the arguments".
  Token expect(std::string_view text, std::string_view where);
  std::string expect_name(std::string_view what);
  void end_of_line();
  [[noreturn]] void fail(Place place, std::string_view problem) const;
  /// Fails at the next token: "expected X, found Y".
  [[noreturn]] void fail_expected(std::string_view what) const;

  class Nesting;  // counts how deep the recursion is

  const Source& source_;
  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  int depth_ = 0, blocks_ = 0, loops_ = 0;
  struct Host {
    std::shared_ptr<syntax::Constants> names;  // null outside of functions
    bool function;                             // the block of the function itself
    std::string path;                          // names of functions and classes: "test.inner"
  };
  std::vector<Host> hosts_;                     // Python's blocks around the line
  std::shared_ptr<syntax::Constants> entered_;  // of the function whose block comes next
  std::string entered_name_;                    // of the function or class whose block comes next
  std::set<std::string, std::less<>> bound_;    // bindings that were used
};

}  // namespace ferrite::kernel
