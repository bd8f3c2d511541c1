// .npz: each zip member is an .npy file; member names are map keys and nothing else.
#include "ferrite/io/npz.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "ferrite/core/error.hpp"
#include "ferrite/io/mapped_file.hpp"
#include "io/npy_format.hpp"
#include "io/zip.hpp"

namespace ferrite {
namespace {

using io_detail::Bytes;
using io_detail::in_quotes;
using io_detail::Source;
using io_detail::ZipMember;

constexpr std::string_view extension = ".npy";
constexpr std::size_t max_name = 65'000;

void check_crc(const Source& source, const std::string& place, Bytes content, std::uint32_t expected) {
  const std::uint32_t crc = io_detail::crc32(content);
  if (crc != expected)
    source.reject(fmt::format("{}CRC {:08x}", place, crc), fmt::format("must be {:08x}", expected));
}

HostTensor read_deflated(const Source& source, const std::string& place, const ZipMember& member) {
  // The header gives the size of the array; a member that claims another size is not inflated further.
  constexpr std::uint64_t longest_header = 10 + 0xffff;
  const HostTensor start = io_detail::inflate_member(source, member, std::min(member.size, longest_header));
  const std::size_t needed = io_detail::parse_npy_header(source, place, start.bytes()).file_size();
  if (needed != member.size) {
    source.reject(fmt::format("{}{} bytes", place, member.size), fmt::format("its array needs {}", needed));
  }
  const auto content = std::make_shared<HostTensor>(io_detail::inflate_member(source, member, member.size));
  check_crc(source, place, content->bytes(), member.crc);
  return io_detail::parse_npy({source.reader, source.file, content}, place, content->bytes());
}

HostTensor read_member(const Source& source, const ZipMember& member) {
  const std::string place = fmt::format("member {}, ", in_quotes(member.name));
  if (member.method == io_detail::ZipMethod::deflated) return read_deflated(source, place, member);
  HostTensor tensor = io_detail::parse_npy(source, place, member.packed);
  check_crc(source, place, member.packed, member.crc);
  return tensor;
}

NamedTensors parse(const Source& source, Bytes bytes) {
  NamedTensors tensors;
  for (const ZipMember& member : read_zip_directory(source, bytes)) {
    const std::string place = "member " + in_quotes(member.name);
    std::string_view key = member.name;
    if (!key.ends_with(extension)) source.reject(place, "the name must end in .npy");
    key.remove_suffix(extension.size());
    if (tensors.contains(key)) source.reject(place, "the name appears twice");
    tensors.emplace(key, read_member(source, member));
  }
  return tensors;
}

}  // namespace

NamedTensors read_npz(const std::filesystem::path& path) {
  const auto file = MappedFile::open(path, "read_npz");
  return parse({"read_npz", path.string(), file}, file->bytes());
}

NamedTensors read_npz(std::span<const std::byte> bytes, std::string_view name) {
  return parse({"read_npz", name, nullptr}, bytes);
}

void write_npz(const std::filesystem::path& path, const NamedTensors& tensors) {
  io_detail::ZipWriter zip(path);
  for (const auto& [name, tensor] : tensors) {
    if (name.empty() || name.size() > max_name ||
        io_detail::find_invalid_utf8(name) != std::string_view::npos) {
      throw ValueError(fmt::format("[write_npz] tensor {}: the name must be UTF-8 of 1 to {} bytes",
                                   in_quotes(name), max_name));
    }
    const std::string preamble = io_detail::npy_preamble("write_npz", tensor);
    zip.add(name + std::string(extension), io_detail::as_bytes(preamble), tensor.bytes());
  }
  zip.commit();
}

}  // namespace ferrite
