// Temporary file, sync, rename, sync of the folder.
#include "ferrite/io/atomic_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <string>
#include <system_error>
#include <utility>

#include "ferrite/core/error.hpp"

namespace ferrite {
namespace fs = std::filesystem;
namespace {

/// Temporaries of "model.st" are called ".model.st.<process>-<number>.tmp".
std::string temporary_prefix(const fs::path& target) { return "." + target.filename().string() + "."; }
constexpr std::string_view temporary_suffix = ".tmp";

bool is_temporary(std::string_view name, std::string_view prefix) {
  if (name.size() <= prefix.size() + temporary_suffix.size()) return false;
  if (!name.starts_with(prefix) || !name.ends_with(temporary_suffix)) return false;
  name.remove_prefix(prefix.size());
  name.remove_suffix(temporary_suffix.size());
  return std::all_of(name.begin(), name.end(), [](char c) { return (c >= '0' && c <= '9') || c == '-'; });
}

/// The name of a temporary that is open, where a signal handler may read it.
struct KnownTemporary {
  enum State : int { free, taken, named };
  std::atomic<int> state = free;
  char path[PATH_MAX];
};
static_assert(std::atomic<int>::is_always_lock_free, "a handler may use nothing else");
std::array<KnownTemporary, 64> known_temporaries;

fs::path folder_of(const fs::path& target) { return target.has_parent_path() ? target.parent_path() : "."; }

/// A writer holds a lock on its temporary, and the system drops the lock when the process dies, for any
/// reason: a temporary that can be locked has no writer any more.
void remove_leftovers(const fs::path& target) {
  const std::string prefix = temporary_prefix(target);
  std::error_code ignored;
  for (fs::directory_iterator it(folder_of(target), ignored), end; it != end; it.increment(ignored)) {
    if (!is_temporary(it->path().filename().string(), prefix)) continue;
    const int fd = ::open(it->path().c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) continue;
    if (::flock(fd, LOCK_EX | LOCK_NB) == 0) ::unlink(it->path().c_str());
    ::close(fd);
  }
}

}  // namespace

AtomicFile::AtomicFile(const fs::path& path) : target_(path) {
  std::error_code error;
  if (fs::is_symlink(path, error)) {
    target_ = fs::canonical(path, error);
    if (error)
      throw IoError(fmt::format("[write] {}: cannot resolve it: {}", path.string(), error.message()));
  }
  struct stat info {};
  const bool exists = ::stat(target_.c_str(), &info) == 0;
  if (exists && !S_ISREG(info.st_mode)) {
    throw IoError(fmt::format("[write] {}: cannot be replaced: a regular file is needed", target_.string()));
  }
  remove_leftovers(target_);
  open_temporary();
  if (exists && ::fchmod(fd_, info.st_mode & 07777) != 0) fail("set permissions of", errno);
}

void AtomicFile::open_temporary() {
  static std::atomic<unsigned> counter{0};
  for (;;) {
    temporary_ = folder_of(target_) / fmt::format("{}{}-{}{}", temporary_prefix(target_), ::getpid(),
                                                  counter.fetch_add(1), temporary_suffix);
    fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd_ < 0 && errno == EEXIST) continue;
    if (fd_ < 0) fail("create a temporary for", errno);
    // Between open and flock another writer may have taken the file for a leftover: it then holds the lock,
    // or has already removed the name. File systems without locks just keep their leftovers.
    const bool taken = ::flock(fd_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    struct stat info {};
    if (!taken && ::fstat(fd_, &info) == 0 && info.st_nlink > 0) return register_temporary();
    discard();
  }
}

void AtomicFile::register_temporary() noexcept {
  const std::string& name = temporary_.native();
  if (name.size() >= PATH_MAX) return;
  for (std::size_t i = 0; i < known_temporaries.size(); ++i) {
    KnownTemporary& known = known_temporaries[i];
    int expected = KnownTemporary::free;
    if (!known.state.compare_exchange_strong(expected, KnownTemporary::taken)) continue;
    std::copy_n(name.c_str(), name.size() + 1, known.path);
    known.state = KnownTemporary::named;
    place_ = static_cast<int>(i);
    return;
  }
}

void AtomicFile::forget_temporary() noexcept {
  if (place_ < 0) return;
  known_temporaries[static_cast<std::size_t>(std::exchange(place_, -1))].state = KnownTemporary::free;
}

void AtomicFile::remove_temporaries() noexcept {
  for (const KnownTemporary& known : known_temporaries)
    if (known.state == KnownTemporary::named) ::unlink(known.path);
}

void AtomicFile::check_open() const {
  if (fd_ >= 0) return;
  throw IoError(fmt::format("[write] {}: nothing can follow a commit or a failure", target_.string()));
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  check_open();
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("write", errno);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void AtomicFile::overwrite(std::uint64_t offset, std::span<const std::byte> bytes) {
  check_open();
  const off_t end = ::lseek(fd_, 0, SEEK_CUR);
  if (end < 0) fail("find the end of", errno);
  const auto written = static_cast<std::uint64_t>(end);
  if (offset > written || bytes.size() > written - offset) fail("write past the end of", EINVAL);
  while (!bytes.empty()) {
    const ssize_t count = ::pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail("write", errno);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
    offset += static_cast<std::uint64_t>(count);
  }
}

void AtomicFile::commit() {
  check_open();
  if (::fsync(fd_) != 0) fail("sync", errno);
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) fail("rename the temporary of", errno);
  temporary_.clear();
  forget_temporary();
  // Closing releases the lock, so it waits until the name is the target's.
  if (::close(std::exchange(fd_, -1)) != 0) fail("close", errno);
  const int folder = ::open(folder_of(target_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) fail("open the folder of", errno);
  const int error = ::fsync(folder) != 0 ? errno : 0;
  ::close(folder);
  // Some file systems cannot sync folders and say EINVAL; nothing more can be done there.
  if (error != 0 && error != EINVAL) fail("sync the folder of", error);
}

void AtomicFile::discard() noexcept {
  if (fd_ < 0) return;
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  forget_temporary();
  ::close(std::exchange(fd_, -1));
}

void AtomicFile::fail(std::string_view action, int error) {
  discard();
  throw IoError(fmt::format("[write] {}: cannot {} it: {}", target_.string(), action,
                            std::generic_category().message(error)));
}

void write_text(const fs::path& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

}  // namespace ferrite
