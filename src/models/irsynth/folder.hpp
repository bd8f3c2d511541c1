// The files of a dataset, for writing and for reading.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <set>

#include "ferrite/models/irsynth/dataset.hpp"
#include "models/irsynth/record_json.hpp"

namespace ferrite::irsynth {

/// The counted properties of a record. Throws Json::exception if the metadata lacks one.
struct Summary {
  explicit Summary(const Json& metadata);
  std::int64_t index;
  std::string hash, split, category;
  int level;
  std::vector<std::string> verified;  // the checks that were done
};

/// The counts of the manifest; records come in any order.
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

/// One of very many files: whole or absent if the process is killed, but without the wait for the disk that
/// protects shards from a power loss. The next run overwrites what a killed one left.
void write_small(const std::filesystem::path& path, std::string_view text);
std::string shard_name(std::int64_t number);
std::string file_name(Device device, std::int64_t number);

/// Makes the candidate of a number, on any thread.
using Maker = std::function<Record(std::int64_t)>;
/// write_dataset with other candidates than make_record's: tests use it to insert failures.
FERRITE_API DatasetResult write_records(const std::filesystem::path& folder, const Plan& plan,
                                        const Maker& make,
                                        const std::function<void(const Progress&)>& report = {});

/// The files with records, in order, up to the first gap.
std::vector<std::filesystem::path> record_files(const std::filesystem::path& folder, const Plan& plan);
/// How many records the file of this number holds.
std::int64_t records_of_file(const Plan& plan, std::int64_t number);
/// The contents of irsynth.json. Throws IoError, ParseError, or ValueError for another generator.
Plan read_plan(const std::filesystem::path& folder);
std::string plan_text(const Plan& plan);
/// The SHA-256 of each file by its name, from the manifest of a finished run; nothing without one. Throws
/// ParseError.
std::map<std::string, std::string> manifest_digests(const std::filesystem::path& folder);

/// Calls `visit(text, line)` for each line of a file, or for all of it if the format is json.
void for_each_text(const std::filesystem::path& file, Format format,
                   const std::function<void(std::string_view, int)>& visit);
/// `use(json)` of a text. Text that is not JSON, or lacks what `use` asks for, is a ParseError that names the
/// file and the line.
void with_json(std::string_view text, const std::filesystem::path& file, int line,
               const std::function<void(const Json&)>& use);
/// Both: `visit(record)` for each record of a file.
void for_each_record(const std::filesystem::path& file, Format format,
                     const std::function<void(const Json&)>& visit);

}  // namespace ferrite::irsynth
