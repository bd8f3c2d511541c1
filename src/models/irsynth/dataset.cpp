// Writing a dataset: candidates are made in batches on all threads, and taken in the order of their numbers
// until there are enough.
#include "ferrite/models/irsynth/dataset.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "ferrite/core/thread_pool.hpp"
#include "ferrite/io/mapped_file.hpp"
#include "models/irsynth/folder.hpp"
#include "models/irsynth/sha256.hpp"

namespace ferrite::irsynth {

namespace {

using Clock = std::chrono::steady_clock;

class Writer {
 public:
  Writer(const std::filesystem::path& folder, const Plan& plan,
         const std::function<void(const Progress&)>& report)
      : folder_(folder), plan_(plan), report_(report) {
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
    const std::string text = plan_text(plan_);
    if (!std::filesystem::exists(description, error)) {
      write_text(description, text);
    } else if (MappedFile::open(description)->text() != text) {
      throw ValueError(
          fmt::format("[irsynth] {} holds another run (see irsynth.json): give the same options to go on "
                      "with it, or another folder",
                      folder_.string()));
    }
  }

  /// What an earlier run left is taken as it is.
  void resume() {
    for (const auto& file : record_files(folder_, plan_)) {
      for_each_record(file, plan_.format, [&](const Json& record, int) {
        const Json& m = record.at("metadata");
        tally_.add(m);
        last_ = m.at("index");
      });
      add_file(file.filename().string(), MappedFile::open(file)->text());
    }
    kept_ = tally_.records;
    next_ = last_ + 1;
    const auto failures = folder_ / "failures.jsonl";
    std::error_code ignored;
    if (!std::filesystem::exists(failures, ignored)) return;
    std::string_view text = MappedFile::open(failures)->text();
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      const Json failure = Json::parse(text.substr(0, end));
      if (failure.at("index").get<std::int64_t>() < next_) failures_.push_back(failure);
      text.remove_prefix(std::min(end + 1, text.size()));
    }
  }

  void batch() {
    const std::int64_t wanted = plan_.pairs - tally_.records + plan_.pairs / 50 + 8;
    const bool compiles = plan_.config.verify >= Verify::compile;
    const std::int64_t count =
        std::min<std::int64_t>(wanted, (compiles ? 512 : 256) * std::int64_t{num_threads()});
    std::vector<Record> records(static_cast<std::size_t>(count));
    parallel_ranges(count, 16, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i)
        records[static_cast<std::size_t>(i)] = make_record(plan_.config, plan_.seed, next_ + i);
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
    if (!r.failure.empty()) {
      failures_.push_back({{"index", r.index},
                           {"category", r.program.category},
                           {"failure", r.failure},
                           {"python_source", r.python}});
      return;
    }
    const auto found = tally_.structures.find(r.structure);
    if (found != tally_.structures.end() && found->second >= plan_.config.most_per_structure) return;
    Json m{{"hash", r.structure},
           {"split", r.split()},
           {"category", r.program.category},
           {"level", r.program.level}};
    m["verification"] = verification_json(r.checks);
    tally_.add(m);
    last_ = r.index;
    shard_ += text;
    const bool full = plan_.format == Format::json || tally_.records % plan_.shard_size == 0;
    if (full || tally_.records == plan_.pairs) flush();
  }

  /// Failures first: a shard that is there has its failures beside it.
  void flush() {
    if (!failures_.empty()) {
      std::string text;
      for (const Json& f : failures_) text += f.dump() + "\n";
      write_text(folder_ / "failures.jsonl", text);
    }
    const auto number = static_cast<std::int64_t>(files_.size());
    const bool single = plan_.format == Format::json;
    const std::string name = single ? file_name(plan_.config.device, number) : shard_name(number);
    (single ? write_small : write_text)(folder_ / name, shard_);
    add_file(name, shard_);
    shard_.clear();
    show(false);
  }

  void add_file(const std::string& name, std::string_view text) {
    files_.push_back({{"file", name}, {"bytes", text.size()}, {"sha256", sha256(text)}});
  }

  void finish() {
    Json manifest{{"name", "ferrite irsynth"},
                  {"version", FERRITE_VERSION},
                  {"generator", generator_version},
                  {"licence", "MIT"},
                  {"seed", plan_.seed},
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
  std::function<void(const Progress&)> report_;
  Tally tally_;
  std::vector<Json> failures_, files_;
  std::string shard_;
  std::int64_t next_ = 0, last_ = -1, kept_ = 0;
  double shown_ = 0;
  Clock::time_point start_ = Clock::now();
};

}  // namespace

DatasetResult write_dataset(const std::filesystem::path& folder, const Plan& plan,
                            const std::function<void(const Progress&)>& report) {
  return Writer(folder, plan, report).run();
}

}  // namespace ferrite::irsynth
