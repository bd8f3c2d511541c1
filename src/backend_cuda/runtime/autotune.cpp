// Choices and their file, with one line of JSON for each: {"environment", "problem", "candidate"}. Lines are
// added: processes share the file, and a choice costs the same however many there are.
#include "backend_cuda/runtime/autotune.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "backend_cuda/runtime/compile_times.hpp"
#include "core/hash.hpp"
#include "ferrite/core/error.hpp"
#include "ferrite/io/atomic_file.hpp"

namespace ferrite::cuda {
namespace {

using nlohmann::json;

constexpr std::string_view file_name = "autotune.jsonl";
constexpr std::uintmax_t most_bytes = std::uintmax_t{64} << 20;

std::string_view environment_variable(const char* name) {
  const char* const value = std::getenv(name);
  return value ? value : "";
}

/// Includes a hash of all names: a choice among other candidates is not valid for these.
std::string key_of(std::string_view problem, std::span<const std::string> names) {
  std::uint64_t hash = hash_start;
  for (const std::string& name : names) hash = hash_text({name.c_str(), name.size() + 1}, hash);
  return fmt::format("{} of {:016x}", problem, hash);
}

/// A line of the file: all of them are strings.
struct Line {
  std::string environment, problem, candidate;

  static std::optional<Line> parse(const std::string& text) {
    const json document = json::parse(text, nullptr, false);
    if (!document.is_object()) return std::nullopt;
    Line line;
    for (const auto& [name, value] :
         {std::pair("environment", &line.environment), std::pair("problem", &line.problem),
          std::pair("candidate", &line.candidate)}) {
      const auto found = document.find(name);
      if (found == document.end() || !found->is_string()) return std::nullopt;
      *value = found->get<std::string>();
    }
    return line;
  }
  std::string text() const {
    const json document = {{"environment", environment}, {"problem", problem}, {"candidate", candidate}};
    return document.dump(-1, ' ', false, json::error_handler_t::replace) + '\n';
  }
};

/// Adds a line in one write, so that those of other processes stay whole. Returns what went wrong, if
/// anything.
std::string append(const std::filesystem::path& path, std::string line) {
  std::error_code error;
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), error);
  const int file = ::open(path.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0) return std::strerror(errno);
  // A process may have died in the middle of a line.
  const off_t size = ::lseek(file, 0, SEEK_END);
  char last = '\n';
  if (size > 0 && ::pread(file, &last, 1, size - 1) == 1 && last != '\n') line.insert(0, 1, '\n');
  const ssize_t written = ::write(file, line.data(), line.size());
  const std::string problem = written == static_cast<ssize_t>(line.size()) ? ""
                              : written < 0                                ? std::strerror(errno)
                                                                           : "the disk is full";
  ::close(file);
  return problem;
}

/// Measures the candidates close to the best again, in turns: a GPU that warms up or changes its clock would
/// otherwise favour some of them. Medians of five.
void measure_closer(std::vector<double>& seconds, const Autotuner::Measure& measure) {
  const double close = 1.2 * *std::min_element(seconds.begin(), seconds.end());
  std::vector<std::pair<std::size_t, std::vector<double>>> finalists;
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    if (seconds[i] <= close)
      finalists.push_back({i, {seconds[i]}});
    else
      seconds[i] = std::max(seconds[i], 2 * close);  // out of the race, whatever the others take now
  }
  if (finalists.size() == 1) return;
  for (int round = 1; round < 5; ++round)
    for (auto& [i, times] : finalists) times.push_back(measure(i));
  for (auto& [i, times] : finalists) {
    std::nth_element(times.begin(), times.begin() + 2, times.end());
    seconds[i] = times[2];
  }
}

}  // namespace

AutotuneOptions AutotuneOptions::from_environment() {
  AutotuneOptions options;
  const std::string_view autotune = environment_variable("FERRITE_AUTOTUNE");
  options.timing = autotune != "0" && !autotune.starts_with("0:");
  if (!options.timing && autotune.size() > 2)
    std::from_chars(autotune.data() + 2, autotune.data() + autotune.size(), options.fixed);
  if (const auto own = environment_variable("FERRITE_CACHE_DIR"); !own.empty())
    options.file = std::filesystem::path(own) / file_name;
  else if (const auto cache = environment_variable("XDG_CACHE_HOME"); !cache.empty())
    options.file = std::filesystem::path(cache) / "ferrite" / file_name;
  else if (const auto home = environment_variable("HOME"); !home.empty())
    options.file = std::filesystem::path(home) / ".cache" / "ferrite" / file_name;
  return options;
}

std::optional<std::size_t> Autotuner::choose(std::string_view problem, std::span<const std::string> names,
                                             const Measure& measure) {
  if (const auto choice = recall(problem, names)) return choice;
  const std::lock_guard one_at_a_time(measuring_);
  if (const auto choice = recall(problem, names)) return choice;  // another thread was faster
  const CompileScope compiling(fmt::format("choose {}", problem));

  std::vector<double> seconds;
  for (std::size_t i = 0; i < names.size(); ++i) seconds.push_back(measure(i));
  const auto runs = [](double s) { return std::isfinite(s); };
  const auto first = std::find_if(seconds.begin(), seconds.end(), runs);
  if (first == seconds.end()) return std::nullopt;
  measure_closer(seconds, measure);
  auto best = first;
  for (auto at = first; at != seconds.end(); ++at) {
    if (runs(*at) && *at < *best) best = at;
  }
  if (*best > 0.95 * *first) best = first;
  const auto index = static_cast<std::size_t>(best - seconds.begin());
  save(key_of(problem, names), names[index]);
  return index;
}

void Autotuner::keep(std::string_view problem, std::span<const std::string> names, std::size_t choice) {
  save(key_of(problem, names), names[choice]);
}

std::optional<std::size_t> Autotuner::recall(std::string_view problem, std::span<const std::string> names) {
  if (names.empty()) return std::nullopt;
  if (!options_.timing) return options_.fixed % names.size();
  if (names.size() == 1) return 0;
  const std::lock_guard guard(mutex_);
  load();
  const auto choice = choices_.find(key_of(problem, names));
  if (choice == choices_.end()) return std::nullopt;
  const auto name = std::find(names.begin(), names.end(), choice->second);
  if (name == names.end()) return std::nullopt;
  return static_cast<std::size_t>(name - names.begin());
}

void Autotuner::load() {
  if (std::exchange(loaded_, true) || options_.file.empty()) return;
  std::error_code error;
  const std::uintmax_t bytes = std::filesystem::file_size(options_.file, error);
  if (error) return;  // there is none yet; one that cannot be made is found out by save
  if (bytes > most_bytes) {
    warn(fmt::format("{}: {} bytes are too many; begun anew", options_.file.string(), bytes));
    std::filesystem::remove(options_.file, error);
    return;
  }
  std::ifstream stream(options_.file, std::ios::binary);
  std::size_t bad = 0;
  std::string good;
  for (std::string text; std::getline(stream, text);) {
    const std::optional<Line> line = Line::parse(text);
    if (!line) {
      ++bad;
      continue;
    }
    good += text + '\n';
    if (line->environment == environment_) choices_[line->problem] = line->candidate;
  }
  if (bad == 0) return;
  warn(fmt::format("{}: {} lines are not choices (corrupt or cut off); left out", options_.file.string(),
                   bad));
  try {
    AtomicFile file(options_.file);
    file.write(good);
    file.commit();
  } catch (const Error&) {  // then the next process warns again
  }
}

void Autotuner::save(const std::string& key, const std::string& name) {
  const std::lock_guard guard(mutex_);
  choices_[key] = name;
  if (options_.file.empty()) return;
  const std::string problem = append(options_.file, Line{environment_, key, name}.text());
  if (problem.empty()) return;
  warn(fmt::format("{}: cannot be written ({}); choices are kept for this process alone",
                   options_.file.string(), problem));
  options_.file.clear();
}

void Autotuner::warn(std::string text) { warnings_.push_back("[autotune] " + std::move(text)); }

std::vector<std::string> Autotuner::warnings() const {
  const std::lock_guard guard(mutex_);
  return warnings_;
}

}  // namespace ferrite::cuda
