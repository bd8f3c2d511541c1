// Generated batches as plain rows and columns, for tests.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "ferrite/models/priors/priors.hpp"

namespace ferrite::testing {

/// Datasets of all kinds that are quick to make.
inline priors::Config small_config(priors::Family family) {
  priors::Config config;
  config.family = family;
  config.rows = {40, 70};
  config.features = {2, 9};
  config.post.classes = {2, 5};
  config.post.missing_share = 0.5;
  config.weights = {1, 1, 1, 1, 1};
  return config;
}

/// One dataset of a batch, without its padding.
struct Set {
  int rows = 0, train_rows = 0, features = 0, classes = 0, attempts = 0;
  priors::Family family{};
  std::vector<std::vector<double>> x;  // [rows][features]
  std::vector<double> y;
  std::vector<int> levels;
  std::vector<int> rejected;  // by filter

  std::vector<double> column(int j) const {
    std::vector<double> values;
    for (const auto& row : x) values.push_back(row[static_cast<std::size_t>(j)]);
    return values;
  }
};

template <class B>
std::vector<Set> sets_of(const priors::Batch<B>& batch) {
  const auto x = batch.x.template to_vector<double>(), y = batch.y.template to_vector<double>();
  const auto info = batch.info.template to_vector<int>(), levels = batch.levels.template to_vector<int>();
  const auto all_rows = static_cast<std::size_t>(batch.x.size(1)),
             all_features = static_cast<std::size_t>(batch.x.size(2));
  std::vector<Set> sets;
  for (std::size_t i = 0; i < static_cast<std::size_t>(batch.x.size(0)); ++i) {
    const int* facts = info.data() + i * priors::info_fields;
    Set set{facts[priors::info_rows],
            facts[priors::info_train_rows],
            facts[priors::info_features],
            facts[priors::info_classes],
            facts[priors::info_attempts],
            static_cast<priors::Family>(facts[priors::info_family]),
            {},
            {},
            {},
            {}};
    for (std::size_t r = 0; r < static_cast<std::size_t>(set.rows); ++r) {
      const double* row = x.data() + (i * all_rows + r) * all_features;
      set.x.emplace_back(row, row + set.features);
      set.y.push_back(y[i * all_rows + r]);
    }
    set.levels.assign(levels.data() + i * all_features,
                      levels.data() + i * all_features + static_cast<std::size_t>(set.features));
    set.rejected.assign(facts + priors::info_rejected, facts + priors::info_rejected + priors::filters);
    sets.push_back(std::move(set));
  }
  return sets;
}

struct MeanAndStd {
  double mean = 0, std = 0;
};
inline MeanAndStd mean_and_std(const std::vector<double>& v) {
  MeanAndStd m;
  for (const double x : v) m.mean += x / static_cast<double>(v.size());
  for (const double x : v) m.std += (x - m.mean) * (x - m.mean) / static_cast<double>(v.size() - 1);
  m.std = std::sqrt(m.std);
  return m;
}

}  // namespace ferrite::testing
