// Attributes as JSON text, for reports and replay files. Works for every op with `attributes`, including a
// user's. An enum needs to_string(E) and count_of(E) beside it; a struct needs to_json() and static
// from_json(text). A std::optional without a value is left out. An attribute that an op got later is its
// `later_attribute`: files of earlier versions do not have it, and mean its default.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "ferrite/core/scalar.hpp"
#include "ferrite/ops/op.hpp"

namespace ferrite {
namespace detail {

template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;

/// Builds {"axis":-1,...}, keys in the op's order.
class FERRITE_API AttributeWriter {
 public:
  template <class T>
  void operator()(std::string_view key, const T& value) {
    if constexpr (is_optional<T>) {
      if (value) (*this)(key, *value);
    } else if constexpr (std::is_enum_v<T>)
      write_text(key, to_string(value));
    else if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, std::uint64_t>)
      write(key, Scalar(value));
    else if constexpr (requires { value.to_json(); })
      write_json(key, value.to_json());
    else
      write(key, value);
  }
  std::string text() const { return "{" + members_ + "}"; }

 private:
  void write(std::string_view key, Scalar value);
  void write(std::string_view key, std::uint64_t value);
  void write(std::string_view key, const Shape& value);
  void write_text(std::string_view key, std::string_view value);
  void write_json(std::string_view key, std::string_view value);
  void append_key(std::string_view key);

  std::string members_;
};

/// Reads what AttributeWriter wrote. Every error is a ParseError that names the op, the key and the rule.
class FERRITE_API AttributeReader {
 public:
  /// The object must have these keys, and no others but the optional ones.
  AttributeReader(std::string_view op, std::string_view json, std::span<const std::string_view> keys,
                  std::span<const std::string_view> optional_keys = {});
  ~AttributeReader();
  AttributeReader(const AttributeReader&) = delete;
  AttributeReader& operator=(const AttributeReader&) = delete;

  bool has(std::string_view key) const;
  template <class T>
  void operator()(std::string_view key, T& value) {
    if constexpr (is_optional<T>) {
      value.reset();
      if (has(key)) (*this)(key, value.emplace());
    } else if constexpr (std::is_same_v<T, DType>) {
      const std::span<const DType> all(all_dtypes);
      value = all[choice(key, names(all.size(), [&](std::size_t i) { return to_string(all[i]); }))];
    } else if constexpr (std::is_enum_v<T>) {
      const auto name = [](std::size_t i) { return to_string(static_cast<T>(i)); };
      value = static_cast<T>(choice(key, names(static_cast<std::size_t>(count_of(T{})), name)));
    } else if constexpr (std::is_same_v<T, int>) {
      value = static_cast<int>(integer(key, INT32_MIN, INT32_MAX));
    } else if constexpr (std::is_same_v<T, std::int64_t>) {
      value = integer(key, INT64_MIN, INT64_MAX);
    } else if constexpr (requires { value.to_json(); }) {
      value = T::from_json(json_text(key));
    } else {
      read(key, value);
    }
  }

 private:
  template <class Name>
  static std::vector<std::string_view> names(std::size_t count, Name&& name) {
    std::vector<std::string_view> all;
    for (std::size_t i = 0; i < count; ++i) all.push_back(name(i));
    return all;
  }
  std::int64_t integer(std::string_view key, std::int64_t low, std::int64_t high) const;
  std::size_t choice(std::string_view key, const std::vector<std::string_view>& names) const;
  std::string json_text(std::string_view key) const;
  void read(std::string_view key, std::uint64_t& value) const;
  void read(std::string_view key, double& value) const;
  void read(std::string_view key, bool& value) const;
  void read(std::string_view key, Shape& value) const;
  void read(std::string_view key, Scalar& value) const;

  struct Document;
  std::unique_ptr<Document> document_;
};

}  // namespace detail

template <class Op>
std::string format_attributes(const Op& op) {
  detail::AttributeWriter writer;
  Op::attributes(op, writer);
  return writer.text();
}

template <class Op>
Op parse_attributes(std::string_view json) {
  Op op;
  const auto is_later = []([[maybe_unused]] std::string_view key) {
    if constexpr (requires { Op::later_attribute; }) return key == Op::later_attribute;
    return false;
  };
  std::vector<std::string_view> keys, optional_keys;
  Op::attributes(op, [&]<class T>(std::string_view key, const T&) {
    (detail::is_optional<T> || is_later(key) ? optional_keys : keys).push_back(key);
  });
  detail::AttributeReader reader(Op::type_name, json, keys, optional_keys);
  Op::attributes(op, [&](std::string_view key, auto& value) {
    if (!is_later(key) || reader.has(key)) reader(key, value);
  });
  return op;
}

}  // namespace ferrite
