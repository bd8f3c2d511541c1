// From a real target to classes, and a split of the rows in which train and test have the same classes.
#pragma once

#include "models/priors/columns.hpp"

namespace ferrite::priors {

/// Floats as integers of the same order.
FERRITE_PORTABLE std::uint32_t ordered_bits(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}
FERRITE_PORTABLE float from_ordered_bits(std::uint32_t bits) {
  return std::bit_cast<float>(bits & 0x80000000u ? bits & 0x7fffffffu : ~bits);
}
/// The value of rank `rank` (0 is the least), by bisection: no sort, no scratch.
template <class Team>
FERRITE_HOST_DEVICE float order_statistic(Team& team, const float* x, int n, int rank) {
  std::uint32_t low = 0, high = 0xffffffffu;
  while (low < high) {
    const std::uint32_t middle = low + (high - low) / 2;
    const int below = team.count(n, [&](int i) { return ordered_bits(x[i]) <= middle; });
    if (below > rank)
      high = middle;
    else
      low = middle + 1;
  }
  return from_ordered_bits(low);
}

/// Labels from the standardised target of all rows, train and test. Classes without rows are removed, then
/// the labels are permuted. Stores the number of classes in the plan.
template <class Team>
FERRITE_HOST_DEVICE void cut_classes(Team& team, const Config& config, const DatasetKey& key, int rows,
                                     Workspace& w) {
  const PostConfig& post = config.post;
  PostPlan& plan = *w.post;
  Draws draws(key.stream(Purpose::classes)), group(key.group_stream(config.group_size, 4));
  const bool few = draws.bernoulli(post.binary_share);
  const int drawn = draws.integer(post.classes.min, post.classes.max);
  const int classes = few ? post.classes.min : drawn;
  const ClassCuts law =
      post.cuts == ClassCuts::sampled ? group_flag(group) ? ClassCuts::value : ClassCuts::rank : post.cuts;
  double shares[max_classes], total = 0, below = 0;
  for (int k = 0; law == ClassCuts::shares && k < classes; ++k)
    total += shares[k] = draws.gamma(post.evenness);
  for (int k = 0; k + 1 < classes; ++k) {
    const auto normal = static_cast<float>(draws.normal());
    const int row = draws.integer(0, rows - 1);
    float cut = law == ClassCuts::value ? normal : w.y[row];
    if (law == ClassCuts::balanced)  // the last value of a part: classes are those above it
      cut = order_statistic(team, w.y, rows, (k + 1) * rows / classes - 1);
    if (law == ClassCuts::shares) {
      below += shares[k] / total * rows;
      cut = order_statistic(team, w.y, rows, greater(0, lesser(static_cast<int>(below), rows) - 1));
    }
    team.once([&] { plan.cuts[k] = cut; });
  }
  team.each(rows, [&](int r) { w.labels[r] = level_of(plan.cuts, classes - 1, w.y[r]); });
  int sizes[max_classes];
  for (int k = 0; k < classes; ++k) sizes[k] = team.count(rows, [&](int r) { return w.labels[r] == k; });
  team.once([&] {
    int present = 0, order[max_classes];
    for (int k = 0; k < classes; ++k) plan.relabel[k] = sizes[k] > 0 ? present++ : -1;
    draws.permutation(present, order);
    for (int k = 0; k < classes && post.permute_labels; ++k)
      if (sizes[k] > 0) plan.relabel[k] = order[plan.relabel[k]];
    plan.classes = present;
  });
  team.each(rows, [&](int r) { w.labels[r] = plan.relabel[w.labels[r]]; });
}

/// Whether every class has a row on both sides of the split.
template <class Team>
FERRITE_HOST_DEVICE bool split_is_fair(Team& team, const int* labels, const int* order, int classes,
                                       int train, int rows) {
  for (int k = 0; k < classes; ++k) {
    const int in_train = team.count(train, [&](int i) { return labels[order[i]] == k; });
    const int in_test = team.count(rows - train, [&](int i) { return labels[order[train + i]] == k; });
    if (in_train == 0 || in_test == 0) return false;
  }
  return true;
}

/// Finds an order of the rows whose first `train` rows have the classes of the others; at most ten tries
/// after the natural one.
template <class Team>
FERRITE_HOST_DEVICE bool order_rows(Team& team, const DatasetKey& key, int classes, int train, int rows,
                                    Workspace& w) {
  team.each(rows, [&](int r) { w.order[r] = r; });
  for (std::uint32_t tries = 0; tries <= 10; ++tries) {
    if (split_is_fair(team, w.labels, w.order, classes, train, rows)) return true;
    team.once([&] { Draws(key.stream(Purpose::rows, tries)).permutation(rows, w.order); });
  }
  return false;
}

}  // namespace ferrite::priors
