// Reading and writing the zip directory, with every offset checked before it is used.
#include "io/zip.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

namespace ferrite::io_detail {
namespace {

constexpr std::uint32_t local_signature = 0x04034b50;
constexpr std::uint32_t central_signature = 0x02014b50;
constexpr std::uint32_t end_signature = 0x06054b50;
constexpr std::uint32_t zip64_end_signature = 0x06064b50;
constexpr std::uint32_t zip64_locator_signature = 0x07064b50;
constexpr std::size_t local_size = 30, central_size = 46, end_size = 22, zip64_end_size = 56,
                      locator_size = 20;

constexpr std::uint16_t zip64_extra = 1;
constexpr std::uint16_t flag_encrypted = 1, flag_utf8 = 1 << 11;
constexpr std::uint16_t version_zip64 = 45;
constexpr std::uint16_t dos_date_1980 = 0x21;  // a fixed date, so that equal content gives equal files
constexpr std::uint64_t max_deflate_ratio = 1032;
constexpr auto in_zip64 = std::numeric_limits<std::uint32_t>::max();

class DirectoryReader {
 public:
  DirectoryReader(const Source& source, Bytes file) : source_(source), file_(file) {}

  std::vector<ZipMember> read() {
    find_directory();
    const Bytes directory = slice(directory_offset_, directory_size_, "the zip directory");
    std::vector<ZipMember> members;
    std::size_t position = 0;
    while (position < directory.size()) position += read_entry(directory.subspan(position), members);
    if (members.size() != member_count_) {
      source_.reject(fmt::format("zip directory of {} members", members.size()),
                     fmt::format("its end record says {}", member_count_));
    }
    check_overlap();
    return members;
  }

 private:
  struct Extent {
    std::uint64_t begin, end;
  };

  Bytes slice(std::uint64_t offset, std::uint64_t size, std::string_view what) const {
    if (offset > file_.size() || size > file_.size() - offset) {
      source_.reject(fmt::format("byte {}", offset),
                     fmt::format("{} of {} bytes is needed here, the file has {}", what, size, file_.size()));
    }
    return file_.subspan(offset, size);
  }

  /// The end record comes before a comment of at most 65535 bytes.
  void find_directory() {
    const std::size_t lowest = file_.size() > end_size + 0xffff ? file_.size() - end_size - 0xffff : 0;
    for (std::size_t at = file_.size(); at-- > lowest;) {
      if (file_.size() - at < end_size || load<std::uint32_t>(file_, at) != end_signature) continue;
      if (at + end_size + load<std::uint16_t>(file_, at + 20) != file_.size()) continue;
      read_end_record(at);
      return;
    }
    source_.reject(fmt::format("{} bytes", file_.size()), "a zip archive must end with its directory");
  }

  void read_end_record(std::size_t at) {
    const Bytes end = file_.subspan(at, end_size);
    bool one_disk = load<std::uint16_t>(end, 4) == 0 && load<std::uint16_t>(end, 6) == 0;
    member_count_ = load<std::uint16_t>(end, 10);
    directory_size_ = load<std::uint32_t>(end, 12);
    directory_offset_ = load<std::uint32_t>(end, 16);
    if (at >= locator_size && load<std::uint32_t>(file_, at - locator_size) == zip64_locator_signature) {
      const auto offset = load<std::uint64_t>(file_, at - locator_size + 8);
      const Bytes end64 = slice(offset, zip64_end_size, "the zip64 end record");
      if (load<std::uint32_t>(end64, 0) != zip64_end_signature) {
        source_.reject(fmt::format("byte {}", offset), "the zip64 end record is needed here");
      }
      one_disk = load<std::uint32_t>(end64, 16) == 0 && load<std::uint32_t>(end64, 20) == 0;
      member_count_ = load<std::uint64_t>(end64, 32);
      directory_size_ = load<std::uint64_t>(end64, 40);
      directory_offset_ = load<std::uint64_t>(end64, 48);
    }
    if (!one_disk) source_.reject(fmt::format("byte {}", at), "an archive in one part is needed");
  }

  /// Returns the size of the directory entry at the start of `directory`.
  std::size_t read_entry(Bytes directory, std::vector<ZipMember>& members) {
    const std::string number = fmt::format("zip directory, entry {}", members.size());
    if (directory.size() < central_size || load<std::uint32_t>(directory, 0) != central_signature) {
      source_.reject(number, "a directory entry is needed here");
    }
    const std::size_t name_size = load<std::uint16_t>(directory, 28);
    const std::size_t extra_size = load<std::uint16_t>(directory, 30);
    const std::size_t entry_size = central_size + name_size + extra_size + load<std::uint16_t>(directory, 32);
    if (directory.size() < entry_size) source_.reject(number, "the entry runs past the directory");

    ZipMember member;
    member.name = as_text(directory.subspan(central_size, name_size));
    const std::string place = "member " + in_quotes(member.name);
    if (find_invalid_utf8(member.name) != std::string_view::npos)
      source_.reject(place, "the name must be UTF-8");
    if (load<std::uint16_t>(directory, 8) & flag_encrypted)
      source_.reject(place, "encryption is not supported");
    member.method = static_cast<ZipMethod>(load<std::uint16_t>(directory, 10));
    member.crc = load<std::uint32_t>(directory, 16);
    std::uint64_t packed_size = load<std::uint32_t>(directory, 20);
    member.size = load<std::uint32_t>(directory, 24);
    std::uint64_t offset = load<std::uint32_t>(directory, 42);
    read_zip64_fields(place, directory.subspan(central_size + name_size, extra_size),
                      {&member.size, &packed_size, &offset});

    const Bytes local = slice(offset, local_size, "a member header");
    if (load<std::uint32_t>(local, 0) != local_signature) {
      source_.reject(fmt::format("{}, byte {}", place, offset), "a member header is needed here");
    }
    const std::uint64_t data_offset =
        offset + local_size + load<std::uint16_t>(local, 26) + load<std::uint16_t>(local, 28);
    member.packed = slice(data_offset, packed_size, place);
    check_sizes(member, place);
    extents_.push_back({offset, data_offset + packed_size});
    members.push_back(std::move(member));
    return entry_size;
  }

  /// The extra field holds, in this order, the values that did not fit their 32 bits.
  void read_zip64_fields(const std::string& place, Bytes extra, std::array<std::uint64_t*, 3> fields) const {
    while (extra.size() >= 4) {
      const auto id = load<std::uint16_t>(extra, 0);
      const std::size_t size = load<std::uint16_t>(extra, 2);
      if (size > extra.size() - 4) source_.reject(place, "the extra field runs past its end");
      Bytes values = extra.subspan(4, size);
      extra = extra.subspan(4 + size);
      if (id != zip64_extra) continue;
      for (std::uint64_t* field : fields) {
        if (*field != in_zip64) continue;
        if (values.size() < 8) source_.reject(place, "the zip64 field is too short");
        *field = load<std::uint64_t>(values, 0);
        values = values.subspan(8);
      }
      return;
    }
  }

  void check_sizes(const ZipMember& member, const std::string& place) const {
    if (member.method != ZipMethod::stored && member.method != ZipMethod::deflated) {
      source_.reject(fmt::format("{}, compression method {}", place, static_cast<int>(member.method)),
                     "stored (0) or deflated (8) is needed");
    }
    const std::string sizes =
        fmt::format("{}, {} bytes packed into {}", place, member.size, member.packed.size());
    if (member.method == ZipMethod::stored && member.size != member.packed.size()) {
      source_.reject(sizes, "a stored member has the same size twice");
    }
    if (member.size / max_deflate_ratio > member.packed.size()) {
      source_.reject(sizes, fmt::format("deflate cannot pack more than {} to 1", max_deflate_ratio));
    }
  }

  void check_overlap() {
    std::sort(extents_.begin(), extents_.end(), [](Extent a, Extent b) { return a.begin < b.begin; });
    extents_.push_back({directory_offset_, directory_offset_ + directory_size_});
    for (std::size_t i = 1; i < extents_.size(); ++i) {
      if (extents_[i].begin < extents_[i - 1].end) {
        source_.reject(fmt::format("byte {}", extents_[i].begin), "members and directory must not overlap");
      }
    }
  }

  const Source& source_;
  Bytes file_;
  std::uint64_t directory_offset_ = 0, directory_size_ = 0, member_count_ = 0;
  std::vector<Extent> extents_;
};

}  // namespace

std::vector<ZipMember> read_zip_directory(const Source& source, Bytes bytes) {
  return DirectoryReader(source, bytes).read();
}

void ZipWriter::write(Bytes bytes) {
  file_.write(bytes);
  position_ += bytes.size();
}

void ZipWriter::add(std::string_view name, Bytes head, Bytes body) {
  const std::uint64_t size = head.size() + body.size();
  const std::uint64_t offset = position_;
  // From `version needed` to `extra length`, local header and directory entry are the same.
  std::string common;
  append(common, version_zip64);
  append(common, flag_utf8);
  append(common, ZipMethod::stored);
  append(common, std::uint16_t{0});  // time
  append(common, dos_date_1980);
  append(common, crc32(body, crc32(head)));
  append(common, in_zip64);  // packed size
  append(common, in_zip64);  // size
  append(common, static_cast<std::uint16_t>(name.size()));

  std::string local;
  append(local, local_signature);
  local += common;
  append(local, std::uint16_t{20});  // extra length
  local += name;
  append(local, zip64_extra);
  append(local, std::uint16_t{16});
  append(local, size);
  append(local, size);
  write(as_bytes(local));
  write(head);
  write(body);

  append(directory_, central_signature);
  append(directory_, version_zip64);  // version made by
  directory_ += common;
  append(directory_, std::uint16_t{28});  // extra length
  append(directory_, std::uint16_t{0});   // comment length
  append(directory_, std::uint16_t{0});   // disk
  append(directory_, std::uint16_t{0});   // internal attributes
  append(directory_, std::uint32_t{0});   // external attributes
  append(directory_, in_zip64);           // offset
  directory_ += name;
  append(directory_, zip64_extra);
  append(directory_, std::uint16_t{24});
  append(directory_, size);
  append(directory_, size);
  append(directory_, offset);
  ++members_;
}

void ZipWriter::commit() {
  const std::uint64_t directory_offset = position_;
  const std::uint64_t directory_size = directory_.size();
  std::string& out = directory_;
  // NumPy recognises an empty archive by its first bytes, which must be those of the plain end record.
  const bool empty = members_ == 0;
  if (!empty) {
    append(out, zip64_end_signature);
    append(out, std::uint64_t{zip64_end_size - 12});
    append(out, version_zip64);
    append(out, version_zip64);
    append(out, std::uint32_t{0});  // this disk
    append(out, std::uint32_t{0});  // disk of the directory
    append(out, members_);
    append(out, members_);
    append(out, directory_size);
    append(out, directory_offset);
    append(out, zip64_locator_signature);
    append(out, std::uint32_t{0});  // disk of the zip64 end record
    append(out, directory_offset + directory_size);
    append(out, std::uint32_t{1});  // number of disks
  }
  append(out, end_signature);
  append(out, std::uint32_t{0});  // disks
  for (int i = 0; i < 3; ++i) {   // members, twice 16 bits; directory size; directory offset
    append(out, empty ? std::uint32_t{0} : in_zip64);
  }
  append(out, std::uint16_t{0});  // comment length
  write(as_bytes(out));
  file_.commit();
}

}  // namespace ferrite::io_detail
