// Every hyper-parameter as datasets have it, over both levels of its law: against its distribution function,
// or against numbers that the standard library's generators draw by the law as config.hpp states it.
#include <gtest/gtest.h>

#include <memory>
#include <random>

#include "ferrite/backend/cpu.hpp"
#include "models/priors/generate.hpp"
#include "models/priors/marginals.hpp"
#include "models/priors/sets.hpp"
#include "models/priors/team.hpp"

namespace ferrite::priors {
namespace {

using namespace ferrite::testing;

constexpr int datasets = 40000, feature_count = 5;

DatasetKey key_of(int i) { return {17, static_cast<std::uint64_t>(i), 0}; }

/// Of the first of `count` options, of which the others have logits uniform in (-3, 5).
double first_option(int count) {
  const auto two = [](double others) {
    return integral([&](double u) { return M_E / (M_E + others + std::exp(u)); }, -3, 5) / 8;
  };
  return count == 2 ? two(0) : integral([&](double v) { return two(std::exp(v)); }, -3, 5) / 8;
}

void add_activation(Sample& sample, const ActivationPlan& plan) {
  sample.add("activation", static_cast<double>(plan.kind));
  sample.add("scale", std::log(static_cast<double>(plan.scale)) / 2);
  sample.add("shift", static_cast<double>(plan.shift));
  sample.add("decay", static_cast<double>(plan.decay));
}
void expect_activations(Sample& sample) {
  sample.expect_cdf("scale", normal_cdf);
  sample.expect_cdf("shift", normal_cdf);
  sample.expect_log_uniform("decay", 0.7, 3);
  // The first has a logit of its own; the others are alike, and Fourier series have ten entries.
  std::erase(sample.values["activation"], 0.0);
  std::vector<double> shares(plain_activations, 1.0 / (plain_activations - 1 + fourier_entries));
  shares.back() *= fourier_entries;
  sample.expect_counts("activation", 1, shares);
}

TEST(Marginals, OfDatasetsAreRowsFeaturesAndSplit) {
  for (const RowLaw law : {RowLaw::uniform, RowLaw::log_uniform}) {
    Config config;
    config.rows = {100, 20000};
    config.row_law = law;
    config.group_size = 1;
    Sample sample;
    for (int i = 0; i < datasets; ++i) {
      const DatasetShape shape = draw_dataset_shape(config, key_of(i));
      sample.add("rows", shape.rows + 0.5);
      sample.add("features", shape.features);
      sample.add("share", static_cast<double>(shape.train_rows) / shape.rows);
    }
    if (law == RowLaw::uniform)
      sample.expect_uniform("rows", 100, 20001);
    else
      sample.expect_log_uniform("rows", 100, 20001);
    sample.expect_equal_counts("features", 2, 20);
    sample.expect_as("share", [](Expected& e) { return e.uniform(0.1, 0.9); });
  }
}

TEST(Marginals, OfNetworks) {
  const MlpScmConfig config;
  MlpScmConfig causal = config, plain = config;
  causal.causality = Causality::causal;
  plain.causality = Causality::non_causal;
  const auto plan = std::make_unique<MlpPlan>();
  Sample sample;
  std::mt19937 random(4);
  const auto spread = [&](int value) { return value + random() / 4294967296.0; };
  for (int i = 0; i < datasets; ++i) {
    draw_mlp(plain, key_of(i), 1, feature_count, *plan);
    sample.add("layers", plan->layers);
    sample.add("hidden", plan->hidden);
    sample.add("init_std", static_cast<double>(plan->init_std));
    sample.add("noise_std", static_cast<double>(plan->noise_std));
    sample.add("dropout", static_cast<double>(plan->dropout));
    sample.add("sampling", static_cast<double>(plan->sampling));
    const bool flags[] = {plan->block_dropout, plan->y_is_effect,      plan->in_clique,
                          plan->sort_features, plan->pre_sample_stats, plan->pre_sample_noise};
    for (int k = 0; k < 6; ++k) sample.add("flag " + std::to_string(k), flags[k]);
    add_activation(sample, plan->activation[0]);
    const int root = static_cast<int>(std::ceil(std::sqrt(std::min(feature_count, plan->hidden))));
    sample.add("blocks", spread(plan->blocks[0] - 1) / root);
    draw_mlp(config, key_of(i), 1, feature_count, *plan);
    sample.add("causal", plan->causal);
    draw_mlp(causal, key_of(i), 1, feature_count, *plan);
    sample.add("causes", plan->causes);
    sample.add("units", plan->hidden);
    const int candidates = (plan->layers - 1) * plan->hidden;
    if (!plan->in_clique && !plan->sort_features) sample.add("x", spread(plan->x_unit[2]) / (candidates - 1));
    if (!plan->in_clique && !plan->y_is_effect) sample.add("y", spread(plan->y_unit) / (candidates - 1));
  }
  sample.expect_as("layers", [&](Expected& e) { return e(config.layers, 2, max_layers); });
  sample.expect_as("hidden", [&](Expected& e) { return e(config.hidden, 1, max_hidden); });
  sample.expect_as("units", [&](Expected& e) { return e(config.hidden, 1 + 2 * feature_count, max_hidden); });
  sample.expect_as("causes", [&](Expected& e) { return e(config.causes, 1, max_causes); });
  sample.expect_as("init_std", [&](Expected& e) { return e(config.init_std); });
  sample.expect_as("noise_std", [&](Expected& e) { return e(config.noise_std); });
  sample.expect_as("dropout", [&](Expected& e) { return e(config.dropout); });
  for (const char* unit : {"x", "y", "blocks"}) sample.expect_uniform(unit, 0, 1);
  const double yes = first_option(2), first = first_option(3);
  for (int k = 0; k < 6; ++k) sample.expect_counts("flag " + std::to_string(k), 0, {1 - yes, yes});
  sample.expect_counts("causal", 0, {1 - yes, yes});
  sample.expect_counts("sampling", 0, {first, (1 - first) / 2, (1 - first) / 2});
  expect_activations(sample);
}

TEST(Marginals, OfTrees) {
  const TreeScmConfig config;
  const auto plan = std::make_unique<TreePlan>();
  Sample sample;
  for (int i = 0; i < datasets; ++i) {
    draw_tree(config, key_of(i), 1, feature_count, *plan);
    sample.add("layers", plan->layers);
    sample.add("hidden", plan->layer[0].outputs);
    sample.add("trees", plan->layer[0].trees);
    sample.add("depth", plan->layer[1].depth);
    sample.add("noise_std", static_cast<double>(plan->noise_std));
  }
  sample.expect_equal_counts("layers", 2, 3);
  sample.expect_equal_counts("hidden", 3, 9);
  const double q = std::exp(-0.5);  // Exp(mean 2) is beyond the next integer
  sample.expect_counts("trees", 1, {1 - q, q * (1 - q), q * q * (1 - q), q * q * q});
  sample.expect_counts("depth", 2, {1 - q, q * (1 - q), q * q});
  sample.expect_as("noise_std", [&](Expected& e) { return e(config.noise_std); });
}

TEST(Marginals, OfGraphs) {
  const GraphConfig config;
  const auto plan = std::make_unique<GraphPlan>();
  Sample sample;
  for (int i = 0; i < datasets / 2; ++i) {
    draw_graph(config, key_of(i), 1, feature_count, *plan);
    sample.add("noise_std", static_cast<double>(plan->noise_std));
    sample.add("latent", plan->nodes - feature_count - 1);
    int edges = 0;
    for (int n = 0; n < 4; ++n) edges += plan->node[n].parents;
    sample.add("edges", edges);
    const GraphNode& node = plan->node[3];
    if (node.parents > 0) {
      sample.add("kind", static_cast<double>(node.kind));
      sample.add("weight", static_cast<double>(node.weight[0]));
      add_activation(sample, node.activation[0]);
    }
    sample.add("trees", node.tree.trees);
    sample.add("depth", node.tree.depth);
  }
  sample.expect_as("noise_std", [&](Expected& e) { return e(config.noise_std); });
  sample.expect_as("latent",
                   [&](Expected& e) { return std::min(std::rint(e(config.latent)), double(max_latent)); });
  sample.expect_as("edges", [](Expected& e) {
    double a = e.cauchy(), out[4], edges = 0;
    for (double& rate : out) rate = e.cauchy();
    for (int n = 0; n < 4; ++n) {
      const double in = e.cauchy();
      for (int p = 0; p < n; ++p) edges += e.uniform(0, 1) < 1 / (1 + std::exp(-(a + out[p] + in)));
    }
    return edges;
  });
  sample.expect_equal_counts("kind", 1, 5);
  sample.expect_cdf("weight", normal_cdf);
  sample.expect_equal_counts("trees", 1, 4);
  sample.expect_equal_counts("depth", 2, 4);
  expect_activations(sample);
}

TEST(Marginals, OfGaussianProcessesAndFormulas) {
  const GpConfig gp;
  const FormulaConfig formula;
  const FormulaLaw law = formula_law(formula, 2);
  Sample sample;
  for (int i = 0; i < datasets; ++i) {
    const GpPlan plan = draw_gp(gp, key_of(i), feature_count);
    sample.add("lengthscale", static_cast<double>(plan.lengthscale) / std::sqrt(double(feature_count)));
    sample.add("noise_std", static_cast<double>(plan.noise_std));
    sample.add("uniform", plan.uniform);
    const int terms = formula_terms(law, key_of(i));
    const FormulaTerm term = formula_term(law, key_of(i), 1), other = formula_term(law, key_of(i), 5);
    sample.add("terms", terms);
    sample.add("function", static_cast<double>(term.kind));
    sample.add("feature", other.feature);
    sample.add("coefficient", std::fabs(static_cast<double>(term.c)));
    sample.add("sign", term.c > 0);
    if (term.kind != TermKind::linear && term.kind != TermKind::tanh) continue;  // w and b in other units
    sample.add("frequency", std::fabs(static_cast<double>(term.w)));
    sample.add("shift", static_cast<double>(term.b));
  }
  sample.expect_log_uniform("lengthscale", gp.lengthscale.min, gp.lengthscale.max);
  sample.expect_log_uniform("noise_std", gp.noise_std.min, gp.noise_std.max);
  sample.expect_equal_counts("uniform", 0, 1);
  sample.expect_equal_counts("terms", formula.terms.min, formula.terms.max);
  sample.expect_equal_counts("function", 0, term_kinds - 1);
  sample.expect_equal_counts("feature", 0, 1);
  sample.expect_equal_counts("sign", 0, 1);
  sample.expect_uniform("coefficient", formula.coefficient.min, formula.coefficient.max);
  sample.expect_uniform("frequency", formula.frequency.min, formula.frequency.max);
  sample.expect_uniform("shift", -formula.shift, formula.shift);
}

TEST(Marginals, OfCauses) {
  Sample sample;
  for (int i = 0; i < datasets; ++i) {
    CausePlan cause[2];
    Draws mixed(key_of(i).stream(Purpose::structure)), normal(key_of(i).stream(Purpose::structure, 1));
    draw_causes(mixed, CauseSampling::mixed, false, 1, cause);
    sample.add("kind", static_cast<double>(cause[0].kind));
    if (cause[0].kind == CauseKind::multinomial) sample.add("levels", cause[0].levels);
    draw_causes(normal, CauseSampling::normal, true, 2, cause);
    sample.add("mean", static_cast<double>(cause[1].mean));
    sample.add("std", static_cast<double>(cause[1].std));
  }
  const double stay = 0.67, leave = 0.33;  // the mean of U(0, 0.66)
  sample.expect_counts("kind", 0, {stay, leave * leave * leave, leave * stay, leave * leave * stay});
  sample.expect_equal_counts("levels", 2, max_cause_levels);
  sample.expect_cdf("mean", normal_cdf);
  sample.expect_as("std", [](Expected& e) { return std::fabs(e.normal(0, 1) * e.normal(0, 1)); });
}

TEST(Marginals, OfWhatIsDoneToDatasets) {
  Config config;
  config.family = Family::formula;
  config.rows = {150, 150};
  config.features = {6, 6};
  config.train_share = {0.5, 0.5};
  config.group_size = 1;
  config.post.cuts = ClassCuts::balanced;
  config.post.categorical_share = 0.4;
  config.post.missing_share = 0.6;
  config.post.missing_rate = 0.8;
  config.post.learnability = 0;
  Cpu cpu;
  Sample sample;
  for (const Set& set : sets_of(generate(cpu, config, 17, 0, 4000))) {
    if (set.features < 6) continue;  // a column of few levels may be constant
    int categorical = 0, missing = 0;
    for (const int levels : set.levels) {
      if (levels == 0) continue;
      ++categorical;
      sample.add("levels", levels);
    }
    for (const auto& row : set.x)
      missing +=
          static_cast<int>(std::count_if(row.begin(), row.end(), [](double v) { return std::isnan(v); }));
    sample.add("classes", set.classes);
    sample.add("categorical", categorical);
    sample.add("missing", missing / (6.0 * 150));
  }
  std::vector<double> classes(9, 0.5 / 9), categorical(7, 0.4 / 7);  // each column with probability U(0, 1)
  classes[0] += 0.5;
  categorical[0] += 0.6;
  sample.expect_counts("classes", 2, classes);
  sample.expect_counts("categorical", 0, categorical);
  sample.expect_as("levels", [](Expected& e) { return std::clamp(std::rint(10 * e.gamma(1)), 2.0, 64.0); });
  sample.expect_as("missing", [](Expected& e) { return e.uniform(0, 1) < 0.6 ? e.uniform(0, 0.8) : 0; });
}

}  // namespace
}  // namespace ferrite::priors
