// JSON in and out of op attributes. Infinities and NaN, which JSON has not, are written as strings.
#include "ferrite/ops/attributes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace ferrite::detail {

namespace {

using nlohmann::json;

std::string format_real(double value) {
  if (std::isnan(value)) return R"("nan")";
  if (std::isinf(value)) return value > 0 ? R"("inf")" : R"("-inf")";
  std::string text = fmt::format("{}", value);  // the shortest text that reads back as the same number
  if (text.find_first_of(".e") == std::string::npos) text += ".0";  // 2.0 is real, 2 an integer
  return text;
}

/// A number or one of the strings above; nothing otherwise.
bool read_real(const json& value, double& result) {
  if (value.is_number()) {
    result = value.get<double>();
    return true;
  }
  if (value == "inf")
    result = HUGE_VAL;
  else if (value == "-inf")
    result = -HUGE_VAL;
  else if (value == "nan")
    result = NAN;
  else
    return false;
  return true;
}

bool read_integer(const json& value, std::int64_t& result) {
  if (!value.is_number_integer()) return false;
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > INT64_MAX) return false;
  result = value.get<std::int64_t>();
  return true;
}

/// Text from outside made fit for a message.
std::string excerpt(std::string text) {
  constexpr std::size_t longest = 60;
  return text.size() <= longest ? text : text.substr(0, longest) + "...";
}

std::string listed(std::span<const std::string_view> names) {
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

void AttributeWriter::append_key(std::string_view key) {
  members_ += fmt::format("{}\"{}\":", members_.empty() ? "" : ",", key);
}

void AttributeWriter::write(std::string_view key, Scalar value) {
  append_key(key);
  switch (value.kind()) {
    case Scalar::Kind::boolean:
      members_ += value.to_int() ? "true" : "false";
      break;
    case Scalar::Kind::integer:
      members_ += std::to_string(value.to_int());
      break;
    default:
      members_ += format_real(value.to_double());
  }
}

void AttributeWriter::write(std::string_view key, std::uint64_t value) {
  append_key(key);
  members_ += std::to_string(value);
}

void AttributeWriter::write(std::string_view key, const Shape& value) {
  append_key(key);
  members_ += fmt::format("[{}]", fmt::join(value.begin(), value.end(), ","));
}

void AttributeWriter::write_text(std::string_view key, std::string_view value) {
  append_key(key);
  members_ += fmt::format("\"{}\"", value);
}

void AttributeWriter::write_json(std::string_view key, std::string_view value) {
  append_key(key);
  members_ += value;
}

struct AttributeReader::Document {
  std::string op;
  json object;

  const json& at(std::string_view key) const { return object.find(std::string(key)).value(); }
  [[noreturn]] void reject(std::string_view key, std::string_view needed) const {
    const std::string given = excerpt(at(key).dump(-1, ' ', true, json::error_handler_t::replace));
    throw ParseError(fmt::format("[{}] attribute '{}' is {}: needs {}", op, key, given, needed));
  }
};

AttributeReader::AttributeReader(std::string_view op, std::string_view text,
                                 std::span<const std::string_view> keys,
                                 std::span<const std::string_view> optional_keys)
    : document_(new Document{std::string(op), {}}) {
  try {
    document_->object = json::parse(text.begin(), text.end());
  } catch (const json::exception& e) {
    throw ParseError(fmt::format("[{}] attributes are not JSON: {}", op, e.what()));
  }
  const json& object = document_->object;
  if (!object.is_object())
    throw ParseError(fmt::format("[{}] attributes are {}: needs a JSON object", op, object.type_name()));
  std::vector<std::string_view> known(keys.begin(), keys.end());
  known.insert(known.end(), optional_keys.begin(), optional_keys.end());
  for (const auto& [key, value] : object.items()) {
    if (std::find(known.begin(), known.end(), key) == known.end())
      throw ParseError(
          fmt::format("[{}] unknown attribute '{}': the attributes are {}", op, excerpt(key), listed(known)));
  }
  for (const std::string_view key : keys) {
    if (!object.contains(std::string(key)))
      throw ParseError(
          fmt::format("[{}] attribute '{}' is missing: the attributes are {}", op, key, listed(known)));
  }
}

AttributeReader::~AttributeReader() = default;

bool AttributeReader::has(std::string_view key) const { return document_->object.contains(std::string(key)); }

std::int64_t AttributeReader::integer(std::string_view key, std::int64_t low, std::int64_t high) const {
  std::int64_t value = 0;
  if (!read_integer(document_->at(key), value) || value < low || value > high)
    document_->reject(key, fmt::format("an integer from {} to {}", low, high));
  return value;
}

std::size_t AttributeReader::choice(std::string_view key, const std::vector<std::string_view>& names) const {
  const json& value = document_->at(key);
  const auto found = value.is_string()
                         ? std::find(names.begin(), names.end(), value.get_ref<const std::string&>())
                         : names.end();
  if (found == names.end()) document_->reject(key, "one of " + listed(names));
  return static_cast<std::size_t>(found - names.begin());
}

std::string AttributeReader::json_text(std::string_view key) const { return document_->at(key).dump(); }

void AttributeReader::read(std::string_view key, std::uint64_t& value) const {
  const json& given = document_->at(key);
  // nlohmann calls every non-negative integer unsigned.
  if (!given.is_number_unsigned()) document_->reject(key, "an integer from 0 to 2^64 - 1");
  value = given.get<std::uint64_t>();
}

void AttributeReader::read(std::string_view key, double& value) const {
  if (!read_real(document_->at(key), value)) document_->reject(key, R"(a number, "inf", "-inf" or "nan")");
}

void AttributeReader::read(std::string_view key, bool& value) const {
  const json& given = document_->at(key);
  if (!given.is_boolean()) document_->reject(key, "true or false");
  value = given.get<bool>();
}

void AttributeReader::read(std::string_view key, Shape& value) const {
  const json& given = document_->at(key);
  const bool fits = given.is_array() && given.size() <= static_cast<std::size_t>(max_rank);
  value = {};
  for (std::size_t i = 0; fits && i < given.size(); ++i) {
    std::int64_t extent = 0;
    if (!read_integer(given[i], extent)) document_->reject(key, "a list of integers");
    value.push_back(extent);
  }
  if (!fits) document_->reject(key, fmt::format("a list of at most {} integers", max_rank));
}

void AttributeReader::read(std::string_view key, Scalar& value) const {
  const json& given = document_->at(key);
  std::int64_t integer = 0;
  double real = 0;
  if (given.is_boolean())
    value = given.get<bool>();
  else if (read_integer(given, integer))
    value = integer;
  else if (!given.is_number_integer() && read_real(given, real))
    value = real;
  else
    document_->reject(key, R"(true, false, a number, "inf", "-inf" or "nan")");
}

}  // namespace ferrite::detail
