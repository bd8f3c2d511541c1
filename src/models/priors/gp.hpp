// Gp: y is a draw of a Gaussian process with an RBF kernel over independent features, by random Fourier
// features: y = sqrt(2 / M) sum of a_m cos(w_m . x / lengthscale + p_m), with a and w normal and p uniform.
#pragma once

#include "models/priors/workspace.hpp"

namespace ferrite::priors {

struct GpPlan {
  float lengthscale, noise_std;
  bool uniform;  // features: uniform in [-sqrt(3), sqrt(3)] instead of normal; both have variance 1
};
inline constexpr int gp_chunk = 64;  // terms computed at once

FERRITE_PORTABLE GpPlan draw_gp(const GpConfig& config, const DatasetKey& key, int features) {
  Draws draws(key.stream(Purpose::structure));
  GpPlan plan;
  plan.lengthscale = static_cast<float>(draws.log_uniform(config.lengthscale.min, config.lengthscale.max) *
                                        std::sqrt(static_cast<double>(features)));
  plan.noise_std = static_cast<float>(draws.log_uniform(config.noise_std.min, config.noise_std.max));
  plan.uniform = draws.bernoulli(0.5);
  return plan;
}

template <class Team>
FERRITE_HOST_DEVICE void generate_gp(Team& team, const GpConfig& config, const GpPlan& plan,
                                     const DatasetKey& key, const DatasetShape& shape, Workspace& w) {
  const int rows = shape.rows, features = shape.features;
  const auto blocks = static_cast<std::uint64_t>((rows + 3) / 4);
  const Stream causes = key.stream(Purpose::causes);
  team.columns(features, [&](int c, auto& inner) {
    float* column = w.x + c * rows;
    const std::uint64_t first = blocks * static_cast<std::uint64_t>(c);
    if (!plan.uniform) return inner.normals(causes, first, rows, column);
    inner.uniforms(causes, first, rows,
                   [&](int r, float u) { column[r] = std::fma(3.4641016f, u, -1.7320508f); });
  });
  const Stream weights = key.stream(Purpose::weights), phases = key.stream(Purpose::bias),
               amplitudes = key.stream(Purpose::fourier);
  const auto row_blocks = static_cast<std::uint64_t>((features + 3) / 4);
  const float turns = 0.15915494309189535f / plan.lengthscale;
  const float unit = std::sqrt(2.0f / static_cast<float>(config.terms));
  float* const amplitude = w.leaves;
  team.each(rows, [&](int r) { w.y[r] = 0; });
  for (int begin = 0; begin < config.terms; begin += gp_chunk) {
    const int terms = lesser(gp_chunk, config.terms - begin);
    team.columns(terms, [&](int m, auto& inner) {
      const auto term = static_cast<std::uint64_t>(begin + m);
      float* row = w.weights + m * features;
      inner.normals(weights, row_blocks * term, features, [&](int j, float z) { row[j] = z * turns; });
      inner.once([&] {
        w.bias[m] = phases.uniform(term);
        amplitude[m] = unit * amplitudes.normal(term);
      });
    });
    team.product(w.weights, w.bias, w.x, features, w.a, terms, rows);
    team.each(rows, [&](int r) {
      float sum = w.y[r];
      for (int m = 0; m < terms; ++m) sum = std::fma(amplitude[m], cos_turns(w.a[m * rows + r]), sum);
      w.y[r] = sum;
    });
  }
  add_noise(team, key, 0, plan.noise_std, w.y, rows);
}

}  // namespace ferrite::priors
