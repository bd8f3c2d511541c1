// Cpu's random: values by their documented rules, in every dtype and layout.
#include "ops/primitive_support.hpp"

namespace ferrite::cpu_test {
namespace {

using op::RandomFn;

TEST(CpuRandom, UniformsAndIntegersFollowTheRuleBitForBit) {
  const RandomKey key{12345678901234567890u, 42};
  constexpr std::int64_t n = 2 * 32768 + 333;
  const auto uniform = [&](DType dtype) {
    return run(op::Random{RandomFn::uniform, {n}, dtype, key.seed, key.stream}, {});
  };
  const auto f32 = values_of<float>(uniform(DType::f32));
  const auto f64 = values_of(uniform(DType::f64)), f16 = values_of(uniform(DType::f16)),
             bf16 = values_of(uniform(DType::bf16));
  const auto integers = values_of<std::int64_t>(
      run(op::Random{RandomFn::integer, {n}, DType::i64, key.seed, key.stream, -7, 100}, {}));
  const auto flips =
      values_of(run(op::Random{RandomFn::bernoulli, {n}, DType::bool_, key.seed, key.stream, 0.3}, {}));
  for (std::uint64_t i = 0; i < n; ++i) {
    ASSERT_EQ(f32[i], uniform_at<float>(key, i));
    ASSERT_EQ(f64[i], uniform_at<double>(key, i));
    ASSERT_EQ(f16[i], uniform_at<Half>(key, i));
    ASSERT_EQ(bf16[i], uniform_at<BFloat16>(key, i));
    ASSERT_EQ(integers[i], integer_at(key, i, -7, 100));
    ASSERT_EQ(flips[i] != 0, bernoulli_at(key, i, 0.3f));
  }
}

TEST(CpuRandom, UniformsOfAnotherIntervalAreRoundedOnceAndStayBelowItsEnd) {
  const double low = -0.3, high = 1.7;
  const auto y =
      values_of<float>(run(op::Random{RandomFn::uniform, {5000}, DType::f32, 1, 2, low, high}, {}));
  for (std::uint64_t i = 0; i < y.size(); ++i) {
    const volatile double product = static_cast<double>(uniform_at<float>({1, 2}, i)) * (high - low);
    ASSERT_EQ(y[i], static_cast<float>(product + low));
  }
  for (const double v : values_of(run(op::Random{RandomFn::uniform, {5000}, DType::bf16, 1, 2, 1, 1.01}, {})))
    ASSERT_LT(v, 1.01);
}

TEST(CpuRandom, NormalsAreWithinAFewUlpOfTheRule) {
  const RandomKey key{7, 9};
  const auto f32 = values_of<float>(run(op::Random{RandomFn::normal, {100001}, DType::f32, 7, 9, 0, 1}, {}));
  const auto f64 = values_of(run(op::Random{RandomFn::normal, {1001}, DType::f64, 7, 9, 3, 2}, {}));
  for (std::uint64_t i = 0; i < f32.size(); ++i) {
    const float expected = normal_at<float>(key, i);
    ASSERT_NEAR(f32[i], expected, 4 * 1.2e-7 * std::abs(expected)) << "element " << i;
  }
  for (std::uint64_t i = 0; i < f64.size(); ++i)
    ASSERT_NEAR(f64[i], 3 + 2 * normal_at<double>(key, i), 1e-14);
}

TEST(CpuRandom, DependsOnNeitherThreadsNorLayout) {
  const op::Random op{RandomFn::normal, {300, 400}, DType::f32, 5, 6, 0, 1};
  expect_thread_invariance([&] { return run(op, {}); });
  const Values expected = values_of(run(op, {}));
  for (const Form form : all_forms) EXPECT_EQ(values_of(run(op, {}, form)), expected);
}

}  // namespace
}  // namespace ferrite::cpu_test
