// A file per key: a line with the format, the sizes and a checksum, then the key, then the code.
#include "kernel/compile/binary_cache.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <vector>

#include "core/hash.hpp"
#include "ferrite/io/atomic_file.hpp"

namespace ferrite::kernel {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view format_name = "ferrite binary 1";
std::string head_of(std::string_view key, std::string_view bytes) {
  return fmt::format("{} {} {} {:016x}\n", format_name, key.size(), bytes.size(), hash_text(bytes));
}

}  // namespace

BinaryCache BinaryCache::from_environment() {
  const auto variable = [](const char* name) {
    const char* const value = std::getenv(name);
    return fs::path(value != nullptr ? value : "");
  };
  if (const fs::path own = variable("FERRITE_CACHE_DIR"); !own.empty()) return BinaryCache(own / "kernels");
  if (const fs::path cache = variable("XDG_CACHE_HOME"); !cache.empty())
    return BinaryCache(cache / "ferrite" / "kernels");
  if (const fs::path home = variable("HOME"); !home.empty())
    return BinaryCache(home / ".cache" / "ferrite" / "kernels");
  return BinaryCache({});
}

/// The name is a hash of 128 bits; the file holds the key itself.
fs::path BinaryCache::file_of(std::string_view key) const {
  return folder_ / fmt::format("{:016x}{:016x}", hash_text(key), hash_text(key, 0x9e3779b97f4a7c15u));
}

std::optional<std::string> BinaryCache::find(std::string_view key) const noexcept {
  if (folder_.empty()) return std::nullopt;
  try {
    const fs::path file = file_of(key);
    std::ifstream in(file, std::ios::binary);
    std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    const std::size_t line = text.find('\n');
    if (line == std::string::npos || text.size() < line + 1 + key.size()) return std::nullopt;
    const std::string_view whole = text;
    const std::string_view bytes = whole.substr(line + 1 + key.size());
    if (whole.substr(line + 1, key.size()) != key || whole.substr(0, line + 1) != head_of(key, bytes))
      return std::nullopt;
    std::error_code ignored;
    fs::last_write_time(file, fs::file_time_type::clock::now(), ignored);  // used now
    return std::string(bytes);
  } catch (...) {
    return std::nullopt;
  }
}

void BinaryCache::keep(std::string_view key, std::string_view bytes) const noexcept {
  if (folder_.empty() || bytes.size() > most_bytes_ / 2) return;
  try {
    fs::create_directories(folder_);
    make_room(bytes.size());
    AtomicFile file(file_of(key));
    file.write(head_of(key, bytes));
    file.write(key);
    file.write(bytes);
    file.commit();
  } catch (...) {  // a full or read-only disk: compiled again next time
  }
}

void BinaryCache::make_room(std::uintmax_t bytes) const {
  struct File {
    fs::path path;
    fs::file_time_type used;
    std::uintmax_t size;
  };
  std::vector<File> files;
  std::uintmax_t total = bytes;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder_, error)) {
    if (!entry.is_regular_file(error)) continue;
    const auto used = entry.last_write_time(error);
    const std::uintmax_t size = entry.file_size(error);
    if (error) continue;  // another process removed it
    files.push_back({entry.path(), used, size});
    total += size;
  }
  if (total <= most_bytes_) return;
  std::sort(files.begin(), files.end(), [](const File& a, const File& b) { return a.used < b.used; });
  for (const File& file : files) {  // down to three quarters, so that it happens rarely
    if (total <= most_bytes_ / 4 * 3) break;
    if (fs::remove(file.path, error)) total -= file.size;
  }
}

}  // namespace ferrite::kernel
