// safetensors: 8 bytes header length, JSON header, tensor bytes. The header may come from strangers, so a
// small state machine reads it event by event and accepts only the format: nesting, duplicates and unknown
// keys end the parse at once.
#include "ferrite/io/safetensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "ferrite/core/error.hpp"
#include "ferrite/io/mapped_file.hpp"
#include "io/format.hpp"
#include "io/safetensors_format.hpp"

namespace ferrite {
namespace {

using namespace io_detail;
using nlohmann::json;

struct Entry {
  std::string name;
  std::optional<DType> dtype;
  std::optional<std::vector<std::int64_t>> shape;
  std::optional<std::vector<std::int64_t>> offsets;
};

/// Receives nlohmann's parse events (its parser is iterative, so depth costs no stack).
class HeaderReader {
 public:
  explicit HeaderReader(const Source& source) : source_(source) {}
  std::vector<Entry> entries;
  std::map<std::string, std::string> metadata;

  bool start_object(std::size_t) {
    if (state_ == State::start)
      state_ = State::header;
    else if (state_ == State::header && key_ == metadata_key)
      state_ = State::metadata;
    else if (state_ == State::header)
      enter_tensor();
    else
      unexpected("an object");
    return true;
  }
  bool end_object() {
    if (state_ == State::tensor) {
      const Entry& e = entries.back();
      if (!e.dtype || !e.shape || !e.offsets) reject("needs dtype, shape and data_offsets");
    }
    state_ = state_ == State::header ? State::end : State::header;
    return true;
  }
  bool start_array(std::size_t) {
    if (state_ != State::tensor || (key_ != "shape" && key_ != "data_offsets")) unexpected("an array");
    (key_ == "shape" ? entries.back().shape : entries.back().offsets).emplace();
    state_ = State::numbers;
    return true;
  }
  bool end_array() {
    state_ = State::tensor;
    if (key_ == "data_offsets" && entries.back().offsets->size() != 2) reject("needs two numbers");
    return true;
  }
  bool key(std::string& name) {
    if (state_ == State::header) names_.push_back(name);
    key_ = std::move(name);
    if (state_ == State::metadata && metadata.contains(key_)) reject("the key appears twice");
    if (state_ != State::tensor) return true;
    const Entry& e = entries.back();
    if (key_ != "dtype" && key_ != "shape" && key_ != "data_offsets") {
      reject("only dtype, shape and data_offsets are allowed");
    }
    if (key_ == "dtype"   ? e.dtype.has_value()
        : key_ == "shape" ? e.shape.has_value()
                          : e.offsets.has_value()) {
      reject("the key appears twice");
    }
    return true;
  }
  bool string(std::string& value) {
    if (state_ == State::metadata) {
      metadata.emplace(key_, std::move(value));
      return true;
    }
    if (state_ != State::tensor || key_ != "dtype") unexpected("a string");
    for (const FormatDType& f : format_dtypes)
      if (f.name == value) entries.back().dtype = f.dtype;
    if (!entries.back().dtype) {
      std::string names;
      for (const FormatDType& f : format_dtypes) names.append(" ").append(f.name);
      reject(fmt::format("{} is none of the supported{}", in_quotes(value), names));
    }
    return true;
  }
  bool number_unsigned(std::uint64_t value) {
    if (state_ != State::numbers) unexpected("a number");
    if (value > INT64_MAX) reject(fmt::format("{} is beyond 63 bits", value));
    const bool is_shape = key_ == "shape";
    auto& numbers = is_shape ? *entries.back().shape : *entries.back().offsets;
    if (is_shape && numbers.size() == max_rank)
      reject(fmt::format("at most {} axes are supported", max_rank));
    if (!is_shape && numbers.size() == 2) reject("needs two numbers");
    numbers.push_back(static_cast<std::int64_t>(value));
    return true;
  }
  bool number_integer(std::int64_t) { return unexpected("a negative number"); }
  bool number_float(double, const std::string&) {
    return unexpected("a number that is not a 64-bit integer");
  }
  bool null() { return unexpected("null"); }
  bool boolean(bool) { return unexpected("a boolean"); }
  bool binary(json::binary_t&) { return unexpected("binary data"); }
  bool parse_error(std::size_t position, const std::string&, const json::exception& error) {
    // Of "[json.exception...] parse error at line 1, column 3: reason; last read: ..." only the reason.
    std::string_view what = error.what();
    what = what.substr(0, what.find("; last read"));
    what = what.substr(what.rfind(": ") + 2);
    source_.reject(fmt::format("byte {}", 8 + std::max<std::size_t>(position, 1) - 1),
                   fmt::format("the header must be JSON in UTF-8 ({})", what));
  }

  /// The name that two tensors (or two metadata blocks) share, if any.
  const std::string* duplicate_name() {
    std::sort(names_.begin(), names_.end());
    const auto it = std::adjacent_find(names_.begin(), names_.end());
    return it == names_.end() ? nullptr : &*it;
  }

 private:
  enum class State { start, header, metadata, tensor, numbers, end };

  void enter_tensor() {
    entries.emplace_back().name = key_;
    state_ = State::tensor;
  }
  [[noreturn]] void reject(std::string_view rule) const {
    const bool in_tensor = state_ == State::tensor || state_ == State::numbers;
    const std::string owner = in_tensor                   ? "tensor " + in_quotes(entries.back().name) + ", "
                              : state_ == State::metadata ? "__metadata__, "
                                                          : "header, ";
    source_.reject(fmt::format("{}key {}", owner, in_quotes(key_)), rule);
  }
  bool unexpected(std::string_view what) const { reject(fmt::format("{} is not allowed here", what)); }

  const Source& source_;
  State state_ = State::start;
  std::string key_;
  std::vector<std::string> names_;
};

/// A tensor of a file, checked but for the bytes themselves.
struct Placed {
  std::string name;
  Meta meta;
  Bytes bytes;

  HostTensor tensor(const Source& source) const {
    return source.tensor("tensor " + in_quotes(name), meta.dtype, meta.shape, bytes);
  }
};

struct Contents {
  std::map<std::string, std::string> metadata;
  std::vector<Placed> tensors;
};

/// The format leaves no freedom: tensors follow each other without holes and fill the data exactly.
std::vector<Placed> place_tensors(const Source& source, std::vector<Entry>& entries, Bytes data) {
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return *a.offsets < *b.offsets; });
  std::vector<Placed> out;
  std::int64_t position = 0;
  const auto size = static_cast<std::int64_t>(data.size());
  for (Entry& entry : entries) {
    const std::string place = "tensor " + in_quotes(entry.name);
    const std::int64_t begin = (*entry.offsets)[0], end = (*entry.offsets)[1];
    const auto reject = [&](const std::string& rule) {
      source.reject(fmt::format("{}, data_offsets [{}, {}]", place, begin, end), rule);
    };
    if (begin > end) reject("the begin must not be after the end");
    if (end > size) reject(fmt::format("the file has only {} bytes of data", size));
    if (begin < position) reject(fmt::format("overlaps the tensor before it, which ends at {}", position));
    if (begin > position) reject(fmt::format("leaves a hole after byte {}", position));
    const Shape shape = source.shape(place, *entry.shape);
    const std::int64_t needed = shape.numel() * static_cast<std::int64_t>(size_of(*entry.dtype));
    if (end - begin != needed) {
      reject(fmt::format("{} of shape {} needs {} bytes", to_string(*entry.dtype), to_string(shape), needed));
    }
    const Bytes bytes = data.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(needed));
    out.push_back({std::move(entry.name), {shape, *entry.dtype}, bytes});
    position = end;
  }
  if (position != size) {
    source.reject(fmt::format("{} bytes after the last tensor", size - position),
                  "the data must end with the last tensor");
  }
  return out;
}

Contents parse_contents(const Source& source, Bytes bytes) {
  if (bytes.size() < 8) {
    source.reject(fmt::format("{} bytes", bytes.size()), "at least 8 are needed for the header length");
  }
  const auto length = io_detail::load<std::uint64_t>(bytes, 0);
  if (length > max_header || length > bytes.size() - 8) {
    source.reject(fmt::format("byte 0, header length {}", length),
                  fmt::format("at most {} fits; this is no safetensors file, or a part of one",
                              std::min<std::uint64_t>(max_header, bytes.size() - 8)));
  }
  const std::string_view header = as_text(bytes.subspan(8, length));
  if (!header.starts_with('{')) source.reject("byte 8", "the header must start with '{'");
  // The parser takes a zero byte for the end of its input.
  if (const auto zero = header.find('\0'); zero != header.npos) {
    source.reject(fmt::format("byte {}", 8 + zero), "the header must not hold a zero byte");
  }
  HeaderReader reader(source);
  json::sax_parse(header.begin(), header.end(), &reader);
  if (const std::string* name = reader.duplicate_name()) {
    source.reject("header, key " + in_quotes(*name), "the key appears twice");
  }
  return {std::move(reader.metadata), place_tensors(source, reader.entries, bytes.subspan(8 + length))};
}

SafeTensors read_tensors(const Source& source, Bytes bytes) {
  Contents contents = parse_contents(source, bytes);
  SafeTensors out{std::move(contents.metadata), {}};
  for (const Placed& placed : contents.tensors) out.tensors.emplace(placed.name, placed.tensor(source));
  return out;
}

}  // namespace

SafeTensors read_safetensors(const std::filesystem::path& path) {
  const auto file = MappedFile::open(path, "read_safetensors");
  return read_tensors({"read_safetensors", path.string(), file}, file->bytes());
}

SafeTensors read_safetensors(std::span<const std::byte> bytes, std::string_view name) {
  return read_tensors({"read_safetensors", name, nullptr}, bytes);
}

LazySafeTensors open_safetensors(const std::filesystem::path& path) {
  const auto file = MappedFile::open(path);
  Contents contents = parse_contents({"read_safetensors", path.string(), file}, file->bytes());
  LazySafeTensors out{std::move(contents.metadata), {}};
  for (Placed& placed : contents.tensors) {
    const auto load = [file, path, placed] {
      return placed.tensor({"read_safetensors", path.string(), file});
    };
    out.tensors.emplace(placed.name, LazyTensor{placed.meta, load});
  }
  return out;
}

}  // namespace ferrite
