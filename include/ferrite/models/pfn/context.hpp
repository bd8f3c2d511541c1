// Context: what a prior-fitted network keeps of a dataset's train rows.
#pragma once

#include <string>

#include "ferrite/io/host_tensor.hpp"
#include "ferrite/models/pfn/block.hpp"
#include "ferrite/models/pfn/columns.hpp"

namespace ferrite::pfn {

/// Rows of N datasets with C columns, read by Network::forward_context. Other rows are predicted from it
/// alone. It fits only the weights that made it.
template <class B>
struct Context {
  ColumnScale<B> columns;  ///< of the train rows
  Tensor<B> is_category;   ///< [N, C]
  ColumnScale<B> labels;   ///< of the train labels, as one column [N, 1, 1]; undefined for classification
  std::vector<KeyValues<B>> layers;  ///< K = C + 1 cells; in the last layer only the label's

  /// Standardised labels in the units of the train labels. # Shapes: z [N, R] -> the same
  /// Throws ValueError for a classifier's context.
  Tensor<B> in_units(const Tensor<B>& z) const {
    if (!labels.mean.defined()) throw ValueError("[Pfn] a classifier's context: its labels have no units");
    return squeeze(labels.restore(unsqueeze(z, 2)), {2});
  }

  /// A copy on the host, for files.
  NamedTensors state() const {
    NamedTensors result;
    result.emplace("is_category", to_host(is_category));
    add(result, "columns.", columns);
    if (labels.mean.defined()) add(result, "labels.", labels);
    for (std::size_t i = 0; i < layers.size(); ++i) {
      result.emplace(layer_name(i) + "key", to_host(layers[i].key));
      result.emplace(layer_name(i) + "value", to_host(layers[i].value));
    }
    return result;
  }
  /// Throws ValueError if a tensor is missing. Network::predict checks the shapes.
  static Context from_state(B& backend, const NamedTensors& state) {
    const auto tensor = [&](const std::string& name) {
      const auto found = state.find(name);
      if (found == state.end()) throw ValueError("[Pfn] a context without '" + name + "'");
      return from_host(backend, found->second);
    };
    const auto scale = [&](const std::string& prefix) {
      return ColumnScale<B>{tensor(prefix + "magnitude"), tensor(prefix + "mean"),
                            tensor(prefix + "deviation")};
    };
    Context context{scale("columns."), tensor("is_category"), {}, {}};
    if (state.contains("labels.mean")) context.labels = scale("labels.");
    for (std::size_t i = 0; state.contains(layer_name(i) + "key"); ++i)
      context.layers.push_back({tensor(layer_name(i) + "key"), tensor(layer_name(i) + "value")});
    return context;
  }

 private:
  static std::string layer_name(std::size_t i) { return "layers." + std::to_string(i) + "."; }
  static void add(NamedTensors& to, const std::string& prefix, const ColumnScale<B>& scale) {
    to.emplace(prefix + "magnitude", to_host(scale.magnitude));
    to.emplace(prefix + "mean", to_host(scale.mean));
    to.emplace(prefix + "deviation", to_host(scale.deviation));
  }
};

}  // namespace ferrite::pfn
