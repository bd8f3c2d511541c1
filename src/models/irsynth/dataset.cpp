// Writing a dataset: candidates are made in batches on all threads, and taken in the order of their numbers
// until there are enough.
#include "ferrite/models/irsynth/dataset.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>

#include "ferrite/core/thread_pool.hpp"
#include "ferrite/io/atomic_file.hpp"
#include "ferrite/io/mapped_file.hpp"
#include "models/irsynth/folder.hpp"
#include "models/irsynth/sha256.hpp"

namespace ferrite::irsynth {

namespace {

using Clock = std::chrono::steady_clock;

/// After this many candidates in a row without a new record, the run gives up. If more than one candidate in
/// twenty fails, and a hundred have, something is broken. Neither depends on time, so a run stops at the same
/// candidate with any number of threads, and when it is resumed.
constexpr std::int64_t most_in_vain = 10'000, least_failures = 100, candidates_per_failure = 20;

/// Empty too if the manifest is broken: the files are taken as they are then, and it is written anew.
std::map<std::string, std::string> readable_digests(const std::filesystem::path& folder) {
  try {
    return manifest_digests(folder);
  } catch (const ParseError&) {
    return {};
  }
}

class Writer {
 public:
  Writer(const std::filesystem::path& folder, const Plan& plan, const Maker& make,
         const std::function<void(const Progress&)>& report)
      : folder_(folder), plan_(plan), make_(make), report_(report) {
    plan.config.check();
    if (plan.pairs < 1 || plan.shard_size < 1)
      throw ValueError(
          fmt::format("[irsynth] {} pairs in shards of {}: at least 1", plan.pairs, plan.shard_size));
    open();
    resume();
  }

  DatasetResult run() {
    while (tally_.records < plan_.pairs) batch();
    finish();
    return {tally_.records, kept_, next_, static_cast<std::int64_t>(failures_.size()),
            static_cast<std::int64_t>(tally_.structures.size())};
  }

 private:
  void open() {
    std::error_code error;
    std::filesystem::create_directories(folder_, error);
    if (error) throw IoError(fmt::format("[irsynth] {}: {}", folder_.string(), error.message()));
    const auto description = folder_ / "irsynth.json";
    claimed_ = std::filesystem::exists(description, error) && !std::filesystem::is_empty(description, error);
    if (claimed_ && MappedFile::open(description)->text() != plan_text(plan_))
      throw ValueError(
          fmt::format("[irsynth] {} holds another run (see irsynth.json): give the same options to go on "
                      "with it, or another folder",
                      folder_.string()));
    if (!claimed_ && !record_files(folder_, plan_).empty())
      throw ValueError(fmt::format(
          "[irsynth] {} holds records, and no irsynth.json that says of which run: give another folder",
          folder_.string()));
  }

  /// Keeps the files of an earlier run, up to the first that is incomplete or was changed since.
  void resume() {
    const auto digests = readable_digests(folder_);
    for (const auto& file : record_files(folder_, plan_)) {
      const auto records = whole_file(file, static_cast<std::int64_t>(files_.size()));
      if (!records) break;
      Json entry = entry_of(file.filename().string(), MappedFile::open(file)->text());
      const auto digest = digests.find(entry["file"]);
      if (digest != digests.end() && digest->second != entry["sha256"]) break;
      for (const Summary& r : *records) tally_.add(r);
      last_ = records->back().index;
      files_.push_back(std::move(entry));
    }
    kept_ = tally_.records;
    next_ = last_ + 1;
    const auto path = folder_ / "failures.jsonl";
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) return;
    for_each_record(path, Format::jsonl, [&](const Json& failure) {
      if (failure.at("index").get<std::int64_t>() < next_)
        failures_.push_back(failure);
      else
        failures_changed_ = true;  // they are found again
    });
  }

  /// The records of a file, if it is complete. A power loss can leave small files empty or truncated.
  std::optional<std::vector<Summary>> whole_file(const std::filesystem::path& file, std::int64_t number) {
    std::vector<Summary> records;
    try {
      for_each_record(file, plan_.format,
                      [&](const Json& record) { records.emplace_back(record.at("metadata")); });
    } catch (const ParseError&) {
      return std::nullopt;
    }
    const std::int64_t wanted = records_of_file(plan_, number);
    const bool whole = static_cast<std::int64_t>(records.size()) == wanted && wanted > 0 &&
                       MappedFile::open(file)->text().ends_with('\n');
    return whole ? std::optional(std::move(records)) : std::nullopt;
  }

  void batch() {
    const std::int64_t wanted = plan_.pairs - tally_.records + plan_.pairs / 50 + 8;
    const bool compiles = plan_.config.verify >= Verify::compile;
    const std::int64_t count =
        std::min<std::int64_t>(wanted, (compiles ? 512 : 256) * std::int64_t{num_threads()});
    std::vector<Record> records(static_cast<std::size_t>(count));
    parallel_ranges(count, 16, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) records[static_cast<std::size_t>(i)] = make_(next_ + i);
    });
    if (plan_.config.verify == Verify::gpu) run_records_on_gpu(plan_.config, records);
    if (plan_.config.verify == Verify::compile || plan_.config.ptx) compile_records(plan_.config, records);
    std::vector<std::string> texts(records.size());
    parallel_ranges(count, 16, [&](std::int64_t begin, std::int64_t end) {
      for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i)
        if (records[i].failure.empty())
          texts[i] = to_json(records[i], plan_.config, plan_.seed,
                             plan_.format == Format::json ? Layout::lines : Layout::line);
    });
    for (std::size_t i = 0; i < records.size() && tally_.records < plan_.pairs; ++i)
      take(records[i], texts[i]);
    next_ += count;
    show(false);
  }

  void take(const Record& r, const std::string& text) {
    const auto found = tally_.structures.find(r.structure);
    const bool known = found != tally_.structures.end() && found->second >= plan_.config.most_per_structure;
    if (r.failure.empty() && !known) return add(r, text);
    if (!r.failure.empty()) {
      failures_changed_ = true;
      failures_.push_back({{"index", r.index},
                           {"category", r.program.category},
                           {"failure", r.failure},
                           {"python_source", r.python}});
      if (const auto failed = static_cast<std::int64_t>(failures_.size());
          failed >= least_failures && failed * candidates_per_failure > r.index + 1)
        give_up_failing(r.index + 1, r.failure);
    }
    if (r.index - last_ >= most_in_vain) give_up_full(r.index - last_);
  }

  void add(const Record& r, const std::string& text) {
    Json m{{"index", r.index},
           {"hash", r.structure},
           {"split", r.split()},
           {"category", r.program.category},
           {"level", r.program.level}};
    m["verification"] = verification_json(r.checks);
    tally_.add(Summary(m));
    last_ = r.index;
    shard_ += text;
    const bool full = plan_.format == Format::json || tally_.records % plan_.shard_size == 0;
    if (full || tally_.records == plan_.pairs) flush();
  }

  [[noreturn]] void give_up_full(std::int64_t in_vain) {
    write_failures();
    throw ValueError(fmt::format(
        "[irsynth] {} pairs of {}, then none in {} candidates: nearly all are of structures that have {} "
        "pairs already; ask for fewer pairs, more of a structure (--per-structure), or more categories and "
        "levels",
        tally_.records, plan_.pairs, in_vain, plan_.config.most_per_structure));
  }
  [[noreturn]] void give_up_failing(std::int64_t candidates, const std::string& last) {
    write_failures();
    throw BackendError(fmt::format(
        "[irsynth] {} of {} candidates could not be verified, more than one in {}, the last one because: {}. "
        "Something is broken: failures.jsonl has them all",
        failures_.size(), candidates, candidates_per_failure, last));
  }

  void write_failures() {
    if (!failures_changed_) return;
    std::string text;
    for (const Json& f : failures_) text += f.dump() + "\n";
    const auto path = folder_ / "failures.jsonl";
    std::error_code ignored;
    if (text.empty())
      std::filesystem::remove(path, ignored);
    else
      write_text(path, text);
    failures_changed_ = false;
  }

  /// The first file claims the folder for this run; a run that fails earlier leaves it free. Failures are
  /// written before records, so an existing shard has its failures beside it.
  void flush() {
    if (!claimed_) write_text(folder_ / "irsynth.json", plan_text(plan_));
    claimed_ = true;
    write_failures();
    const auto number = static_cast<std::int64_t>(files_.size());
    const bool single = plan_.format == Format::json;
    const std::string name = single ? file_name(plan_.config.device, number) : shard_name(number);
    (single ? write_small : write_text)(folder_ / name, shard_);
    files_.push_back(entry_of(name, shard_));
    shard_.clear();
    show(false);
  }

  /// What the manifest says of a file.
  static Json entry_of(const std::string& name, std::string_view text) {
    return {{"file", name}, {"bytes", text.size()}, {"sha256", sha256(text)}};
  }

  void finish() {
    Json manifest{{"name", "ferrite irsynth"},
                  {"version", FERRITE_VERSION},
                  {"generator", generator_version},
                  {"licence", "MIT"},
                  {"seed", std::to_string(plan_.seed)},
                  {"config", Json::parse(plan_.config.to_json())},
                  {"counts", tally_.json()},
                  {"candidates", last_ + 1},
                  {"failures", failures_.size()},
                  {"files", files_}};
    next_ = last_ + 1;
    write_text(folder_ / "manifest.json", manifest.dump(1) + "\n");
    show(true);
  }

  void show(bool last) {
    const Progress p{tally_.records, plan_.pairs,
                     std::chrono::duration<double>(Clock::now() - start_).count()};
    if (report_) report_(p);
    if (!last && p.seconds < shown_ + 1) return;
    shown_ = p.seconds;
    const double made = static_cast<double>(p.done - kept_);
    const Json json{{"done", p.done},
                    {"pairs", p.pairs},
                    {"seconds", std::round(p.seconds * 100) / 100},
                    {"pairs_per_second", std::round(made / std::max(p.seconds, 1e-3))},
                    {"failures", failures_.size()}};
    write_text(folder_ / "progress.json", json.dump(2) + "\n");
  }

  std::filesystem::path folder_;
  Plan plan_;
  Maker make_;
  std::function<void(const Progress&)> report_;
  Tally tally_;
  std::vector<Json> failures_, files_;
  std::string shard_;
  bool claimed_ = false;           // irsynth.json is there
  bool failures_changed_ = false;  // since failures.jsonl was written
  std::int64_t next_ = 0, last_ = -1, kept_ = 0;
  double shown_ = 0;
  Clock::time_point start_ = Clock::now();
};

}  // namespace

DatasetResult write_records(const std::filesystem::path& folder, const Plan& plan, const Maker& make,
                            const std::function<void(const Progress&)>& report) {
  return Writer(folder, plan, make, report).run();
}

DatasetResult write_dataset(const std::filesystem::path& folder, const Plan& plan,
                            const std::function<void(const Progress&)>& report) {
  const Maker make = [&](std::int64_t index) { return make_record(plan.config, plan.seed, index); };
  return write_records(folder, plan, make, report);
}

}  // namespace ferrite::irsynth
