// Words in batches.
#include "backend_cpu/math/random_words.hpp"

#include <gtest/gtest.h>

#include "ferrite/core/rng.hpp"

namespace ferrite {
namespace {

TEST(RandomWords, AreTheWordsOfThePhiloxBlocks) {
  const RandomKey key{0x123456789abcdefull, 0xfedcba987654321ull};
  std::uint32_t words[cpu::words_per_draw];
  for (const std::int64_t begin : {std::int64_t{0}, std::int64_t{4096}, (std::int64_t{1} << 34) - 128}) {
    cpu::draw_words(key, begin, words);
    for (std::int64_t i = 0; i < cpu::words_per_draw; ++i) {
      const auto element = static_cast<std::uint64_t>(begin + i);
      ASSERT_EQ(words[i], random_block(key, element / 4)[element % 4]) << begin + i;
    }
  }
}

}  // namespace
}  // namespace ferrite
