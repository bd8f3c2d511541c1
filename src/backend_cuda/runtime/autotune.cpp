// Choices and their file: {"format": "ferrite autotune 1", "choices": {environment: {problem: candidate}}}.
#include "backend_cuda/runtime/autotune.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "backend_cuda/runtime/compile_times.hpp"
#include "core/hash.hpp"
#include "ferrite/core/error.hpp"
#include "ferrite/io/atomic_file.hpp"

namespace ferrite::cuda {
namespace {

using nlohmann::json;

constexpr std::string_view format_name = "ferrite autotune 1";
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

bool is_ours(const json& document) {
  if (!document.is_object() || document.value("format", json()) != format_name) return false;
  const auto choices = document.find("choices");
  if (choices == document.end() || !choices->is_object()) return false;
  return std::all_of(choices->begin(), choices->end(), [](const json& environment) {
    return environment.is_object() && std::all_of(environment.begin(), environment.end(),
                                                  [](const json& name) { return name.is_string(); });
  });
}

json empty_document() { return {{"format", format_name}, {"choices", json::object()}}; }

/// The file's content, or an empty document; `problem` says what is wrong with an existing file.
json read(const std::filesystem::path& path, std::string& problem) {
  std::error_code error;
  const std::uintmax_t bytes = std::filesystem::file_size(path, error);
  if (error == std::errc::no_such_file_or_directory || error == std::errc::not_a_directory)
    return empty_document();
  if (error || bytes > most_bytes) {
    problem = error ? error.message() : fmt::format("{} bytes are too many", bytes);
    return empty_document();
  }
  std::ifstream stream(path, std::ios::binary);
  std::string text(static_cast<std::size_t>(bytes), '\0');
  if (!stream.read(text.data(), static_cast<std::streamsize>(bytes))) {
    problem = "cannot be read";
    return empty_document();
  }
  json document = json::parse(text, nullptr, false);
  if (document.is_discarded())
    problem = "is not JSON (corrupt or cut off)";
  else if (!is_ours(document))
    problem = fmt::format("is no file of the format \"{}\"", format_name);
  return problem.empty() ? document : empty_document();
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
    options.file = std::filesystem::path(own) / "autotune.json";
  else if (const auto cache = environment_variable("XDG_CACHE_HOME"); !cache.empty())
    options.file = std::filesystem::path(cache) / "ferrite" / "autotune.json";
  else if (const auto home = environment_variable("HOME"); !home.empty())
    options.file = std::filesystem::path(home) / ".cache" / "ferrite" / "autotune.json";
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
  std::string problem;
  const json document = read(options_.file, problem);
  if (!problem.empty()) warn(fmt::format("{}: {}; measured again", options_.file.string(), problem));
  const json& environments = document.at("choices");
  const auto own = environments.find(environment_);
  if (own == environments.end()) return;
  for (const auto& [key, name] : own->items()) choices_.emplace(key, name.get<std::string>());
}

void Autotuner::save(const std::string& key, const std::string& name) {
  const std::lock_guard guard(mutex_);
  choices_[key] = name;
  if (options_.file.empty()) return;
  try {
    if (options_.file.has_parent_path()) std::filesystem::create_directories(options_.file.parent_path());
    std::string problem;                           // load() has reported it
    json document = read(options_.file, problem);  // other processes may have added to it
    json& own = document["choices"][environment_];
    for (const auto& [known_key, known_name] : choices_) own.emplace(known_key, known_name);
    own[key] = name;
    AtomicFile file(options_.file);
    file.write(document.dump(1, ' ', false, json::error_handler_t::replace));
    file.commit();
  } catch (const std::exception& error) {
    warn(fmt::format("{}: cannot be written ({}); choices are kept for this process alone",
                     options_.file.string(), error.what()));
    options_.file.clear();
  }
}

void Autotuner::warn(std::string text) { warnings_.push_back("[autotune] " + std::move(text)); }

std::vector<std::string> Autotuner::warnings() const {
  const std::lock_guard guard(mutex_);
  return warnings_;
}

}  // namespace ferrite::cuda
