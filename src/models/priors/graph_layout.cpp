// A layered layout (Sugiyama, Tagawa and Toda): layers by the longest path, a stop in every layer that an
// edge passes, an order with few crossings, then heights as near as possible to those of the neighbours.
#include "models/priors/graph_layout.hpp"

#include <algorithm>
#include <limits>

namespace ferrite::priors {
namespace {

constexpr double margin = 24, layer_distance = 64, least_width = 640;
constexpr std::size_t most_stops = 20'000;  // edges of graphs with more go straight

using Index = std::size_t;

/// A node of the graph, or where an edge passes a layer.
struct Stop {
  int layer;
  double room;  // height that it takes
  double y = 0;
  std::vector<Index> before = {}, after = {};
};

/// Longest path from a root to each node; edges go from causes to effects, so there are no cycles. Roots then
/// move next to the first of their effects.
std::vector<int> layers_of(const CausalGraph& graph) {
  std::vector<int> layer(graph.nodes.size());
  for (bool changed = true; changed;) {
    changed = false;
    for (const CausalGraph::Edge& e : graph.edges) {
      int& to = layer[static_cast<Index>(e.to)];
      const int least = layer[static_cast<Index>(e.from)] + 1;
      if (to >= least) continue;
      to = least;
      changed = true;
    }
  }
  std::vector<int> first_effect(layer.size(), std::numeric_limits<int>::max());
  std::vector<bool> root(layer.size(), true);
  for (const CausalGraph::Edge& e : graph.edges) {
    root[static_cast<Index>(e.to)] = false;
    int& first = first_effect[static_cast<Index>(e.from)];
    first = std::min(first, layer[static_cast<Index>(e.to)]);
  }
  for (Index i = 0; i < layer.size(); ++i)
    if (root[i] && first_effect[i] != std::numeric_limits<int>::max()) layer[i] = first_effect[i] - 1;
  return layer;
}

class Layout {
 public:
  explicit Layout(const CausalGraph& graph) : graph_(graph) {
    const std::vector<int> layer = layers_of(graph);
    for (Index i = 0; i < layer.size(); ++i)
      stops_.push_back(
          {layer[i], graph.nodes[i].role == CausalGraph::Role::latent ? 4 * dot_radius : box_height + 6});
    Index between = 0;
    for (const CausalGraph::Edge& e : graph.edges)
      between += static_cast<Index>(layer[static_cast<Index>(e.to)] - layer[static_cast<Index>(e.from)] - 1);
    for (const CausalGraph::Edge& e : graph.edges) add_edge(e, between <= most_stops);
    layers_.resize(
        static_cast<Index>(1 + std::max_element(stops_.begin(), stops_.end(), [](auto& a, auto& b) {
                                 return a.layer < b.layer;
                               })->layer));
    for (Index s = 0; s < stops_.size(); ++s) layers_[static_cast<Index>(stops_[s].layer)].push_back(s);
  }

  GraphLayout result() {
    for (std::vector<Index>& layer : layers_) stack(layer);
    for (int sweep = 0; sweep < 12; ++sweep)
      visit(sweep % 2 == 0, [&](auto& layer, bool forward) {
        reorder(layer, forward);
        stack(layer);
      });
    for (int sweep = 0; sweep < 12; ++sweep)
      visit(sweep % 2 == 0, [&](auto& layer, bool forward) { settle(layer, forward); });
    return drawn();
  }

 private:
  void add_edge(const CausalGraph::Edge& e, bool with_stops) {
    std::vector<Index> path{static_cast<Index>(e.from)};
    for (int l = stops_[path[0]].layer + 1; with_stops && l < stops_[static_cast<Index>(e.to)].layer; ++l) {
      path.push_back(stops_.size());
      stops_.push_back({l, 7});
    }
    path.push_back(static_cast<Index>(e.to));
    for (Index k = 0; k + 1 < path.size(); ++k) {
      stops_[path[k]].after.push_back(path[k + 1]);
      stops_[path[k + 1]].before.push_back(path[k]);
    }
    paths_.push_back(std::move(path));
  }

  template <class F>
  void visit(bool forward, F&& f) {
    for (Index i = 0; i < layers_.size(); ++i) f(layers_[forward ? i : layers_.size() - 1 - i], forward);
  }

  /// The mean height of the neighbours on one side; its own if it has none.
  double wanted(Index s, bool forward) const {
    const std::vector<Index>& near = forward ? stops_[s].before : stops_[s].after;
    if (near.empty()) return stops_[s].y;
    double sum = 0;
    for (const Index n : near) sum += stops_[n].y;
    return sum / static_cast<double>(near.size());
  }

  void reorder(std::vector<Index>& layer, bool forward) {
    std::vector<std::pair<double, Index>> order;
    for (const Index s : layer) order.emplace_back(wanted(s, forward), s);
    std::stable_sort(order.begin(), order.end(), [](auto& a, auto& b) { return a.first < b.first; });
    for (Index i = 0; i < layer.size(); ++i) layer[i] = order[i].second;
  }

  /// One below the other, the middle at 0.
  void stack(const std::vector<Index>& layer) {
    double y = 0;
    for (const Index s : layer) y -= stops_[s].room / 2;
    for (const Index s : layer) {
      stops_[s].y = y + stops_[s].room / 2;
      y += stops_[s].room;
    }
  }

  /// As close to their preferred heights as order and room allow: neighbours that would overlap move as one.
  void settle(const std::vector<Index>& layer, bool forward) {
    struct Group {
      double sum;  // of the heights at which the first of them would like to be
      Index size;
      double top() const { return sum / static_cast<double>(size); }
    };
    std::vector<Group> groups;
    std::vector<double> offset;
    double below = 0;
    for (const Index s : layer) {
      offset.push_back(below + stops_[s].room / 2);
      below += stops_[s].room;
      groups.push_back({wanted(s, forward) - offset.back(), 1});
      while (groups.size() > 1 && groups[groups.size() - 2].top() > groups.back().top()) {
        groups[groups.size() - 2].sum += groups.back().sum;
        groups[groups.size() - 2].size += groups.back().size;
        groups.pop_back();
      }
    }
    Index at = 0;
    for (const Group& g : groups)
      for (Index k = 0; k < g.size; ++k, ++at) stops_[layer[at]].y = g.top() + offset[at];
  }

  GraphLayout drawn() const {
    double low = 0, high = 0;
    for (const Stop& s : stops_) {
      low = std::min(low, s.y - s.room / 2);
      high = std::max(high, s.y + s.room / 2);
    }
    const auto gaps = static_cast<double>(std::max<Index>(layers_.size(), 2) - 1);
    const double side = margin + box_width / 2,
                 width = std::max(least_width, 2 * side + layer_distance * gaps);
    const auto point = [&](Index s) {
      return Point{side + (width - 2 * side) * stops_[s].layer / gaps, stops_[s].y - low + margin};
    };
    GraphLayout layout{width, high - low + 2 * margin, {}, {}};
    for (Index i = 0; i < graph_.nodes.size(); ++i) layout.nodes.push_back(point(i));
    for (const std::vector<Index>& path : paths_) {
      std::vector<Point>& points = layout.edges.emplace_back();
      for (const Index s : path) points.push_back(point(s));
    }
    return layout;
  }

  const CausalGraph& graph_;
  std::vector<Stop> stops_;                 // the nodes first
  std::vector<std::vector<Index>> layers_;  // from top to bottom
  std::vector<std::vector<Index>> paths_;   // of the edges
};

}  // namespace

GraphLayout layout_graph(const CausalGraph& graph) { return Layout(graph).result(); }

CausalGraph observed_part(const CausalGraph& graph) {
  std::vector<bool> wanted(graph.nodes.size());
  for (Index i = 0; i < wanted.size(); ++i) wanted[i] = graph.nodes[i].role != CausalGraph::Role::latent;
  for (bool changed = true; changed;) {
    changed = false;
    for (const CausalGraph::Edge& e : graph.edges) {
      if (!wanted[static_cast<Index>(e.to)] || wanted[static_cast<Index>(e.from)]) continue;
      wanted[static_cast<Index>(e.from)] = changed = true;
    }
  }
  CausalGraph part;
  for (Index i = 0; i < wanted.size(); ++i)
    if (wanted[i]) part.nodes[static_cast<Index>(part.node(graph.nodes[i].name))] = graph.nodes[i];
  for (const CausalGraph::Edge& e : graph.edges)
    if (wanted[static_cast<Index>(e.to)])
      part.edge(graph.nodes[static_cast<Index>(e.from)].name, graph.nodes[static_cast<Index>(e.to)].name,
                e.label);
  return part;
}

}  // namespace ferrite::priors
