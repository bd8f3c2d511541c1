// Random choices of one program: a walk along one Philox stream, so that the choices depend only on the key.
#pragma once

#include <initializer_list>
#include <span>

#include "ferrite/core/rng.hpp"

namespace ferrite::irsynth {

class Draw {
 public:
  explicit Draw(RandomKey key) : key_(key) {}

  std::uint32_t word() {
    if (next_ == 4) {
      block_ = random_block(key_, blocks_++);
      next_ = 0;
    }
    return block_[next_++];
  }
  /// 0 to n - 1; n is at least 1.
  int below(int n) { return static_cast<int>(std::uint64_t{word()} * static_cast<std::uint64_t>(n) >> 32); }
  /// Both ends belong to it.
  int between(int low, int high) { return low + below(high - low + 1); }
  bool chance(double p) { return word() * 0x1p-32 < p; }

  template <class T>
  const T& of(std::span<const T> list) {
    return list[static_cast<std::size_t>(below(static_cast<int>(list.size())))];
  }
  template <class T>
  T of(std::initializer_list<T> list) {
    return list.begin()[below(static_cast<int>(list.size()))];
  }
  /// An index with a probability proportional to its weight. At least one weight is positive.
  int weighted(std::initializer_list<int> weights) {
    int all = 0;
    for (const int w : weights) all += w;
    int at = below(all), i = 0;
    for (const int w : weights) {
      if ((at -= w) < 0) return i;
      ++i;
    }
    return 0;
  }

 private:
  RandomKey key_;
  Philox4x32::Block block_{};
  std::size_t next_ = 4;
  std::uint64_t blocks_ = 0;
};

}  // namespace ferrite::irsynth
