// Pictures of causal graphs: nothing is cut off, nothing lies on top of something else.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "models/priors/graph_layout.hpp"

namespace ferrite::priors {
namespace {

void expect_whole_and_apart(const CausalGraph& graph, const GraphLayout& layout, const std::string& what) {
  ASSERT_EQ(layout.nodes.size(), graph.nodes.size()) << what;
  for (std::size_t i = 0; i < layout.nodes.size(); ++i) {
    const Point p = layout.nodes[i];
    ASSERT_TRUE(p.x >= box_width / 2 && p.x <= layout.width - box_width / 2) << what << " node " << i;
    ASSERT_TRUE(p.y >= box_height / 2 && p.y <= layout.height - box_height / 2) << what << " node " << i;
    for (std::size_t k = 0; k < i; ++k) {
      const Point q = layout.nodes[k];
      const bool dots = graph.nodes[i].role == CausalGraph::Role::latent ||
                        graph.nodes[k].role == CausalGraph::Role::latent;
      ASSERT_TRUE(std::abs(p.x - q.x) >= box_width ||
                  std::abs(p.y - q.y) >= (dots ? 2 * dot_radius : box_height))
          << what << " nodes " << i << " and " << k;
    }
  }
  for (const auto& edge : layout.edges)
    for (std::size_t k = 1; k < edge.size(); ++k) ASSERT_LT(edge[k - 1].x, edge[k].x) << what;
}

void observe(CausalGraph& graph, const std::string& name) {
  auto& node = graph.nodes[static_cast<std::size_t>(graph.node(name))];
  node.label = name;
  node.role = CausalGraph::Role::feature;
}

TEST(PriorPicture, EdgesOfAChainGoAroundItsNodes) {
  CausalGraph graph;
  for (int i = 0; i < 12; ++i) observe(graph, "x" + std::to_string(i));
  for (int i = 0; i + 1 < 12; ++i) graph.edge("x" + std::to_string(i), "x" + std::to_string(i + 1));
  for (const auto& [from, to] : {std::pair{0, 11}, {0, 5}, {2, 9}, {4, 11}})
    graph.edge("x" + std::to_string(from), "x" + std::to_string(to));
  const GraphLayout layout = layout_graph(graph);
  expect_whole_and_apart(graph, layout, "chain");
  std::set<int> heights;
  for (const Point& p : layout.nodes) heights.insert(static_cast<int>(p.y));
  EXPECT_GT(heights.size(), 2u) << "all on one line";
  for (std::size_t e = 11; e < graph.edges.size(); ++e) {
    const auto& path = layout.edges[e];
    ASSERT_EQ(path.size(), static_cast<std::size_t>(graph.edges[e].to - graph.edges[e].from + 1));
    for (std::size_t k = 1; k + 1 < path.size(); ++k)
      for (const Point& node : layout.nodes)
        EXPECT_TRUE(std::abs(node.x - path[k].x) >= box_width / 2 ||
                    std::abs(node.y - path[k].y) > box_height / 2)
            << "edge " << e << " goes through a node";
  }
}

TEST(PriorPicture, AWideLayerIsAsHighAsItNeeds) {
  CausalGraph graph;
  for (int i = 0; i < 300; ++i) graph.edge("c", "u" + std::to_string(i));
  for (int i = 0; i < 120; ++i) {
    observe(graph, "x" + std::to_string(i));
    graph.edge("u" + std::to_string(i), "x" + std::to_string(i));
  }
  expect_whole_and_apart(graph, layout_graph(graph), "wide");
  const CausalGraph part = observed_part(graph);
  EXPECT_EQ(part.nodes.size(), 1u + 120 + 120);
  EXPECT_EQ(part.edges.size(), 240u);
  EXPECT_EQ(part.nodes[part.nodes.size() - 1].label, "x119");
}

TEST(PriorPicture, EveryFamilyIsDrawnWhole) {
  for (const Family family : {Family::formula, Family::graph, Family::mlp_scm, Family::tree_scm, Family::gp})
    for (const int features : {1, 9, 60}) {
      for (int dataset = 0; dataset < 4; ++dataset) {
        Config config;
        config.family = family;
        config.rows = {64, 64};
        config.features = {features, features};
        config.post.classes = {2, 2};
        config.post.learnability = 0;
        MadeDataset made(config, 3, dataset);
        const CausalGraph graph = observed_part(causal_graph(made));
        expect_whole_and_apart(graph, layout_graph(graph),
                               std::string(to_string(family)) + " " + std::to_string(features));
      }
    }
}

}  // namespace
}  // namespace ferrite::priors
