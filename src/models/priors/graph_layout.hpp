// The layout of a causal graph's drawing: causes left of effects, edges apart from each other.
#pragma once

#include "models/priors/causal_graph.hpp"

namespace ferrite::priors {

struct Point {
  double x, y;
};

struct GraphLayout {
  double width, height;
  std::vector<Point> nodes;               // centres
  std::vector<std::vector<Point>> edges;  // from the cause to the effect, with a point in each layer between
};

/// The size of the box of an observed variable, and of the dot of a latent one.
inline constexpr double box_width = 32, box_height = 20, dot_radius = 3;

/// Everything lies within width and height, boxes whole, and no two of them overlap.
FERRITE_API GraphLayout layout_graph(const CausalGraph& graph);

/// Only the variables that an observed variable depends on: the rest of a large network says nothing about a
/// dataset.
FERRITE_API CausalGraph observed_part(const CausalGraph& graph);

}  // namespace ferrite::priors
