// TreeScm: layers of random oblivious trees. The causes are x, and the last layer's only output is y. TabICL
// fits boosted trees to noise; an oblivious tree with drawn splits and leaves is just as random and needs no
// fit. A split picks a column in proportion to its spread, and a random row's value as its threshold.
#pragma once

#include "models/priors/mlp_scm.hpp"

namespace ferrite::priors {

inline constexpr int max_tree_layers = 4, max_trees = 8, max_tree_depth = 6, max_tree_units = 32;

struct TreeLayerPlan {
  int outputs, trees, depth;
};
/// The splits of a layer: level d of tree t asks whether column[t][d] exceeds value[t][d].
struct TreeSplits {
  int column[max_trees][max_tree_depth];
  float value[max_trees][max_tree_depth];
};
struct TreePlan {
  int layers;  // the last has one output
  float noise_std;
  CauseSampling sampling;
  TreeLayerPlan layer[max_tree_layers + 1];
  CausePlan cause[max_features];
  TreeSplits splits[max_tree_layers + 1];  // filled while the values are computed, since they depend on them
};

FERRITE_PORTABLE int capped_exponential(Draws& draws, const IntRange& range) {
  const double x = range.min + std::floor(draws.exponential(2));
  return x < range.max ? static_cast<int>(x) : range.max;
}

FERRITE_PORTABLE_CALL void draw_tree(const TreeScmConfig& config, const DatasetKey& key, int group_size,
                                     int features, TreePlan& plan) {
  Draws group(key.law_stream(group_size, 2)), draws(key.stream(Purpose::structure));
  const TruncatedNormal noise_std = upper_draw(config.noise_std, group);
  const bool pre_sample_stats = group_flag(group);
  plan.sampling = static_cast<CauseSampling>(group_choice(group, 3));
  plan.noise_std = static_cast<float>(noise_std.value(draws));
  const int hidden_layers = draws.integer(config.layers.min, config.layers.max);
  const int hidden = draws.integer(config.hidden.min, config.hidden.max);
  plan.layers = hidden_layers + 1;
  for (int l = 0; l < plan.layers; ++l) {
    const int trees = capped_exponential(draws, config.trees),
              depth = capped_exponential(draws, config.depth);
    plan.layer[l] = {l + 1 < plan.layers ? hidden : 1, trees, depth};
  }
  draw_causes(draws, plan.sampling, pre_sample_stats, features, plan.cause);
}

/// Which leaf of a tree a row reaches: one bit per level.
FERRITE_PORTABLE int tree_leaf(const TreeSplits& splits, int tree, int depth, const float* in, int rows,
                               int row) {
  int leaf = 0;
  for (int d = 0; d < depth; ++d)
    leaf = 2 * leaf + (in[splits.column[tree][d] * rows + row] > splits.value[tree][d] ? 1 : 0);
  return leaf;
}

/// Columns and thresholds for one layer. `spread` is scratch, one number per input.
template <class Team>
FERRITE_PORTABLE_CALL void draw_splits(Team& team, const TreeLayerPlan& layer, const Stream& stream,
                                       const float* in, int inputs, int rows, float* spread,
                                       TreeSplits& splits) {
  team.columns(inputs, [&](int c, auto& inner) {
    const Moments m = moments(inner, in + c * rows, rows);
    inner.once([&] { spread[c] = 1.0f / m.rstd; });
  });
  team.once([&] {
    Draws draws(stream);
    double weights[max_features];
    for (int c = 0; c < inputs; ++c) weights[c] = static_cast<double>(spread[c]);
    for (int t = 0; t < layer.trees; ++t) {
      for (int d = 0; d < layer.depth; ++d) {
        const int column = draws.weighted(weights, inputs);
        splits.column[t][d] = column;
        splits.value[t][d] = in[column * rows + draws.integer(0, rows - 1)];
      }
    }
  });
}

template <class Team>
FERRITE_HOST_DEVICE void generate_tree(Team& team, TreePlan& plan, const DatasetKey& key,
                                       const DatasetShape& shape, Workspace& w) {
  const int rows = shape.rows;
  fill_causes(team, key.stream(Purpose::causes), plan.cause, shape.features, w.x, rows);
  const float* in = w.x;
  float* buffers[] = {w.a, w.b};
  int inputs = shape.features;
  for (int l = 0; l < plan.layers; ++l) {
    const TreeLayerPlan& layer = plan.layer[l];
    const auto part = static_cast<std::uint32_t>(l);
    draw_splits(team, layer, key.stream(Purpose::trees, part), in, inputs, rows, w.bias, plan.splits[l]);
    // leaves [trees][leaf][outputs]
    const int leaves = 1 << layer.depth, values = layer.trees * leaves * layer.outputs;
    team.columns(
        1, [&](int, auto& inner) { inner.normals(key.stream(Purpose::leaves, part), 0, values, w.leaves); });
    float* out = buffers[l % 2];
    team.each(rows, [&](int r) {
      int leaf[max_trees];
      for (int t = 0; t < layer.trees; ++t)
        leaf[t] = t * leaves + tree_leaf(plan.splits[l], t, layer.depth, in, rows, r);
      for (int u = 0; u < layer.outputs; ++u) {
        float sum = 0;
        for (int t = 0; t < layer.trees; ++t) sum += w.leaves[leaf[t] * layer.outputs + u];
        out[u * rows + r] = sum / static_cast<float>(layer.trees);
      }
    });
    if (l > 0) add_noise(team, key, part, plan.noise_std, false, out, nullptr, layer.outputs, rows);
    in = out;
    inputs = layer.outputs;
  }
  copy_column(team, in, w.y, rows);
}

}  // namespace ferrite::priors
