// The measured chooser. If something can be computed in several ways, the first use times them all and keeps
// the fastest: in memory, and on disk so that the next process need not measure again. It does not depend on
// CUDA, and CI tests it on the host.
//
// Candidates may sum in different orders, so a choice among them can change the last bits of a result. Within
// a process a choice is made once; the file pins it for later ones; FERRITE_AUTOTUNE=0 takes the first
// candidate everywhere, whatever was measured before.
#pragma once

#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ferrite/core/export.hpp"

namespace ferrite::cuda {

struct AutotuneOptions {
  bool timing = true;          // false: always candidate `fixed`, counted around
  std::filesystem::path file;  // empty: nothing is kept on disk
  std::size_t fixed = 0;

  /// FERRITE_AUTOTUNE=0 switches timing off; "0:3" does too and takes candidate 3 everywhere, which lets
  /// tests run each of them. The file is autotune.jsonl in $FERRITE_CACHE_DIR, or else in ferrite/ under
  /// $XDG_CACHE_HOME or ~/.cache; there is none without a home folder.
  FERRITE_API static AutotuneOptions from_environment();
};

/// Any thread may use it. Lines of the file that are corrupt, cut off or foreign are taken out of it; a file
/// that cannot be written is given up. Both only leave a warning.
class FERRITE_API Autotuner {
 public:
  /// Seconds that candidate i takes; infinity if it cannot run.
  using Measure = std::function<double(std::size_t)>;

  /// `environment` names everything that timings depend on: GPU, driver, library versions.
  Autotuner(std::string environment, AutotuneOptions options)
      : environment_(std::move(environment)), options_(std::move(options)) {}

  /// False if the first candidate will be taken in any case.
  bool compares() const { return options_.timing || options_.fixed > 0; }
  /// The best of the candidates for `problem`: known, or measured now, one thread at a time. The first is
  /// taken unless another is at least 5 % faster, because close ones change their order from run to run.
  /// Nothing if none can run. A choice is valid only for this set of names.
  std::optional<std::size_t> choose(std::string_view problem, std::span<const std::string> names,
                                    const Measure& measure);
  /// The same without measuring: nothing if the choice is not known.
  std::optional<std::size_t> recall(std::string_view problem, std::span<const std::string> names);

  /// Keeps a choice that was not measured by `choose`, as for a problem of nearly the same size.
  void keep(std::string_view problem, std::span<const std::string> names, std::size_t choice);

  /// Problems with the file so far, oldest first.
  std::vector<std::string> warnings() const;

 private:
  using Choices = std::unordered_map<std::string, std::string>;  // problem and candidates -> name

  void load();
  void save(const std::string& key, const std::string& name);
  void warn(std::string text);

  const std::string environment_;
  AutotuneOptions options_;
  std::recursive_mutex measuring_;  // a candidate may be made of parts that choose themselves
  mutable std::mutex mutex_;        // of what follows
  bool loaded_ = false;
  Choices choices_;
  std::vector<std::string> warnings_;
};

}  // namespace ferrite::cuda
