// Tokens to numbered files.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ferrite/data/token_file.hpp"

namespace ferrite::cli::gpt {

/// Names of files from a pattern with one number, "shard_%04d.bin", or none.
class ShardNames {
 public:
  /// Throws ValueError unless each % begins a %d, %4d or %04d (%% is the sign itself), and for two numbers.
  explicit ShardNames(const std::string& pattern);
  bool numbered() const { return numbered_; }
  std::filesystem::path at(std::int64_t number) const;

 private:
  std::string before_, after_;
  bool numbered_ = false, zeros_ = false;
  int width_ = 0;
};

/// One token file after the other, each of `tokens` tokens. The last may have a hundredth more: a shorter
/// rest goes into it, as a file of a few tokens would be of no use to a loader.
class TokenShards {
 public:
  /// Most tokens of a shard: with the hundredth, what the format can count.
  static constexpr std::int64_t most_tokens = 2'000'000'000;

  /// Here and later throws ValueError if a file is there already, unless `overwrite`, and if it would replace
  /// one of `kept`.
  TokenShards(ShardNames names, DType dtype, std::int64_t tokens, bool overwrite,
              std::vector<std::filesystem::path> kept);
  TokenShards(const TokenShards&) = delete;
  TokenShards& operator=(const TokenShards&) = delete;
  /// Without a commit, removes the files that it wrote.
  ~TokenShards();

  void write(std::span<const std::int32_t> tokens);
  /// Also removes files of an earlier run whose numbers follow the last: a pattern would find them.
  void commit();

  std::int64_t size() const { return size_; }
  /// Those that are complete.
  const std::vector<std::filesystem::path>& files() const { return files_; }

 private:
  bool is_kept(const std::filesystem::path& path) const;
  void start_file();
  void finish_file();

  ShardNames names_;
  DType dtype_;
  std::int64_t tokens_, size_ = 0;
  bool overwrite_, committed_ = false;
  std::optional<data::TokenFileWriter> writer_;
  std::vector<std::int32_t> rest_;  // follows a full file; too short, so far, for one of its own
  std::vector<std::filesystem::path> files_, kept_;
};

}  // namespace ferrite::cli::gpt
