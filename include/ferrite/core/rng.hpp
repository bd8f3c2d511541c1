// Random numbers as a function: value = f(seed, stream, element index), by Philox4x32-10 (Salmon et al.,
// 2011). Nothing is stored per element, so every backend, grid size and thread count gives the same numbers.
//
// Block k of stream s under a seed is Philox4x32::block({lo(k), hi(k), lo(s), hi(s)}, {lo(seed), hi(seed)}),
// four words w0..w3. Element i of a random tensor, counted in row-major order, is
//
//   uniform f32    (w >> 8) * 2^-24, w = word i % 4 of block i / 4. f16 and bf16 use the top 11 and 8 bits in
//                  the same way, so that no value rounds up to 1.
//   uniform f64    (u >> 11) * 2^-53, u = w[j] + 2^32 w[j + 1] with j = 2 (i % 2) of block i / 2.
//   integer        lo + floor(u * (hi - lo) / 2^64), u as for f64; the values lie in [lo, hi).
//   bernoulli(p)   uniform f32 < p.
//   normal         Box-Muller on block i / 4: w0, w1 give elements 0 and 1, w2, w3 elements 2 and 3.
//                  r = sqrt(-2 log((w0 + 1) * 2^-32)), theta = 2 pi * 2^-32 * w1; the even element is r
//                  cos(theta), the odd one r sin(theta). f32 and f64 use the same words, each in its own
//                  precision; f16 and bf16 are the f32 value rounded.
//
// Integers and uniforms are equal bit for bit on every backend; normals differ by a few ulp of the functions.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "ferrite/core/dtype.hpp"
#include "ferrite/core/export.hpp"

namespace ferrite {

/// Names one infinite sequence of random numbers.
struct RandomKey {
  std::uint64_t seed = 0;
  std::uint64_t stream = 0;
  friend bool operator==(const RandomKey&, const RandomKey&) = default;
};

struct Philox4x32 {
  using Block = std::array<std::uint32_t, 4>;
  using Key = std::array<std::uint32_t, 2>;

  FERRITE_HOST_DEVICE static constexpr Block block(Block c, Key k) {
    for (int round = 0; round < 10; ++round) {
      const std::uint64_t p0 = std::uint64_t{0xD2511F53u} * c[0];
      const std::uint64_t p1 = std::uint64_t{0xCD9E8D57u} * c[2];
      c = {static_cast<std::uint32_t>(p1 >> 32) ^ c[1] ^ k[0], static_cast<std::uint32_t>(p1),
           static_cast<std::uint32_t>(p0 >> 32) ^ c[3] ^ k[1], static_cast<std::uint32_t>(p0)};
      k = {k[0] + 0x9E3779B9u, k[1] + 0xBB67AE85u};
    }
    return c;
  }
};

/// Block `index` of the sequence `key`.
FERRITE_HOST_DEVICE constexpr Philox4x32::Block random_block(RandomKey key, std::uint64_t index) {
  return Philox4x32::block(
      {static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32),
       static_cast<std::uint32_t>(key.stream), static_cast<std::uint32_t>(key.stream >> 32)},
      {static_cast<std::uint32_t>(key.seed), static_cast<std::uint32_t>(key.seed >> 32)});
}

// From words to values, for kernels that walk block by block.

/// 64 bits from words 2 j and 2 j + 1 of a block, j in {0, 1}.
FERRITE_HOST_DEVICE constexpr std::uint64_t wide_word(const Philox4x32::Block& block, int j) {
  return block[static_cast<std::size_t>(2 * j)] | std::uint64_t{block[static_cast<std::size_t>(2 * j + 1)]}
                                                      << 32;
}

/// Uniform in [0, 1) with as many bits as the significand of T (float, Half or BFloat16) holds; exact in T.
template <class T>
FERRITE_HOST_DEVICE constexpr float uniform_from_word(std::uint32_t word) {
  if constexpr (sizeof(T) == 4)
    return static_cast<float>(word >> 8) * 0x1p-24f;
  else if constexpr (std::is_same_v<T, Half>)
    return static_cast<float>(word >> 21) * 0x1p-11f;
  else
    return static_cast<float>(word >> 24) * 0x1p-8f;
}

FERRITE_HOST_DEVICE constexpr double uniform_from_wide_word(std::uint64_t word) {
  return static_cast<double>(word >> 11) * 0x1p-53;
}

/// In [lo, hi); needs lo < hi.
FERRITE_HOST_DEVICE constexpr std::int64_t integer_from_wide_word(std::uint64_t word, std::int64_t lo,
                                                                  std::int64_t hi) {
  __extension__ using Wide = unsigned __int128;
  const std::uint64_t range = static_cast<std::uint64_t>(hi) - static_cast<std::uint64_t>(lo);
  const auto above = static_cast<std::uint64_t>(Wide{word} * range >> 64);
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(lo) + above);
}

/// Two independent standard normals, computed in T (float or double).
template <class T>
struct NormalPair {
  T even, odd;
};
template <class T>
FERRITE_HOST_DEVICE inline NormalPair<T> normals_from_words(std::uint32_t w0, std::uint32_t w1) {
  const T u = static_cast<T>(std::uint64_t{w0} + 1) * static_cast<T>(0x1p-32);
  const T theta = static_cast<T>(w1) * static_cast<T>(6.283185307179586476925 * 0x1p-32);
  const T r = std::sqrt(T{-2} * std::log(u));
  return {r * std::cos(theta), r * std::sin(theta)};
}

// Element i of a sequence: the definition, for code that visits elements one at a time.

/// T is float, double, Half or BFloat16; the value comes back as double or float and is exact in T.
template <class T>
FERRITE_HOST_DEVICE constexpr auto uniform_at(RandomKey key, std::uint64_t i) {
  if constexpr (std::is_same_v<T, double>) {
    return uniform_from_wide_word(wide_word(random_block(key, i / 2), static_cast<int>(i % 2)));
  } else {
    return uniform_from_word<T>(random_block(key, i / 4)[i % 4]);
  }
}

/// T is float or double.
template <class T>
FERRITE_HOST_DEVICE inline T normal_at(RandomKey key, std::uint64_t i) {
  const Philox4x32::Block block = random_block(key, i / 4);
  const std::size_t first = i % 4 < 2 ? 0 : 2;
  const NormalPair<T> pair = normals_from_words<T>(block[first], block[first + 1]);
  return i % 2 == 0 ? pair.even : pair.odd;
}

FERRITE_HOST_DEVICE constexpr bool bernoulli_at(RandomKey key, std::uint64_t i, float p) {
  return uniform_at<float>(key, i) < p;
}

/// In [lo, hi); needs lo < hi.
FERRITE_HOST_DEVICE constexpr std::int64_t integer_at(RandomKey key, std::uint64_t i, std::int64_t lo,
                                                      std::int64_t hi) {
  return integer_from_wide_word(wide_word(random_block(key, i / 2), static_cast<int>(i % 2)), lo, hi);
}

/// The numbers 0 .. n-1 in random order (Fisher-Yates); depends only on n and key.
/// Throws ValueError if n is negative.
FERRITE_API std::vector<std::int64_t> random_permutation(std::int64_t n, RandomKey key);

/// Hands out one stream after another. Its whole state is (seed, position), which a checkpoint stores.
/// One thread at a time.
class FERRITE_API Rng {
 public:
  explicit Rng(std::uint64_t seed) : seed_(seed) {}

  /// The next stream; every random op draws one. An RngReplay on this thread may record or replace it.
  RandomKey next();
  std::uint64_t seed() const { return seed_; }
  std::uint64_t position() const { return position_; }
  void set_position(std::uint64_t position) { position_ = position; }

 private:
  friend class RngReplay;
  std::uint64_t seed_;
  std::uint64_t position_ = 0;
};

/// While it lives, watches Rng::next() of every Rng on this thread: Record appends each key handed out to the
/// log, Replay hands out the log's keys in order and advances no Rng. Gradient checkpointing records the
/// forward pass and replays it when it recomputes. Scopes nest: a Record inside a Replay logs the replayed
/// keys. The log must outlive the scope. A Replay beyond the end of its log throws ValueError.
class FERRITE_API RngReplay {
 public:
  enum Mode { Record, Replay };

  /// A Record also notes in `sources`, if given, the generator of each key.
  RngReplay(Mode mode, std::vector<RandomKey>& log, std::vector<Rng*>* sources = nullptr);
  ~RngReplay();
  RngReplay(const RngReplay&) = delete;
  RngReplay& operator=(const RngReplay&) = delete;

 private:
  friend class Rng;
  static RandomKey draw(RngReplay* scope, Rng& rng);

  Mode mode_;
  std::vector<RandomKey>& log_;
  std::vector<Rng*>* sources_;
  std::size_t position_ = 0;
  RngReplay* outer_;
};

}  // namespace ferrite
