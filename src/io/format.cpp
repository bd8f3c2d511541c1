// Implementation of the helpers shared by the file readers.
#include "io/format.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdint>

#include "ferrite/core/error.hpp"

namespace ferrite::io_detail {

std::string in_quotes(std::string_view text) {
  constexpr std::size_t longest = 80;
  std::string out = "\"";
  for (const char c : text.substr(0, longest)) {
    if (c == '"' || c == '\\')
      out += {'\\', c};
    else if (c >= ' ' && c <= '~')
      out += c;
    else
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  out += text.size() > longest ? "...\"" : "\"";
  return out;
}

namespace {

/// Length of the well-formed sequence at the start of `s`, or 0. Refuses overlong forms and surrogates.
std::size_t utf8_sequence(const unsigned char* s, std::size_t size) {
  const unsigned char lead = s[0];
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || size < length) return 0;
  const unsigned char low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const unsigned char high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  if (s[1] < low || s[1] > high) return 0;
  for (std::size_t i = 2; i < length; ++i)
    if (s[i] < 0x80 || s[i] > 0xBF) return 0;
  return length;
}

}  // namespace

std::size_t find_invalid_utf8(std::string_view text) {
  const auto* s = reinterpret_cast<const unsigned char*>(text.data());
  std::size_t i = 0;
  while (i < text.size()) {
    // Nearly all text is ASCII: eight bytes at a time.
    if (text.size() - i >= 8 && (load<std::uint64_t>(as_bytes(text), i) & 0x8080808080808080u) == 0) {
      i += 8;
      continue;
    }
    const std::size_t length = utf8_sequence(s + i, text.size() - i);
    if (length == 0) return i;
    i += length;
  }
  return std::string_view::npos;
}

void check_csv_delimiter(std::string_view op, char delimiter) {
  const auto byte = static_cast<unsigned char>(delimiter);
  if (byte != 0 && byte < 0x80 && !std::isalnum(byte) && !std::strchr("\"\r\n+-.", byte)) return;
  throw ValueError(
      fmt::format("[{}] delimiter {}: must be ASCII, and no quote, line end, letter, digit, sign or point",
                  op, in_quotes({&delimiter, 1})));
}

void Source::reject(std::string_view place, std::string_view rule) const {
  throw ParseError(fmt::format("[{}] {}, {}: {}", reader, file, place, rule));
}

Shape Source::shape(std::string_view place, std::span<const std::int64_t> dims) const {
  if (dims.size() > max_rank) {
    reject(fmt::format("{}, rank {}", place, dims.size()),
           fmt::format("at most {} axes are supported", max_rank));
  }
  const Shape shape(dims);
  try {
    check_extents(reader, shape);
  } catch (const ShapeError&) {
    reject(fmt::format("{}, shape {}", place, to_string(shape)),
           "extents must not be negative and the size must stay below 2^63 bytes");
  }
  return shape;
}

HostTensor Source::tensor(std::string_view place, DType dtype, const Shape& shape, Bytes bytes) const {
  if (dtype == DType::bool_) {
    const auto bad = std::find_if(bytes.begin(), bytes.end(), [](std::byte b) { return b > std::byte{1}; });
    if (bad != bytes.end()) {
      reject(fmt::format("{}, element {} is byte {}", place, bad - bytes.begin(), static_cast<int>(*bad)),
             "bool needs 0 or 1");
    }
  }
  const bool aligned = reinterpret_cast<std::uintptr_t>(bytes.data()) % size_of(dtype) == 0;
  return owner && aligned ? HostTensor::view(dtype, shape, bytes, owner)
                          : HostTensor::copy_of(dtype, shape, bytes);
}

}  // namespace ferrite::io_detail
