// Graph: a random DAG of scalar variables, each a random function of its parents plus noise. Some are
// observed as x, one as y, the others are latent.
#pragma once

#include "models/priors/tree_scm.hpp"

namespace ferrite::priors {

enum class NodeKind : std::uint8_t { root, sum, product, max, logsumexp, tree };
inline constexpr const char* node_names[] = {"root", "sum", "product", "max", "logsumexp", "tree"};

struct GraphNode {
  NodeKind kind;
  int parents;
  std::int16_t parent[max_parents];
  float weight[max_parents];
  ActivationPlan activation[max_parents];  // of each parent's contribution
  TreeLayerPlan tree;
  TreeSplits splits;
};
struct GraphPlan {
  int nodes, y_node, x_node[max_features];
  float noise_std;
  bool connected;  // x and y have a common ancestor (a variable is one of its own)
  GraphNode node[max_nodes];
  CausePlan cause[max_nodes];
};

/// Whether some x shares an ancestor with y: otherwise they are independent, and nothing can be learned.
FERRITE_PORTABLE_CALL bool graph_connected(const GraphPlan& plan, int features) {
  bool above_y[max_nodes] = {}, related[max_nodes] = {};
  above_y[plan.y_node] = true;
  for (int n = plan.y_node; n >= 0; --n)
    for (int p = 0; above_y[n] && p < plan.node[n].parents; ++p) above_y[plan.node[n].parent[p]] = true;
  for (int n = 0; n < plan.nodes; ++n) {
    related[n] = above_y[n];
    for (int p = 0; p < plan.node[n].parents; ++p) related[n] = related[n] || related[plan.node[n].parent[p]];
  }
  for (int j = 0; j < features; ++j)
    if (related[plan.x_node[j]]) return true;
  return false;
}

FERRITE_PORTABLE double sigmoid(double x) { return 1 / (1 + portable_exp(-x)); }

FERRITE_PORTABLE_CALL void draw_graph(const GraphConfig& config, const DatasetKey& key, int group_size,
                                      int features, GraphPlan& plan) {
  Draws group(key.law_stream(group_size, 3)), draws(key.stream(Purpose::structure));
  const TruncatedNormal noise_std = upper_draw(config.noise_std, group);
  const Gamma latent = upper_draw(config.latent, group);
  double weights[activation_entries];
  choice_weights(group, -5, 6, weights, activation_entries);
  const auto sampling = static_cast<CauseSampling>(group_choice(group, 3));
  plan.noise_std = static_cast<float>(noise_std.value(draws));
  const double drawn = std::rint(latent.value(draws));
  plan.nodes = features + 1 + (drawn < max_latent ? static_cast<int>(drawn) : max_latent);
  const double density = draws.cauchy();
  double out_rate[max_nodes];
  for (int n = 0; n < plan.nodes; ++n) out_rate[n] = draws.cauchy();
  for (int n = 0; n < plan.nodes; ++n) {
    GraphNode& node = plan.node[n];
    node.parents = 0;
    const double in_rate = draws.cauchy();
    int edges = 0;
    for (int p = n - 1; p >= 0; --p) {  // of more edges than fit, each stays with the same probability
      if (!draws.bernoulli(sigmoid(density + out_rate[p] + in_rate))) continue;
      const int place = edges < max_parents ? edges : draws.integer(0, edges);
      if (place < max_parents) node.parent[place] = static_cast<std::int16_t>(p);
      ++edges;
    }
    node.parents = lesser(edges, max_parents);
    node.kind = node.parents == 0 ? NodeKind::root : static_cast<NodeKind>(draws.integer(1, 5));
    for (int p = 0; p < node.parents; ++p) {
      node.weight[p] = static_cast<float>(draws.normal());
      node.activation[p] = draw_activation(draws, weights);
    }
    node.tree = {1, draws.integer(1, 4), draws.integer(2, 4)};
  }
  draw_causes(draws, sampling, false, plan.nodes, plan.cause);
  int chosen[max_features + 1];
  draws.distinct(plan.nodes, features + 1, chosen);
  plan.y_node = chosen[0];
  for (int j = 0; j < features; ++j) plan.x_node[j] = chosen[j + 1];
  plan.connected = graph_connected(plan, features);
}

/// Combines one more parent's contribution.
FERRITE_PORTABLE float combine(NodeKind kind, float sum, float value) {
  switch (kind) {
    case NodeKind::product:
      return sum * value;
    case NodeKind::max:
      return greater(sum, value);
    case NodeKind::logsumexp:
      return greater(sum, value) + portable_log(1.0f + portable_exp(-std::fabs(sum - value)));
    default:
      return sum + value;
  }
}

/// Values of node n from those before it; columns of `w.a`.
template <class Team>
FERRITE_HOST_DEVICE void generate_node(Team& team, GraphPlan& plan, const DatasetKey& key, int n, int rows,
                                       Workspace& w) {
  GraphNode& node = plan.node[n];
  float *out = w.a + n * rows, *parents = w.b;
  for (int p = 0; p < node.parents; ++p)
    copy_column(team, w.a + node.parent[p] * rows, parents + p * rows, rows);
  const auto part = static_cast<std::uint32_t>(n);
  if (node.kind == NodeKind::tree) {
    draw_splits(team, node.tree, key.stream(Purpose::trees, part), parents, node.parents, rows, w.bias,
                node.splits);
    const int leaves = 1 << node.tree.depth;
    team.columns(1, [&](int, auto& inner) {
      inner.normals(key.stream(Purpose::leaves, part), 0, node.tree.trees * leaves, w.leaves);
    });
    team.each(rows, [&](int r) {
      float sum = 0;
      for (int t = 0; t < node.tree.trees; ++t)
        sum += w.leaves[t * leaves + tree_leaf(node.splits, t, node.tree.depth, parents, rows, r)];
      out[r] = sum;
    });
    return;
  }
  for (int p = 0; p < node.parents; ++p) {
    const ActivationPlan& activation = node.activation[p];
    float* column = parents + p * rows;
    if (activation.kind == Activation::fourier)
      draw_fourier(team, key.stream(Purpose::fourier, part * max_parents + static_cast<std::uint32_t>(p)),
                   activation.decay, *w.series);
    apply_activation(team, activation, *w.series, column, 1, rows);
    team.columns(1, [&](int, auto& inner) {  // so that every parent counts
      const Moments m = moments(inner, column, rows);
      inner.each(rows, [&](int r) {
        const float value = node.weight[p] * (column[r] - m.mean) * m.rstd;
        out[r] = p == 0 ? value : combine(node.kind, out[r], value);
      });
    });
  }
}

template <class Team>
FERRITE_HOST_DEVICE void generate_graph(Team& team, GraphPlan& plan, const DatasetKey& key,
                                        const DatasetShape& shape, Workspace& w) {
  const int rows = shape.rows;
  fill_causes(team, key.stream(Purpose::causes), plan.cause, plan.nodes, w.a, rows);
  for (int n = 0; n < plan.nodes; ++n) {
    if (plan.node[n].kind == NodeKind::root) continue;
    generate_node(team, plan, key, n, rows, w);
    float* out = w.a + n * rows;
    team.columns(1, [&](int, auto& inner) {
      const Moments m = moments(inner, out, rows);
      inner.each(rows, [&](int r) { out[r] = (out[r] - m.mean) * m.rstd; });
    });
    add_noise(team, key, static_cast<std::uint32_t>(n), plan.noise_std, out, rows);
  }
  for (int j = 0; j < shape.features; ++j)
    copy_column(team, w.a + plan.x_node[j] * rows, w.x + j * rows, rows);
  copy_column(team, w.a + plan.y_node * rows, w.y, rows);
}

}  // namespace ferrite::priors
