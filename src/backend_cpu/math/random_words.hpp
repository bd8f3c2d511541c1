// Philox words in bulk: the numbers of core/rng.hpp, 64 blocks side by side so that the rounds become vector
// code (twice as fast as block after block).
#pragma once

#include <cstdint>

#include "ferrite/core/rng.hpp"

namespace ferrite::cpu {

/// Elements per call of draw_words.
inline constexpr std::int64_t words_per_draw = 256;

/// Words `begin` to `begin + 255` of a sequence, where word i is word i % 4 of block i / 4. `begin` is a
/// multiple of 4.
inline void draw_words(RandomKey key, std::int64_t begin, std::uint32_t* words) {
  constexpr int blocks = words_per_draw / 4;
  std::uint32_t c0[blocks], c1[blocks], c2[blocks], c3[blocks];
  for (int i = 0; i < blocks; ++i) {
    const auto index = static_cast<std::uint64_t>(begin / 4 + i);
    c0[i] = static_cast<std::uint32_t>(index);
    c1[i] = static_cast<std::uint32_t>(index >> 32);
    c2[i] = static_cast<std::uint32_t>(key.stream);
    c3[i] = static_cast<std::uint32_t>(key.stream >> 32);
  }
  auto k0 = static_cast<std::uint32_t>(key.seed), k1 = static_cast<std::uint32_t>(key.seed >> 32);
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < blocks; ++i) {
      const std::uint64_t p0 = std::uint64_t{0xD2511F53u} * c0[i], p1 = std::uint64_t{0xCD9E8D57u} * c2[i];
      c0[i] = static_cast<std::uint32_t>(p1 >> 32) ^ c1[i] ^ k0;
      c1[i] = static_cast<std::uint32_t>(p1);
      c2[i] = static_cast<std::uint32_t>(p0 >> 32) ^ c3[i] ^ k1;
      c3[i] = static_cast<std::uint32_t>(p0);
    }
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  for (int i = 0; i < blocks; ++i) {
    words[4 * i] = c0[i];
    words[4 * i + 1] = c1[i];
    words[4 * i + 2] = c2[i];
    words[4 * i + 3] = c3[i];
  }
}

}  // namespace ferrite::cpu
