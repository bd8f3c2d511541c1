// Stable sorting of keys with a 32-bit value each, by CUB; used by sort and the deterministic scatters.
#pragma once

#include "ferrite/cuda/call.hpp"

namespace ferrite::cuda {

/// Keys and values of one sort, with room for it to work. Key is std::uint32_t or std::uint64_t.
template <class Key>
class SortBuffers {
 public:
  /// Fewer than 2^32 entries.
  SortBuffers(const Call& call, std::int64_t count)
      : count_(count), key_{{call, count}, {call, count}}, value_{{call, count}, {call, count}} {}

  Key* keys() const { return key_[current_].data(); }
  std::uint32_t* values() const { return value_[current_].data(); }
  /// By the lowest `bits` bits of the keys; equal keys keep their order.
  void sort(const Call& call, int bits);

 private:
  std::int64_t count_;
  Scratch<Key> key_[2];
  Scratch<std::uint32_t> value_[2];
  int current_ = 0;
};

}  // namespace ferrite::cuda
