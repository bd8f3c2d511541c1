// Formats of one line for each token: merges (vocab.bpe, merges.txt) and ranks (.tiktoken).
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "core/to_number.hpp"
#include "ferrite/core/error.hpp"
#include "text/files.hpp"

namespace ferrite::text {
namespace {

constexpr std::string_view base64_letters =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

std::string to_base64(std::string_view bytes) {
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t n = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t bits = 0;
    for (std::size_t k = 0; k < 3; ++k)
      bits = bits << 8 | (k < n ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    for (std::size_t k = 0; k < 4; ++k) out += k <= n ? base64_letters[bits >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

/// Empty if it is not base64 with padding.
std::string from_base64(std::string_view text) {
  if (text.size() % 4 != 0) return {};
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  std::string out;
  for (std::size_t i = 0; i < text.size(); i += 4) {
    const std::size_t n = i + 4 == text.size() ? 4 - padding : 4;
    std::uint32_t bits = 0;
    for (std::size_t k = 0; k < 4; ++k) {
      const std::size_t value = k < n ? base64_letters.find(text[i + k]) : 0;
      if (value == std::string_view::npos) return {};
      bits = bits << 6 | static_cast<std::uint32_t>(value);
    }
    for (std::size_t k = 0; k + 1 < n; ++k) out += static_cast<char>(bits >> (16 - 8 * k) & 255);
  }
  return out;
}

/// Calls f(place, left, right) for each line of two fields.
template <class F>
void for_each_line(const Source& source, std::string_view content, F&& f) {
  std::size_t number = 0;
  while (!content.empty()) {
    const std::string place = fmt::format("line {}", ++number);
    const std::size_t end = content.find('\n');
    if (end == std::string_view::npos) source.reject(place, "has no line end: the file is cut short");
    std::string_view line = content.substr(0, end);
    content.remove_prefix(end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (number == 1 && line.starts_with("#version")) continue;
    const std::size_t space = line.find(' ');
    if (space == 0 || space >= line.size() - 1 || line.find(' ', space + 1) != std::string_view::npos)
      source.reject(fmt::format("{}, {}", place, io_detail::in_quotes(line)),
                    "needs two fields and one space");
    f(place, line.substr(0, space), line.substr(space + 1));
  }
}

/// The time to find its pairs grows with the square of a token's length.
constexpr std::size_t longest_ranked = 1024;

}  // namespace

Vocabulary read_merges(const Source& source, std::string_view content) {
  Vocabulary out = bytes_only();
  TokenIds ids = token_ids(out);
  std::string bytes;
  for_each_line(
      source, content, [&](const std::string& place, std::string_view left, std::string_view right) {
        const auto find = [&](std::string_view written) {
          if (byte_alphabet().read(written, bytes))
            if (const auto found = ids.find(bytes); found != ids.end()) return found->second;
          source.reject(place,
                        fmt::format("{} is not a token of the lines before", io_detail::in_quotes(written)));
        };
        const Token first = find(left), second = find(right);
        if (out.tokens.size() + 1 >= max_tokens || out.merged.size() == max_ranks)
          source.reject(place,
                        fmt::format("at most {} tokens and {} merges are supported", max_tokens, max_ranks));
        add_merge(out, ids, first, second);
      });
  return out;
}

Vocabulary read_ranks(const Source& source, std::string_view content) {
  const auto lines = static_cast<std::size_t>(std::count(content.begin(), content.end(), '\n'));
  TokenPlaces places(source, lines);
  places.ids.reserve(lines);
  for_each_line(
      source, content, [&](const std::string& place, std::string_view token, std::string_view rank) {
        std::string bytes = from_base64(token);
        if (bytes.empty())
          source.reject(fmt::format("{}, {}", place, io_detail::in_quotes(token)), "must be base64");
        if (bytes.size() > longest_ranked)
          source.reject(place, fmt::format("tokens of at most {} bytes are supported", longest_ranked));
        const auto id = to_number<std::uint64_t>(rank);
        if (!id)
          source.reject(fmt::format("{}, rank {}", place, io_detail::in_quotes(rank)), "must be a number");
        places.add(place, *id, std::move(bytes));
      });
  places.check_bytes();
  Vocabulary out;
  out.tokens = std::move(places.tokens);
  out.ranks_are_ids = out.whole_words = true;
  out.merged.resize(out.tokens.size());
  std::iota(out.merged.begin(), out.merged.end(), 0);
  for (std::size_t id = 0; id < out.tokens.size(); ++id) {
    const std::string& token = out.tokens[id];
    for (std::size_t cut = 1; cut < token.size(); ++cut) {
      const auto left = places.ids.find(token.substr(0, cut));
      if (left == places.ids.end()) continue;
      const auto right = places.ids.find(token.substr(cut));
      if (right != places.ids.end())
        out.merges.push_back({left->second, right->second, static_cast<Rank>(id)});
    }
  }
  return out;
}

std::string write_merges(const BytePairModel& model) {
  const Vocabulary& vocabulary = model.vocabulary();
  Vocabulary read_back = bytes_only();
  TokenIds ids = token_ids(read_back);
  std::string out = "#version: 0.2\n";
  // Merges of ids that a reader does not know yet are found by the comparison at the end.
  for (const Merge& merge : listed_merges(model)) {
    const auto known = static_cast<Token>(read_back.tokens.size());
    if (merge.left >= known || merge.right >= known) break;
    add_merge(read_back, ids, merge.left, merge.right);
    const auto letters = [&](Token token) {
      return byte_alphabet().write(vocabulary.tokens[static_cast<std::size_t>(token)]);
    };
    out += letters(merge.left) + " " + letters(merge.right) + "\n";
  }
  const auto [stop, rest] = std::mismatch(read_back.tokens.begin(), read_back.tokens.end(),
                                          vocabulary.tokens.begin(), vocabulary.tokens.end());
  const auto is_special = [&](const std::string& token) {
    return vocabulary.is_special(static_cast<std::size_t>(&token - vocabulary.tokens.data()));
  };
  if (stop != read_back.tokens.end() || !std::all_of(rest, vocabulary.tokens.end(), is_special)) {
    throw ValueError(
        "[write_tokenizer] the ids are not those of 256 bytes, merges and special tokens in this "
        "order, which a file of merges implies: save it as .json");
  }
  return out;
}

std::string write_ranks(const BytePairModel& model) {
  const Vocabulary& vocabulary = model.vocabulary();
  if (!vocabulary.ranks_are_ids && std::adjacent_find(vocabulary.merged.begin(), vocabulary.merged.end(),
                                                      std::greater_equal<>()) != vocabulary.merged.end()) {
    throw ValueError(
        "[write_tokenizer] the ids do not have the order of the merges, which a .tiktoken file "
        "implies: save it as .json");
  }
  std::string out;
  for (std::size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    const std::string& token = vocabulary.tokens[id];
    if (!token.empty() && !vocabulary.is_special(id)) out += fmt::format("{} {}\n", to_base64(token), id);
  }
  return out;
}

}  // namespace ferrite::text
