// Steps on single columns after a family has made them: categories, outliers, standardisation, missing cells.
#pragma once

#include "models/priors/workspace.hpp"

namespace ferrite::priors {

/// Raw values must be finite, and small enough for squares and their sums in float.
template <class Team>
FERRITE_HOST_DEVICE bool all_usable(Team& team, const float* x, int count) {
  return team.count(count, [&](int i) { return !(std::fabs(x[i]) <= 1e15f); }) == 0;
}

/// How many of the cuts lie below a value.
FERRITE_PORTABLE_ELEMENT int level_of(const float* cuts, int count, float x) {
  int level = 0;
  for (int k = 0; k < count; ++k) level += cuts[k] < x ? 1 : 0;
  return level;
}

/// Turns some columns into level numbers, cut at the values of random rows; the levels keep the order of the
/// values or are shuffled.
template <class Team>
FERRITE_HOST_DEVICE void make_categorical(Team& team, const PostConfig& config, const DatasetKey& key,
                                          int features, int rows, Workspace& w) {
  PostPlan& plan = *w.post;
  Draws dataset(key.stream(Purpose::categories));
  const bool any = dataset.bernoulli(config.categorical_share);
  const double share = dataset.uniform();
  for (int c = 0; c < features; ++c) {
    float* column = w.x + c * rows;
    Draws draws(key.stream(Purpose::categories, static_cast<std::uint32_t>(c) + 1));
    const bool chosen = any && draws.bernoulli(share);
    if (!chosen) {
      team.once([&] { plan.levels[c] = 0; });
      continue;
    }
    const double size = std::rint(config.category_scale * draws.gamma(1));
    const int levels = greater(2, size < max_categories ? static_cast<int>(size) : max_categories);
    team.once([&] {
      plan.levels[c] = levels;
      for (int k = 0; k + 1 < levels; ++k) plan.cuts[k] = column[draws.integer(0, rows - 1)];
      if (draws.bernoulli(config.ordered_share))
        for (int k = 0; k < levels; ++k) plan.relabel[k] = k;
      else
        draws.permutation(levels, plan.relabel);
      if (draws.bernoulli(0.5))
        for (int k = 0; k < levels; ++k) plan.relabel[k] = levels - 1 - plan.relabel[k];
    });
    team.each(rows, [&](int r) {
      column[r] = static_cast<float>(plan.relabel[level_of(plan.cuts, levels - 1, column[r])]);
    });
  }
}

/// Gives a column a long right tail, like amounts and durations, with probability `share`: exp(s z) of the
/// standardised value z.
template <class Team>
FERRITE_HOST_DEVICE void make_tail(Team& team, double share, Draws draws, float* column, int rows) {
  if (!draws.bernoulli(share)) return;
  const auto s = static_cast<float>(draws.uniform());
  const Moments m = moments(team, column, rows);
  team.each(rows, [&](int r) {
    column[r] = portable_exp(s * clamped((column[r] - m.mean) * m.rstd, -4.0f, 4.0f));
  });
}

/// Of numeric columns and of the target of regression, since prices and wages have such tails too.
template <class Team>
FERRITE_HOST_DEVICE void make_tails(Team& team, const Config& config, const DatasetKey& key, int features,
                                    int rows, Workspace& w) {
  const double share = config.post.skewed_share;
  if (share <= 0) return;
  const auto draws = [&](int c) { return Draws(key.stream(Purpose::tails, static_cast<std::uint32_t>(c))); };
  team.columns(features, [&](int c, auto& inner) {
    if (w.post->levels[c] == 0) make_tail(inner, share, draws(c), w.x + c * rows, rows);
  });
  if (config.task == Task::regression) make_tail(team, share, draws(max_features), w.y, rows);
}

struct Spread {
  float mean, std;
};
/// Mean and standard deviation (of n - 1) of the values within a distance of a centre.
template <class Team>
FERRITE_PORTABLE_CALL Spread spread_within(Team& team, const float* x, int rows, float centre,
                                           float distance) {
  const auto inside = [&](int r) { return std::fabs(x[r] - centre) <= distance; };
  const auto n = static_cast<float>(team.count(rows, inside));
  const float mean = team.sum(rows, [&](int r) { return inside(r) ? x[r] : 0.0f; }) / greater(n, 1.0f);
  const float square =
      team.sum(rows, [&](int r) { return inside(r) ? (x[r] - mean) * (x[r] - mean) : 0.0f; });
  return {mean, std::sqrt(square / greater(n - 1.0f, 1.0f))};
}

/// Clips outliers beyond `sigma` (0: none) in two passes, the second without them, and standardises; false
/// for a constant column.
template <class Team>
FERRITE_PORTABLE_CALL bool finish_column(Team& team, float sigma, bool standardise, float* x, int rows) {
  Spread s = spread_within(team, x, rows, 0.0f, 1e30f);
  if (sigma > 0) {
    s = spread_within(team, x, rows, s.mean, sigma * s.std);
    const float low = std::fma(-sigma, s.std, s.mean), high = std::fma(sigma, s.std, s.mean);
    team.each(rows, [&](int r) { x[r] = clamped(x[r], low, high); });
    s = spread_within(team, x, rows, 0.0f, 1e30f);
  }
  if (s.std <= 1e-6f * greater(1.0f, std::fabs(s.mean))) return false;
  if (standardise) {
    const float scale = 1.0f / s.std, limit = sigma > 0 ? 100.0f : 1e30f;
    team.each(rows, [&](int r) { x[r] = clamped((x[r] - s.mean) * scale, -limit, limit); });
  }
  return true;
}

/// A probability that rises with s and is `rate` in the mean, for s in (0, 1) with mean 1/2.
FERRITE_PORTABLE_ELEMENT float rising_share(float rate, float s) {
  return rate <= 0.5f ? 2.0f * rate * s : 1.0f - 2.0f * (1.0f - rate) * (1.0f - s);
}

/// Removes cells of some columns: all with the same probability (MCAR), or large or small values first by a
/// logistic law (MNAR).
template <class Team>
FERRITE_HOST_DEVICE void remove_cells(Team& team, const PostConfig& config, const DatasetKey& key,
                                      int features, int rows, Workspace& w) {
  Draws draws(key.stream(Purpose::missing));
  if (!draws.bernoulli(config.missing_share)) return;
  const auto rate = static_cast<float>(draws.uniform(0, config.missing_rate));
  const bool by_value = draws.bernoulli(config.mnar_share);
  const float slope = draws.bernoulli(0.5) ? 2.0f : -2.0f;
  const Stream cells = key.stream(Purpose::missing, 1);
  const auto blocks = static_cast<std::uint64_t>((rows + 3) / 4);
  team.columns(features, [&](int c, auto& inner) {
    Draws own(key.stream(Purpose::missing, static_cast<std::uint32_t>(c) + 2));
    if (!own.bernoulli(config.missing_columns)) return;
    float* column = w.x + c * rows;
    const Moments m = moments(inner, column, rows);
    inner.uniforms(cells, blocks * static_cast<std::uint64_t>(c), rows, [&](int r, float u) {
      const float z = (column[r] - m.mean) * m.rstd;
      const float p = by_value ? rising_share(rate, portable_sigmoid(slope * z)) : rate;
      column[r] = u < p ? missing_value() : column[r];
    });
  });
}

}  // namespace ferrite::priors
