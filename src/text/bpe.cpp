// Encoding and decoding; reading and writing files is in files.cpp.
#include "ferrite/text/bpe.hpp"

#include <fmt/format.h>

#include <utility>

#include "ferrite/core/error.hpp"
#include "ferrite/core/thread_pool.hpp"
#include "io/format.hpp"
#include "text/model.hpp"
#include "text/split.hpp"

namespace ferrite::text {
namespace {

/// Long enough for a thread to be worth its start, short enough to share one text among many.
constexpr std::size_t part_size = 1 << 16;

/// Finds the special tokens of a text from left to right; of several that begin at one place the longest.
class SpecialFinder {
 public:
  SpecialFinder(std::string_view text, const SpecialTokens& special) : text_(text) {
    for (const auto& [name, token] : special) searches_.push_back({name, token, text.find(name)});
  }

  struct Found {
    std::size_t begin, end;
    Token token;
  };
  /// The first one at or after `from`; without one begin and end are the end of the text.
  Found next(std::size_t from) {
    Found first{text_.size(), text_.size(), 0};
    for (Search& search : searches_) {
      // A place that lies ahead stays known: each text is searched once for each special token.
      if (search.at < from) search.at = text_.find(search.name, from);
      if (search.at == std::string_view::npos) continue;
      const Found found{search.at, search.at + search.name.size(), search.token};
      if (found.begin < first.begin || (found.begin == first.begin && found.end > first.end)) first = found;
    }
    return first;
  }

 private:
  struct Search {
    std::string_view name;
    Token token;
    std::size_t at;
  };
  std::string_view text_;
  std::vector<Search> searches_;
};

/// Bytes of a text that one call of BytePairModel::encode takes, or a special token.
struct Part {
  std::string_view text;  // begins and ends where special tokens do
  std::size_t begin, end;
  Token special = -1;
};

/// Calls f(part) for the parts of a text, in order.
template <class F>
void for_each_part(std::string_view text, const SpecialTokens& special, SpecialText meaning, std::size_t size,
                   F&& f) {
  static const SpecialTokens none;
  SpecialFinder finder(text, meaning == SpecialText::recognised ? special : none);
  for (std::size_t at = 0; at < text.size();) {
    const auto found = finder.next(at);
    const std::string_view between = text.substr(at, found.begin - at);
    for (std::size_t begin = 0, end; begin < between.size(); begin = end) {
      end = between.size() - begin > size ? safe_cut(between, begin + size) : between.size();
      f(Part{between, begin, end});
    }
    if (found.end > found.begin) f(Part{{}, 0, 0, found.token});
    at = found.end;
  }
}

}  // namespace

void BytePairTokenizer::encode_to(std::string_view text, std::vector<Token>& out, SpecialText special) const {
  for_each_part(text, special_tokens(), special, text.size(), [&](const Part& part) {
    if (part.special >= 0)
      out.push_back(part.special);
    else
      model_->encode(part.text, part.begin, part.end, out);
  });
}

std::vector<Token> BytePairTokenizer::encode(std::string_view text, SpecialText special) const {
  std::vector<Token> out;
  out.reserve(text.size() / 4 + 8);  // four bytes a token are usual
  encode_to(text, out, special);
  return out;
}

std::vector<std::vector<Token>> BytePairTokenizer::encode_all(std::span<const std::string_view> texts,
                                                              SpecialText special) const {
  struct Job {
    std::size_t text;
    Part part;
    std::vector<Token> tokens;
  };
  std::vector<Job> jobs;
  for (std::size_t i = 0; i < texts.size(); ++i)
    for_each_part(texts[i], special_tokens(), special, part_size, [&](const Part& part) {
      jobs.push_back({i, part, {}});
    });
  // Chunks of jobs of about one part_size in all.
  std::vector<std::size_t> chunks{0};
  for (std::size_t i = 0, bytes = 0; i < jobs.size(); ++i) {
    bytes += jobs[i].part.end - jobs[i].part.begin;
    if (bytes < part_size && i + 1 < jobs.size()) continue;
    chunks.push_back(i + 1);
    bytes = 0;
  }
  parallel_for(static_cast<std::int64_t>(chunks.size()) - 1, [&](std::int64_t chunk) {
    const auto c = static_cast<std::size_t>(chunk);
    for (std::size_t i = chunks[c]; i < chunks[c + 1]; ++i) {
      auto& [text, part, tokens] = jobs[i];
      if (part.special >= 0)
        tokens.push_back(part.special);
      else
        model_->encode(part.text, part.begin, part.end, tokens);
    }
  });
  std::vector<std::vector<Token>> out(texts.size());
  for (Job& job : jobs) {
    std::vector<Token>& tokens = out[job.text];
    if (tokens.empty())
      tokens = std::move(job.tokens);
    else
      tokens.insert(tokens.end(), job.tokens.begin(), job.tokens.end());
    job.tokens = {};
  }
  return out;
}

std::string_view BytePairTokenizer::bytes_of(Token token) const {
  const auto& tokens = model_->vocabulary().tokens;
  if (token < 0 || static_cast<std::size_t>(token) >= tokens.size())
    throw ValueError(
        fmt::format("[decode] id {}: the vocabulary has the ids 0 to {}", token, tokens.size() - 1));
  const std::string& bytes = tokens[static_cast<std::size_t>(token)];
  if (bytes.empty())
    throw ValueError(fmt::format("[decode] id {}: the vocabulary has no token of this id", token));
  return bytes;
}

std::string BytePairTokenizer::decode(std::span<const Token> tokens) const {
  std::string out;
  out.reserve(tokens.size() * 4);
  for (const Token token : tokens) out += bytes_of(token);
  return out;
}

std::int64_t BytePairTokenizer::vocabulary_size() const {
  return static_cast<std::int64_t>(model_->vocabulary().tokens.size());
}

const SpecialTokens& BytePairTokenizer::special_tokens() const { return model_->vocabulary().special; }

Token BytePairTokenizer::special_token(std::string_view text) const {
  if (const auto found = special_tokens().find(text); found != special_tokens().end()) return found->second;
  std::string known;
  for (const auto& [name, token] : special_tokens()) known += " " + io_detail::in_quotes(name);
  throw ValueError(fmt::format("[special token] {}: the special tokens are{}", io_detail::in_quotes(text),
                               known.empty() ? " none" : known));
}

std::string TextStream::push(Token token) {
  waiting_ += tokenizer_.bytes_of(token);
  std::size_t complete = 0;
  while (complete < waiting_.size()) {
    const CodePoint c = decode_utf8(std::string_view(waiting_).substr(complete));
    if (c.value == cut_code_point) break;
    complete += c.length;
  }
  std::string out = waiting_.substr(0, complete);
  waiting_.erase(0, complete);
  return out;
}

std::string TextStream::finish() { return std::exchange(waiting_, {}); }

}  // namespace ferrite::text
