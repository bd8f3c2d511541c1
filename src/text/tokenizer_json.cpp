// tokenizer.json of Hugging Face's tokenizers, as far as it describes byte-level BPE with GPT-2's pattern.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "ferrite/core/error.hpp"
#include "text/files.hpp"

namespace ferrite::text {
namespace {

using io_detail::in_quotes;
using nlohmann::json;

/// Values of the file by their place, with errors that name it.
class JsonFile {
 public:
  JsonFile(const Source& source, std::string_view content) : source_(source) {
    // The parser takes a zero byte for the end of its input.
    if (const auto zero = content.find('\0'); zero != content.npos)
      source.reject(fmt::format("byte {}", zero), "JSON must not hold a zero byte");
    try {
      root_ = json::parse(content.begin(), content.end());
    } catch (const json::parse_error& error) {
      source.reject(fmt::format("byte {}", error.byte), "must be JSON in UTF-8: is the file cut short?");
    }
  }

  const json& root() const { return root_; }
  /// A member, or null.
  static const json& member(const json& object, const char* name) {
    static const json null;
    const auto found = object.find(name);
    return found == object.end() ? null : *found;
  }
  [[noreturn]] void reject(std::string_view place, std::string_view rule) const {
    source_.reject(place, rule);
  }

  /// Rejects a setting other than the value that the tokenizer implements, or null.
  void expect(const json& object, const std::string& owner, const char* name, const json& value) const {
    const json& found = member(object, name);
    if (found.is_null() || found == value) return;
    reject(owner + name, value.is_null() ? "is not supported: only null is"
                                         : "is not supported: only null and " + value.dump() + " are");
  }
  /// Rejects a part of a type that is not supported.
  void expect_type(const char* part, std::string_view supported) const {
    const json& found = member(root_, part);
    if (found.is_null()) return;
    const json& type = found.is_object() ? member(found, "type") : found;
    if (type.is_string() && type.get_ref<const std::string&>() == supported) return;
    reject(part,
           fmt::format("{} is not supported: only {} is",
                       type.is_string() ? in_quotes(type.get_ref<const std::string&>()) : "this", supported));
  }

 private:
  const Source& source_;
  json root_;
};

void check_parts(const JsonFile& file) {
  const json& root = file.root();
  for (const char* part : {"truncation", "padding", "normalizer"}) file.expect(root, "", part, nullptr);
  const json& pre_tokenizer = JsonFile::member(root, "pre_tokenizer");
  if (pre_tokenizer.is_null()) file.reject("pre_tokenizer", "null is not supported: only ByteLevel is");
  file.expect_type("pre_tokenizer", "ByteLevel");
  file.expect(pre_tokenizer, "pre_tokenizer.", "use_regex", true);
  // Null would mean true, the default of the package.
  if (JsonFile::member(pre_tokenizer, "add_prefix_space") != false)
    file.reject("pre_tokenizer.add_prefix_space", "is not supported: only false is");
  file.expect_type("post_processor", "ByteLevel");
  file.expect_type("decoder", "ByteLevel");

  const json& model = JsonFile::member(root, "model");
  if (!model.is_object()) file.reject("model", "must be an object");
  file.expect(model, "model.", "type", "BPE");
  file.expect(model, "model.", "dropout", 0.0);
  file.expect(model, "model.", "continuing_subword_prefix", "");
  file.expect(model, "model.", "end_of_word_suffix", "");
  file.expect(model, "model.", "byte_fallback", false);
  if (!JsonFile::member(model, "vocab").is_object()) file.reject("model.vocab", "must be an object");
  if (!JsonFile::member(model, "merges").is_array()) file.reject("model.merges", "must be an array");
}

struct AddedToken {
  std::string place, content;
  std::uint64_t id;
};

std::vector<AddedToken> read_added_tokens(const JsonFile& file) {
  const json& added = JsonFile::member(file.root(), "added_tokens");
  std::vector<AddedToken> out;
  if (added.is_null()) return out;
  if (!added.is_array()) file.reject("added_tokens", "must be an array");
  for (std::size_t i = 0; i < added.size(); ++i) {
    const std::string place = fmt::format("added_tokens[{}]", i);
    if (!added[i].is_object()) file.reject(place, "must be an object");
    const json &id = JsonFile::member(added[i], "id"), &content = JsonFile::member(added[i], "content");
    if (!id.is_number_unsigned()) file.reject(place + ".id", "must be a number");
    if (!content.is_string() || content.get_ref<const std::string&>().empty())
      file.reject(place + ".content", "must be a text that is not empty");
    for (const char* flag : {"single_word", "lstrip", "rstrip"})
      file.expect(added[i], place + ".", flag, false);
    out.push_back({place, content.get<std::string>(), id.get<std::uint64_t>()});
  }
  return out;
}

/// The two tokens of a merge, "left right" or ["left", "right"].
std::pair<std::string_view, std::string_view> merge_fields(const JsonFile& file, const std::string& place,
                                                           const json& merge) {
  if (merge.is_string()) {
    const std::string_view text = merge.get_ref<const std::string&>();
    const std::size_t space = text.find(' ');
    if (space != std::string_view::npos) return {text.substr(0, space), text.substr(space + 1)};
  } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
    return {merge[0].get_ref<const std::string&>(), merge[1].get_ref<const std::string&>()};
  }
  file.reject(place, R"(must be "left right" or ["left", "right"])");
}

void read_model_merges(const JsonFile& file, const TokenIds& ids, Vocabulary& out) {
  const json& merges = file.root()["model"]["merges"];
  if (merges.size() > max_ranks)
    file.reject("model.merges", fmt::format("at most {} are supported", max_ranks));
  std::string left, right;
  for (std::size_t i = 0; i < merges.size(); ++i) {
    const std::string place = fmt::format("model.merges[{}]", i);
    const auto fields = merge_fields(file, place, merges[i]);
    const auto find = [&](const std::string& bytes, std::string_view written) {
      if (const auto found = ids.find(bytes); found != ids.end()) return found->second;
      file.reject(place, fmt::format("{} is not a token of model.vocab", in_quotes(written)));
    };
    if (!byte_alphabet().read(fields.first, left)) left.clear();
    if (!byte_alphabet().read(fields.second, right)) right.clear();
    const Token first = find(left, fields.first), second = find(right, fields.second);
    const std::string both = std::string(fields.first).append(fields.second);
    out.merges.push_back({first, second, static_cast<Rank>(i)});
    out.merged.push_back(find(left + right, both));
  }
}

}  // namespace

Vocabulary read_tokenizer_json(const Source& source, std::string_view content) {
  const JsonFile file(source, content);
  check_parts(file);
  const json& model = file.root()["model"];
  const json& vocab = model["vocab"];
  const std::vector<AddedToken> added = read_added_tokens(file);
  std::unordered_map<std::string_view, std::uint64_t> added_ids;
  for (const AddedToken& token : added) added_ids.emplace(token.content, token.id);

  TokenPlaces places(source, vocab.size() + added.size());
  std::string bytes;
  for (const auto& [text, id] : vocab.items()) {
    const std::string place = "model.vocab, token " + in_quotes(text);
    if (!id.is_number_unsigned()) file.reject(place, "its id must be a number");
    // Added tokens may stand here too, as they are written. They are not part of words.
    const auto same = added_ids.find(text);
    if (same != added_ids.end() && same->second != id.get<std::uint64_t>())
      file.reject(place, fmt::format("added_tokens gives it the id {}", same->second));
    if (same != added_ids.end()) continue;
    if (!byte_alphabet().read(text, bytes) || bytes.empty())
      file.reject(place, "must be written in the letters of byte-level BPE");
    places.add(place, id.get<std::uint64_t>(), bytes);
  }
  places.check_bytes();
  Vocabulary out;
  out.whole_words = JsonFile::member(model, "ignore_merges") == true;
  read_model_merges(file, places.ids, out);
  for (const AddedToken& token : added) {
    if (!out.special.emplace(token.content, static_cast<Token>(token.id)).second)
      file.reject(token.place, "the text is added twice");
    places.put(token.place, token.id, token.content);
  }
  out.tokens = std::move(places.tokens);
  return out;
}

std::string write_tokenizer_json(const BytePairModel& model) {
  const Vocabulary& vocabulary = model.vocabulary();
  const auto quoted = [](const std::string& text) { return json(text).dump(); };
  const auto letters = [&](Token token) {
    return quoted(byte_alphabet().write(vocabulary.tokens[static_cast<std::size_t>(token)]));
  };
  std::string added, tokens, merges;
  for (std::size_t i = 0; i < vocabulary.tokens.size(); ++i) {
    const std::string& token = vocabulary.tokens[i];
    const bool is_special = vocabulary.is_special(i);
    if (is_special && io_detail::find_invalid_utf8(token) != std::string_view::npos)
      throw ValueError(fmt::format("[write_tokenizer] special token {}: must be UTF-8", in_quotes(token)));
    if (is_special) {
      added += fmt::format(R"({}{{"id":{},"content":{},"single_word":false,"lstrip":false,"rstrip":false,)"
                           R"("normalized":false,"special":true}})",
                           added.empty() ? "" : ",", i, quoted(token));
    }
    // With special tokens here too, the package gives them these ids.
    if (!token.empty())
      tokens += fmt::format("{}{}:{}", tokens.empty() ? "" : ",",
                            is_special ? quoted(token) : letters(static_cast<Token>(i)), i);
  }
  for (const Merge& merge : listed_merges(model))
    merges += fmt::format("{}[{},{}]", merges.empty() ? "" : ",", letters(merge.left), letters(merge.right));
  constexpr std::string_view byte_level =
      R"({"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":true})";
  return fmt::format(
             R"({{"version":"1.0","truncation":null,"padding":null,"added_tokens":[{}],"normalizer":null,)"
             R"("pre_tokenizer":{},"post_processor":{},"decoder":{},"model":{{"type":"BPE","dropout":null,)"
             R"("unk_token":null,"continuing_subword_prefix":null,"end_of_word_suffix":null,)"
             R"("fuse_unk":false,"byte_fallback":false,"ignore_merges":{},"vocab":{{{}}},"merges":[{}]}}}})",
             added, byte_level, byte_level, byte_level, vocabulary.whole_words, tokens, merges) +
         "\n";
}

}  // namespace ferrite::text
