// A dataset's structure as JSON. The numbers come from the functions that the generator calls.
#include "ferrite/models/priors/describe.hpp"

#include <nlohmann/json.hpp>

#include "models/priors/made_dataset.hpp"

namespace ferrite::priors {
namespace {

using Json = nlohmann::ordered_json;

Json numbers(const float* values, int count) { return std::vector<float>(values, values + count); }

Json describe(const FormulaTerm& term) {
  const bool turns = term.kind == TermKind::sin || term.kind == TermKind::cos;
  const double unit = turns ? 6.283185307179586 : 1;  // of the angle
  return {{"function", term_names[static_cast<int>(term.kind)]},
          {"column", term.feature},
          {"coefficient", term.c},
          {"frequency", static_cast<double>(term.w) * unit},
          {"shift", static_cast<double>(term.b) * unit}};
}

Json describe(const CausePlan& cause) {
  Json json{{"law", cause_names[static_cast<int>(cause.kind)]}};
  if (cause.kind == CauseKind::normal) json.update({{"mean", cause.mean}, {"std", cause.std}});
  if (cause.levels > 0) json["cumulative"] = numbers(cause.bounds, cause.levels - 1);
  return json;
}
Json describe(const CausePlan* causes, int count) {
  Json json = Json::array();
  for (int c = 0; c < count; ++c) json.push_back(describe(causes[c]));
  return json;
}

Json describe(const ActivationPlan& activation, const Stream& stream) {
  Json json{{"function", activation_names[static_cast<int>(activation.kind)]},
            {"scale", activation.scale},
            {"shift", activation.shift}};
  if (activation.kind != Activation::fourier) return json;
  SerialTeam team;
  const auto series = std::make_unique<FourierSeries>();
  draw_fourier(team, stream, activation.decay, *series);
  json["decay"] = activation.decay;
  json["offset"] = series->offset;
  json["re"] = numbers(series->re, series->terms);
  json["im"] = numbers(series->im, series->terms);
  return json;
}

Json describe(const TreeLayerPlan& layer, const TreeSplits& splits, const Stream& stream) {
  Json trees = Json::array();
  const int leaves = 1 << layer.depth;
  for (int t = 0; t < layer.trees; ++t) {
    Json values = Json::array();
    for (int i = 0; i < leaves * layer.outputs; ++i)
      values.push_back(stream.normal(static_cast<std::uint64_t>(t * leaves * layer.outputs + i)));
    trees.push_back({{"columns", std::vector<int>(splits.column[t], splits.column[t] + layer.depth)},
                     {"thresholds", numbers(splits.value[t], layer.depth)},
                     {"leaves", values}});
  }
  return {{"outputs", layer.outputs}, {"trees", trees}};
}

Json describe(const MlpPlan& plan, const DatasetKey& key, int features, Workspace& w) {
  Json maps = Json::array();
  SerialTeam team;
  for (int map = 0; map < mlp_maps(plan); ++map) {
    const int inputs = mlp_inputs(plan, map), outputs = mlp_outputs(plan, map);
    const auto part = static_cast<std::uint32_t>(map);
    fill_mlp_map(team, plan, key, map, {nullptr, mlp_outputs(plan, map)}, w);
    Json entry;
    if (map > 0) entry["activation"] = describe(plan.activation[map], key.stream(Purpose::fourier, part));
    entry["weights"] = Json::array();
    for (int u = 0; u < outputs; ++u) entry["weights"].push_back(numbers(w.weights + u * inputs, inputs));
    entry["bias"] = numbers(w.bias, outputs);
    if (map > 0) {
      entry["noise_std"] = Json::array();
      const Stream scales = key.stream(Purpose::noise_scale, part);
      for (int u = 0; u < outputs; ++u)
        entry["noise_std"].push_back(
            plan.pre_sample_noise ? std::fabs(plan.noise_std * scales.normal(static_cast<std::uint64_t>(u)))
                                  : plan.noise_std);
    }
    maps.push_back(std::move(entry));
  }
  Json json{{"causal", plan.causal},
            {"hidden", plan.hidden},
            {"init_std", plan.init_std},
            {"noise_std", plan.noise_std},
            {"dropout", plan.dropout},
            {"block_dropout", plan.block_dropout},
            {"causes", describe(plan.cause, plan.causes)},
            {"maps", maps}};
  if (plan.causal) {
    const auto unit = [&](int candidate) {
      return Json{{"map", candidate / plan.hidden + 1}, {"unit", candidate % plan.hidden}};
    };
    for (int j = 0; j < features; ++j) json["x"].push_back(unit(plan.x_unit[j]));
    json["y"] = unit(plan.y_unit);
  }
  return json;
}

Json describe(const TreePlan& plan, const DatasetKey& key, int features) {
  Json layers = Json::array();
  for (int l = 0; l < plan.layers; ++l)
    layers.push_back(
        describe(plan.layer[l], plan.splits[l], key.stream(Purpose::leaves, static_cast<std::uint32_t>(l))));
  return {{"noise_std", plan.noise_std}, {"causes", describe(plan.cause, features)}, {"layers", layers}};
}

Json describe(const GraphPlan& plan, const DatasetKey& key, int features) {
  Json nodes = Json::array();
  for (int n = 0; n < plan.nodes; ++n) {
    const GraphNode& node = plan.node[n];
    const auto part = static_cast<std::uint32_t>(n);
    Json entry{{"kind", node_names[static_cast<int>(node.kind)]}};
    if (node.kind == NodeKind::root) {
      entry["cause"] = describe(plan.cause[n]);
    } else if (node.kind == NodeKind::tree) {
      entry["parents"] = std::vector<int>(node.parent, node.parent + node.parents);
      entry["tree"] = describe(node.tree, node.splits, key.stream(Purpose::leaves, part));
    } else {
      entry["parents"] = std::vector<int>(node.parent, node.parent + node.parents);
      entry["weights"] = numbers(node.weight, node.parents);
      for (int p = 0; p < node.parents; ++p)
        entry["functions"].push_back(
            describe(node.activation[p],
                     key.stream(Purpose::fourier, part * max_parents + static_cast<std::uint32_t>(p))));
    }
    nodes.push_back(std::move(entry));
  }
  return {{"noise_std", plan.noise_std},
          {"nodes", nodes},
          {"x", std::vector<int>(plan.x_node, plan.x_node + features)},
          {"y", plan.y_node}};
}

/// Terms amplitude cos(frequencies . x + phase), angles in radians.
Json describe(const GpPlan& plan, int count, const DatasetKey& key, int features) {
  const Stream weights = key.stream(Purpose::weights), phases = key.stream(Purpose::bias),
               amplitudes = key.stream(Purpose::fourier);
  const auto row_blocks = static_cast<std::uint64_t>((features + 3) / 4);
  const float unit = std::sqrt(2.0f / static_cast<float>(count));
  Json terms = Json::array();
  for (std::uint64_t m = 0; m < static_cast<std::uint64_t>(count); ++m) {
    Json frequencies = Json::array();
    for (std::uint64_t j = 0; j < static_cast<std::uint64_t>(features); ++j)
      frequencies.push_back(weights.normal(4 * row_blocks * m + j) / plan.lengthscale);
    terms.push_back({{"amplitude", unit * amplitudes.normal(m)},
                     {"frequencies", frequencies},
                     {"phase", 6.283185307179586 * static_cast<double>(phases.uniform(m))}});
  }
  return {{"lengthscale", plan.lengthscale},
          {"noise_std", plan.noise_std},
          {"features", plan.uniform ? "uniform" : "normal"},
          {"terms", terms}};
}

Json structure_of(MadeDataset& made) {
  const int features = made.shape.features;
  FamilyPlan& plan = made.plan();
  switch (made.shape.family) {
    case Family::formula: {
      Json terms = Json::array();
      for (int k = 0; k < formula_terms(formula_law(made.config.formula, made.shape.features), made.key); ++k)
        terms.push_back(describe(plan.formula[k]));
      return {{"terms", terms}, {"noise_std", made.config.formula.noise}};
    }
    case Family::graph:
      return describe(plan.graph, made.key, features);
    case Family::tree_scm:
      return describe(plan.tree, made.key, features);
    case Family::gp:
      return describe(plan.gp, made.config.gp.terms, made.key, features);
    default:
      return describe(plan.mlp, made.key, features, made.workspace());
  }
}

}  // namespace

std::string describe_json(const Config& config, std::uint64_t seed, std::int64_t dataset) {
  MadeDataset made(config, seed, dataset);
  Json columns = Json::array();
  for (int j = 0; j < made.features(); ++j)
    columns.push_back({{"column", made.column(j)}, {"levels", made.levels(j)}});
  const Json json{{"dataset", dataset},
                  {"seed", seed},
                  {"attempt", made.key.attempt},
                  {"family", to_string(made.shape.family)},
                  {"rows", made.shape.rows},
                  {"train_rows", made.shape.train_rows},
                  {"classes", made.classes()},
                  {"features", columns},
                  {"structure", structure_of(made)}};
  return json.dump();
}

}  // namespace ferrite::priors
