// Cpu's fill, iota and random: values by their documented rules, in every dtype and layout.
#include "backend_cpu/cpu_primitive_support.hpp"

namespace ferrite::cpu_test {
namespace {

using op::RandomFn;

TEST(CpuFill, FillsEveryDTypeAndLayout) {
  for (const DType dtype : all_dtypes) {
    for (const Form form : all_forms) {
      for (const Shape& shape : {Shape{40, 3, 1000}, Shape{}, Shape{0, 2}}) {
        const Array out = allocate(dtype, shape, form);
        run_into(op::Fill{shape, dtype, 1}, {}, out);
        EXPECT_EQ(values_of(out), Values(size(shape.numel()), 1));
      }
    }
  }
  EXPECT_EQ(values_of(run(op::Fill{{1}, DType::i32, 2.9}, {}))[0], 2);
}

TEST(CpuIota, CountsInEveryDTypeAndLayout) {
  for (const DType dtype :
       {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i32, DType::i64, DType::u8}) {
    for (const Form form : all_forms) {
      const op::Iota op{70000, dtype, 3, is_floating(dtype) ? Scalar(0.1) : Scalar(2)};
      const Array out = run(op, {}, form);
      visit_dtype(dtype, [&]<class T>() {
        for (const std::int64_t i : {0, 1, 2, 77, 32768, 69999}) {
          volatile double product = 0.1 * static_cast<double>(i);  // rounded before it is added
          const T expected = is_floating(dtype) ? convert<T>(3 + product) : convert<T>(3 + 2 * i);
          EXPECT_EQ(values_of(out)[size(i)], convert<double>(expected))
              << to_string(dtype) << " element " << i;
        }
      });
    }
  }
}

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

TEST(Cpu, DescribesItselfWithItsThreads) {
  const int before = num_threads();
  set_num_threads(1);
  const std::string one = cpu().describe();
  set_num_threads(3);
  const std::string three = cpu().describe();
  set_num_threads(before);
  EXPECT_TRUE(one.starts_with("cpu (") && one.ends_with(", 1 thread)")) << one;
  EXPECT_TRUE(three.ends_with(", 3 threads)")) << three;
}

TEST(Cpu, CountsTheMemoryItHandsOut) {
  const std::size_t before = cpu().memory_stats().in_use;
  const Array x = cpu().allocate({{1000}, DType::f32});
  EXPECT_GE(cpu().memory_stats().in_use, before + 4000);
}

}  // namespace
}  // namespace ferrite::cpu_test
