// Whether anything can be learned from a dataset: some column alone, or the nearest neighbour, must tell more
// about the target than chance does. Cheap, and decided by the same bits everywhere.
#pragma once

#include "models/priors/columns.hpp"

namespace ferrite::priors {

inline constexpr int neighbour_rows = 256, neighbour_lanes = 16;

/// The row nearest to row `q` among the first n in all columns that are not constant, other than q itself.
FERRITE_PORTABLE int nearest_row(const Workspace& w, int features, int rows, int n, int q) {
  float best = 0;
  int found = -1;
  for (int begin = 0; begin < n; begin += neighbour_lanes) {
    const int size = lesser(neighbour_lanes, n - begin);
    float distance[neighbour_lanes] = {};
    for (int c = 0; c < features; ++c) {
      if (w.post->constant[c]) continue;
      const float* column = w.x + c * rows;
      const float centre = column[q];
      for (int i = 0; i < size; ++i) {
        const float d = column[begin + i] - centre;
        distance[i] = std::fma(d, d, distance[i]);
      }
    }
    for (int i = 0; i < size; ++i) {
      if (begin + i == q || (found >= 0 && !(distance[i] < best))) continue;
      best = distance[i];
      found = begin + i;
    }
  }
  return found;
}

/// Share of the variance of column x that the classes explain.
template <class Team>
FERRITE_HOST_DEVICE float explained_by_classes(Team& team, const float* x, const int* labels, int classes,
                                               int rows) {
  const Moments m = moments(team, x, rows);
  float between = 0;
  for (int k = 0; k < classes; ++k) {
    const auto size = static_cast<float>(team.count(rows, [&](int r) { return labels[r] == k; }));
    const float sum = team.sum(rows, [&](int r) { return labels[r] == k ? (x[r] - m.mean) * m.rstd : 0.0f; });
    between += sum * sum / greater(size, 1.0f);
  }
  return between / static_cast<float>(rows);
}
/// Squared correlation.
template <class Team>
FERRITE_HOST_DEVICE float explained_by_line(Team& team, const float* x, const float* y, int rows) {
  const Moments mx = moments(team, x, rows), my = moments(team, y, rows);
  const float sum =
      team.sum(rows, [&](int r) { return (x[r] - mx.mean) * mx.rstd * ((y[r] - my.mean) * my.rstd); });
  const float correlation = sum / static_cast<float>(rows);
  return correlation * correlation;
}

/// How much better than chance the nearest neighbour predicts, 1 being always right; 0 if all these rows have
/// one target.
template <class Team>
FERRITE_HOST_DEVICE float neighbour_gain(Team& team, const Config& config, int features, int rows,
                                         Workspace& w) {
  const int n = lesser(rows, neighbour_rows);
  const auto count = static_cast<float>(n);
  if (config.task == Task::regression) {
    const Moments m = moments(team, w.y, n);
    if (m.rstd > 5e5f) return 0.0f;  // a deviation below 1e-6
    // Into memory first: all members of a team take part in a sum, each with all of it.
    team.each(n, [&](int q) {
      const float d = (w.y[q] - w.y[nearest_row(w, features, rows, n, q)]) * m.rstd;
      w.a[q] = d * d;
    });
    const float error = team.sum(n, [&](int q) { return w.a[q]; });
    return 1.0f - error / (2.0f * count);
  }
  const int right =
      team.count(n, [&](int q) { return w.labels[nearest_row(w, features, rows, n, q)] == w.labels[q]; });
  float chance = 0;
  for (int k = 0; k < w.post->classes; ++k) {
    const float share = static_cast<float>(team.count(n, [&](int r) { return w.labels[r] == k; })) / count;
    chance = std::fma(share, share, chance);
  }
  return (static_cast<float>(right) / count - chance) / greater(1.0f - chance, 1e-3f);
}

template <class Team>
FERRITE_HOST_DEVICE bool is_learnable(Team& team, const Config& config, int features, int rows,
                                      Workspace& w) {
  const auto least = static_cast<float>(config.post.learnability);
  if (least <= 0) return true;
  PostPlan& plan = *w.post;
  const bool classes = config.task == Task::classification;
  team.columns(features, [&](int c, auto& inner) {
    const float* x = w.x + c * rows;
    const float share = plan.constant[c] ? 0.0f
                        : classes        ? explained_by_classes(inner, x, w.labels, plan.classes, rows)
                                         : explained_by_line(inner, x, w.y, rows);
    inner.once([&] { plan.share[c] = share; });
  });
  // An unrelated column reaches `chance` on average, with a deviation of `noise`. One clear column is enough,
  // or many weak ones.
  const auto freedom = static_cast<float>(classes ? plan.classes - 1 : 1);
  const float chance = freedom / static_cast<float>(rows),
              noise = std::sqrt(2.0f * freedom) / static_cast<float>(rows);
  if (team.count(features, [&](int c) { return plan.share[c] >= least + chance + 4.0f * noise; }) > 0)
    return true;
  const auto count = static_cast<float>(team.count(features, [&](int c) { return !plan.constant[c]; }));
  const float total = team.sum(features, [&](int c) { return plan.share[c]; });
  if (total >= least + count * chance + 4.0f * std::sqrt(count) * noise) return true;
  const float deviation = 1.0f / std::sqrt(static_cast<float>(lesser(rows, neighbour_rows)));
  return neighbour_gain(team, config, features, rows, w) >= least + 3.0f * deviation;
}

}  // namespace ferrite::priors
