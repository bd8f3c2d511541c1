// Checkpoints: everything a run needs to resume bit for bit, in one safetensors file that is written whole or
// not at all.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ferrite/core/rng.hpp"
#include "ferrite/data/source.hpp"
#include "ferrite/io/host_tensor.hpp"

namespace ferrite::train {

/// In the file, tensors are called "model.NAME", "average.NAME", "average_state.NAME", "optimizer.NAME",
/// "rng.NAME" (seed and position, i64 [2]) and "trainer.step", "trainer.position", "trainer.best",
/// "trainer.stale"; `settings` are the file's metadata, beside a checksum of all bytes.
struct Checkpoint {
  NamedTensors model;
  /// Averages of the model's parameters (WeightAverage) up to this step; empty if the run has none.
  NamedTensors average;
  /// The averages after their last update, from which a run goes on; empty if that was at this step.
  NamedTensors average_state;
  NamedTensors optimizer;
  std::map<std::string, RandomKey> rngs;
  std::int64_t step = 0;
  data::LoaderPosition position;
  /// Best value of the watched metric so far.
  std::optional<double> best;
  /// Evaluations in a row without improvement.
  std::int64_t stale = 0;
  /// What a resumed run must have in common with this one: optimiser, schedule, data.
  std::map<std::string, std::string> settings;
};

/// Atomic; the previous file of this name survives a crash at any moment. Throws IoError.
FERRITE_API void write_checkpoint(const std::filesystem::path& path, const Checkpoint& checkpoint);
/// Throws IoError or ParseError naming the file and what is wrong with it.
FERRITE_API Checkpoint read_checkpoint(const std::filesystem::path& path);

/// Only the weights, for inference: write_weights(path, net.state()) and net.load_state(read_weights(path)).
/// Reads the model's tensors from a checkpoint, averaged ones where it has them, or all tensors from any
/// other safetensors file.
FERRITE_API NamedTensors read_weights(const std::filesystem::path& path);
FERRITE_API void write_weights(const std::filesystem::path& path, const NamedTensors& weights,
                               const std::map<std::string, std::string>& settings = {});
/// The settings beside the weights: the metadata of a checkpoint or of any other safetensors file.
FERRITE_API std::map<std::string, std::string> read_settings(const std::filesystem::path& path);

/// Throws ValueError naming the differences between a checkpoint and the run that resumes from it.
FERRITE_API void check_settings(const std::filesystem::path& path,
                                const std::map<std::string, std::string>& saved,
                                const std::map<std::string, std::string>& current);
FERRITE_API void check_rngs(const std::filesystem::path& path, const std::map<std::string, RandomKey>& saved,
                            const std::map<std::string, Rng*>& current);

/// A folder of checkpoints "step-00000100.safetensors" and "best.safetensors".
class FERRITE_API CheckpointFolder {
 public:
  /// Makes the folder. The last `keep` numbered files up to the step that is saved stay. Throws IoError, or
  /// ValueError if keep < 1.
  explicit CheckpointFolder(std::filesystem::path folder, int keep = 3);

  /// Returns the path. Older files are removed only after the new one is in place.
  std::filesystem::path save(const Checkpoint& checkpoint) const;
  std::filesystem::path save_best(const Checkpoint& checkpoint) const;
  /// The numbered file of the highest step, if there is one; and all of them, from the highest step down.
  std::optional<std::filesystem::path> latest() const;
  std::vector<std::filesystem::path> newest_first() const;
  std::filesystem::path best() const { return folder_ / "best.safetensors"; }

 private:
  std::map<std::int64_t, std::filesystem::path> numbered() const;

  std::filesystem::path folder_;
  int keep_;
};

}  // namespace ferrite::train
