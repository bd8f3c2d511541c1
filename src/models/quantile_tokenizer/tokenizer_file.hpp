// A fit as a safetensors file: versioned JSON in the metadata (readable with any safetensors tool), and
// numbers that must keep their bits in tensors. It is one file, so that it cannot be half-written.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "ferrite/io/safetensors.hpp"
#include "ferrite/models/quantile_tokenizer/quantile_tokenizer.hpp"

namespace ferrite::quantile_tokenizer {

/// Version 1 had fits with approximate edges, and summaries of ranks beside them, which are ignored.
inline constexpr int file_version = 2;

/// Metadata "format", "version" and "tokenizer", and the tensors. Tables add a key of their own.
SafeTensors to_file(const QuantileTokenizer& tokenizer);
/// Throws ParseError with `name`, the place and the rule.
QuantileTokenizer from_file(const SafeTensors& file, std::string_view name);

[[noreturn]] void reject_file(std::string_view name, std::string_view place, std::string_view rule);
/// The JSON text under a metadata key.
nlohmann::json json_of(const SafeTensors& file, const std::string& key, std::string_view name);

/// Members of a JSON object, each with an error that names it.
class JsonReader {
 public:
  JsonReader(const nlohmann::json& object, std::string_view file, std::string place)
      : object_(object), file_(file), place_(std::move(place)) {
    if (!object.is_object()) reject_file(file_, place_, "must be an object");
  }
  template <class T>
  T get(const char* key) const {
    const auto found = object_.find(key);
    if (found == object_.end()) reject_file(file_, place_, std::string("has no '") + key + "'");
    try {
      return found->template get<T>();
    } catch (const nlohmann::json::exception&) {
      reject_file(file_, place_ + "." + key, "is of another type");
    }
  }
  template <class E>
  E get_enum(const char* key) const {
    const auto text = get<std::string>(key);
    for (int i = 0; i < count_of(E{}); ++i)
      if (to_string(static_cast<E>(i)) == text) return static_cast<E>(i);
    reject_file(file_, place_ + "." + key, "'" + text + "' is not known");
  }

 private:
  const nlohmann::json& object_;
  std::string_view file_;
  std::string place_;
};

}  // namespace ferrite::quantile_tokenizer
