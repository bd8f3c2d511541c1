// What Cpu says of itself.
#include <gtest/gtest.h>

#include "ferrite/backend/cpu.hpp"
#include "ferrite/core/thread_pool.hpp"

namespace ferrite {
namespace {

TEST(Cpu, DescribesItselfWithItsThreads) {
  const int before = num_threads();
  set_num_threads(1);
  const std::string one = Cpu{}.describe();
  set_num_threads(3);
  const std::string three = Cpu{}.describe();
  set_num_threads(before);
  EXPECT_TRUE(one.starts_with("cpu (") && one.ends_with(", 1 thread)")) << one;
  EXPECT_TRUE(three.ends_with(", 3 threads)")) << three;
}

TEST(Cpu, CountsTheMemoryItHandsOut) {
  const std::size_t before = Cpu{}.memory_stats().in_use;
  const Array x = Cpu{}.allocate({{1000}, DType::f32});
  EXPECT_GE(Cpu{}.memory_stats().in_use, before + 4000);
}

}  // namespace
}  // namespace ferrite
