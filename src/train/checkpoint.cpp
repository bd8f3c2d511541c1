// The layout of checkpoint files and the upkeep of their folder.
#include "ferrite/train/checkpoint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <system_error>

#include "ferrite/core/error.hpp"
#include "ferrite/io/safetensors.hpp"
#include "ferrite/nn/state.hpp"

namespace ferrite::train {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view format_key = "format";
constexpr std::string_view format_name = "ferrite checkpoint 1";
constexpr std::string_view checksum_key = "checksum";
constexpr std::string_view file_prefix = "step-", file_suffix = ".safetensors";

HostTensor integers(std::initializer_list<std::int64_t> values) {
  return HostTensor::from(std::span<const std::int64_t>(values.begin(), values.size()),
                          {static_cast<std::int64_t>(values.size())});
}

template <class T>
std::span<const T> element_list(const fs::path& path, const NamedTensors& tensors, const std::string& name,
                                std::int64_t count) {
  const auto found = tensors.find(name);
  if (found == tensors.end())
    throw ParseError(fmt::format("[checkpoint] {}: has no tensor '{}'", path.string(), name));
  const HostTensor& t = found->second;
  if (t.dtype() != dtype_of<T> || !(t.shape() == Shape{count})) {
    throw ParseError(fmt::format("[checkpoint] {}: '{}' is {}: {} is needed", path.string(), name,
                                 to_string(Meta{t.shape(), t.dtype()}),
                                 to_string(Meta{{count}, dtype_of<T>})));
  }
  return t.as<T>();
}

/// A checksum of names and bytes. It finds damage, not forgery.
std::string checksum(const NamedTensors& tensors) {
  std::uint64_t sum = 0;
  const auto mix = [&](std::span<const std::byte> bytes) {
    for (std::size_t i = 0; i < bytes.size(); i += 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, bytes.data() + i, std::min<std::size_t>(8, bytes.size() - i));
      sum = std::rotl((sum ^ word) * 0x9e3779b97f4a7c15ull, 29);
    }
  };
  for (const auto& [name, tensor] : tensors) {
    mix(std::as_bytes(std::span(name)));
    mix(tensor.bytes());
  }
  return fmt::format("{:016x}", sum);
}

bool is_checkpoint(const SafeTensors& file) {
  const auto format = file.metadata.find(std::string(format_key));
  return format != file.metadata.end() && format->second == format_name;
}

/// Files from before there was a checksum have none.
void check_sum(const fs::path& path, const SafeTensors& file) {
  const auto stored = file.metadata.find(std::string(checksum_key));
  if (stored != file.metadata.end() && stored->second != checksum(file.tensors))
    throw ParseError(
        fmt::format("[checkpoint] {}: damaged: its checksum is not that of its bytes", path.string()));
}

SafeTensors read_file(const fs::path& path) {
  SafeTensors file = read_safetensors(path);
  if (!is_checkpoint(file)) {
    throw ParseError(fmt::format("[checkpoint] {}: its metadata must say {} = \"{}\"", path.string(),
                                 format_key, format_name));
  }
  check_sum(path, file);
  file.metadata.erase(std::string(format_key));
  file.metadata.erase(std::string(checksum_key));
  return file;
}

std::vector<std::string_view> parts_of(std::string_view text) {
  std::vector<std::string_view> parts;
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    const std::size_t end = std::min(text.find_first_of(",;"), text.size());
    parts.push_back(text.substr(0, end));
    if (end == text.size()) return parts;
    text.remove_prefix(end + 1);
  }
}

/// Settings are lists of parts, often long: those in which two of them differ.
std::pair<std::string, std::string> differing_parts(std::string_view a, std::string_view b) {
  std::vector<std::string_view> left = parts_of(a), right = parts_of(b);
  if (left.size() != right.size()) return {std::string(a), std::string(b)};
  std::vector<std::string_view> there, here;
  for (std::size_t i = 0; i < left.size(); ++i) {
    if (left[i] == right[i]) continue;
    there.push_back(left[i]);
    here.push_back(right[i]);
  }
  if (there.empty()) return {std::string(a), std::string(b)};  // they differ in spaces alone
  return {fmt::format("{}", fmt::join(there, ", ")), fmt::format("{}", fmt::join(here, ", "))};
}

}  // namespace

void write_checkpoint(const fs::path& path, const Checkpoint& checkpoint) {
  SafeTensors file;
  file.metadata = checkpoint.settings;
  file.metadata[std::string(format_key)] = format_name;
  file.tensors = with_prefix("model.", checkpoint.model);
  file.tensors.merge(with_prefix("average.", checkpoint.average));
  file.tensors.merge(with_prefix("average_state.", checkpoint.average_state));
  file.tensors.merge(with_prefix("optimizer.", checkpoint.optimizer));
  for (const auto& [name, key] : checkpoint.rngs) {
    file.tensors.emplace("rng." + name, integers({std::bit_cast<std::int64_t>(key.seed),
                                                  std::bit_cast<std::int64_t>(key.stream)}));
  }
  file.tensors.emplace("trainer.step", integers({checkpoint.step}));
  file.tensors.emplace("trainer.position", integers({checkpoint.position.epoch, checkpoint.position.batch}));
  if (checkpoint.best)
    file.tensors.emplace("trainer.best",
                         HostTensor::from(std::span<const double>(&*checkpoint.best, 1), {1}));
  if (checkpoint.stale > 0) file.tensors.emplace("trainer.stale", integers({checkpoint.stale}));
  file.metadata[std::string(checksum_key)] = checksum(file.tensors);
  write_safetensors(path, file);
}

Checkpoint read_checkpoint(const fs::path& path) {
  SafeTensors file = read_file(path);
  Checkpoint result;
  result.settings = std::move(file.metadata);
  result.model = strip_prefix("model.", file.tensors);
  result.average = strip_prefix("average.", file.tensors);
  result.average_state = strip_prefix("average_state.", file.tensors);
  result.optimizer = strip_prefix("optimizer.", file.tensors);
  const NamedTensors rngs = strip_prefix("rng.", file.tensors);
  for (const auto& item : rngs) {
    const auto words = element_list<std::int64_t>(path, rngs, item.first, 2);
    result.rngs[item.first] = {std::bit_cast<std::uint64_t>(words[0]),
                               std::bit_cast<std::uint64_t>(words[1])};
  }
  result.step = element_list<std::int64_t>(path, file.tensors, "trainer.step", 1)[0];
  if (result.step < 0)
    throw ParseError(fmt::format("[checkpoint] {}: step {} is negative", path.string(), result.step));
  const auto position = element_list<std::int64_t>(path, file.tensors, "trainer.position", 2);
  result.position = {position[0], position[1]};
  if (file.tensors.contains("trainer.best"))
    result.best = element_list<double>(path, file.tensors, "trainer.best", 1)[0];
  if (file.tensors.contains("trainer.stale"))
    result.stale = element_list<std::int64_t>(path, file.tensors, "trainer.stale", 1)[0];
  return result;
}

NamedTensors read_weights(const fs::path& path) {
  SafeTensors file = read_safetensors(path);
  if (!is_checkpoint(file)) return std::move(file.tensors);
  check_sum(path, file);
  NamedTensors weights = strip_prefix("average.", file.tensors);
  weights.merge(strip_prefix("model.", file.tensors));  // whatever has no average
  return weights;
}

void write_weights(const fs::path& path, const NamedTensors& weights,
                   const std::map<std::string, std::string>& settings) {
  write_safetensors(path, {settings, weights});
}

std::map<std::string, std::string> read_settings(const fs::path& path) {
  return read_safetensors(path).metadata;
}

void check_settings(const fs::path& path, const std::map<std::string, std::string>& saved,
                    const std::map<std::string, std::string>& current) {
  std::vector<std::string> differences;
  bool schedule_alone = true;
  for (const auto& [name, value] : current) {
    const auto found = saved.find(name);
    if (found == saved.end() && name == "update") continue;  // checkpoints of 0.1.0 do not all have it
    const std::string_view other = found == saved.end() ? std::string_view("nothing") : found->second;
    if (other == value) continue;
    const auto [there, here] = differing_parts(other, value);
    differences.push_back(fmt::format("{} is \"{}\" there and \"{}\" here", name, there, here));
    schedule_alone = schedule_alone && name == "schedule";
  }
  if (differences.empty()) return;
  throw ValueError(
      fmt::format("[resume] {}: {}: give what that run had, or begin another in another folder{}",
                  path.string(), fmt::join(differences, "; "),
                  schedule_alone ? " (programs: or with_schedule_change(ScheduleChange::accept))" : ""));
}

void check_rngs(const fs::path& path, const std::map<std::string, RandomKey>& saved,
                const std::map<std::string, Rng*>& current) {
  for (const auto& [name, rng] : current) {
    const auto found = saved.find(name);
    if (found == saved.end())
      throw ValueError(
          fmt::format("[resume] {}: has no position of the generator '{}'", path.string(), name));
    if (found->second.seed != rng->seed()) {
      throw ValueError(
          fmt::format("[resume] {}: generator '{}' has seed {} there and {} here: they must be the same",
                      path.string(), name, found->second.seed, rng->seed()));
    }
  }
  for (const auto& item : saved) {
    if (!current.contains(item.first))
      throw ValueError(fmt::format("[resume] {}: this run has no generator '{}'", path.string(), item.first));
  }
}

CheckpointFolder::CheckpointFolder(fs::path folder, int keep) : folder_(std::move(folder)), keep_(keep) {
  if (keep < 1) throw ValueError(fmt::format("[checkpoint] keep {}: must be at least 1", keep));
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error)
    throw IoError(
        fmt::format("[checkpoint] {}: cannot make the folder: {}", folder_.string(), error.message()));
}

std::map<std::int64_t, fs::path> CheckpointFolder::numbered() const {
  std::map<std::int64_t, fs::path> files;
  std::error_code ignored;
  for (fs::directory_iterator it(folder_, ignored), end; it != end; it.increment(ignored)) {
    const std::string name = it->path().filename().string();
    if (!name.starts_with(file_prefix) || !name.ends_with(file_suffix)) continue;
    const char* first = name.data() + file_prefix.size();
    const char* last = name.data() + name.size() - file_suffix.size();
    std::int64_t step = 0;
    if (first < last && std::from_chars(first, last, step).ptr == last) files[step] = it->path();
  }
  return files;
}

fs::path CheckpointFolder::save(const Checkpoint& checkpoint) const {
  const fs::path path = folder_ / fmt::format("{}{:08}{}", file_prefix, checkpoint.step, file_suffix);
  write_checkpoint(path, checkpoint);
  std::map<std::int64_t, fs::path> files = numbered();
  files.erase(files.upper_bound(checkpoint.step), files.end());  // of steps that this run has not made
  while (files.size() > static_cast<std::size_t>(keep_)) {
    std::error_code ignored;  // a file that cannot be removed only costs space
    fs::remove(files.begin()->second, ignored);
    files.erase(files.begin());
  }
  return path;
}

fs::path CheckpointFolder::save_best(const Checkpoint& checkpoint) const {
  write_checkpoint(best(), checkpoint);
  return best();
}

std::vector<fs::path> CheckpointFolder::newest_first() const {
  std::vector<fs::path> paths;
  for (const auto& item : numbered()) paths.insert(paths.begin(), item.second);
  return paths;
}

std::optional<fs::path> CheckpointFolder::latest() const {
  const auto paths = newest_first();
  if (paths.empty()) return std::nullopt;
  return paths.front();
}

}  // namespace ferrite::train
