// Describes a dataset: its graph, functions and coefficients, for people and for other programs.
#pragma once

#include <string>

#include "ferrite/models/priors/config.hpp"

namespace ferrite::priors {

/// One JSON object: family, attempt, sizes, the origin of each feature, and every number the family drew
/// (terms, weights, splits, noise). It is the same for every backend, because the dataset is. Throws
/// ValueError as generate does.
FERRITE_API std::string describe_json(const Config& config, std::uint64_t seed, std::int64_t dataset);

/// The dataset's causal graph in the DOT language of Graphviz: features as boxes x0, x1, ..., the target
/// doubly framed, latent variables as circles. In a network, each unit shows its three strongest inputs.
FERRITE_API std::string describe_dot(const Config& config, std::uint64_t seed, std::int64_t dataset);

/// A self-contained HTML page: the causal graph, the first features against each other, the classes.
FERRITE_API std::string picture_html(const Config& config, std::uint64_t seed, std::int64_t dataset);

}  // namespace ferrite::priors
