// Numbers and strings.
#include <fmt/format.h>

#include <charconv>
#include <cstdlib>

#include "kernel/parse/parser.hpp"

namespace ferrite::kernel {

using syntax::Expr;
using syntax::ExprKind;

Expr Parser::number() {
  const Token token = take();
  std::string digits;
  for (const char c : token.text)
    if (c != '_') digits += c;
  const auto base_of = [](char c) {
    return c == 'x' || c == 'X' ? 16 : c == 'b' || c == 'B' ? 2 : c == 'o' || c == 'O' ? 8 : 10;
  };
  const int base = digits.size() > 2 && digits[0] == '0' ? base_of(digits[1]) : 10;
  if (base == 10 && digits.find_first_of(".eE") != std::string::npos) {
    char* end = nullptr;
    Expr e{ExprKind::real, token.place};
    e.real = std::strtod(digits.c_str(), &end);
    if (*end != '\0') fail(token.place, fmt::format("'{}' is not a number", token.text));
    return e;
  }
  Expr e{ExprKind::integer, token.place};
  const char* first = digits.data() + (base == 10 ? 0 : 2);
  const char* last = digits.data() + digits.size();
  const auto [end, status] = std::from_chars(first, last, e.integer, base);
  if (status == std::errc::result_out_of_range)
    fail(token.place, fmt::format("{} does not fit 64 bits", token.text));
  if (status != std::errc{} || end != last)
    fail(token.place, fmt::format("'{}' is not a number", token.text));
  if (base == 10 && digits.size() > 1 && digits[0] == '0' && e.integer != 0)
    fail(token.place, "an integer does not begin with 0; octal numbers begin with 0o");
  return e;
}

std::string Parser::string_text() {
  std::string text;
  while (at(TokenKind::string)) {  // neighbours are one string
    std::string_view raw = take().text;
    const std::size_t quotes = raw.size() >= 6 && raw[0] == raw[1] && raw[1] == raw[2] ? 3 : 1;
    raw = raw.substr(quotes, raw.size() - 2 * quotes);
    for (std::size_t i = 0; i < raw.size(); ++i) {
      if (raw[i] != '\\' || i + 1 == raw.size()) {
        text += raw[i];
        continue;
      }
      const char c = raw[++i];
      if (c == '\n') continue;
      if (c != '\\' && c != '\'' && c != '"' && c != 'n' && c != 't') text += '\\';
      text += c == 'n' ? '\n' : c == 't' ? '\t' : c;
    }
  }
  return text;
}

}  // namespace ferrite::kernel
