// The definition of a prior: the family of random functions, the size of the datasets, and the steps from the
// raw values to a training set. It is one plain struct, so that a GPU kernel takes it by value; its JSON form
// has the same names. Defaults are TabICL's if it has the parameter.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "ferrite/core/export.hpp"

namespace ferrite::priors {

enum class Family : std::uint8_t { formula, graph, mlp_scm, tree_scm, gp, mixture };
enum class Task : std::uint8_t { classification, regression };
/// How the real target is cut into classes. value: at normal draws. rank: at the values of random rows, hence
/// imbalanced at random. balanced: at the quantiles. sampled: value or rank, drawn per group. shares: the
/// classes get shares of the rows from a Dirichlet law, see PostConfig::evenness.
enum class ClassCuts : std::uint8_t { sampled, value, rank, balanced, shares };
enum class Causality : std::uint8_t { sampled, causal, non_causal };
enum class RowLaw : std::uint8_t { uniform, log_uniform };

FERRITE_API std::string_view to_string(Family v);
FERRITE_API std::string_view to_string(Task v);
FERRITE_API std::string_view to_string(ClassCuts v);
FERRITE_API std::string_view to_string(Causality v);
FERRITE_API std::string_view to_string(RowLaw v);
constexpr int count_of(Family) { return 6; }
constexpr int count_of(Task) { return 2; }
constexpr int count_of(ClassCuts) { return 5; }
constexpr int count_of(Causality) { return 3; }
constexpr int count_of(RowLaw) { return 2; }

// Hard limits, for which scratch memory and plans are laid out.
inline constexpr int max_rows = 65536, max_features = 128, max_classes = 10, max_hidden = 320,
                     max_layers = 12, max_causes = 128, max_terms = 32, max_latent = 63,
                     max_nodes = max_features + 1 + max_latent, max_parents = 8, max_categories = 64,
                     max_attempts = 255;

/// Every value between two ends, both included. In JSON {"min": 2, "max": 20}, or one number for both.
struct IntRange {
  int min, max;
  static void fields(auto& self, auto&& visit, double low, double high) {
    visit("min", self.min, low, high);
    visit("max", self.max, low, high);
  }
};
struct RealRange {
  double min, max;
  static void fields(auto& self, auto&& visit, double low, double high) {
    visit("min", self.min, low, high);
    visit("max", self.max, low, high);
  }
};

// Two-level laws: their parameters are drawn once per group of datasets, the value once per dataset.

/// lower + TruncNormal(mu, sigma) on [0, 1e6], mu log-uniform in [min, max], sigma / mu log-uniform in [0.01,
/// 1].
struct TruncatedNormalLaw {
  double min, max, lower;
  static void fields(auto& self, auto&& visit, double low, double high) {
    visit("min", self.min, low, high);
    visit("max", self.max, low, high);
    visit("lower", self.lower, 0.0, high);
  }
};
/// lower + Gamma(shape a, scale s / a), a log-uniform in [1, max_alpha], s uniform in [0, max_scale].
struct GammaLaw {
  double max_alpha, max_scale, lower;
  static void fields(auto& self, auto&& visit, double low, double high) {
    visit("max_alpha", self.max_alpha, 1.0, 1e3);
    visit("max_scale", self.max_scale, low, high);
    visit("lower", self.lower, 0.0, high);
  }
};
/// scale * Beta(b, k), b and k uniform in [min, max].
struct BetaLaw {
  double scale, min, max;
  static void fields(auto& self, auto&& visit, double low, double high) {
    visit("scale", self.scale, low, high);
    visit("min", self.min, 1e-3, 1e3);
    visit("max", self.max, 1e-3, 1e3);
  }
};

/// y = sum of terms c f(w x_j + b), f one of linear, sin, cos, tanh, exp; features uniform in [-range,
/// range].
struct FormulaConfig {
  IntRange terms{2, 6};           ///< per dataset
  double range = 3;               ///< half-width of the features
  RealRange coefficient{0.2, 2};  ///< |c|, sign at random
  RealRange frequency{0.3, 2};    ///< |w|, sign at random; half of it for exp, as of the shift
  double shift = 1;               ///< |b| at most
  double noise = 0;               ///< standard deviation, added to y
  static void fields(auto& self, auto&& visit) {
    visit("terms", self.terms, 1.0, max_terms);
    visit("range", self.range, 1e-3, 100.0);
    visit("coefficient", self.coefficient, 0.0, 1e3);
    visit("frequency", self.frequency, 0.0, 100.0);
    visit("shift", self.shift, 0.0, 100.0);
    visit("noise", self.noise, 0.0, 1e3);
  }
};

/// A random multilayer perceptron as a structural causal model (TabICL v1). Causal: x and y are units of the
/// network; non-causal: x is its input, y its output.
struct MlpScmConfig {
  Causality causality = Causality::sampled;
  TruncatedNormalLaw causes{1, 12, 1};
  TruncatedNormalLaw layers{1, 6, 2};
  TruncatedNormalLaw hidden{5, 130, 4};
  TruncatedNormalLaw init_std{0.01, 10, 0};
  TruncatedNormalLaw noise_std{1e-4, 0.3, 0};
  BetaLaw dropout{0.9, 0.1, 5};
  static void fields(auto& self, auto&& visit) {
    visit("causality", self.causality);
    visit("causes", self.causes, 1.0, max_causes);
    visit("layers", self.layers, 1.0, max_layers);
    visit("hidden", self.hidden, 1.0, max_hidden);
    visit("init_std", self.init_std, 1e-6, 1e3);
    visit("noise_std", self.noise_std, 1e-9, 1e3);
    visit("dropout", self.dropout, 0.0, 0.99);
  }
};

/// Layers of random oblivious trees over the causes, which are x; y is the last layer's output.
struct TreeScmConfig {
  IntRange layers{1, 2};
  IntRange hidden{3, 9};
  IntRange trees{1, 4};  ///< min + floor(Exp(mean 2)), at most max; depth likewise
  IntRange depth{2, 4};
  TruncatedNormalLaw noise_std{1e-4, 0.3, 0};
  static void fields(auto& self, auto&& visit) {
    visit("layers", self.layers, 1.0, 4.0);
    visit("hidden", self.hidden, 1.0, 32.0);
    visit("trees", self.trees, 1.0, 8.0);
    visit("depth", self.depth, 1.0, 6.0);
    visit("noise_std", self.noise_std, 1e-9, 1e3);
  }
};

/// A random DAG of scalar nodes: edge i -> j, i < j, with probability sigmoid(A + B_i + C_j), A, B, C Cauchy.
/// A node with more than max_parents parents keeps that many at random. It combines random functions of
/// them, is standardised, and gets noise. x and y are nodes.
struct GraphConfig {
  GammaLaw latent{3, 16, 1};  ///< nodes beyond those observed, at most max_latent
  TruncatedNormalLaw noise_std{1e-4, 0.3, 0};
  static void fields(auto& self, auto&& visit) {
    visit("latent", self.latent, 0.0, max_latent);
    visit("noise_std", self.noise_std, 1e-9, 1e3);
  }
};

/// y from a Gaussian process with an RBF kernel over independent features, by random Fourier features.
struct GpConfig {
  int terms = 256;
  RealRange lengthscale{0.1, 10};  ///< log-uniform, times sqrt(features)
  RealRange noise_std{1e-4, 0.1};  ///< log-uniform
  static void fields(auto& self, auto&& visit) {
    visit("terms", self.terms, 8.0, 1024.0);
    visit("lengthscale", self.lengthscale, 1e-4, 1e4);
    visit("noise_std", self.noise_std, 1e-9, 1e3);
  }
};

/// Shares of the families in a mixture; they need not sum to 1.
struct MixtureWeights {
  double formula = 0, graph = 0, mlp_scm = 0.7, tree_scm = 0.3, gp = 0;
  static void fields(auto& self, auto&& visit) {
    visit("formula", self.formula, 0.0, 1e6);
    visit("graph", self.graph, 0.0, 1e6);
    visit("mlp_scm", self.mlp_scm, 0.0, 1e6);
    visit("tree_scm", self.tree_scm, 0.0, 1e6);
    visit("gp", self.gp, 0.0, 1e6);
  }
};

/// From raw values to a training set, in this order: categorical features, long tails, outliers clipped,
/// standardised, constant features dropped, target cut into classes, rows ordered for the split, learnability
/// checked, cells removed, features permuted. Categorical features have 2 to max_categories levels.
/// Statistics use all rows, train and test.
struct PostConfig {
  IntRange classes{2, 10};
  double binary_share = 0.5;  ///< of the datasets have classes.min classes, the others uniformly many
  ClassCuts cuts = ClassCuts::sampled;
  double evenness = 2;  ///< of ClassCuts::shares, the Dirichlet law's parameter: large ones balance
  bool permute_labels = true;
  double categorical_share = 0.2;  ///< of the datasets; each of their columns with probability U(0, 1)
  double category_scale = 10;      ///< levels are this times an exponential draw, rounded, at least 2
  double ordered_share = 0.3;      ///< of the categorical columns keep the order of their values
  bool category_codes = false;     ///< categorical features stay whole numbers, whatever `standardise` says
  double skewed_share = 0;   ///< of numeric columns and targets get a long right tail: exp(s z), s in U(0, 1)
  double missing_share = 0;  ///< of the datasets have missing values (NaN)
  double missing_columns = 1;  ///< of the columns of these lose cells
  double missing_rate = 0.3;   ///< of the cells of such columns at most, uniform, the same for all of them
  double mnar_share = 0.5;     ///< of those datasets lose large (or small) values rather than any
  double clip_sigma = 4;       ///< outliers of numeric columns beyond are clipped; 0: never
  bool standardise = true;     ///< features, and the target of regression
  bool permute_features = true;
  double learnability =
      0.02;           ///< least share of y's variance that one feature or the neighbours explain; 0: any
  int attempts = 64;  ///< draws until a dataset passes all filters
  static void fields(auto& self, auto&& visit) {
    visit("classes", self.classes, 2.0, max_classes);
    visit("binary_share", self.binary_share, 0.0, 1.0);
    visit("cuts", self.cuts);
    visit("evenness", self.evenness, 0.05, 1e3);
    visit("permute_labels", self.permute_labels);
    visit("categorical_share", self.categorical_share, 0.0, 1.0);
    visit("category_scale", self.category_scale, 0.0, max_categories);
    visit("ordered_share", self.ordered_share, 0.0, 1.0);
    visit("category_codes", self.category_codes);
    visit("skewed_share", self.skewed_share, 0.0, 1.0);
    visit("missing_share", self.missing_share, 0.0, 1.0);
    visit("missing_columns", self.missing_columns, 0.0, 1.0);
    visit("missing_rate", self.missing_rate, 0.0, 0.9);
    visit("mnar_share", self.mnar_share, 0.0, 1.0);
    visit("clip_sigma", self.clip_sigma, 0.0, 100.0);
    visit("standardise", self.standardise);
    visit("permute_features", self.permute_features);
    visit("learnability", self.learnability, 0.0, 1.0);
    visit("attempts", self.attempts, 1.0, max_attempts);
  }
};

struct FERRITE_API Config {
  Family family = Family::mixture;
  Task task = Task::classification;
  IntRange rows{1024, 1024};
  RowLaw row_law = RowLaw::uniform;
  IntRange features{2, 20};
  RealRange train_share{0.1, 0.9};
  int group_size = 4;  ///< consecutive datasets that share rows, split and each attempt's upper laws
  MixtureWeights weights;
  FormulaConfig formula;
  GraphConfig graph;
  MlpScmConfig mlp_scm;
  TreeScmConfig tree_scm;
  GpConfig gp;
  PostConfig post;

  /// Calls visit(name, field) for structs, enums and bools, visit(name, field, low, high) for numbers and
  /// ranges.
  static void fields(auto& self, auto&& visit) {
    visit("family", self.family);
    visit("task", self.task);
    visit("rows", self.rows, 4.0, max_rows);
    visit("row_law", self.row_law);
    visit("features", self.features, 1.0, max_features);
    visit("train_share", self.train_share, 0.01, 0.99);
    visit("group_size", self.group_size, 1.0, 1e6);
    visit("weights", self.weights);
    visit("formula", self.formula);
    visit("graph", self.graph);
    visit("mlp_scm", self.mlp_scm);
    visit("tree_scm", self.tree_scm);
    visit("gp", self.gp);
    visit("post", self.post);
  }

  /// "default": all defaults. "realistic": fitted to statistics of real tables (docs/priors.md), with more
  /// categorical columns, correlations and missing cells. Throws ValueError that lists the names.
  static Config preset(std::string_view name);
  /// Throws ValueError that names the key and the rule if no dataset could satisfy the config.
  void check() const;
  /// Every key, in the order above.
  std::string to_json() const;
  /// Absent keys keep their defaults, or the values of the preset that the key "preset" names. Throws
  /// ParseError for text that is not JSON, an unknown key or a value of the wrong type, ValueError as check()
  /// does; the message names the key, like "mlp_scm.hidden.max".
  static Config from_json(std::string_view text);
  /// The same from a file, which the messages name; IoError if it cannot be read.
  static Config from_file(const std::filesystem::path& path);
};

}  // namespace ferrite::priors
