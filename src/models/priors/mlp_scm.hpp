// MlpScm: a random multilayer perceptron as a structural causal model, after TabICL v1. Causal: the units of
// all layers are variables, x and y are some of them. Non-causal: x is the input, y the output.
#pragma once

#include "models/priors/workspace.hpp"

namespace ferrite::priors {

struct MlpPlan {
  bool causal, block_dropout, y_is_effect, in_clique, sort_features, pre_sample_stats, pre_sample_noise;
  CauseSampling sampling;
  int causes, layers, hidden;  // layers: linear maps in all; the first has no activation and no noise
  float init_std, noise_std, dropout;
  ActivationPlan activation[max_layers + 1];
  int blocks[max_layers + 1];  // of the block-diagonal matrices
  // Causal: unit u of the output of map l is candidate (l - 1) * hidden + u.
  int x_unit[max_features], y_unit;
  int last_unit[max_features + 1],
      last_units;  // those of the last map that are x or y: the others have no effect
  CausePlan cause[max_causes];
};

FERRITE_PORTABLE int mlp_inputs(const MlpPlan& plan, int map) { return map == 0 ? plan.causes : plan.hidden; }
FERRITE_PORTABLE int mlp_outputs(const MlpPlan& plan, int map) {
  return !plan.causal && map == plan.layers ? 1 : plan.hidden;
}
/// How many linear maps there are: a non-causal network has one more, to its output.
FERRITE_PORTABLE int mlp_maps(const MlpPlan& plan) { return plan.causal ? plan.layers : plan.layers + 1; }

/// Which units x and y are: a random choice, or a window of neighbouring units. y's unit is never in x.
FERRITE_PORTABLE_CALL void draw_mlp_units(Draws& draws, int features, MlpPlan& plan) {
  const int candidates = (plan.layers - 1) * plan.hidden;
  int chosen[max_features + 1];
  if (plan.in_clique) {
    const int last_start = candidates - features - 1 - (plan.y_is_effect ? 1 : 0);
    const int start = draws.integer(0, greater(last_start, 0));
    draws.permutation(features + 1, chosen);
    for (int i = 0; i <= features; ++i) chosen[i] += start;
  } else {
    draws.distinct(candidates - 1, features + 1, chosen);
  }
  plan.y_unit = plan.y_is_effect ? candidates - 1 : chosen[0];
  for (int i = 0; i < features; ++i) plan.x_unit[i] = chosen[i + 1];
  const int last = candidates - plan.hidden;
  plan.last_units = 0;
  if (plan.y_unit >= last) plan.last_unit[plan.last_units++] = plan.y_unit - last;
  for (int i = 0; i < features; ++i)
    if (plan.x_unit[i] >= last) plan.last_unit[plan.last_units++] = plan.x_unit[i] - last;
  if (!plan.sort_features) return;
  for (int i = 1; i < features; ++i) {
    const int unit = plan.x_unit[i];
    int j = i;
    for (; j > 0 && plan.x_unit[j - 1] > unit; --j) plan.x_unit[j] = plan.x_unit[j - 1];
    plan.x_unit[j] = unit;
  }
}

FERRITE_PORTABLE_CALL void draw_mlp(const MlpScmConfig& config, const DatasetKey& key, int group_size,
                                    int features, MlpPlan& plan) {
  Draws group(key.law_stream(group_size, 1)), draws(key.stream(Purpose::structure));
  const TruncatedNormal causes = upper_draw(config.causes, group), layers = upper_draw(config.layers, group),
                        hidden = upper_draw(config.hidden, group),
                        init_std = upper_draw(config.init_std, group),
                        noise_std = upper_draw(config.noise_std, group);
  const Beta dropout = upper_draw(config.dropout, group);
  plan.block_dropout = group_flag(group);
  plan.y_is_effect = group_flag(group);
  plan.in_clique = group_flag(group);
  plan.sort_features = group_flag(group);
  plan.pre_sample_stats = group_flag(group);
  plan.pre_sample_noise = group_flag(group);
  const bool causal = group_flag(group);
  plan.causal = config.causality == Causality::sampled ? causal : config.causality == Causality::causal;
  plan.sampling = static_cast<CauseSampling>(group_choice(group, 3));
  double weights[activation_entries];
  choice_weights(group, -5, 6, weights, activation_entries);

  const int drawn_causes = greater(causes.rounded(draws, max_causes), 1);
  plan.layers = greater(layers.rounded(draws, max_layers), 2);
  plan.hidden = greater(hidden.rounded(draws, max_hidden), 1);
  plan.init_std = static_cast<float>(init_std.value(draws));
  plan.noise_std = static_cast<float>(noise_std.value(draws));
  const double p = dropout.value(draws);
  plan.dropout = static_cast<float>(p < 0.99 ? p : 0.99);
  plan.causes = plan.causal ? drawn_causes : features;
  if (plan.causal) plan.hidden = greater(plan.hidden, 1 + 2 * features);
  for (int map = 0; map < mlp_maps(plan); ++map) {
    plan.activation[map] = draw_activation(draws, weights);
    const int least = lesser(mlp_inputs(plan, map), mlp_outputs(plan, map));
    int root = 1;
    while (root * root < least) ++root;
    plan.blocks[map] = draws.integer(1, root);
  }
  draw_causes(draws, plan.sampling, plan.pre_sample_stats, plan.causes, plan.cause);
  if (plan.causal) draw_mlp_units(draws, features, plan);
}

/// The factor of one normal draw: 0 where the weight is dropped. `u` is uniform.
FERRITE_PORTABLE float mlp_weight_scale(const MlpPlan& plan, int map, int to, int from, float u) {
  const int inputs = mlp_inputs(plan, map), outputs = mlp_outputs(plan, map);
  if (plan.block_dropout) {
    // Blocks of nearly one size that cover every unit (TabICL leaves the last units without any input).
    const int blocks = plan.blocks[map];
    const bool inside = to * blocks / outputs == from * blocks / inputs;
    return inside ? plan.init_std * std::sqrt(static_cast<float>(blocks)) : 0.0f;
  }
  if (map == 0) return plan.init_std;
  return u >= plan.dropout ? plan.init_std / std::sqrt(1.0f - plan.dropout) : 0.0f;
}

/// Which units of a map are computed: all, or the first `count` of a list.
struct MlpUnits {
  const int* list;
  int count;
  FERRITE_HOST_DEVICE int operator[](int i) const { return list ? list[i] : i; }
};
FERRITE_PORTABLE MlpUnits mlp_units(const MlpPlan& plan, int map) {
  if (plan.causal && map == plan.layers - 1) return {plan.last_unit, plan.last_units};
  return {nullptr, mlp_outputs(plan, map)};
}

/// The weights [units][inputs] and the bias [units] of one linear map.
template <class Team>
FERRITE_HOST_DEVICE void fill_mlp_map(Team& team, const MlpPlan& plan, const DatasetKey& key, int map,
                                      MlpUnits units, Workspace& w) {
  const int inputs = mlp_inputs(plan, map);
  const auto part = static_cast<std::uint32_t>(map);
  const Stream normals = key.stream(Purpose::weights, part), mask = key.stream(Purpose::mask, part),
               shifts = key.stream(Purpose::bias, part);
  const auto blocks = static_cast<std::uint64_t>((inputs + 3) / 4);
  const float bound = 1.0f / std::sqrt(static_cast<float>(inputs));
  team.columns(units.count, [&](int i, auto& inner) {
    const int to = units[i];
    float* row = w.weights + i * inputs;
    const std::uint64_t first = blocks * static_cast<std::uint64_t>(to);
    inner.uniforms(mask, first, inputs,
                   [&](int from, float u) { row[from] = mlp_weight_scale(plan, map, to, from, u); });
    inner.normals(normals, first, inputs, [&](int from, float z) { row[from] *= z; });
  });
  team.each(units.count, [&](int i) {
    w.bias[i] = bound * std::fma(2.0f, shifts.uniform(static_cast<std::uint64_t>(units[i])), -1.0f);
  });
}

/// Copies the units of a map that are x or y.
template <class Team>
FERRITE_HOST_DEVICE void keep_mlp_units(Team& team, const MlpPlan& plan, int map, MlpUnits units,
                                        const float* out, int features, int rows, Workspace& w) {
  const int first = (map - 1) * plan.hidden;
  for (int i = 0; i < units.count; ++i) {
    const int candidate = first + units[i];
    if (candidate == plan.y_unit) copy_column(team, out + i * rows, w.y, rows);
    for (int j = 0; j < features; ++j)
      if (candidate == plan.x_unit[j]) copy_column(team, out + i * rows, w.x + j * rows, rows);
  }
}

template <class Team>
FERRITE_HOST_DEVICE void generate_mlp(Team& team, const MlpPlan& plan, const DatasetKey& key,
                                      const DatasetShape& shape, Workspace& w) {
  const int rows = shape.rows;
  float *in = w.a, *out = w.b;
  fill_causes(team, key.stream(Purpose::causes), plan.cause, plan.causes, in, rows);
  if (!plan.causal) copy_column(team, in, w.x, shape.features * rows);
  for (int map = 0; map < mlp_maps(plan); ++map) {
    const int inputs = mlp_inputs(plan, map);
    const MlpUnits units = mlp_units(plan, map);
    const auto part = static_cast<std::uint32_t>(map);
    if (units.count == 0) break;  // the last map has nothing that is observed
    if (map > 0) {
      const ActivationPlan& activation = plan.activation[map];
      if (activation.kind == Activation::fourier)
        draw_fourier(team, key.stream(Purpose::fourier, part), activation.decay, *w.series);
      apply_activation(team, activation, *w.series, in, inputs, rows);
    }
    fill_mlp_map(team, plan, key, map, units, w);
    team.product(w.weights, w.bias, in, inputs, out, units.count, rows);
    if (map > 0)
      add_noise(team, key, part, plan.noise_std, plan.pre_sample_noise, out, units.list, units.count, rows);
    if (map > 0 && plan.causal) keep_mlp_units(team, plan, map, units, out, shape.features, rows, w);
    float* const swapped = in;
    in = out;
    out = swapped;
  }
  if (!plan.causal) copy_column(team, in, w.y, rows);
}

}  // namespace ferrite::priors
