// The two-level laws of hyper-parameters: an upper draw per group of datasets, a lower one per dataset.
#pragma once

#include "ferrite/models/priors/config.hpp"
#include "models/priors/draws.hpp"

namespace ferrite::priors {

struct TruncatedNormal {
  double mu, sigma, lower;

  FERRITE_PORTABLE_CALL double value(Draws& draws) const {
    for (int tries = 0; tries < 100; ++tries) {
      const double x = std::fma(sigma, draws.normal(), mu);
      if (x >= 0 && x <= 1e6) return lower + x;
    }
    return lower + mu;
  }
  FERRITE_HOST_DEVICE int rounded(Draws& draws, int most) const {
    const double x = std::rint(value(draws));
    return x < most ? static_cast<int>(x) : most;
  }
};
FERRITE_PORTABLE_CALL TruncatedNormal upper_draw(const TruncatedNormalLaw& law, Draws& group) {
  const double mu = group.log_uniform(law.min, law.max);
  return {mu, mu * group.log_uniform(0.01, 1), law.lower};
}

struct Gamma {
  double shape, scale, lower;
  FERRITE_HOST_DEVICE double value(Draws& draws) const { return std::fma(draws.gamma(shape), scale, lower); }
};
FERRITE_PORTABLE Gamma upper_draw(const GammaLaw& law, Draws& group) {
  const double shape = group.log_uniform(1, law.max_alpha);
  return {shape, group.uniform(0, law.max_scale) / shape, law.lower};
}

struct Beta {
  double scale, a, b;
  FERRITE_HOST_DEVICE double value(Draws& draws) const { return scale * draws.beta(a, b); }
};
FERRITE_PORTABLE Beta upper_draw(const BetaLaw& law, Draws& group) {
  const double a = group.uniform(law.min, law.max);
  return {law.scale, a, group.uniform(law.min, law.max)};
}

/// Softmax of [1, U(low, high), U(low, high), ...], not normalised: the first option has a fixed logit.
FERRITE_PORTABLE_CALL void choice_weights(Draws& group, double low, double high, double* weights, int count) {
  weights[0] = portable_exp(1.0);
  for (int i = 1; i < count; ++i) weights[i] = portable_exp(group.uniform(low, high));
}
/// One option per group.
FERRITE_PORTABLE_CALL int group_choice(Draws& group, int count) {
  double weights[8];
  choice_weights(group, -3, 5, weights, count);
  return group.weighted(weights, count);
}
/// TabICL lists true first.
FERRITE_PORTABLE bool group_flag(Draws& group) { return group_choice(group, 2) == 0; }

/// Rows for training, at least one on each side.
FERRITE_PORTABLE int train_rows_of(double share, int rows) {
  return greater(1, lesser(static_cast<int>(std::rint(share * rows)), rows - 1));
}

}  // namespace ferrite::priors
