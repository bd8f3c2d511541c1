// A network with its weights on a backend, as predictors share it.
#pragma once

#include "ferrite/models/pfn/file.hpp"
#include "ferrite/models/pfn/predictor_config.hpp"
// The layers that the library compiles and shows: compiled here again, they would be hidden.
#include "ferrite/train/stacks.hpp"

namespace ferrite::pfn::detail {

struct LoadedNetwork {
  AnyBackend backend;
  Network<AnyBackend> network;
  std::string path;
  std::string fingerprint;  // of config and weights
};

/// Throws what default_weights, AnyBackend and pfn::load throw, and ValueError for weights of another task.
std::shared_ptr<LoadedNetwork> load_network(const PredictorConfig& config, Task task);

}  // namespace ferrite::pfn::detail
