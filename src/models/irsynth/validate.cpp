// Reads a dataset back and verifies it from the files alone.
#include <fmt/format.h>

#include <functional>
#include <map>
#include <vector>

#include "ferrite/core/thread_pool.hpp"
#include "ferrite/io/mapped_file.hpp"
#include "ferrite/kernel/adjoint.hpp"
#include "ferrite/kernel/parse.hpp"
#include "models/irsynth/folder.hpp"
#include "models/irsynth/record_steps.hpp"
#include "models/irsynth/sha256.hpp"

namespace ferrite::irsynth {

namespace {

Record read_record(const Json& json, const Config& config) {
  const Json& m = json.at("metadata");
  const std::string device(to_string(config.device));
  Record r;
  r.index = m.at("index");
  r.structure = m.at("hash");
  r.python = json.at("python_source");
  r.forward = json.at(device + "_forward");
  r.backward = json.value(device + "_backward", "");
  r.program.module = kernel::parse(r.python);
  if (r.program.module.kernels.size() != 1) throw ValueError("python_source has one kernel");
  r.program.category = m.at("category");
  r.program.description = m.at("description");
  r.program.level = m.at("level");
  r.program.grid = m.at("grid").get<std::vector<std::int64_t>>();
  r.program.block_dim = m.at("block_dim");
  for (const Json& a : m.at("arguments"))
    r.program.arguments.push_back(
        {a.at("low"), a.at("high"), a.value("shape", std::vector<std::int64_t>{}), a.at("output")});
  if (r.program.arguments.size() != static_cast<std::size_t>(r.program.kernel().parameters))
    throw ValueError("as many arguments as parameters are needed");
  return r;
}

/// Every problem of one record.
void verify(Record& r, const Json& json, const Plan& plan, std::vector<std::string>& problems) {
  const Json& m = json.at("metadata");
  const auto expect = [&](bool holds, std::string_view what) {
    if (!holds) problems.emplace_back(what);
  };
  expect(structure_hash(r.program) == r.structure, "the hash is not that of the program");
  expect(kernel::print(r.program.module) == r.python, "the Python is not as the printer writes it");
  expect(forward_text(plan.config, r.program.module) == r.forward,
         "the text is not what the emitter makes of the Python");
  if (!r.backward.empty()) {
    const kernel::Module back = kernel::adjoint(r.program.module, r.program.kernel());
    expect(backward_text(plan.config, r.program.module, back) == r.backward,
           "the backward text is not that of the adjoint");
    r.inputs = make_arguments(r.program, input_key(plan.seed, r.index));
    check_gradient(r, back, plan.seed);
    expect(r.failure.empty(), r.failure);
  }
  if (m.contains("outputs")) {
    r.inputs = make_arguments(r.program, input_key(plan.seed, r.index));
    if (!run_in_interpreter(r)) {
      problems.emplace_back("the program is too sensitive to its inputs: records are not");
      return;
    }
    run_on_cpu(r);
    expect(r.failure.empty(), r.failure);
  }
  for (std::string& p : wrong_fields(m, r, plan.config, plan.seed)) problems.push_back(std::move(p));
}

void check_digests(const std::filesystem::path& folder, std::vector<std::string>& problems) {
  std::error_code ignored;
  if (!std::filesystem::exists(folder / "manifest.json", ignored)) {
    problems.push_back("manifest.json is missing: the run is not finished");
    return;
  }
  for (const auto& [name, digest] : manifest_digests(folder)) {
    if (!std::filesystem::exists(folder / name, ignored))
      problems.push_back(name + " is missing");
    else if (sha256(MappedFile::open(folder / name)->text()) != digest)
      problems.push_back(name + " is not what its digest says");
  }
}

/// Runs `check()`; an exception counts as one more problem.
void guard(std::vector<std::string>& problems, const std::function<void()>& check) {
  try {
    check();
  } catch (const std::exception& e) {
    problems.emplace_back(e.what());
  }
}

struct Line {
  int number;
  Json json;
  Record record = {};
  std::vector<std::string> problems = {};
};

/// What is known of the records so far.
struct Seen {
  Tally tally;
  std::map<std::int64_t, std::string> places;  // of each record, by its number: file and line
};

/// The records of a file; lines that are not records, and duplicates, are problems.
std::vector<Line> read_lines(const std::filesystem::path& file, const Plan& plan, Seen& seen,
                             std::vector<std::string>& problems) {
  std::vector<Line> lines;
  for_each_text(file, plan.format, [&](std::string_view text, int number) {
    const std::string place = fmt::format("{}:{}", file.filename().string(), number);
    guard(problems, [&] {
      with_json(text, file.filename(), number, [&](const Json& json) {
        const std::vector<std::string> missing = missing_fields(json, plan.config);
        for (const std::string& m : missing) problems.push_back(place + ": " + m);
        if (!missing.empty()) return;
        const Summary summary(json.at("metadata"));
        const auto [first, fresh] = seen.places.try_emplace(summary.index, place);
        if (!fresh)
          problems.push_back(
              fmt::format("{}: record {} is at {} already", place, summary.index, first->second));
        seen.tally.add(summary);
        lines.push_back({number, json});
      });
    });
  });
  return lines;
}

void verify_file(const std::filesystem::path& file, std::int64_t number, const Plan& plan, bool compile,
                 Seen& seen, Validation& result) {
  const std::string name = file.filename().string();
  std::vector<Line> lines = read_lines(file, plan, seen, result.problems);
  if (const auto wanted = static_cast<std::size_t>(records_of_file(plan, number)); lines.size() != wanted)
    result.problems.push_back(fmt::format("{}: {} records: {} belong there", name, lines.size(), wanted));
  parallel_ranges(static_cast<std::int64_t>(lines.size()), 8, [&](std::int64_t begin, std::int64_t end) {
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
      Line& line = lines[i];
      guard(line.problems, [&] {
        line.record = read_record(line.json, plan.config);
        verify(line.record, line.json, plan, line.problems);
      });
    }
  });
  for (const Line& line : lines)
    for (const std::string& p : line.problems)
      result.problems.push_back(fmt::format("{}:{}: {}", name, line.number, p));
  if (!compile || plan.config.device != Device::cuda) return;
  std::vector<Record> records;
  for (Line& line : lines)
    if (!line.record.program.module.kernels.empty()) records.push_back(std::move(line.record));
  compile_records(plan.config, records);
  for (const Record& r : records) {
    result.compiled += r.failure.empty();
    if (!r.failure.empty())
      result.problems.push_back(fmt::format("{}: record {}: {}", name, r.index, r.failure));
  }
}

}  // namespace

Validation validate_dataset(const std::filesystem::path& folder, bool compile,
                            const std::function<void(const Progress&)>& report) {
  const Plan plan = read_plan(folder);
  Validation result;
  guard(result.problems, [&] { check_digests(folder, result.problems); });
  Seen seen;
  const Tally& tally = seen.tally;
  std::int64_t number = 0;
  for (const auto& file : record_files(folder, plan)) {
    verify_file(file, number++, plan, compile, seen, result);
    if (report) report({tally.records, plan.pairs, 0});
  }
  result.records = tally.records;
  if (tally.records != plan.pairs)
    result.problems.push_back(fmt::format("{} records: {} were asked for", tally.records, plan.pairs));
  if (tally.shared_structures() != 0)
    result.problems.push_back(fmt::format("{} structures are in two splits", tally.shared_structures()));
  for (const auto& [hash, n] : tally.structures)
    if (n > plan.config.most_per_structure)
      result.problems.push_back(fmt::format("{} records of structure {}", n, hash));
  return result;
}

}  // namespace ferrite::irsynth
