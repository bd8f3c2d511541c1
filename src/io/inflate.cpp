// What zlib does for zip members: inflating and checksums.
#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>

#include "ferrite/core/error.hpp"
#include "io/zip.hpp"

namespace ferrite::io_detail {
namespace {

struct Inflater {
  z_stream stream{};
  int status = inflateInit2(&stream, -MAX_WBITS);  // negative: no zlib wrapper, as in zip
  ~Inflater() { inflateEnd(&stream); }
};

/// zlib counts in 32 bits; the consumed bytes are removed from the span.
template <class T>
uInt grant(std::span<T> span) {
  return static_cast<uInt>(std::min<std::size_t>(span.size(), 1u << 30));
}

}  // namespace

std::uint32_t crc32(Bytes bytes, std::uint32_t crc) {
  // For zlib a null pointer, which an empty span may have, asks for the start value.
  if (bytes.empty()) return crc;
  const auto* data = reinterpret_cast<const Bytef*>(bytes.data());
  return static_cast<std::uint32_t>(::crc32_z(crc, data, bytes.size()));
}

HostTensor inflate_member(const Source& source, const ZipMember& member, std::uint64_t size) {
  const std::string place = "member " + in_quotes(member.name);
  Inflater inflater;
  if (inflater.status != Z_OK)
    throw IoError(fmt::format("[{}] {}: zlib cannot start", source.reader, source.file));
  z_stream& z = inflater.stream;
  const Shape shape{static_cast<std::int64_t>(size)};
  return HostTensor::make(DType::u8, shape, [&](std::span<std::byte> out) {
    Bytes in = member.packed;
    // zlib needs room for one byte to notice that the stream goes on.
    std::byte surplus{};
    int status = Z_OK;
    while (status == Z_OK) {
      const bool full = out.empty();
      if (full && size < member.size) return;
      const std::span<std::byte> room = full ? std::span(&surplus, 1) : out;
      z.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(in.data()));
      z.avail_in = grant(in);
      z.next_out = reinterpret_cast<Bytef*>(room.data());
      z.avail_out = grant(room);
      const uInt given_in = z.avail_in, given_out = z.avail_out;
      status = inflate(&z, Z_NO_FLUSH);
      in = in.subspan(given_in - z.avail_in);
      const std::size_t produced = given_out - z.avail_out;
      if (full && produced > 0) source.reject(place, fmt::format("inflates to more than its {} bytes", size));
      if (!full) out = out.subspan(produced);
    }
    if (status != Z_STREAM_END) {
      source.reject(fmt::format("{}, packed byte {}", place, member.packed.size() - in.size()),
                    z.msg ? z.msg : "the deflated data ends too early");
    }
    if (!out.empty()) source.reject(place, fmt::format("inflates to {} bytes less than it says", out.size()));
    if (!in.empty()) source.reject(place, fmt::format("has {} bytes after its deflated data", in.size()));
  });
}

}  // namespace ferrite::io_detail
