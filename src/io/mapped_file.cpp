// Maps a file for reading, with errors that name it.
#include "ferrite/io/mapped_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "ferrite/core/error.hpp"

namespace ferrite {
namespace {

struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

[[noreturn]] void fail(std::string_view reader, const std::filesystem::path& path, int error) {
  throw IoError(fmt::format("[{}] {}: cannot be read: {}", reader, path.string(),
                            std::generic_category().message(error)));
}

}  // namespace

std::shared_ptr<const MappedFile> MappedFile::open(const std::filesystem::path& path,
                                                   std::string_view reader) {
  // Without O_NONBLOCK, opening a pipe that nobody writes to would wait for ever.
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  struct stat info {};
  if (file.fd < 0 || ::fstat(file.fd, &info) != 0) fail(reader, path, errno);
  if (S_ISDIR(info.st_mode)) fail(reader, path, EISDIR);
  if (!S_ISREG(info.st_mode)) {
    throw IoError(fmt::format("[{}] {}: cannot be mapped: a regular file is needed", reader, path.string()));
  }
  const auto size = static_cast<std::size_t>(info.st_size);
  void* data = nullptr;
  if (size > 0) {  // the system refuses to map nothing
    data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.fd, 0);
    if (data == MAP_FAILED) fail(reader, path, errno);
  }
  return std::shared_ptr<const MappedFile>(new MappedFile(static_cast<const std::byte*>(data), size));
}

MappedFile::~MappedFile() {
  if (size_ > 0) ::munmap(const_cast<std::byte*>(data_), size_);
}

}  // namespace ferrite
