// The source of a dataset's random numbers, and the laws that decide its structure. Everything is a function
// of (seed, dataset, attempt) by Philox and portable arithmetic: the same bits on every machine.
#pragma once

#include "models/priors/portable_math.hpp"

namespace ferrite::priors {

/// The purpose of a sequence of random words. Each dataset has one sequence per purpose and part (layer,
/// column).
enum class Purpose : std::uint32_t {
  shape,
  structure,
  causes,
  weights,
  mask,
  bias,
  noise,
  noise_scale,
  fourier,
  trees,
  leaves,
  formula_terms,
  formula_values,
  categories,
  missing,
  classes,
  rows,
  tails
};

/// A sequence of Philox blocks with random access.
struct Stream {
  RandomKey key;
  std::uint64_t base = 0;

  FERRITE_HOST_DEVICE Philox4x32::Block block(std::uint64_t k) const { return random_block(key, base + k); }
  FERRITE_HOST_DEVICE std::uint32_t word(std::uint64_t k) const { return block(k / 4)[k % 4]; }
  /// In [0, 1), 24 bits.
  FERRITE_HOST_DEVICE float uniform(std::uint64_t k) const {
    return static_cast<float>(word(k) >> 8) * 0x1p-24f;
  }
  FERRITE_HOST_DEVICE float normal(std::uint64_t k) const {
    const Philox4x32::Block w = block(k / 4);
    const std::size_t first = k % 4 < 2 ? 0 : 2;
    const NormalPair<float> pair = portable_normals(w[first], w[first + 1]);
    return k % 2 == 0 ? pair.even : pair.odd;
  }
};

/// Names one draw of one dataset; a rejected dataset is drawn again with the next attempt. Datasets are
/// numbered below 2^48.
struct DatasetKey {
  std::uint64_t seed = 0, dataset = 0;
  std::uint32_t attempt = 0;

  FERRITE_HOST_DEVICE Stream stream(Purpose purpose, std::uint32_t part = 0) const {
    return {{seed, dataset | std::uint64_t{attempt} << 48},
            (std::uint64_t{static_cast<std::uint32_t>(purpose)} << 16 | part) << 36};
  }
  /// Shared by all datasets of a group.
  FERRITE_HOST_DEVICE Stream group_stream(int group_size, std::uint32_t part = 0) const {
    return {{seed, dataset / static_cast<std::uint64_t>(group_size) | std::uint64_t{1} << 63},
            std::uint64_t{part} << 36};
  }
  /// The upper draws of a family's laws. Some give only hopeless datasets, so each attempt draws new ones.
  FERRITE_HOST_DEVICE Stream law_stream(int group_size, std::uint32_t family) const {
    return group_stream(group_size, 256 + (family << 8) + attempt);
  }
};

/// Reads a stream from its beginning: for structure, where one number depends on those before it.
class Draws {
 public:
  FERRITE_HOST_DEVICE explicit Draws(Stream stream) : stream_(stream) {}

  FERRITE_PORTABLE_CALL std::uint64_t wide() {
    const std::uint64_t k = next_++;
    if (k % 2 == 0) block_ = stream_.block(k / 2);
    return wide_word(block_, static_cast<int>(k % 2));
  }
  FERRITE_HOST_DEVICE double uniform() { return static_cast<double>(wide() >> 11) * 0x1p-53; }
  FERRITE_HOST_DEVICE double uniform(double low, double high) { return std::fma(uniform(), high - low, low); }
  FERRITE_PORTABLE_CALL double log_uniform(double low, double high) {
    return portable_exp(uniform(portable_log(low), portable_log(high)));
  }
  /// In [low, high], both included.
  FERRITE_HOST_DEVICE int integer(int low, int high) {
    const auto range = static_cast<std::uint64_t>(static_cast<std::int64_t>(high) - low + 1);
    return low + static_cast<int>((wide() >> 32) * range >> 32);
  }
  FERRITE_HOST_DEVICE bool bernoulli(double p) { return uniform() < p; }
  FERRITE_HOST_DEVICE double normal() {
    const std::uint64_t w0 = wide();
    return portable_normal(w0, wide());
  }
  FERRITE_HOST_DEVICE double exponential(double mean) {
    return -mean * portable_log(static_cast<double>((wide() >> 11) + 1) * 0x1p-53);
  }
  /// Marsaglia and Tsang; shapes below 1 by the power of a uniform.
  FERRITE_PORTABLE_CALL double gamma(double shape) {
    const double boost = shape < 1 ? portable_exp(-exponential(1) / shape) : 1.0;  // U^(1 / shape)
    const double d = (shape < 1 ? shape + 1 : shape) - 1.0 / 3, c = 1 / std::sqrt(9 * d);
    for (int tries = 0; tries < 100; ++tries) {
      const double x = normal(), v1 = std::fma(c, x, 1.0);
      const double e = exponential(1);
      if (v1 <= 0) continue;
      const double v = v1 * v1 * v1;
      if (-e < std::fma(0.5 * x, x, std::fma(-d, v, d) + d * portable_log(v))) return boost * d * v;
    }
    return boost * d;
  }
  FERRITE_HOST_DEVICE double beta(double a, double b) {
    const double x = gamma(a), y = gamma(b);
    return x + y > 0 ? x / (x + y) : 0.5;
  }
  FERRITE_HOST_DEVICE double cauchy() {
    const double t = 0.5 * std::fma(static_cast<double>(wide() >> 11) + 0.5, 0x1p-53, -0.5);
    return sin_turns(t) / cos_turns(t);
  }
  /// An index with probability proportional to its weight.
  FERRITE_PORTABLE_CALL int weighted(const double* weights, int count) {
    double total = 0;
    for (int i = 0; i < count; ++i) total += weights[i];
    double left = uniform() * total;
    for (int i = 0; i + 1 < count; ++i) {
      if (left < weights[i]) return i;
      left -= weights[i];
    }
    return count - 1;
  }
  /// `count` different numbers below `n` in random order. Needs count <= n.
  FERRITE_PORTABLE_CALL void distinct(int n, int count, int* chosen) {
    for (int i = 0; i < count;) {
      const int candidate = integer(0, n - 1);
      bool fresh = true;
      for (int j = 0; j < i; ++j) fresh = fresh && chosen[j] != candidate;
      if (fresh) chosen[i++] = candidate;
    }
  }
  /// The numbers 0 to n - 1 in random order (Fisher-Yates).
  FERRITE_PORTABLE_CALL void permutation(int n, int* order) {
    for (int i = 0; i < n; ++i) order[i] = i;
    for (int i = n - 1; i > 0; --i) {
      const int j = integer(0, i), swapped = order[i];
      order[i] = order[j];
      order[j] = swapped;
    }
  }

 private:
  Stream stream_;
  std::uint64_t next_ = 0;
  Philox4x32::Block block_{};
};

}  // namespace ferrite::priors
