// The body of SortBuffers::sort, instantiated once for each key type.
#pragma once

#include <cub/device/device_radix_sort.cuh>

#include "backend_cuda/kit/radix_sort.hpp"

namespace ferrite::cuda {

template <class Key>
void SortBuffers<Key>::sort(const Call& call, int bits) {
  cub::DoubleBuffer<Key> keys(key_[current_].data(), key_[1 - current_].data());
  cub::DoubleBuffer<std::uint32_t> values(value_[current_].data(), value_[1 - current_].data());
  const auto count = static_cast<std::uint32_t>(count_);
  std::size_t bytes = 0;
  check(cub::DeviceRadixSort::SortPairs(nullptr, bytes, keys, values, count, 0, bits, call.stream()),
        call.op());
  const Scratch<std::byte> work(call, static_cast<std::int64_t>(bytes));
  check(cub::DeviceRadixSort::SortPairs(work.data(), bytes, keys, values, count, 0, bits, call.stream()),
        call.op());
  current_ = keys.Current() == key_[0].data() ? 0 : 1;
}

}  // namespace ferrite::cuda
