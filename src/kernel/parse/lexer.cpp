#include "kernel/parse/lexer.hpp"

namespace ferrite::kernel {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {
    if (source_.starts_with("\xef\xbb\xbf")) at_ = line_start_ = 3;  // a byte order mark
  }

  std::vector<Token> run() {
    while (at_ < source_.size()) {
      if (line_begins_) {
        line_begins_ = false;
        indentation();
      } else {
        token();
      }
    }
    if (!tokens_.empty() && tokens_.back().kind != TokenKind::newline) add(TokenKind::newline, at_, {});
    while (indents_.size() > 1) {
      indents_.pop_back();
      add(TokenKind::dedent, at_, {});
    }
    add(TokenKind::end, at_, {});
    return std::move(tokens_);
  }

 private:
  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0';
  }
  Place place_of(std::size_t at) const { return {line_, static_cast<int>(at - line_start_) + 1}; }
  void add(TokenKind kind, std::size_t begin, std::string_view text) {
    tokens_.push_back({kind, text, place_of(begin)});
  }
  void next_line() {  // past a '\n'
    ++at_;
    ++line_;
    line_start_ = at_;
  }

  void indentation() {
    int width = 0;
    for (; peek() == ' ' || peek() == '\t' || peek() == '\f'; ++at_)
      width = peek() == '\t' ? (width / 8 + 1) * 8 : peek() == '\f' ? 0 : width + 1;
    if (at_ >= source_.size() || peek() == '#' || peek() == '\n' || peek() == '\r') return;  // an empty line
    if (width > indents_.back()) {
      indents_.push_back(width);
      add(TokenKind::indent, at_, {});
      return;
    }
    while (width < indents_.back()) {
      indents_.pop_back();
      add(TokenKind::dedent, at_, {});
    }
    if (width != indents_.back()) {
      add(TokenKind::unknown, at_, "this line is indented like none above it");
      indents_.push_back(width);
      add(TokenKind::indent, at_, {});
    }
  }

  void token() {
    const char c = peek();
    const std::size_t begin = at_;
    if (c == '\n') {
      if (brackets_ == 0) {
        if (!tokens_.empty() && tokens_.back().kind != TokenKind::newline) add(TokenKind::newline, at_, {});
        line_begins_ = true;
      }
      next_line();
    } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f') {
      ++at_;
    } else if (c == '#') {
      while (at_ < source_.size() && peek() != '\n') ++at_;
    } else if (c == '\\' && (peek(1) == '\n' || (peek(1) == '\r' && peek(2) == '\n'))) {
      at_ += peek(1) == '\n' ? 1 : 2;
      next_line();
    } else if (c == '"' || c == '\'') {
      string();
    } else if (is_digit(c) || (c == '.' && is_digit(peek(1)))) {
      number();
    } else if (is_letter(c)) {
      while (is_letter(peek()) || is_digit(peek())) ++at_;
      add(TokenKind::name, begin, source_.substr(begin, at_ - begin));
    } else {
      symbol();
    }
  }

  void string() {
    const Place place = place_of(at_);
    const std::size_t begin = at_;
    const char quote = peek();
    const bool triple = peek(1) == quote && peek(2) == quote;
    at_ += triple ? 3 : 1;
    while (at_ < source_.size()) {
      if (peek() == '\n' && !triple) break;
      if (peek() == quote && (!triple || (peek(1) == quote && peek(2) == quote))) {
        at_ += triple ? 3 : 1;
        tokens_.push_back({TokenKind::string, source_.substr(begin, at_ - begin), place});
        return;
      }
      if (peek() == '\\' && at_ + 1 < source_.size()) ++at_;
      if (peek() == '\n')
        next_line();
      else
        ++at_;
    }
    tokens_.push_back({TokenKind::unknown, "this string does not end", place});
  }

  void number() {
    const std::size_t begin = at_;
    const bool based = peek() == '0' && (peek(1) == 'x' || peek(1) == 'X' || peek(1) == 'b' ||
                                         peek(1) == 'B' || peek(1) == 'o' || peek(1) == 'O');
    while (
        is_digit(peek()) || is_letter(peek()) || peek() == '.' ||
        (!based && (peek() == '+' || peek() == '-') && (source_[at_ - 1] == 'e' || source_[at_ - 1] == 'E')))
      ++at_;
    add(TokenKind::number, begin, source_.substr(begin, at_ - begin));
  }

  void symbol() {
    static constexpr std::string_view symbols[] = {
        "**=", "//=", "<<=", ">>=", "...", "**", "//", "<<", ">>", "<=", ">=", "==", "!=", "->", ":=", "+=",
        "-=",  "*=",  "/=",  "%=",  "&=",  "|=", "^=", "@=", "+",  "-",  "*",  "/",  "%",  "@",  "&",  "|",
        "^",   "~",   "<",   ">",   "(",   ")",  "[",  "]",  "{",  "}",  ",",  ":",  ".",  ";",  "="};
    for (const std::string_view s : symbols) {
      if (source_.substr(at_, s.size()) != s) continue;
      if (s == "(" || s == "[" || s == "{") ++brackets_;
      if ((s == ")" || s == "]" || s == "}") && brackets_ > 0) --brackets_;
      add(TokenKind::symbol, at_, s);
      at_ += s.size();
      return;
    }
    const bool ascii = static_cast<unsigned char>(peek()) < 0x80;
    add(TokenKind::unknown, at_,
        ascii ? "this character has no meaning here" : "names are of ASCII letters, digits and '_'");
    ++at_;
    while ((static_cast<unsigned char>(peek()) & 0xc0) == 0x80) ++at_;  // the rest of a UTF-8 character
  }

  std::string_view source_;
  std::size_t at_ = 0, line_start_ = 0;
  int line_ = 1, brackets_ = 0;
  bool line_begins_ = true;
  std::vector<int> indents_{0};
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize(std::string_view source) { return Lexer(source).run(); }

}  // namespace ferrite::kernel
