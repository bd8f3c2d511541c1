// What the families compute, against an independent evaluation in double from the exported structure; and
// that what they make can be learned.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "ferrite/backend/cpu.hpp"
#include "ferrite/models/priors/describe.hpp"
#include "ferrite/models/priors/priors.hpp"
#include "models/priors/sets.hpp"

namespace ferrite::priors {
namespace {

using ferrite::testing::mean_and_std;
using ferrite::testing::Set;
using Json = nlohmann::json;
using Column = std::vector<double>;

/// Raw values: nothing is done to what the family computes.
Config raw(Family family) {
  Config config;
  config.family = family;
  config.task = Task::regression;
  config.rows = {200, 200};
  config.features = {2, 6};
  config.group_size = 1;
  config.post.standardise = config.post.permute_features = false;
  config.post.clip_sigma = config.post.categorical_share = config.post.learnability = 0;
  config.mlp_scm.causality = Causality::non_causal;
  config.tree_scm.layers = {1, 1};  // the first layer gets no noise: its values can be reproduced exactly
  config.mlp_scm.noise_std = config.tree_scm.noise_std = config.graph.noise_std = {1e-9, 1e-9, 0};
  return config;
}

double plain_function(const std::string& name, double x) {
  if (name == "tanh") return std::tanh(x);
  if (name == "leaky_relu") return x > 0 ? x : 0.01 * x;
  if (name == "elu") return x > 0 ? x : std::expm1(x);
  if (name == "selu") return 1.0507009873554805 * (x > 0 ? x : 1.6732632423543772 * std::expm1(x));
  if (name == "silu") return x / (1 + std::exp(-x));
  if (name == "relu") return std::max(x, 0.0);
  if (name == "softplus") return std::log1p(std::exp(-std::fabs(x))) + std::max(x, 0.0);
  if (name == "relu6") return std::clamp(x, 0.0, 6.0);
  if (name == "hardtanh") return std::clamp(x, -1.0, 1.0);
  if (name == "sign") return x > 0 ? 1 : x < 0 ? -1 : 0;
  if (name == "gauss") return std::exp(-x * x);
  if (name == "exp") return std::exp(std::min(x, 88.0));
  if (name == "sqrt_abs") return std::sqrt(std::fabs(x));
  if (name == "inside_one") return std::fabs(x) <= 1 ? 1 : 0;
  if (name == "sin") return std::sin(x);
  if (name == "square") return x * x;
  if (name == "abs") return std::fabs(x);
  EXPECT_EQ(name, "identity");
  return x;
}

Column activated(const Json& function, Column x) {
  const auto n = static_cast<double>(x.size());
  const double mean = std::accumulate(x.begin(), x.end(), 0.0) / n;
  double square = 0;
  for (const double v : x) square += (v - mean) * (v - mean) / n;
  for (double& v : x) {
    v = function["scale"].get<double>() *
        ((v - mean) / (std::sqrt(square) + 1e-6) + function["shift"].get<double>());
    if (function["function"] != "fourier") {
      v = plain_function(function["function"], v);
      continue;
    }
    double sum = 0;
    for (std::size_t k = 0; k < function["re"].size(); ++k) {
      const double angle = (static_cast<double>(k) + function["offset"].get<double>()) * v;
      sum += function["re"][k].get<double>() * std::sin(angle) +
             function["im"][k].get<double>() * std::cos(angle);
    }
    v = sum;
  }
  return x;
}

Column mlp_output(const Json& structure, std::vector<Column> h) {
  for (const Json& map : structure["maps"]) {
    if (map.contains("activation"))
      for (Column& unit : h) unit = activated(map["activation"], unit);
    std::vector<Column> out;
    for (std::size_t u = 0; u < map["weights"].size(); ++u) {
      Column sum(h[0].size(), map["bias"][u].get<double>());
      for (std::size_t k = 0; k < h.size(); ++k) {
        const double w = map["weights"][u][k].get<double>();
        const double* in = h[k].data();  // a vector's brackets are calls where tests are not optimised
        double* to = sum.data();
        for (std::size_t r = 0; r < sum.size(); ++r) to[r] += w * in[r];
      }
      out.push_back(std::move(sum));
    }
    h = std::move(out);
  }
  return h[0];
}

// In float: thresholds are values of rows, so that the next layer compares for equality.
std::vector<Column> tree_layer(const Json& layer, const std::vector<Column>& in) {
  std::vector<Column> out(layer["outputs"].get<std::size_t>(), Column(in[0].size()));
  for (std::size_t r = 0; r < in[0].size(); ++r) {
    std::vector<float> sums(out.size());
    for (const Json& tree : layer["trees"]) {
      std::size_t leaf = 0;
      for (std::size_t d = 0; d < tree["columns"].size(); ++d)
        leaf =
            2 * leaf + (in[tree["columns"][d].get<std::size_t>()][r] > tree["thresholds"][d].get<double>());
      for (std::size_t u = 0; u < out.size(); ++u)
        sums[u] += tree["leaves"][leaf * out.size() + u].get<float>();
    }
    for (std::size_t u = 0; u < out.size(); ++u)
      out[u][r] = static_cast<double>(sums[u] / static_cast<float>(layer["trees"].size()));
  }
  return out;
}

double formula_output(const Json& structure, const std::vector<double>& x) {
  double y = 0;
  for (const Json& term : structure["terms"]) {
    const double z =
        term["frequency"].get<double>() * x[term["column"].get<std::size_t>()] + term["shift"].get<double>();
    const std::string f = term["function"];
    y += term["coefficient"].get<double>() * (f == "sin"    ? std::sin(z)
                                              : f == "cos"  ? std::cos(z)
                                              : f == "tanh" ? std::tanh(z)
                                              : f == "exp"  ? std::exp(z)
                                                            : z);
  }
  return y;
}

/// Root mean square error over the spread of y.
double relative_error(const Column& y, const Column& expected) {
  double error = 0;
  for (std::size_t r = 0; r < y.size(); ++r) error += (y[r] - expected[r]) * (y[r] - expected[r]);
  return std::sqrt(error / static_cast<double>(y.size())) / mean_and_std(y).std;
}

/// Errors of the first 40 datasets, least first.
template <class Output>
std::vector<double> errors_of(const Config& config, Output&& output) {
  Cpu cpu;
  std::vector<double> errors;
  const auto sets = testing::sets_of(generate(cpu, config, 2, 0, 40));
  for (std::size_t i = 0; i < sets.size(); ++i) {
    const Json described = Json::parse(describe_json(config, 2, static_cast<std::int64_t>(i)));
    EXPECT_EQ(described["rows"], sets[i].rows);
    EXPECT_EQ(described["features"].size(), static_cast<std::size_t>(sets[i].features));
    // A constant column is no feature; leave such sets out.
    if (described["features"].back()["column"] != sets[i].features - 1) continue;
    errors.push_back(relative_error(sets[i].y, output(described["structure"], sets[i])));
  }
  std::sort(errors.begin(), errors.end());
  EXPECT_GT(errors.size(), 30u);
  return errors;
}
std::vector<Column> columns_of(const Set& set) {
  std::vector<Column> columns;
  for (int j = 0; j < set.features; ++j) columns.push_back(set.column(j));
  return columns;
}

TEST(Formula, IsTheSumOfItsTerms) {
  const auto errors = errors_of(raw(Family::formula), [](const Json& s, const Set& set) {
    Column y;
    for (const auto& row : set.x) y.push_back(formula_output(s, row));
    return y;
  });
  EXPECT_LT(errors.back(), 1e-5);
}

TEST(TreeScm, IsTheMeanOfItsTreesLayerByLayer) {
  const auto errors = errors_of(raw(Family::tree_scm), [](const Json& s, const Set& set) {
    std::vector<Column> h = columns_of(set);
    for (const Json& layer : s["layers"]) h = tree_layer(layer, h);
    return h[0];  // the last layer has one output
  });
  EXPECT_LT(errors.back(), 1e-3);
}

TEST(MlpScm, IsTheNetworkItDescribes) {
  const auto errors = errors_of(raw(Family::mlp_scm),
                                [](const Json& s, const Set& set) { return mlp_output(s, columns_of(set)); });
  // Steep activations one after the other magnify rounding, and jumps may fall on either side: not every
  // network can be followed by another arithmetic.
  EXPECT_LT(errors[errors.size() / 2], 1e-3);
  EXPECT_LT(errors[errors.size() * 3 / 4], 3e-2);
}

TEST(Graph, NodesAreFunctionsOfTheirParents) {
  Cpu cpu;
  Config config = raw(Family::graph);
  config.features = {12, 12};
  config.graph.latent = {1, 1, 0};
  const auto sets = testing::sets_of(generate(cpu, config, 2, 0, 150));
  std::vector<double> errors;
  for (std::size_t i = 0; i < sets.size(); ++i) {
    const Json s = Json::parse(describe_json(config, 2, static_cast<std::int64_t>(i)))["structure"];
    const Json& node = s["nodes"][s["y"].get<std::size_t>()];
    if (sets[i].features != 12 || node["kind"] == "root") continue;
    std::vector<Column> parents;
    for (const int parent : node["parents"]) {
      const auto found = std::find(s["x"].begin(), s["x"].end(), parent);
      if (found != s["x"].end()) parents.push_back(sets[i].column(static_cast<int>(found - s["x"].begin())));
    }
    if (parents.size() != node["parents"].size()) continue;  // one is latent
    Column y;
    if (node["kind"] == "tree") {
      y = tree_layer(node["tree"], parents)[0];
    } else {
      for (std::size_t p = 0; p < parents.size(); ++p) {
        const Column z = activated(node["functions"][p], parents[p]);
        const auto m = mean_and_std(z);
        for (std::size_t r = 0; r < z.size(); ++r) {
          const double v =
              node["weights"][p].get<double>() * (z[r] - m.mean) / (m.std * std::sqrt(199.0 / 200) + 1e-6);
          if (p == 0)
            y.push_back(v);
          else if (node["kind"] == "product")
            y[r] *= v;
          else if (node["kind"] == "max")
            y[r] = std::max(y[r], v);
          else if (node["kind"] == "logsumexp")
            y[r] = std::log(std::exp(y[r]) + std::exp(v));
          else
            y[r] += v;
        }
      }
    }
    const auto m = mean_and_std(y);
    for (double& v : y) v = (v - m.mean) / (m.std * std::sqrt(199.0 / 200) + 1e-6);
    errors.push_back(relative_error(sets[i].y, y));
  }
  std::sort(errors.begin(), errors.end());
  ASSERT_GT(errors.size(), 20u);
  EXPECT_LT(errors[errors.size() / 2], 1e-3);
  EXPECT_LT(errors[errors.size() * 9 / 10], 3e-2);
}

TEST(Gp, IsTheSumOfItsTerms) {
  Config config = raw(Family::gp);
  config.gp.noise_std = {1e-9, 1e-9};
  config.gp.terms = 100;  // no multiple of those computed at once
  const auto errors = errors_of(config, [&](const Json& structure, const Set& set) {
    EXPECT_EQ(structure["terms"].size(), 100u);
    Column y(set.y.size());
    for (const Json& term : structure["terms"])
      for (std::size_t r = 0; r < y.size(); ++r) {
        double angle = term["phase"];
        for (std::size_t j = 0; j < set.x[r].size(); ++j)
          angle += term["frequencies"][j].get<double>() * set.x[r][j];
        y[r] += term["amplitude"].get<double>() * std::cos(angle);
      }
    return y;
  });
  EXPECT_LT(errors.back(), 1e-4);
}

TEST(Gp, ClosePointsHaveCloseTargetsAndTheVarianceIsOne) {
  Cpu cpu;
  Config config = raw(Family::gp);
  config.features = {1, 1};
  config.gp.lengthscale = {1, 1};
  config.gp.noise_std = {1e-9, 1e-9};
  double variance = 0, covariance = 0, count = 0;
  for (const Set& set : testing::sets_of(generate(cpu, config, 3, 0, 400))) {
    for (std::size_t r = 0; r + 1 < set.x.size(); r += 2) {
      const double distance = std::fabs(set.x[r][0] - set.x[r + 1][0]);
      variance += set.y[r] * set.y[r] / 400 / 100;
      if (distance < 0.9 || distance > 1.1) continue;
      covariance += set.y[r] * set.y[r + 1];
      ++count;
    }
  }
  EXPECT_NEAR(variance, 1, 0.12);
  EXPECT_NEAR(covariance / count, std::exp(-0.5), 0.12);  // the RBF kernel at distance 1
}

TEST(Describe, GraphsAreDotWithEveryFeatureAndTheTarget) {
  for (const Family family :
       {Family::formula, Family::graph, Family::mlp_scm, Family::tree_scm, Family::gp}) {
    Config config;
    config.family = family;
    config.rows = {64, 64};
    const Json described = Json::parse(describe_json(config, 4, 1));
    EXPECT_EQ(described["family"], to_string(family));
    const std::string dot = describe_dot(config, 4, 1);
    EXPECT_EQ(dot.substr(0, 17), "digraph dataset {");
    EXPECT_EQ(dot.substr(dot.size() - 2), "}\n");
    EXPECT_NE(dot.find("label=\"y\""), std::string::npos);
    for (std::size_t j = 0; j < described["features"].size(); ++j)
      EXPECT_NE(dot.find("label=\"x" + std::to_string(j) + "\""), std::string::npos)
          << to_string(family) << dot;
  }
}

/// Accuracy of the five nearest training rows on the test rows, minus that of the most frequent class.
double neighbours_beat_majority(const Set& set) {
  const auto train = static_cast<std::size_t>(set.train_rows), rows = static_cast<std::size_t>(set.rows);
  const auto classes = static_cast<std::size_t>(set.classes);
  std::vector<int> frequency(classes);
  for (std::size_t i = 0; i < train; ++i) ++frequency[static_cast<std::size_t>(set.y[i])];
  const auto majority =
      static_cast<double>(std::max_element(frequency.begin(), frequency.end()) - frequency.begin());
  double right = 0, by_majority = 0;
  for (std::size_t q = train; q < rows; ++q) {
    struct Neighbour {
      double distance, label;
    };
    std::vector<Neighbour> near;
    for (std::size_t i = 0; i < train; ++i) {
      double distance = 0;
      for (std::size_t j = 0; j < set.x[i].size(); ++j) distance += std::pow(set.x[i][j] - set.x[q][j], 2);
      near.push_back({distance, set.y[i]});
    }
    std::sort(near.begin(), near.end(),
              [](const Neighbour& a, const Neighbour& b) { return a.distance < b.distance; });
    std::vector<int> votes(classes);
    for (std::size_t k = 0; k < std::min<std::size_t>(5, train); ++k)
      ++votes[static_cast<std::size_t>(near[k].label)];
    const auto vote = static_cast<double>(std::max_element(votes.begin(), votes.end()) - votes.begin());
    right += vote == set.y[q];
    by_majority += majority == set.y[q];
  }
  return (right - by_majority) / static_cast<double>(rows - train);
}

TEST(Learnability, NeighboursBeatTheMajorityInMostDatasetsOfEveryFamily) {
  Cpu cpu;
  for (const Family family :
       {Family::formula, Family::graph, Family::mlp_scm, Family::tree_scm, Family::gp}) {
    Config config;
    config.family = family;
    config.rows = {400, 400};
    config.features = {2, 8};
    config.train_share = {0.5, 0.5};
    config.group_size = 1;
    config.post.classes = {2, 4};
    config.post.cuts = ClassCuts::balanced;
    int better = 0;
    double gain = 0;
    for (const Set& set : testing::sets_of(generate(cpu, config, 8, 0, 60))) {
      const double advantage = neighbours_beat_majority(set);
      better += advantage > 0.02;
      gain += advantage / 60;
    }
    EXPECT_GT(better, 40) << to_string(family);
    EXPECT_GT(gain, 0.12) << to_string(family);
  }
}

}  // namespace
}  // namespace ferrite::priors
