// The exogenous variables of a structural causal model: columns that are normal, uniform, categorical or
// Zipf.
#pragma once

#include "models/priors/activations.hpp"

namespace ferrite::priors {

enum class CauseSampling : std::uint8_t { normal, mixed, uniform };
enum class CauseKind : std::uint8_t { normal, uniform, multinomial, zipf };
inline constexpr const char* cause_names[] = {"normal", "uniform", "multinomial", "zipf"};
inline constexpr int max_cause_levels = 20, zipf_levels = 10;

struct CausePlan {
  CauseKind kind;
  int levels;
  float mean, std;
  float bounds[max_cause_levels];  // cumulative probabilities; a value is the number of bounds not above a
                                   // uniform
};

FERRITE_PORTABLE_CALL void draw_zipf_bounds(double exponent, float* bounds) {
  double total = 0, mass[zipf_levels];
  for (int k = 1; k <= 64; ++k) {
    const double p = portable_pow(k, -exponent);
    total += p;
    if (k <= zipf_levels) mass[k - 1] = p;
  }
  total += portable_pow(64.5, 1 - exponent) / (exponent - 1);  // the rest, as an integral
  double sum = 0;
  for (int k = 0; k + 1 < zipf_levels; ++k) bounds[k] = static_cast<float>((sum += mass[k]) / total);
}

/// TabICL's: normal or uniform columns, or a mixture whose probabilities are drawn first.
FERRITE_PORTABLE_CALL void draw_causes(Draws& draws, CauseSampling sampling, bool pre_sample_stats, int count,
                                       CausePlan* plans) {
  const double normal = draws.uniform(0, 0.66), multinomial = draws.uniform(0, 0.66),
               zipf = draws.uniform(0, 0.66);
  for (int c = 0; c < count; ++c) {
    CausePlan& plan = plans[c];
    plan = {CauseKind::normal, 0, 0, 1, {}};
    if (sampling == CauseSampling::uniform) plan.kind = CauseKind::uniform;
    if (sampling == CauseSampling::mixed && !draws.bernoulli(1 - normal)) {
      plan.kind = draws.bernoulli(1 - multinomial) ? CauseKind::multinomial
                  : draws.bernoulli(1 - zipf)      ? CauseKind::zipf
                                                   : CauseKind::uniform;
    }
    if (plan.kind == CauseKind::normal && pre_sample_stats) {
      const double mean = draws.normal();
      plan.mean = static_cast<float>(mean);
      plan.std = static_cast<float>(std::fabs(draws.normal() * mean));
    } else if (plan.kind == CauseKind::multinomial) {
      plan.levels = draws.integer(2, max_cause_levels);
      double mass[max_cause_levels], total = 0, sum = 0;
      for (int k = 0; k < plan.levels; ++k) total += mass[k] = draws.uniform();
      for (int k = 0; k + 1 < plan.levels; ++k) plan.bounds[k] = static_cast<float>((sum += mass[k]) / total);
    } else if (plan.kind == CauseKind::zipf) {
      plan.levels = zipf_levels;
      draw_zipf_bounds(2 + 2 * draws.uniform(), plan.bounds);
    }
  }
}

/// Fills `count` columns of `rows` values.
template <class Team>
FERRITE_PORTABLE_CALL void fill_causes(Team& team, const Stream& stream, const CausePlan* plans, int count,
                                       float* x, int rows) {
  const auto blocks = static_cast<std::uint64_t>((rows + 3) / 4);
  team.columns(count, [&](int c, auto& inner) {
    const CausePlan& plan = plans[c];
    float* column = x + c * rows;
    const std::uint64_t first = blocks * static_cast<std::uint64_t>(c);
    if (plan.kind == CauseKind::normal) {
      inner.normals(stream, first, rows,
                    [&](int r, float z) { column[r] = std::fma(plan.std, z, plan.mean); });
      return;
    }
    if (plan.kind == CauseKind::uniform) return inner.uniforms(stream, first, rows, column);
    inner.uniforms(stream, first, rows, [&](int r, float u) {
      float level = 0;
      for (int k = 0; k + 1 < plan.levels; ++k) level += u >= plan.bounds[k] ? 1.0f : 0.0f;
      column[r] = level;
    });
    const Moments m = moments(inner, column, rows);
    const float scale = plan.kind == CauseKind::multinomial ? m.rstd : 1.0f;  // Zipf is centred only
    inner.each(rows, [&](int r) { column[r] = (column[r] - m.mean) * scale; });
  });
}

}  // namespace ferrite::priors
