// The causal graph of a dataset as nodes and edges: what DOT files and pictures are drawn from.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "models/priors/made_dataset.hpp"

namespace ferrite::priors {

struct FERRITE_API CausalGraph {
  enum class Role : std::uint8_t { latent, feature, target };
  struct Node {
    std::string name;   // unique
    std::string label;  // "x3", "y", or nothing for a latent variable
    Role role = Role::latent;
  };
  struct Edge {
    int from, to;
    std::string label;
  };
  std::vector<Node> nodes;
  std::vector<Edge> edges;

  /// The node of that name, made if there is none.
  int node(const std::string& name);
  void edge(const std::string& from, const std::string& to, const std::string& label = "");

 private:
  std::map<std::string, int> index_;
};

FERRITE_API CausalGraph causal_graph(MadeDataset& made);

}  // namespace ferrite::priors
