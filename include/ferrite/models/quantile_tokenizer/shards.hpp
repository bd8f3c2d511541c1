// Tokens of a table as a folder of .npy files, written while the table is read. An interrupted run goes on
// where it stopped: shards appear whole or not at all.
#pragma once

#include <filesystem>

#include "ferrite/models/quantile_tokenizer/table_tokenizer.hpp"

namespace ferrite::quantile_tokenizer {

struct ShardConfig {
  std::int64_t rows = 1 << 20;  // of a shard; the last one may have fewer
  /// Replaces all shards that are there. Otherwise those of the same run are kept, and those of another fit,
  /// table or size are an error.
  bool overwrite = false;
};

struct ShardResult {
  std::int64_t rows = 0;
  std::int64_t shards = 0;
  std::int64_t kept = 0;  // of an earlier run
};

/// Writes plan.json (what is made from what), tokens-00000.npy, tokens-00001.npy, ... in the width of the
/// tokenizer, each [rows, columns], and at the end index.json. Throws ValueError if the folder holds another
/// plan, IoError if it cannot be written. Existing shards are whole even then, and calling again with the
/// same arguments makes the rest; it makes a file that was truncated again, and all after it.
FERRITE_API ShardResult write_shards(const std::filesystem::path& folder, TableSource& source,
                                     const TableTokenizer& tokenizer, TableEngine& engine,
                                     const ShardConfig& config = {}, const TableProgress& progress = {});

/// The shards of a finished folder in order. Throws IoError or ParseError if there is no valid index.
FERRITE_API std::vector<std::filesystem::path> shard_files(const std::filesystem::path& folder);
/// The same for tokens that are turned back. ValueError if they are of another fit, or of other columns.
FERRITE_API std::vector<std::filesystem::path> shard_files(const std::filesystem::path& folder,
                                                           const TableTokenizer& tokenizer);

}  // namespace ferrite::quantile_tokenizer
