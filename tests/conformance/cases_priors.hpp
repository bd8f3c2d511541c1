// Ops that make datasets out of nothing: their one input names the backend. Every backend gives the same
// bits.
#pragma once

#include "case.hpp"
#include "ferrite/models/priors/priors.hpp"

namespace ferrite::conformance {

template <class B>
void add_prior_cases(Cases<B>& cases) {
  Spec spec{"", {real({1})}, {DType::f32}};
  spec.differentiable = false;
  spec.same_dtype = true;
  for (const priors::Task task : {priors::Task::classification, priors::Task::regression}) {
    priors::Config config;
    config.task = task;
    config.rows = {30, 50};
    config.features = {2, 6};
    config.post.classes = {2, 4};
    config.post.missing_share = 0.5;
    config.weights = {1, 1, 1, 1, 1};
    spec.name = "prior_datasets/" + std::string(to_string(task));
    cases.add(spec, [config](const auto& in) {
      const auto batch = priors::generate(in[0].backend(), config, 3, 0, 8);
      return std::vector{batch.x, batch.y, batch.row_mask, batch.feature_mask, batch.levels, batch.info};
    });
  }
  for (const std::int64_t features : {4, 3}) {
    spec.name = "formula_prior/" + std::to_string(features);
    cases.add(spec, [features](const auto& in) {
      priors::FormulaConfig config;
      config.noise = 0.1;
      const auto batch = priors::generate_formula(in[0].backend(), config, 70, features, 3, 5, 6);
      return std::vector{batch.x, batch.y};
    });
  }
}

}  // namespace ferrite::conformance
