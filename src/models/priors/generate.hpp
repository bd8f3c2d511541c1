// One dataset from (config, seed, number): draw its structure, compute its values, post-process, and begin
// again with the next attempt if a filter rejects it. Written for a team (team.hpp): the CPU runs it with one
// thread per dataset, a CUDA kernel with one block.
#pragma once

#include "ferrite/models/priors/ops.hpp"
#include "models/priors/classes.hpp"
#include "models/priors/formula.hpp"
#include "models/priors/gp.hpp"
#include "models/priors/graph.hpp"
#include "models/priors/learnability.hpp"
#include "models/priors/mlp_scm.hpp"
#include "models/priors/tree_scm.hpp"

namespace ferrite::priors {

/// A family's decisions before it computes values. Only the drawn family's member is set.
union FamilyPlan {
  FormulaTerm formula[max_terms];
  MlpPlan mlp;
  TreePlan tree;
  GraphPlan graph;
  GpPlan gp;
};

/// The destination of one dataset: slices of the batch's tensors. R and F are the batch's rows and features.
struct DatasetOut {
  float* x;               // [R, F]
  float* y_real;          // [R] of regression
  std::int64_t* y_class;  // [R] of classification
  bool *row_mask, *feature_mask;
  std::int32_t* levels;  // [F]
  std::int32_t* info;    // [info_fields]
};

/// Dataset i's part of the outputs of op::PriorDatasets.
FERRITE_PORTABLE DatasetOut slice_of(void* const* out, const Config& config, std::int64_t i) {
  const std::int64_t rows = config.rows.max, features = config.features.max;
  return {
      static_cast<float*>(out[0]) + i * rows * features,   static_cast<float*>(out[1]) + i * rows,
      static_cast<std::int64_t*>(out[1]) + i * rows,       static_cast<bool*>(out[2]) + i * rows,
      static_cast<bool*>(out[3]) + i * features,           static_cast<std::int32_t*>(out[4]) + i * features,
      static_cast<std::int32_t*>(out[5]) + i * info_fields};
}

/// The same for every attempt: otherwise families and sizes that are often rejected would be rarer than
/// requested.
FERRITE_PORTABLE_CALL DatasetShape draw_dataset_shape(const Config& config, const DatasetKey& key) {
  const DatasetKey first{key.seed, key.dataset, 0};
  Draws group(first.group_stream(config.group_size)), draws(first.stream(Purpose::shape));
  DatasetShape shape;
  const double log_rows = group.log_uniform(config.rows.min, config.rows.max + 1.0);
  const int uniform_rows = group.integer(config.rows.min, config.rows.max);
  shape.rows =
      config.row_law == RowLaw::uniform ? uniform_rows : lesser(static_cast<int>(log_rows), config.rows.max);
  const double share = group.uniform(config.train_share.min, config.train_share.max);
  shape.train_rows = train_rows_of(share, shape.rows);
  shape.features = draws.integer(config.features.min, config.features.max);
  const MixtureWeights& m = config.weights;
  const double weights[] = {m.formula, m.graph, m.mlp_scm, m.tree_scm, m.gp};
  const int drawn = draws.weighted(weights, 5);
  shape.family = config.family == Family::mixture ? static_cast<Family>(drawn) : config.family;
  return shape;
}

/// Structure only; a host program calls it to describe a dataset.
FERRITE_PORTABLE void draw_plan(const Config& config, const DatasetKey& key, const DatasetShape& shape,
                                FamilyPlan& plan) {
  switch (shape.family) {
    case Family::formula:
      draw_formula(formula_law(config.formula, shape.features), key, plan.formula);
      break;
    case Family::graph:
      return draw_graph(config.graph, key, config.group_size, shape.features, plan.graph);
    case Family::tree_scm:
      return draw_tree(config.tree_scm, key, config.group_size, shape.features, plan.tree);
    case Family::gp:
      plan.gp = draw_gp(config.gp, key, shape.features);
      break;
    default:
      draw_mlp(config.mlp_scm, key, config.group_size, shape.features, plan.mlp);
  }
}

template <class Team>
FERRITE_HOST_DEVICE void generate_formula(Team& team, const FormulaConfig& config, const FormulaTerm* terms,
                                          const DatasetKey& key, const DatasetShape& shape, Workspace& w) {
  const FormulaLaw law = formula_law(config, shape.features);
  const int rows = shape.rows, features = shape.features, count = formula_terms(law, key);
  const Stream values = key.stream(Purpose::formula_values);
  const int elements = rows * features, groups = (elements + feature_group - 1) / feature_group;
  team.each(groups * feature_blocks, [&](int k) {
    const Philox4x32::Block words = values.block(static_cast<std::uint64_t>(k));
    for (int i = 0; i < 8; ++i) {
      const int e = k / feature_blocks * feature_group + feature_place(k % feature_blocks, i);
      const std::uint32_t word = words[static_cast<std::size_t>(i / 2)];
      if (e < elements)
        w.x[e % features * rows + e / features] =
            feature_from_half(i % 2 == 0 ? word & 0xffffu : word >> 16, law.range);
    }
  });
  team.each(rows, [&](int r) {
    float y = 0;
    for (int k = 0; k < count; ++k) y = add_term(terms[k], w.x[terms[k].feature * rows + r], y);
    w.y[r] = y;
  });
  if (law.noise > 0) add_noise(team, key, 0, law.noise, w.y, rows);
}

template <class Team>
FERRITE_HOST_DEVICE void generate_values(Team& team, const Config& config, FamilyPlan& plan,
                                         const DatasetKey& key, const DatasetShape& shape, Workspace& w) {
  switch (shape.family) {
    case Family::formula:
      return generate_formula(team, config.formula, plan.formula, key, shape, w);
    case Family::graph:
      return generate_graph(team, plan.graph, key, shape, w);
    case Family::tree_scm:
      return generate_tree(team, plan.tree, key, shape, w);
    case Family::gp:
      return generate_gp(team, config.gp, plan.gp, key, shape, w);
    default:
      return generate_mlp(team, plan.mlp, key, shape, w);
  }
}

/// Raw values to a dataset in the workspace. Returns the filter that rejects it, or Filter::none.
template <class Team>
FERRITE_HOST_DEVICE Filter postprocess(Team& team, const Config& config, const DatasetKey& key,
                                       const DatasetShape& shape, Workspace& w) {
  const int rows = shape.rows;
  PostPlan& plan = *w.post;
  if (!all_usable(team, w.x, shape.features * rows) || !all_usable(team, w.y, rows))
    return Filter::non_finite;
  make_categorical(team, config.post, key, shape.features, rows, w);
  make_tails(team, config, key, shape.features, rows, w);
  const auto sigma = static_cast<float>(config.post.clip_sigma);
  const bool standardise = config.post.standardise, classes = config.task == Task::classification;
  team.columns(shape.features, [&](int c, auto& inner) {
    const bool categories = plan.levels[c] > 0;
    const float clip = categories ? 0.0f : sigma;  // a rare level is no outlier
    const bool scale = standardise && !(categories && config.post.category_codes);
    const bool varies = finish_column(inner, clip, scale, w.x + c * rows, rows);
    inner.once([&] { plan.constant[c] = !varies; });
  });
  if (team.count(shape.features, [&](int c) { return !plan.constant[c]; }) == 0)
    return Filter::constant_features;
  // Classes are cut at standard normal draws.
  if (!finish_column(team, sigma, standardise || classes, w.y, rows)) return Filter::constant_target;
  if (classes) {
    cut_classes(team, config, key, rows, w);
    if (plan.classes < config.post.classes.min) return Filter::too_few_classes;
    if (!order_rows(team, key, plan.classes, shape.train_rows, rows, w)) return Filter::unfair_split;
  } else {
    team.each(rows, [&](int r) { w.order[r] = r; });
    team.once([&] { plan.classes = 0; });
  }
  if (!is_learnable(team, config, shape.features, rows, w)) return Filter::unlearnable;
  remove_cells(team, config.post, key, shape.features, rows, w);
  team.once([&] {
    int order[max_features];
    Draws(key.stream(Purpose::shape, 1)).permutation(shape.features, order);
    plan.features = 0;
    for (int j = 0; j < shape.features; ++j) {
      const int c = config.post.permute_features ? order[j] : j;
      if (!plan.constant[c]) plan.column[plan.features++] = c;
    }
  });
  return Filter::none;
}

/// Copies a finished dataset out and fills the padding: zeros in x, `ignored_label` in y.
template <class Team>
FERRITE_HOST_DEVICE void write_dataset(Team& team, const Config& config, int rows, int features,
                                       const Workspace& w, const DatasetOut& out) {
  const PostPlan& plan = *w.post;
  const int all_features = config.features.max;
  team.each(config.rows.max, [&](int r) {
    const bool real = r < rows;
    const int from = real ? w.order[r] : 0;
    float* row = out.x + static_cast<std::int64_t>(r) * all_features;
    for (int j = 0; j < all_features; ++j)
      row[j] = real && j < features ? w.x[plan.column[j] * rows + from] : 0.0f;
    out.row_mask[r] = real;
    if (config.task == Task::classification)
      out.y_class[r] = real ? w.labels[from] : ignored_label;
    else
      out.y_real[r] = real ? w.y[from] : 0.0f;
  });
  team.each(all_features, [&](int j) {
    out.feature_mask[j] = j < features;
    out.levels[j] = j < features ? plan.levels[plan.column[j]] : 0;
  });
}

template <class Team>
FERRITE_HOST_DEVICE void generate_dataset(Team& team, const Config& config, std::uint64_t seed,
                                          std::uint64_t dataset, FamilyPlan& plan, Workspace& w,
                                          const DatasetOut& out) {
  team.each(info_fields, [&](int i) { out.info[i] = 0; });
  DatasetKey key{seed, dataset, 0};
  const DatasetShape shape = draw_dataset_shape(config, key);
  Filter filter = Filter::none;
  for (int attempt = 0; attempt < config.post.attempts; ++attempt) {
    key.attempt = static_cast<std::uint32_t>(attempt);
    team.once([&] { draw_plan(config, key, shape, plan); });
    filter = Filter::disconnected;
    if (shape.family != Family::graph || plan.graph.connected) {
      generate_values(team, config, plan, key, shape, w);
      filter = postprocess(team, config, key, shape, w);
    }
    team.once([&] {
      ++out.info[info_attempts];
      if (filter != Filter::none) ++out.info[info_rejected + static_cast<int>(filter)];
    });
    if (filter == Filter::none) break;
  }
  const bool found = filter == Filter::none;
  write_dataset(team, config, found ? shape.rows : 0, found ? w.post->features : 0, w, out);
  team.once([&] {
    out.info[info_family] = static_cast<std::int32_t>(shape.family);
    if (!found) return;
    out.info[info_rows] = shape.rows;
    out.info[info_train_rows] = shape.train_rows;
    out.info[info_features] = w.post->features;
    out.info[info_classes] = w.post->classes;
  });
}

}  // namespace ferrite::priors
