// A folder of records. A run that was killed can resume where it stopped, and the folder can be read back.
//
//   irsynth.json       what was asked for: a run goes on only with the same
//   shard-00000.jsonl  records, one a line; or cuda_synth_0000.json, one a file
//   failures.jsonl     candidates that were not verified and so replaced by later ones, and why
//   manifest.json      at the end: counts, digests, splits
//   progress.json      how far a run is; the only file that differs between two runs of the same plan
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "ferrite/models/irsynth/record.hpp"

namespace ferrite::irsynth {

struct Plan {
  Config config;
  std::uint64_t seed = 42;
  std::int64_t pairs = 100;
  Format format = Format::json;
  std::int64_t shard_size = 1000;  // of jsonl
};

struct Progress {
  std::int64_t done = 0, pairs = 0;  // those of earlier runs too
  double seconds = 0;                // of this run
};

struct DatasetResult {
  std::int64_t pairs = 0, kept = 0;  // kept: of an earlier run
  std::int64_t candidates = 0;       // drawn for them; the rest failed or exceeded the limit of a structure
  std::int64_t failures = 0;
  std::int64_t structures = 0;  // distinct ones
};

/// Writes the records 0 to pairs - 1 on all threads of the pool. The contents of the folder do not depend on
/// the number of threads, nor on how often the run was interrupted. Truncated files, files that differ from
/// their digest in the manifest, and all after them, are written again. A candidate that fails verification
/// is counted, and a later one replaces it. Throws ValueError if the folder holds another plan, or if
/// candidate after candidate has a structure that is full; BackendError once a hundred candidates and more
/// than one in twenty have failed; IoError if the folder cannot be written.
FERRITE_API DatasetResult write_dataset(const std::filesystem::path& folder, const Plan& plan,
                                        const std::function<void(const Progress&)>& report = {});

/// The contents of a folder as JSON: counts by category, level, split and operation, lengths, distinct
/// structures, and structures that are in two splits. Throws ParseError, with the file, for a line that is
/// not a record, and IoError for a file of a finished run that is missing.
FERRITE_API std::string dataset_statistics(const std::filesystem::path& folder);

struct Validation {
  std::int64_t records = 0, compiled = 0;
  std::vector<std::string> problems;  // with file and line
};
/// Verifies everything again: digests of files, parsing, structure, texts, outputs, splits, gradients; with
/// `compile` also NVRTC.
FERRITE_API Validation validate_dataset(const std::filesystem::path& folder, bool compile,
                                        const std::function<void(const Progress&)>& report = {});

}  // namespace ferrite::irsynth
