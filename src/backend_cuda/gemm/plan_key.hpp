// Keys of the plan caches: plain structs without padding, hashed and compared by their bytes.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <unordered_map>

#include "core/hash.hpp"

namespace ferrite::cuda {

template <class Key>
struct HashBytes {
  static_assert(std::has_unique_object_representations_v<Key> && sizeof(Key) % 8 == 0);
  std::size_t operator()(const Key& key) const {
    std::array<std::uint64_t, sizeof(Key) / 8> words;
    std::memcpy(words.data(), &key, sizeof key);
    std::uint64_t hash = 0;
    for (const std::uint64_t word : words) hash = hash_word(word, hash);
    return hash;
  }
};
template <class Key>
struct EqualBytes {
  bool operator()(const Key& a, const Key& b) const { return std::memcmp(&a, &b, sizeof a) == 0; }
};
/// Its elements never move.
template <class Key, class Plan>
using PlanMap = std::unordered_map<Key, Plan, HashBytes<Key>, EqualBytes<Key>>;

}  // namespace ferrite::cuda
