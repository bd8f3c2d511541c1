// Shared by the readers of this folder: error text, checked shapes, UTF-8, little-endian loads.
#pragma once

#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "ferrite/io/host_tensor.hpp"

namespace ferrite::io_detail {

using Bytes = std::span<const std::byte>;

inline std::string_view as_text(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
inline Bytes as_bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

/// The caller has checked that `bytes` reaches that far.
template <class T>
T load(Bytes bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

template <class T>
void append(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(T));
}

/// Text from a file, prepared for a message: in quotes, shortened, bytes that are not printable ASCII
/// escaped.
FERRITE_API std::string in_quotes(std::string_view text);

/// Position of the first byte that does not belong to well-formed UTF-8, or npos.
FERRITE_API std::size_t find_invalid_utf8(std::string_view text);

/// Throws ValueError for a delimiter that could not be told from quotes, line ends or numbers.
void check_csv_delimiter(std::string_view op, char delimiter);

/// The file being read. Tensors may view its bytes if there is an owner that keeps them alive.
struct Source {
  std::string_view reader;
  std::string_view file;
  std::shared_ptr<const void> owner;

  /// Throws ParseError "[reader] file, place: rule".
  [[noreturn]] void reject(std::string_view place, std::string_view rule) const;

  /// Rejects ranks above 8, negative extents, and sizes that overflow 63 bits.
  Shape shape(std::string_view place, std::span<const std::int64_t> dims) const;

  /// A tensor of exactly these bytes: a view if there is an owner and they are aligned, else a copy. Rejects
  /// bool bytes other than 0 and 1, which C++ could not read as bool.
  HostTensor tensor(std::string_view place, DType dtype, const Shape& shape, Bytes bytes) const;
};

}  // namespace ferrite::io_detail
