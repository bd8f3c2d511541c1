// Python's tokens. The lexer never fails: unknown text is a token too, and an error only if a kernel uses it,
// because the file around the kernels may hold any Python.
#pragma once

#include <string_view>
#include <vector>

#include "ferrite/kernel/error.hpp"

namespace ferrite::kernel {

enum class TokenKind : std::uint8_t { name, number, string, symbol, newline, indent, dedent, unknown, end };

struct Token {
  TokenKind kind;
  std::string_view text;  // of the source; strings with their quotes, unknown: what is wrong
  Place place;
};

/// The tokens of a text, `end` last. Newlines inside brackets and of empty lines are left out; indents and
/// dedents come in pairs. The views are into `source` or static.
std::vector<Token> tokenize(std::string_view source);

}  // namespace ferrite::kernel
