// A config.json, with errors that name the file and the key.
#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "ferrite/core/error.hpp"
#include "ferrite/io/mapped_file.hpp"
#include "io/format.hpp"

namespace ferrite::gpt {

using io_detail::in_quotes;
using nlohmann::json;

/// Keys with errors that name the file. Absent and null are the same.
class Config {
 public:
  explicit Config(const std::filesystem::path& path) : name_(path.string()) {
    json_ = json::parse(MappedFile::open(path)->text(), nullptr, false);
    if (!json_.is_object())
      throw ParseError(fmt::format("[gpt import] {}: must be a JSON object in UTF-8", name_));
  }
  /// An object inside it, by the same rules; an empty one if it is not there.
  Config part(const char* key) const {
    const json* value = find(key);
    if (value && !value->is_object())
      throw ParseError(fmt::format("[gpt import] {}: '{}' must be an object", name_, key));
    return Config(name_, value ? *value : json::object());
  }

  const json* find(const char* key) const {
    const auto found = json_.find(key);
    return found == json_.end() || found->is_null() ? nullptr : &*found;
  }
  /// Also if it is null.
  bool has(const char* key) const { return json_.contains(key); }
  std::int64_t size(const char* key) const {
    const json* value = find(key);
    if (!value) throw ParseError(fmt::format("[gpt import] {}: has no '{}'", name_, key));
    // get() would wrap around beyond 63 bits; no size is as large as a thousandth of that.
    if (!value->is_number_integer() || value->get<double>() < 1 || value->get<double>() > INT32_MAX)
      throw ParseError(fmt::format("[gpt import] {}: '{}' must be 1 to {}", name_, key, INT32_MAX));
    return value->get<std::int64_t>();
  }
  std::int64_t size_or(const char* key, std::int64_t absent) const { return find(key) ? size(key) : absent; }
  double number(const char* key, std::optional<double> absent = std::nullopt) const {
    const json* value = find(key);
    if (!value && absent) return *absent;
    if (!value) throw ParseError(fmt::format("[gpt import] {}: has no '{}'", name_, key));
    if (!value->is_number())
      throw ParseError(fmt::format("[gpt import] {}: '{}' must be a number", name_, key));
    return value->get<double>();
  }
  bool flag(const char* key, bool absent) const {
    const json* value = find(key);
    if (value && !value->is_boolean())
      throw ParseError(fmt::format("[gpt import] {}: '{}' must be true or false", name_, key));
    return value ? value->get<bool>() : absent;
  }
  std::string text(const char* key) const {
    const json* value = find(key);
    return value && value->is_string() ? value->get<std::string>() : std::string();
  }
  /// What the model computes differs from what ferrite does unless the key has this value, or is absent.
  void require(const char* key, const json& needed) const {
    const json* value = find(key);
    if (value && *value != needed)
      refuse(fmt::format("'{}' is {}, and ferrite has {}", key, in_quotes(value->dump()), needed.dump()));
  }
  [[noreturn]] void refuse(std::string_view reason) const {
    throw ValueError(fmt::format("[gpt import] {}: {}", name_, reason));
  }

 private:
  Config(std::string name, json object) : name_(std::move(name)), json_(std::move(object)) {}

  std::string name_;
  json json_;
};

}  // namespace ferrite::gpt
