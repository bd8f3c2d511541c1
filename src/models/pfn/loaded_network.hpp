// A network with its weights on a backend, as predictors share it.
#pragma once

#include <mutex>

#include "ferrite/models/pfn/file.hpp"
#include "ferrite/models/pfn/predictor_config.hpp"
#include "ferrite/models/pfn/recorded_context.hpp"
// The layers that the library compiles and shows: compiled here again, they would be hidden.
#include "ferrite/train/stacks.hpp"

namespace ferrite::pfn::detail {

/// Contexts of a network whose passes are recorded: each may keep 1 GiB for it in the standard network.
inline constexpr std::size_t most_recorded = 4;

using SharedContext = std::shared_ptr<RecordedContext<AnyBackend>>;

struct LoadedNetwork {
  AnyBackend backend;
  Network<AnyBackend> network;
  std::string path;
  std::string fingerprint;  // of config and weights
  Recording recording = Recording::no;
  /// Held while contexts are used: predictors that are copies of each other share them.
  std::mutex one_pass;
  /// Contexts that may be read into again, with what was recorded for them, once nobody else holds them.
  std::vector<SharedContext> contexts;

  /// In the place of one that nobody holds any more, if that has the same sizes. Throws what
  /// Network::forward_context throws.
  SharedContext read(const TrainRows& rows);
};

/// Throws what default_weights, AnyBackend and pfn::load throw, and ValueError for weights of another task.
std::shared_ptr<LoadedNetwork> load_network(const PredictorConfig& config, Task task);

}  // namespace ferrite::pfn::detail
