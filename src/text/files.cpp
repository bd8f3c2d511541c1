// Tells formats apart; what they share.
#include "text/files.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "ferrite/io/atomic_file.hpp"
#include "ferrite/io/mapped_file.hpp"
#include "io/file_ending.hpp"

namespace ferrite::text {
namespace {

/// The first field of a line of ranks is base64, of four letters or more; the first merge is of two bytes,
/// each of one letter.
bool looks_like_ranks(std::string_view content) {
  const std::string_view line = content.substr(0, content.find('\n'));
  const std::size_t space = line.find(' ');
  return space != std::string_view::npos && space >= 4 && space % 4 == 0 && !line.starts_with('#');
}

Vocabulary read(const Source& source, std::string_view content, const std::vector<std::string>& special) {
  if (content.empty()) source.reject("0 bytes", "the file is empty");
  if (const std::size_t first = content.find_first_not_of(" \t\r\n");
      first != std::string_view::npos && content[first] == '{')
    return read_tokenizer_json(source, content);
  Vocabulary out = looks_like_ranks(content) ? read_ranks(source, content) : read_merges(source, content);
  add_special_tokens(out, special);
  return out;
}

BytePairTokenizer tokenizer_of(Vocabulary vocabulary) {
  return BytePairTokenizer(std::make_shared<const BytePairModel>(std::move(vocabulary)));
}

}  // namespace

BytePairTokenizer BytePairTokenizer::load(const std::filesystem::path& path,
                                          const std::vector<std::string>& special_tokens) {
  const auto file = MappedFile::open(path);
  return parse(file->text(), path.string(), special_tokens);
}

BytePairTokenizer BytePairTokenizer::parse(std::string_view content, std::string_view name,
                                           const std::vector<std::string>& special_tokens) {
  return tokenizer_of(read({"read_tokenizer", name, nullptr}, content, special_tokens));
}

void BytePairTokenizer::save(const std::filesystem::path& path) const {
  const std::string extension = io_detail::ending_of(path);
  const std::string content = extension == ".tiktoken" ? write_ranks(*model_)
                              : extension == ".json"   ? write_tokenizer_json(*model_)
                                                       : write_merges(*model_);
  write_text(path, content);
}

std::vector<Merge> listed_merges(const BytePairModel& model) {
  const Vocabulary& vocabulary = model.vocabulary();
  std::vector<Merge> out = vocabulary.merges;
  if (!vocabulary.ranks_are_ids) {
    std::sort(out.begin(), out.end(), [](const Merge& a, const Merge& b) { return a.rank < b.rank; });
    return out;
  }
  out.clear();
  Merger merger;
  for (std::size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    const std::string& token = vocabulary.tokens[id];
    if (token.size() < 2 || vocabulary.is_special(id)) continue;
    const auto parts = merger.merge(model.rules(), token, static_cast<Rank>(id));
    if (parts.size() == 2) out.push_back({parts[0], parts[1], static_cast<Rank>(id)});
  }
  return out;
}

void TokenPlaces::put(std::string_view place, std::uint64_t id, std::string bytes) {
  if (id >= std::min<std::uint64_t>(limit_, max_tokens)) {
    source_.reject(fmt::format("{}, id {}", place, id),
                   fmt::format("must be below {}", std::min<std::uint64_t>(limit_, max_tokens)));
  }
  if (id >= tokens.size()) tokens.resize(id + 1);
  if (!tokens[id].empty()) source_.reject(fmt::format("{}, id {}", place, id), "another token has this id");
  tokens[id] = std::move(bytes);
}

void TokenPlaces::add(std::string_view place, std::uint64_t id, std::string bytes) {
  const auto [found, is_new] = ids.emplace(bytes, static_cast<Token>(id));
  if (!is_new) source_.reject(place, fmt::format("its bytes are the token {} already", found->second));
  put(place, id, std::move(bytes));
}

void TokenPlaces::check_bytes() const {
  for (int byte = 0; byte < 256; ++byte) {
    if (ids.contains(std::string(1, static_cast<char>(byte)))) continue;
    source_.reject(fmt::format("byte 0x{:02x}", byte), "needs a token: is the file cut short?");
  }
}

}  // namespace ferrite::text
