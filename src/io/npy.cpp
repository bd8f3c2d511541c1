// .npy: magic, version, header length, a Python dict literal, data. Only the one dict that NumPy writes is
// understood, in any order and spacing; it is never evaluated.
#include "ferrite/io/npy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <vector>

#include "ferrite/core/error.hpp"
#include "ferrite/io/atomic_file.hpp"
#include "ferrite/io/mapped_file.hpp"
#include "io/npy_format.hpp"

namespace ferrite {
namespace io_detail {
namespace {

constexpr std::string_view magic("\x93NUMPY", 6);

/// One pass over the dict literal.
class DictReader {
 public:
  DictReader(const Source& source, std::string_view place, std::string_view text, std::size_t offset)
      : source_(source), place_(place), text_(text), offset_(offset) {}

  NpyHeader read() {
    std::optional<DType> dtype;
    std::optional<bool> fortran_order;
    std::optional<Shape> shape;
    expect('{');
    while (!accept('}')) {
      const std::string_view key = string();
      expect(':');
      if (key == "descr" && !dtype)
        dtype = descr();
      else if (key == "fortran_order" && !fortran_order)
        fortran_order = boolean();
      else if (key == "shape" && !shape)
        shape = tuple();
      else
        reject(fmt::format("key {} is unknown or appears twice", in_quotes(key)));
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_spaces();
    if (position_ != text_.size()) reject("the header must end with the dict");
    if (!dtype || !fortran_order || !shape) reject("needs the keys descr, fortran_order and shape");
    return {*dtype, *shape, *fortran_order, offset_ + text_.size()};
  }

 private:
  [[noreturn]] void reject(std::string_view rule) const {
    source_.reject(fmt::format("{}header byte {}", place_, offset_ + position_), rule);
  }
  void skip_spaces() { position_ = std::min(text_.find_first_not_of(" \t\r\n", position_), text_.size()); }
  bool accept(char c) {
    skip_spaces();
    if (position_ == text_.size() || text_[position_] != c) return false;
    ++position_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) reject(fmt::format("'{}' is needed", c));
  }
  std::string_view string() {
    skip_spaces();
    const char quote = position_ < text_.size() ? text_[position_] : '\0';
    const auto end = quote == '\'' || quote == '"' ? text_.find(quote, position_ + 1) : text_.npos;
    if (end == text_.npos) reject("a string is needed");
    const std::string_view value = text_.substr(position_ + 1, end - position_ - 1);
    position_ = end + 1;
    return value;
  }
  bool boolean() {
    skip_spaces();
    for (const bool value : {true, false}) {
      const std::string_view word = value ? "True" : "False";
      if (!text_.substr(position_).starts_with(word)) continue;
      position_ += word.size();
      return value;
    }
    reject("True or False is needed");
  }
  DType descr() {
    skip_spaces();
    if (text_.substr(position_).starts_with('[')) reject("structured dtypes are not supported");
    const std::string_view value = string();
    const std::string_view type = value.empty() ? value : value.substr(1);
    if (type == "u1") return DType::u8;
    if (type == "i1") return DType::i8;
    if (type == "b1") return DType::bool_;
    if (value.starts_with('>')) {
      reject(fmt::format("descr {} is big-endian: little-endian data is needed", in_quotes(value)));
    }
    if (value == "<f4") return DType::f32;
    if (value == "<f8") return DType::f64;
    if (value == "<f2") return DType::f16;
    if (value == "<i4") return DType::i32;
    if (value == "<i8") return DType::i64;
    if (value == "<u2") return DType::u16;
    if (value == "<u4") return DType::u32;
    reject(fmt::format("descr {} is none of the supported <f4 <f8 <f2 <i4 <i8 <u2 <u4 |i1 |u1 |b1",
                       in_quotes(value)));
  }
  Shape tuple() {
    std::vector<std::int64_t> dims;
    expect('(');
    while (!accept(')')) {
      skip_spaces();
      std::int64_t value = 0;
      const char* begin = text_.data() + position_;
      const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
      if (error != std::errc{} || value < 0) reject("an extent from 0 to 2^63 - 1 is needed");
      position_ += static_cast<std::size_t>(end - begin);
      accept('L');  // Python 2 wrote long integers so
      dims.push_back(value);
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return source_.shape(fmt::format("{}header", place_), dims);
  }

  const Source& source_;
  std::string_view place_;
  std::string_view text_;
  std::size_t offset_;
  std::size_t position_ = 0;
};

/// Fortran order is C order with the axes reversed: walks the output in C order with the input's strides.
template <class T>
void to_c_order(const std::byte* in, const Shape& shape, T* out) {
  std::int64_t index[max_rank] = {};
  std::int64_t stride[max_rank] = {};
  std::int64_t step = 1;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    stride[axis] = step;
    step *= shape[axis];
  }
  std::int64_t offset = 0;
  for (std::int64_t i = 0, n = shape.numel(); i < n; ++i) {
    std::memcpy(out + i, in + offset * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
    for (int axis = shape.rank() - 1; axis >= 0; --axis) {
      offset += stride[axis];
      if (++index[axis] < shape[axis]) break;
      offset -= stride[axis] * shape[axis];
      index[axis] = 0;
    }
  }
}

HostTensor transposed_to_c_order(const HostTensor& tensor) {
  return HostTensor::make(tensor.dtype(), tensor.shape(), [&](std::span<std::byte> out) {
    const std::byte* in = tensor.bytes().data();
    const Shape& shape = tensor.shape();
    switch (size_of(tensor.dtype())) {  // only the width matters
      case 1:
        return to_c_order(in, shape, reinterpret_cast<std::uint8_t*>(out.data()));
      case 2:
        return to_c_order(in, shape, reinterpret_cast<std::uint16_t*>(out.data()));
      case 4:
        return to_c_order(in, shape, reinterpret_cast<std::uint32_t*>(out.data()));
      default:
        return to_c_order(in, shape, reinterpret_cast<std::uint64_t*>(out.data()));
    }
  });
}

std::string preamble(std::string_view descr, const Shape& shape) {
  std::string dict = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}", descr,
                                 fmt::join(shape.begin(), shape.end(), ", "), shape.rank() == 1 ? "," : "");
  // The data starts at a multiple of 64 bytes; spaces and one line feed fill the gap.
  dict.resize((10 + dict.size() + 1 + 63) / 64 * 64 - 10, ' ');
  dict.back() = '\n';
  std::string out(magic);
  out += {'\1', '\0'};
  append(out, static_cast<std::uint16_t>(dict.size()));
  return out + dict;
}

}  // namespace

NpyHeader parse_npy_header(const Source& source, std::string_view place, Bytes bytes) {
  const auto need = [&](std::size_t size) {
    if (bytes.size() >= size) return;
    source.reject(fmt::format("{}{} bytes", place, bytes.size()),
                  fmt::format("at least {} are needed for the header", size));
  };
  need(10);
  if (!as_text(bytes).starts_with(magic)) {
    source.reject(fmt::format("{}byte 0", place), "the magic \\x93NUMPY is needed");
  }
  const int major = static_cast<int>(bytes[6]), minor = static_cast<int>(bytes[7]);
  if (major < 1 || major > 3 || minor != 0) {
    source.reject(fmt::format("{}version {}.{}", place, major, minor), "1.0, 2.0 or 3.0 is needed");
  }
  const std::size_t start = major == 1 ? 10 : 12;
  need(start);
  const std::size_t length = major == 1 ? load<std::uint16_t>(bytes, 8) : load<std::uint32_t>(bytes, 8);
  need(start + length);
  return DictReader(source, place, as_text(bytes.subspan(start, length)), start).read();
}

HostTensor parse_npy(const Source& source, std::string_view place, Bytes bytes) {
  const NpyHeader header = parse_npy_header(source, place, bytes);
  if (bytes.size() != header.file_size()) {
    source.reject(fmt::format("{}{} bytes", place, bytes.size()),
                  fmt::format("{} of shape {} needs {}, header included", to_string(header.dtype),
                              to_string(header.shape), header.file_size()));
  }
  const Bytes data = bytes.subspan(header.data_offset);
  const HostTensor tensor = source.tensor(fmt::format("{}data", place), header.dtype, header.shape, data);
  return header.fortran_order && header.shape.rank() > 1 ? transposed_to_c_order(tensor) : tensor;
}

std::string npy_preamble(std::string_view writer, const HostTensor& tensor) {
  const auto descr = [&] {
    switch (tensor.dtype()) {
      case DType::f32:
        return "<f4";
      case DType::f64:
        return "<f8";
      case DType::f16:
        return "<f2";
      case DType::i32:
        return "<i4";
      case DType::i64:
        return "<i8";
      case DType::u8:
        return "|u1";
      case DType::bool_:
        return "|b1";
      case DType::i8:
        return "|i1";
      case DType::u16:
        return "<u2";
      case DType::u32:
        return "<u4";
      default:
        throw DTypeError(fmt::format("[{}] tensor of {}: NumPy has no such dtype, cast to f32 first", writer,
                                     to_string(tensor.dtype())));
    }
  }();
  return preamble(descr, tensor.shape());
}

}  // namespace io_detail

HostTensor read_npy(const std::filesystem::path& path) {
  const auto file = MappedFile::open(path, "read_npy");
  return io_detail::parse_npy({"read_npy", path.string(), file}, "", file->bytes());
}

HostTensor read_npy(std::span<const std::byte> bytes, std::string_view name) {
  return io_detail::parse_npy({"read_npy", name, nullptr}, "", bytes);
}

void write_npy(const std::filesystem::path& path, const HostTensor& tensor) {
  const std::string preamble = io_detail::npy_preamble("write_npy", tensor);
  AtomicFile out(path);
  out.write(preamble);
  out.write(tensor.bytes());
  out.commit();
}

}  // namespace ferrite
