// Datasets as files: a folder of shards, each .npz or .safetensors with the tensors of a batch. An
// interrupted run goes on where it stopped.
#pragma once

#include <filesystem>
#include <functional>

#include "ferrite/models/priors/priors.hpp"
#include "ferrite/tensor/host.hpp"

namespace ferrite::priors {

enum class ShardFormat : std::uint8_t { safetensors, npz };

/// The contents of the files.
struct ShardPlan {
  Config config;
  std::uint64_t seed = 0;
  std::int64_t first = 0;
  std::int64_t datasets = 0;
  std::int64_t shard_size = 1024;  ///< datasets per file
  ShardFormat format = ShardFormat::safetensors;
};

/// shard-00000.safetensors, shard-00001.safetensors, ... and prior.json, which describes them. Files appear
/// whole or not at all, but a power loss or a copy can truncate them later.
class FERRITE_API ShardFolder {
 public:
  /// Makes the folder, or opens one of the same plan. Throws ValueError if it holds shards of another plan or
  /// of another generator_version, or if the plan is impossible; IoError if it cannot be written.
  ShardFolder(const std::filesystem::path& folder, const ShardPlan& plan);

  std::int64_t shards() const;
  /// True if the shard is there and whole: it is read. Throws IoError if this cannot be determined.
  bool is_done(std::int64_t shard) const;
  /// First dataset of a shard, and how many it holds.
  std::int64_t first(std::int64_t shard) const;
  std::int64_t size(std::int64_t shard) const;
  std::filesystem::path path(std::int64_t shard) const;
  /// Atomically. Throws IoError, and leaves nothing behind, if the disk is full.
  void write(std::int64_t shard, const NamedTensors& tensors) const;

 private:
  std::filesystem::path folder_;
  ShardPlan plan_;
};

/// Writes one file of the given format. Throws IoError if that fails.
FERRITE_API void write_batch(const std::filesystem::path& path, ShardFormat format, const ShardPlan& plan,
                             const NamedTensors& tensors);

/// x, y, row_mask, feature_mask, levels and info in host memory.
template <class B>
NamedTensors to_host(const Batch<B>& batch) {
  return {{"x", ferrite::to_host(batch.x)},
          {"y", ferrite::to_host(batch.y)},
          {"row_mask", ferrite::to_host(batch.row_mask)},
          {"feature_mask", ferrite::to_host(batch.feature_mask)},
          {"levels", ferrite::to_host(batch.levels)},
          {"info", ferrite::to_host(batch.info)}};
}

/// Makes the shards that are missing or truncated. `done(tensors, datasets so far)` is called after each;
/// tensors are null for a shard found on disk.
template <class B>
void write_shards(B& backend, const std::filesystem::path& folder, const ShardPlan& plan,
                  const std::function<void(const NamedTensors*, std::int64_t)>& done) {
  const ShardFolder shards(folder, plan);
  std::int64_t finished = 0;
  for (std::int64_t s = 0; s < shards.shards(); ++s) {
    finished += shards.size(s);
    if (shards.is_done(s)) {
      done(nullptr, finished);
      continue;
    }
    const NamedTensors tensors =
        to_host(generate(backend, plan.config, plan.seed, shards.first(s), shards.size(s)));
    shards.write(s, tensors);
    done(&tensors, finished);
  }
}

}  // namespace ferrite::priors
