// A dataset's causal graph in the DOT language.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "ferrite/models/priors/describe.hpp"
#include "models/priors/made_dataset.hpp"

namespace ferrite::priors {
namespace {

/// Names of variables: observed ones are features or the target, all others are latent.
class Drawing {
 public:
  explicit Drawing(const MadeDataset& made) {
    for (int j = 0; j < made.features(); ++j) feature_[made.column(j)] = j;
  }
  /// Declares that a variable is the family's raw column c.
  void observe(const std::string& variable, int column) {
    if (const auto found = feature_.find(column); found != feature_.end())
      label_[variable] = fmt::format("x{}", found->second);
  }
  void target(const std::string& variable) { target_ = variable; }
  void edge(const std::string& from, const std::string& to, const std::string& label = "") {
    edges_ += fmt::format("  {} -> {}{};\n", use(from), use(to),
                          label.empty() ? "" : fmt::format(" [label=\"{}\"]", label));
  }
  std::string use(const std::string& variable) {
    if (!nodes_.contains(variable)) {
      const auto found = label_.find(variable);
      nodes_[variable] = variable == target_     ? "label=\"y\", shape=doubleoctagon"
                         : found != label_.end() ? fmt::format("label=\"{}\", shape=box", found->second)
                                                 : "label=\"\", shape=circle, width=0.15";
    }
    return variable;
  }
  std::string text() {
    for (const auto& [variable, label] : label_) use(variable);
    use(target_);
    std::string out = "digraph dataset {\n  rankdir=LR;\n";
    for (const auto& [variable, style] : nodes_) out += fmt::format("  {} [{}];\n", variable, style);
    return out + edges_ + "}\n";
  }

 private:
  std::map<int, int> feature_;
  std::map<std::string, std::string> label_, nodes_;
  std::string target_, edges_;
};

void draw(const GraphPlan& plan, int features, Drawing& drawing) {
  const auto name = [](int n) { return fmt::format("n{}", n); };
  drawing.target(name(plan.y_node));
  for (int j = 0; j < features; ++j) drawing.observe(name(plan.x_node[j]), j);
  for (int n = 0; n < plan.nodes; ++n)
    for (int p = 0; p < plan.node[n].parents; ++p)
      drawing.edge(name(plan.node[n].parent[p]), name(n), node_names[static_cast<int>(plan.node[n].kind)]);
}

void draw(const MlpPlan& plan, const DatasetKey& key, int features, Workspace& w, Drawing& drawing) {
  constexpr int strongest = 3;
  const auto name = [](int map, int unit) { return fmt::format("u{}_{}", map, unit); };
  const int maps = mlp_maps(plan);
  if (plan.causal) {
    drawing.target(name(plan.y_unit / plan.hidden + 1, plan.y_unit % plan.hidden));
    for (int j = 0; j < features; ++j)
      drawing.observe(name(plan.x_unit[j] / plan.hidden + 1, plan.x_unit[j] % plan.hidden), j);
  } else {
    drawing.target(name(maps - 1, 0));
    for (int j = 0; j < features; ++j) drawing.observe(fmt::format("c{}", j), j);
  }
  SerialTeam team;
  for (int map = 0; map < maps; ++map) {
    fill_mlp_map(team, plan, key, map, w);
    const int inputs = mlp_inputs(plan, map);
    for (int u = 0; u < mlp_outputs(plan, map); ++u) {
      const float* row = w.weights + u * inputs;
      std::vector<int> order(static_cast<std::size_t>(inputs));
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(),
                       [&](int a, int b) { return std::fabs(row[a]) > std::fabs(row[b]); });
      for (int i = 0; i < std::min(strongest, inputs); ++i) {
        const int from = order[static_cast<std::size_t>(i)];
        if (row[from] == 0) break;
        drawing.edge(map == 0 ? fmt::format("c{}", from) : name(map - 1, from), name(map, u));
      }
    }
  }
}

void draw(const TreePlan& plan, int features, Drawing& drawing) {
  const auto name = [&](int layer, int unit) {
    return layer < 0 ? fmt::format("c{}", unit) : fmt::format("t{}_{}", layer, unit);
  };
  drawing.target(name(plan.layers - 1, 0));
  for (int j = 0; j < features; ++j) drawing.observe(name(-1, j), j);
  for (int l = 0; l < plan.layers; ++l) {
    std::map<int, int> used;  // column -> splits
    for (int t = 0; t < plan.layer[l].trees; ++t)
      for (int d = 0; d < plan.layer[l].depth; ++d) ++used[plan.splits[l].column[t][d]];
    for (int u = 0; u < plan.layer[l].outputs; ++u)
      for (const auto& [column, count] : used) drawing.edge(name(l - 1, column), name(l, u));
  }
}

}  // namespace

std::string describe_dot(const Config& config, std::uint64_t seed, std::int64_t dataset) {
  MadeDataset made(config, seed, dataset);
  Drawing drawing(made);
  const int features = made.shape.features;
  switch (made.shape.family) {
    case Family::graph:
      draw(made.plan().graph, features, drawing);
      break;
    case Family::mlp_scm:
    case Family::mixture:
      draw(made.plan().mlp, made.key, features, made.workspace(), drawing);
      break;
    case Family::tree_scm:
      draw(made.plan().tree, features, drawing);
      break;
    case Family::formula:
      drawing.target("y");
      for (int j = 0; j < features; ++j) drawing.observe(fmt::format("c{}", j), j);
      for (int k = 0; k < formula_terms(config.formula, made.key); ++k) {
        const FormulaTerm& term = made.plan().formula[k];
        drawing.edge(fmt::format("c{}", term.feature), "y", term_names[static_cast<int>(term.kind)]);
      }
      break;
    case Family::gp:
      drawing.target("y");
      for (int j = 0; j < features; ++j) {
        drawing.observe(fmt::format("c{}", j), j);
        drawing.edge(fmt::format("c{}", j), "y");
      }
      break;
  }
  return drawing.text();
}

}  // namespace ferrite::priors
