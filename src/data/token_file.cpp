// Formats of token files. All are little-endian, as the machine is (io/host_tensor.hpp checks that).
#include "ferrite/data/token_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "ferrite/core/error.hpp"
#include "io/npy_format.hpp"

namespace ferrite::data {
namespace {

using io_detail::Bytes;
using io_detail::Source;

struct BinFormat {
  std::int32_t magic, version;
  DType dtype;
};
constexpr std::array<BinFormat, 2> bin_formats{{{20240520, 1, DType::u16}, {20240801, 7, DType::u32}}};
constexpr std::size_t bin_header_size = 256 * sizeof(std::int32_t);

constexpr std::string_view known_formats =
    "known are llm.c's .bin (int32 20240520 for u16 tokens, 20240801 for u32) and .npy of u16, u32 or i32. "
    "If this file is bare tokens, name their dtype (--dtype; programs: with_dtype); text becomes tokens by "
    "`ferrite gpt tokens`";

bool is_npy(Bytes bytes) { return io_detail::as_text(bytes).starts_with("\x93NUMPY"); }

const BinFormat* bin_format(Bytes bytes) {
  if (bytes.size() < sizeof(std::int32_t)) return nullptr;
  const auto magic = io_detail::load<std::int32_t>(bytes, 0);
  const auto found = std::ranges::find(bin_formats, magic, &BinFormat::magic);
  return found == bin_formats.end() ? nullptr : &*found;
}

/// What is known of a file before its tokens.
struct Tokens {
  DType dtype;
  std::size_t offset;
};

Tokens read_bin_header(const Source& source, Bytes bytes, const BinFormat& format) {
  if (bytes.size() < bin_header_size)
    source.reject(
        fmt::format("{} bytes", bytes.size()),
        fmt::format("the header needs {}: the file is cut short, copy or write it again", bin_header_size));
  const auto version = io_detail::load<std::int32_t>(bytes, 4);
  const auto count = io_detail::load<std::int32_t>(bytes, 8);
  if (version != format.version)
    source.reject(
        fmt::format("magic {}, version {}", format.magic, version),
        fmt::format("version {} is known: write the file with such a version of llm.c", format.version));
  if (count < 0) source.reject(fmt::format("header, {} tokens", count), "the count must not be negative");
  const std::size_t width = size_of(format.dtype);
  const std::size_t needed = bin_header_size + static_cast<std::size_t>(count) * width;
  if (bytes.size() != needed)
    source.reject(fmt::format("header, {} tokens of {} bytes", count, width),
                  fmt::format("that makes a file of {} bytes, but it has {}: {}, copy or write it again",
                              needed, bytes.size(),
                              bytes.size() < needed ? "it is cut short" : "something follows the tokens"));
  return {format.dtype, bin_header_size};
}

Tokens read_npy_header(const Source& source, Bytes bytes) {
  const io_detail::NpyHeader header = io_detail::parse_npy_header(source, "", bytes);
  if (header.dtype != DType::u16 && header.dtype != DType::u32 && header.dtype != DType::i32)
    source.reject(fmt::format("tokens of {}", to_string(header.dtype)),
                  "u16, u32 or i32 is needed: save tokens.astype(numpy.uint16), or uint32");
  if (header.shape.rank() != 1)
    source.reject(fmt::format("shape {}", to_string(header.shape)),
                  "one axis is needed: save tokens.reshape(-1)");
  if (bytes.size() != header.file_size())
    source.reject(fmt::format("{} bytes", bytes.size()),
                  fmt::format("{} tokens of {} make {}, header included: copy or write the file again",
                              header.shape[0], to_string(header.dtype), header.file_size()));
  return {header.dtype, header.data_offset};
}

Tokens read_bare(const Source& source, Bytes bytes, DType dtype) {
  if (const BinFormat* format = bin_format(bytes);
      is_npy(bytes) ||
      (format && bytes.size() >= 8 && io_detail::load<std::int32_t>(bytes, 4) == format->version))
    source.reject("byte 0", fmt::format("begins with a header of {}: leave the dtype out to read it",
                                        format ? "llm.c" : ".npy"));
  if (bytes.size() % size_of(dtype) != 0)
    source.reject(fmt::format("{} bytes", bytes.size()),
                  fmt::format("bare tokens of {} need a multiple of {}: is it of this dtype, and whole?",
                              to_string(dtype), size_of(dtype)));
  return {dtype, 0};
}

/// Through memcpy, as the tokens of an .npy file may begin at an odd byte. Returns the highest id; negative
/// ones count as high.
template <class T>
std::uint32_t copy_ids(const std::byte* from, std::span<std::int32_t> out) {
  std::uint32_t highest = 0;
  for (std::size_t i = 0; i < out.size(); ++i) {
    T token;
    std::memcpy(&token, from + i * sizeof(T), sizeof(T));
    const auto id = static_cast<std::uint32_t>(token);
    highest = std::max(highest, id);
    out[i] = static_cast<std::int32_t>(id);
  }
  return highest;
}

/// The path, if the dtype is one of files without .npy's header.
const std::filesystem::path& with_token_dtype(std::string_view what, const std::filesystem::path& path,
                                              DType dtype) {
  if (dtype == DType::u16 || dtype == DType::u32) return path;
  throw DTypeError(fmt::format("[{}] {}: {}: tokens are u16 or u32", what, path.string(), to_string(dtype)));
}

}  // namespace

DType token_dtype(std::int64_t vocabulary) {
  if (vocabulary < 1 || vocabulary > TokenFile::any_vocabulary)
    throw ValueError(fmt::format("[token file] vocabulary {}: must be 1 to 2^31", vocabulary));
  return vocabulary <= 1 << 16 ? DType::u16 : DType::u32;
}

TokenFile::TokenFile(std::filesystem::path path, std::shared_ptr<const MappedFile> file, DType dtype,
                     std::size_t offset)
    : path_(std::move(path)),
      file_(std::move(file)),
      dtype_(dtype),
      offset_(offset),
      size_(static_cast<std::int64_t>((file_->bytes().size() - offset) / size_of(dtype))) {}

TokenFile TokenFile::open(const std::filesystem::path& path, std::optional<DType> bare) {
  if (bare) with_token_dtype("token file", path, *bare);
  auto file = MappedFile::open(path);
  const Bytes bytes = file->bytes();
  const std::string name = path.string();
  const Source source{"token file", name, nullptr};
  const auto read = [&]() -> Tokens {
    if (bytes.empty()) source.reject("0 bytes", "the file is empty: leave it out, or write it again");
    if (bare) return read_bare(source, bytes, *bare);
    if (is_npy(bytes)) return read_npy_header(source, bytes);
    if (const BinFormat* format = bin_format(bytes)) return read_bin_header(source, bytes, *format);
    const std::string_view start = io_detail::as_text(bytes).substr(0, 8);
    source.reject("byte 0", fmt::format("the format that begins with {} is not known: {}",
                                        io_detail::in_quotes(start), known_formats));
  };
  const Tokens tokens = read();
  return {path, std::move(file), tokens.dtype, tokens.offset};
}

void TokenFile::copy(std::int64_t first, std::span<std::int32_t> out, std::int64_t vocabulary) const {
  const auto count = static_cast<std::int64_t>(out.size());
  if (first < 0 || first > size_ || count > size_ - first)
    throw ValueError(fmt::format("[token file] {}: {} tokens from number {} on: there are {}", path_.string(),
                                 count, first, size_));
  const std::byte* from = file_->bytes().data() + offset_ + static_cast<std::size_t>(first) * size_of(dtype_);
  const std::uint32_t highest =
      dtype_ == DType::u16 ? copy_ids<std::uint16_t>(from, out) : copy_ids<std::uint32_t>(from, out);
  const std::int64_t limit = std::min(vocabulary, any_vocabulary);
  if (out.empty() || highest < limit) return;
  const auto bad =
      std::ranges::find_if(out, [&](std::int32_t id) { return static_cast<std::uint32_t>(id) >= limit; });
  const std::int64_t id =
      dtype_ == DType::i32 ? std::int64_t{*bad} : std::int64_t{static_cast<std::uint32_t>(*bad)};
  throw ValueError(
      fmt::format("[token file] {}, token {}: id {}, but the vocabulary has the ids 0 to {}: were these "
                  "tokens made with another tokenizer?",
                  path_.string(), first + (bad - out.begin()), id, limit - 1));
}

TokenFileWriter::TokenFileWriter(const std::filesystem::path& path, DType dtype)
    : path_(path), file_(with_token_dtype("write tokens", path, dtype)), dtype_(dtype) {
  std::array<std::int32_t, 256> header{};
  const BinFormat& format = *std::ranges::find(bin_formats, dtype, &BinFormat::dtype);
  header[0] = format.magic;
  header[1] = format.version;
  file_.write(std::as_bytes(std::span(header)));
}

void TokenFileWriter::write(std::span<const std::int32_t> tokens) {
  const auto count = static_cast<std::int64_t>(tokens.size());
  if (count > most_tokens - size_)
    throw ValueError(
        fmt::format("[write tokens] {}: {} and {} more tokens: a file holds at most {}, write "
                    "several files",
                    path_.string(), size_, count, most_tokens));
  const std::int32_t highest = dtype_ == DType::u16 ? std::numeric_limits<std::uint16_t>::max()
                                                    : std::numeric_limits<std::int32_t>::max();
  const auto bad = std::ranges::find_if(tokens, [&](std::int32_t id) { return id < 0 || id > highest; });
  if (bad != tokens.end())
    throw ValueError(fmt::format("[write tokens] {}, token {}: id {}: {} holds 0 to {}", path_.string(),
                                 size_ + (bad - tokens.begin()), *bad, to_string(dtype_), highest));
  constexpr std::size_t flush_size = 1 << 20;
  for (const std::int32_t id : tokens) {
    const auto bytes = std::as_bytes(std::span(&id, 1)).first(size_of(dtype_));
    waiting_.insert(waiting_.end(), bytes.begin(), bytes.end());
    if (waiting_.size() >= flush_size) flush();
  }
  size_ += count;
}

void TokenFileWriter::flush() {
  file_.write(waiting_);
  waiting_.clear();
}

void TokenFileWriter::commit() {
  flush();
  const auto count = static_cast<std::int32_t>(size_);
  file_.overwrite(2 * sizeof(std::int32_t), std::as_bytes(std::span(&count, 1)));
  file_.commit();
}

}  // namespace ferrite::data
