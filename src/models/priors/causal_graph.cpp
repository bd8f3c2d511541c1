// From a family's plan to a causal graph, and that in the DOT language.
#include "models/priors/causal_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "ferrite/models/priors/describe.hpp"

namespace ferrite::priors {
namespace {

/// Adds nodes and edges; knows which of the family's columns became which feature.
class Builder {
 public:
  explicit Builder(const MadeDataset& made) {
    for (int j = 0; j < made.features(); ++j) feature_[made.column(j)] = j;
  }
  /// Declares that a variable is the family's column c: a feature, unless that was constant.
  void observe(const std::string& variable, int column) {
    const auto found = feature_.find(column);
    if (found != feature_.end())
      mark(variable, fmt::format("x{}", found->second), CausalGraph::Role::feature);
  }
  void target(const std::string& variable) { mark(variable, "y", CausalGraph::Role::target); }
  void edge(const std::string& from, const std::string& to, const std::string& label = "") {
    graph_.edge(from, to, label);
  }
  CausalGraph graph() { return std::move(graph_); }

 private:
  void mark(const std::string& variable, std::string label, CausalGraph::Role role) {
    CausalGraph::Node& node = graph_.nodes[static_cast<std::size_t>(graph_.node(variable))];
    node.label = std::move(label);
    node.role = role;
  }

  std::map<int, int> feature_;
  CausalGraph graph_;
};

void add(const GraphPlan& plan, int features, Builder& builder) {
  const auto name = [](int n) { return fmt::format("n{}", n); };
  builder.target(name(plan.y_node));
  for (int j = 0; j < features; ++j) builder.observe(name(plan.x_node[j]), j);
  for (int n = 0; n < plan.nodes; ++n)
    for (int p = 0; p < plan.node[n].parents; ++p)
      builder.edge(name(plan.node[n].parent[p]), name(n), node_names[static_cast<int>(plan.node[n].kind)]);
}

/// The inputs of one unit with the largest weights.
std::vector<int> strongest_inputs(const float* weights, int inputs) {
  constexpr int most = 3;
  std::vector<int> order(static_cast<std::size_t>(inputs));
  std::iota(order.begin(), order.end(), 0);
  std::erase_if(order, [&](int k) { return weights[k] == 0; });
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return std::fabs(weights[a]) > std::fabs(weights[b]); });
  if (order.size() > most) order.resize(most);
  return order;
}

void add(const MlpPlan& plan, const DatasetKey& key, int features, Workspace& w, Builder& builder) {
  const auto name = [](int map, int unit) {
    return map < 0 ? fmt::format("c{}", unit) : fmt::format("u{}_{}", map, unit);
  };
  const int maps = mlp_maps(plan);
  if (plan.causal) {
    builder.target(name(plan.y_unit / plan.hidden + 1, plan.y_unit % plan.hidden));
    for (int j = 0; j < features; ++j)
      builder.observe(name(plan.x_unit[j] / plan.hidden + 1, plan.x_unit[j] % plan.hidden), j);
  } else {
    builder.target(name(maps - 1, 0));
    for (int j = 0; j < features; ++j) builder.observe(name(-1, j), j);
  }
  SerialTeam team;
  for (int map = 0; map < maps; ++map) {
    fill_mlp_map(team, plan, key, map, {nullptr, mlp_outputs(plan, map)}, w);
    const int inputs = mlp_inputs(plan, map);
    for (int u = 0; u < mlp_outputs(plan, map); ++u)
      for (const int from : strongest_inputs(w.weights + u * inputs, inputs))
        builder.edge(name(map - 1, from), name(map, u));
  }
}

void add(const TreePlan& plan, int features, Builder& builder) {
  const auto name = [&](int layer, int unit) {
    return layer < 0 ? fmt::format("c{}", unit) : fmt::format("t{}_{}", layer, unit);
  };
  builder.target(name(plan.layers - 1, 0));
  for (int j = 0; j < features; ++j) builder.observe(name(-1, j), j);
  for (int l = 0; l < plan.layers; ++l) {
    std::set<int> used;
    for (int t = 0; t < plan.layer[l].trees; ++t)
      for (int d = 0; d < plan.layer[l].depth; ++d) used.insert(plan.splits[l].column[t][d]);
    for (int u = 0; u < plan.layer[l].outputs; ++u)
      for (const int column : used) builder.edge(name(l - 1, column), name(l, u));
  }
}

/// Features without causes of their own, and what joins them to y.
void add_star(const MadeDataset& made, const FormulaTerm* terms, int count, Builder& builder) {
  const auto name = [](int j) { return fmt::format("c{}", j); };
  builder.target("y");
  for (int j = 0; j < made.shape.features; ++j) builder.observe(name(j), j);
  for (int k = 0; k < count; ++k)
    builder.edge(name(terms[k].feature), "y", term_names[static_cast<int>(terms[k].kind)]);
  for (int j = 0; !terms && j < made.shape.features; ++j) builder.edge(name(j), "y");
}

}  // namespace

int CausalGraph::node(const std::string& name) {
  const auto [found, added] = index_.try_emplace(name, static_cast<int>(nodes.size()));
  if (added) nodes.push_back({name, "", Role::latent});
  return found->second;
}

void CausalGraph::edge(const std::string& from, const std::string& to, const std::string& label) {
  const int source = node(from);
  edges.push_back({source, node(to), label});
}

CausalGraph causal_graph(MadeDataset& made) {
  Builder builder(made);
  FamilyPlan& plan = made.plan();
  const int features = made.shape.features;
  switch (made.shape.family) {
    case Family::graph:
      add(plan.graph, features, builder);
      break;
    case Family::tree_scm:
      add(plan.tree, features, builder);
      break;
    case Family::formula:
      add_star(made, plan.formula,
               formula_terms(formula_law(made.config.formula, made.shape.features), made.key), builder);
      break;
    case Family::gp:
      add_star(made, nullptr, 0, builder);
      break;
    default:
      add(plan.mlp, made.key, features, made.workspace(), builder);
  }
  return builder.graph();
}

std::string describe_dot(const Config& config, std::uint64_t seed, std::int64_t dataset) {
  MadeDataset made(config, seed, dataset);
  const CausalGraph graph = causal_graph(made);
  std::string text = "digraph dataset {\n  rankdir=LR;\n";
  for (const CausalGraph::Node& node : graph.nodes) {
    const char* shape = node.role == CausalGraph::Role::target    ? "doubleoctagon"
                        : node.role == CausalGraph::Role::feature ? "box"
                                                                  : "circle, width=0.15";
    text += fmt::format("  {} [label=\"{}\", shape={}];\n", node.name, node.label, shape);
  }
  for (const CausalGraph::Edge& edge : graph.edges)
    text += fmt::format("  {} -> {}{};\n", graph.nodes[static_cast<std::size_t>(edge.from)].name,
                        graph.nodes[static_cast<std::size_t>(edge.to)].name,
                        edge.label.empty() ? "" : fmt::format(" [label=\"{}\"]", edge.label));
  return text + "}\n";
}

}  // namespace ferrite::priors
