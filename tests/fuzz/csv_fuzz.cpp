// Any text either reads as CSV or gives a ParseError, and chunks never change the rows. The first two bytes
// choose the settings and the chunk size.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ferrite/core/error.hpp"
#include "ferrite/io/csv.hpp"

namespace {

/// All fields of all rows, or nothing if the text is bad.
std::optional<std::vector<std::string>> scan(std::string_view text, std::size_t chunk, char delimiter) {
  try {
    ferrite::CsvScanner scanner("fuzz.csv", delimiter);
    ferrite::CsvRow row;
    std::vector<std::string> fields;
    const auto take = [&] {
      while (scanner.next_row(row))
        for (const auto& field : row) fields.push_back(field.text());
    };
    for (std::size_t at = 0; at < text.size(); at += chunk) {
      scanner.feed(text.substr(at, chunk));
      take();
    }
    scanner.finish();
    take();
    return fields;
  } catch (const ferrite::ParseError&) {
    return std::nullopt;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 2, size - 2);
  const auto config =
      ferrite::CsvConfig{}
          .with_header(static_cast<ferrite::CsvHeader>(data[0] % 3))
          .with_delimiter(data[0] & 64 ? ';' : ',')
          .with_missing(data[0] & 128 ? ferrite::CsvMissing::as_nan : ferrite::CsvMissing::error);
  try {
    const auto table = ferrite::read_csv(text, "fuzz.csv", config);
    table.to_tensor(ferrite::DType::f32);
    table.to_tensor(ferrite::DType::i32);
  } catch (const ferrite::ParseError&) {
  } catch (const ferrite::ValueError&) {
  }
  const std::size_t whole = std::max<std::size_t>(text.size(), 1);
  if (scan(text, whole, config.delimiter) != scan(text, std::size_t{data[1]} + 1, config.delimiter))
    __builtin_trap();
  return 0;
}
