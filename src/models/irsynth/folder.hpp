// The files of a dataset, for writing and for reading.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <set>

#include "ferrite/models/irsynth/dataset.hpp"
#include "models/irsynth/record_json.hpp"

namespace ferrite::irsynth {

/// What is counted of a record. Throws Json::exception where the metadata has no such thing.
struct Summary {
  explicit Summary(const Json& metadata);
  std::int64_t index;
  std::string hash, split, category;
  int level;
  std::vector<std::string> verified;  // the checks that were done
};

/// What the manifest counts; records come in any order.
struct Tally {
  std::int64_t records = 0;
  std::map<std::string, std::int64_t> categories, levels, splits, verification;
  std::map<std::string, std::int64_t> structures;
  std::map<std::string, std::set<std::string>> in_splits;  // structures of each split

  void add(const Summary& record);
  /// Structures that are in more than one split.
  std::int64_t shared_structures() const;
  Json json() const;
};

void write_text(const std::filesystem::path& path, std::string_view text);
/// One of very many files: there whole or not at all when the process is killed, but without the wait for the
/// disk that guards shards against a loss of power. The next run writes over what a killed one left.
void write_small(const std::filesystem::path& path, std::string_view text);
std::string shard_name(std::int64_t number);
std::string file_name(Device device, std::int64_t number);

/// Makes the candidate of a number, on any thread.
using Maker = std::function<Record(std::int64_t)>;
/// write_dataset of other candidates than make_record gives: tests put failures among them.
FERRITE_API DatasetResult write_records(const std::filesystem::path& folder, const Plan& plan,
                                        const Maker& make,
                                        const std::function<void(const Progress&)>& report = {});

/// The files with records, in order; nothing after a gap.
std::vector<std::filesystem::path> record_files(const std::filesystem::path& folder, const Plan& plan);
/// How many records belong into a file with records, by its number.
std::int64_t records_of_file(const Plan& plan, std::int64_t number);
/// What irsynth.json says. Throws IoError, ParseError, or ValueError if it is of another generator.
Plan read_plan(const std::filesystem::path& folder);
std::string plan_text(const Plan& plan);

/// Calls `visit(text, line)` for each line of a file, or for all of it if the format is json.
void for_each_text(const std::filesystem::path& file, Format format,
                   const std::function<void(std::string_view, int)>& visit);
/// `use(json)` of a text. What is no JSON, or does not have what `use` asks it for, is a ParseError that
/// names the file and the line.
void with_json(std::string_view text, const std::filesystem::path& file, int line,
               const std::function<void(const Json&)>& use);
/// Both: `visit(record)` for each record of a file.
void for_each_record(const std::filesystem::path& file, Format format,
                     const std::function<void(const Json&)>& visit);

}  // namespace ferrite::irsynth
