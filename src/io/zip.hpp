// The part of the zip format that .npz archives use: a directory of stored or deflated members.
#pragma once

#include <vector>

#include "ferrite/io/atomic_file.hpp"
#include "io/format.hpp"

namespace ferrite::io_detail {

enum class ZipMethod : std::uint16_t { stored = 0, deflated = 8 };

struct ZipMember {
  std::string name;
  ZipMethod method;
  std::uint32_t crc;
  Bytes packed;
  std::uint64_t size;  // unpacked; for stored members equal to packed.size()
};

/// CRC-32 as zip uses it; `crc` continues an earlier call.
std::uint32_t crc32(Bytes bytes, std::uint32_t crc = 0);

/// All members. Rejects entries outside the file, members that overlap or claim to unpack to more than
/// deflate can, encryption, other methods, several disks and names that are not UTF-8.
std::vector<ZipMember> read_zip_directory(const Source& source, Bytes bytes);

/// The first `size` bytes of a deflated member as a u8 tensor; if `size` is member.size, it must end there.
/// The caller checks the CRC.
HostTensor inflate_member(const Source& source, const ZipMember& member, std::uint64_t size);

/// Writes stored members with zip64 fields throughout: one form for all sizes, the one NumPy uses too.
class ZipWriter {
 public:
  explicit ZipWriter(const std::filesystem::path& path) : file_(path) {}
  /// The content is the concatenation of both parts.
  void add(std::string_view name, Bytes head, Bytes body);
  void commit();

 private:
  void write(Bytes bytes);

  AtomicFile file_;
  std::string directory_;
  std::uint64_t members_ = 0;
  std::uint64_t position_ = 0;
};

}  // namespace ferrite::io_detail
