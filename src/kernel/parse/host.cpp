// Python functions around kernels: a kernel inside one sees its parameters and assignments, as in a closure.
// Parameters have the values that the source binds to them, else their defaults.
#include "ferrite/core/error.hpp"
#include "kernel/parse/parser.hpp"

#include <fmt/format.h>

namespace ferrite::kernel {

using syntax::Expr;
using syntax::ExprKind;

namespace {

void move_to(Expr& e, Place place) {
  e.place = place;
  for (Expr& arg : e.args) move_to(arg, place);
}

/// A name whose value the text does not give; `parameter` is the name to bind a value to.
Expr unknown(Place place, std::string parameter = {}) {
  Expr e{ExprKind::none, place};
  e.text = std::move(parameter);
  return e;
}

}  // namespace

std::optional<Expr> Parser::binding(const std::string& parameter, Place place) {
  const auto found = source_.bindings.find(parameter);
  if (found == source_.bindings.end()) return std::nullopt;
  bound_.insert(parameter);
  const Source text{parameter, found->second, {}};
  try {
    Parser parser(text);
    Expr value = parser.expression();
    if (!parser.at(TokenKind::newline) && !parser.at(TokenKind::end)) parser.fail_expected("one value");
    move_to(value, place);  // messages show where it is used
    return value;
  } catch (const KernelError& error) {
    throw ValueError(error.what());
  }
}

void Parser::check_bindings() const {
  for (const auto& [parameter, value] : source_.bindings)
    if (!bound_.contains(parameter))
      throw ValueError(
          fmt::format("[{}] there is no '{}': bind a value to a parameter of a function around a kernel, or "
                      "a type to one "
                      "of a kernel that is Any",
                      source_.file, parameter));
}

/// The head of a function; its block comes next.
void Parser::host_function() {
  take();
  const std::string name = at(TokenKind::name) ? std::string(peek().text) : "";
  auto names = hosts_.empty() || !hosts_.back().names
                   ? std::make_shared<syntax::Constants>()
                   : std::make_shared<syntax::Constants>(*hosts_.back().names);
  take();
  std::string parameter;
  int depth = accept("(") ? 1 : 0;
  for (bool first = true; depth > 0 && !at(TokenKind::newline) && !at(TokenKind::end);) {
    const Token token = take();
    if (first && token.kind == TokenKind::name) {
      const std::string key = fmt::format("{}.{}", name, token.text);
      const auto value = binding(key, token.place);
      parameter = value ? "" : token.text;
      names->insert_or_assign(std::string(token.text), value ? *value : unknown(token.place, key));
    } else if (depth == 1 && token.text == "=" && !parameter.empty()) {
      if (auto value = host_value()) names->insert_or_assign(parameter, std::move(*value));
    }
    depth += token.text == "(" || token.text == "[" || token.text == "{";
    depth -= token.text == ")" || token.text == "]" || token.text == "}";
    first = depth == 1 && token.text == ",";
  }
  skip_line();
  entered_ = std::move(names);
  entered_name_ = name;
}

/// The right side of an assignment, if kernels could use it; otherwise no tokens are consumed.
std::optional<Expr> Parser::host_value() {
  const std::size_t begin = at_;
  try {
    Expr value = expression();
    if (at(TokenKind::newline) || at(",") || at(")")) return value;
  } catch (const KernelError&) {  // host code; an error only where a kernel uses it
    depth_ = 0;
  }
  at_ = begin;
  return std::nullopt;
}

void Parser::host_block() {
  const bool enters = take().kind == TokenKind::indent;
  if (!enters) {
    if (!hosts_.empty()) hosts_.pop_back();
    return;
  }
  const bool function = entered_ != nullptr;
  std::string path = hosts_.empty() ? "" : hosts_.back().path;
  if (!entered_name_.empty()) path += (path.empty() ? "" : ".") + entered_name_;
  hosts_.push_back({function         ? std::move(entered_)
                    : hosts_.empty() ? nullptr
                                     : hosts_.back().names,
                    function, std::move(path)});
  entered_ = nullptr;
  entered_name_.clear();
}

/// The names that a line gives values to: NAME, NAME = ..., NAME: type = ..., NAME += ..., for NAME in ...
std::vector<Token> Parser::bound_names() const {
  const bool loop = at("for");
  std::vector<Token> names;
  std::size_t k = loop ? 1 : 0;
  for (bool wanted = true;; ++k) {
    const Token& token = peek(k);
    if (wanted && token.kind == TokenKind::name && token.text != "in")
      names.push_back(token), wanted = false;
    else if (!wanted && token.text == ",")
      wanted = true;
    else if (wanted ? token.text != "(" && token.text != "*" : token.text != ")")
      break;
  }
  const std::string_view next = peek(k).text;
  const bool compares = next == "==" || next == "!=" || next == "<=" || next == ">=";
  const bool binds = loop ? next == "in" : next == ":" || (next.ends_with('=') && !compares);
  return binds ? names : std::vector<Token>{};
}

/// A line that may assign to names: NAME = value is a constant, unless it depends on control flow. Nothing is
/// known about any other assignment.
void Parser::host_line(syntax::File& file) {
  const Token token = peek();
  const bool is_main = hosts_.empty() && at("if") && at("__name__", 1);
  const bool in_function = !hosts_.empty() && hosts_.back().names != nullptr;
  syntax::Constants& names = in_function ? *hosts_.back().names : file.constants;
  const auto forget = [&](const Token& name) {
    if (in_function)
      names.insert_or_assign(std::string(name.text), unknown(name.place));
    else
      names.erase(std::string(name.text));
  };
  for (const Token& name : bound_names()) forget(name);
  if (at("class") && peek(1).kind == TokenKind::name) entered_name_ = peek(1).text;
  if (at(TokenKind::name) && at("=", 1) && (hosts_.empty() || hosts_.back().function)) {
    take();
    take();
    auto value = host_value();
    if (value && at(TokenKind::newline)) names.insert_or_assign(std::string(token.text), std::move(*value));
  }
  skip_line();
  // The code of a script's main block does not define the module, so the block has its own names.
  if (is_main) entered_ = std::make_shared<syntax::Constants>();
}

}  // namespace ferrite::kernel
