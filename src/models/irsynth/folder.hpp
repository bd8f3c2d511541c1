// The files of a dataset, for writing and for reading.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <set>

#include "ferrite/models/irsynth/dataset.hpp"
#include "models/irsynth/record_json.hpp"

namespace ferrite::irsynth {

/// What the manifest counts; records come in any order.
struct Tally {
  std::int64_t records = 0;
  std::map<std::string, std::int64_t> categories, levels, splits, verification;
  std::map<std::string, std::int64_t> structures;
  std::map<std::string, std::set<std::string>> in_splits;  // structures of each split

  void add(const Json& metadata);
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

/// The files with records, in order; nothing after a gap.
std::vector<std::filesystem::path> record_files(const std::filesystem::path& folder, const Plan& plan);
/// What irsynth.json says. Throws IoError or ValueError.
Plan read_plan(const std::filesystem::path& folder);
std::string plan_text(const Plan& plan);
/// Calls `visit(record, line)` for each record of a file. Throws ValueError, with the place, for what is no
/// JSON.
void for_each_record(const std::filesystem::path& file, Format format,
                     const std::function<void(const Json&, int)>& visit);

}  // namespace ferrite::irsynth
