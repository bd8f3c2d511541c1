// What the tests of elementwise ops, reductions, scans, sorting and indexing on the GPU share. Elements are
// whole numbers whose sums every dtype holds or rounds once, so Cuda must give Cpu's very bits in any order
// of addition.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>

#include "backend_cuda/dtypes.hpp"
#include "ferrite/backend/cuda_device.hpp"
#include "ferrite/stacks.hpp"

namespace ferrite::testing {

inline constexpr DType number_dtypes[] = {DType::f32, DType::f64, DType::f16, DType::bf16,
                                          DType::i32, DType::i64, DType::u8};
inline constexpr double infinity = std::numeric_limits<double>::infinity();
inline constexpr double nan = std::numeric_limits<double>::quiet_NaN();

struct CudaAxes : ::testing::Test {
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << cuda_unavailable_reason();
    gpu = std::make_unique<Cuda>(0);
  }

  Tensor<Cpu> numbers(const Shape& shape, DType dtype, std::int64_t low = 0, std::int64_t high = 4) {
    return cast(randint(cpu, shape, rng, low, high, DType::i64), dtype);
  }
  /// f is given the same tensors on both backends and must return the same bits.
  template <class F>
  void expect_same(const std::vector<Tensor<Cpu>>& in, F f) {
    std::vector<Tensor<Cuda>> copies;
    for (const auto& x : in) copies.push_back(to(*gpu, x));
    const Tensor<Cuda> got = f(copies);
    const Tensor<Cpu> want = f(in);
    ASSERT_EQ(got.meta(), want.meta());
    EXPECT_TRUE(to_bytes(got) == to_bytes(want)) << to_string(got.meta());
  }
  /// f on the GPU against f on Reference, in f64 and on the same numbers.
  template <class F>
  void expect_near(const Tensor<Cpu>& x, double tolerance, F f) {
    const auto got = f(to(*gpu, x)).template to_vector<double>();
    const auto want = f(cast(to(reference, x), DType::f64)).template to_vector<double>();
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t i = 0; i < want.size(); ++i) {
      if (got[i] == want[i] || (std::isnan(got[i]) && std::isnan(want[i]))) continue;
      ASSERT_NEAR(got[i], want[i], tolerance * (std::abs(want[i]) + 1)) << "element " << i;
    }
  }
  /// Runs an op on the GPU into an existing array, with a mask.
  template <class Op>
  void add_into(const Op& op, const std::vector<Tensor<Cuda>>& in, const Tensor<Cuda>& out) {
    std::vector<const Array*> refs;
    for (const auto& x : in) refs.push_back(&x.primitive());
    Array target = out.primitive();
    run(*gpu, op, Ins(refs.data(), refs.size()), Outs(&target, 1), Accumulate::first);
  }

  Cpu cpu;
  Reference reference;
  std::unique_ptr<Cuda> gpu;
  Rng rng{23};
};

/// One of the ways a tensor may lie: as it is, turned, cut, with gaps, shifted against 16 bytes.
inline constexpr int view_count = 7;
template <class B>
Tensor<B> view_of(const Tensor<B>& x, int which) {
  const int last = x.rank() - 1;
  switch (which) {
    case 1:
      return flip(x, {0});
    case 2:
      return flip(x, {last});
    case 3:
      return slice(x, last, 1);
    case 4:
      return slice(x, last, 0, std::nullopt, 2);
    case 5:
      return slice(x, 0, 1);
    case 6:
      return transpose(x, 0, last);
    default:
      return x;
  }
}

}  // namespace ferrite::testing
