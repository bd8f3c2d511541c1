// What the tests of products, convolutions, pools and attention on the GPU share: the truth is the same op
// on Reference in f64, on the very values the GPU got.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "backend_cuda/dtypes.hpp"
#include "ferrite/backend/cuda_device.hpp"
#include "ferrite/stacks.hpp"

namespace ferrite::testing {

using Gpu = Tensor<Cuda>;
using Truth = Tensor<Reference>;

struct CudaContraction : ::testing::Test {
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << cuda_unavailable_reason();
    cuda = std::make_unique<Cuda>(0);
  }

  /// Numbers in [-1, 1), or -4 ... 4 for integers, made on the host.
  Gpu random(const Shape& shape, DType dtype = DType::f32) {
    const auto real = is_floating(dtype)
                          ? rand(host, shape, rng, -1, 1, DType::f64)
                          : cast(randint(host, shape, rng, dtype == DType::u8 ? 0 : -4, 5), DType::f64);
    return to(*cuda, cast(real, dtype));
  }
  /// The same values in f64 (integers as they are).
  Truth truth(const Gpu& x) {
    const Truth copy = to(host, x);
    return is_floating(x.dtype()) ? cast(copy, DType::f64) : copy;
  }

  std::unique_ptr<Cuda> cuda;
  Reference host;
  Rng rng{5};
};

/// |got - want| <= tolerance (|want| + scale), where scale is the largest |want|, or `terms` if the results
/// are small differences of terms of that size; two NaNs agree.
inline void expect_near(const Gpu& got, const Truth& want, double tolerance, double terms = 0) {
  ASSERT_EQ(got.shape(), want.shape());
  const auto values = got.to_vector<double>(), truth = want.to_vector<double>();
  double scale = terms;
  for (const double t : truth) scale = std::max(scale, std::isfinite(t) ? std::abs(t) : 0);
  int reported = 0;
  for (std::size_t i = 0; i < truth.size() && reported < 3; ++i) {
    if (values[i] == truth[i] || (std::isnan(values[i]) && std::isnan(truth[i]))) continue;
    if (std::abs(values[i] - truth[i]) <= tolerance * (std::abs(truth[i]) + scale)) continue;
    ADD_FAILURE() << "element " << i << " of " << to_string(got.meta()) << " is " << values[i]
                  << ", should be " << truth[i];
    ++reported;
  }
}

/// The tolerance of sums of `length` terms.
inline double tolerance_of(DType dtype, std::int64_t length) {
  const Meta meta{{}, dtype};
  return tolerance_from(static_cast<double>(length), {&meta, 1}, {});
}

/// Runs an op's kernel into arrays that are there already.
template <class Op>
void run_into(Cuda& cuda, const Op& op, std::initializer_list<Gpu> in, std::vector<Gpu> out,
              std::uint32_t accumulate = 0) {
  std::vector<const Array*> inputs;
  for (const Gpu& x : in) inputs.push_back(&x.primitive());
  std::vector<Array> outputs;
  for (const Gpu& y : out) outputs.push_back(y.primitive());
  const Ins ins(inputs.data(), inputs.size());
  if constexpr (requires { run(cuda, op, ins, Outs(outputs), Accumulate{}); })
    run(cuda, op, ins, outputs, static_cast<Accumulate>(accumulate));
  else
    run(cuda, op, ins, outputs);
}

/// Views of one shape that lie in memory in awkward ways, the plain one first. The values are random.
inline std::vector<std::pair<std::string, Gpu>> layouts(CudaContraction& test, const Shape& shape,
                                                        DType dtype) {
  const int last = shape.rank() - 1;
  Shape swapped = shape, padded = shape, spread = shape;
  std::swap(swapped[last - 1], swapped[last]);
  padded[last] += 3;
  spread[last] = 2 * shape[last] + 1;
  Shape one = shape;
  one[last - 1] = 1;
  return {{"dense", test.random(shape, dtype)},
          {"transposed", transpose(test.random(swapped, dtype), -1, -2)},
          {"misaligned rows", slice(test.random(padded, dtype), last, 1, 1 + shape[last])},
          {"every second", slice(test.random(spread, dtype), last, 1, 2 * shape[last] + 1, 2)},
          {"reversed", flip(test.random(shape, dtype), {last, last - 1})},
          {"one row repeated", expand(test.random(one, dtype), shape)}};
}

}  // namespace ferrite::testing
