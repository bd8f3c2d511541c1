// conv2d and its gradients of the Cpu backend against seven loops in double.
#include "ferrite/ops/conv2d.hpp"

#include "ops/contraction_support.hpp"

namespace ferrite::testing {
namespace {

struct ConvCase {
  Shape x, weight;
  op::ConvGeometry geometry;
};

const std::vector<ConvCase>& cases() {
  static const std::vector<ConvCase> all = {
      {{1, 1, 1, 1}, {1, 1, 1, 1}, {}},
      {{2, 3, 5, 7}, {4, 3, 3, 3}, {}},
      {{3, 1, 8, 8}, {16, 1, 3, 3}, {{1, 1}, {1, 1}}},
      {{9, 16, 8, 8}, {20, 16, 3, 3}, {{1, 1}, {1, 1}}},
      {{9, 16, 4, 4}, {8, 16, 3, 3}, {{1, 1}, {1, 1}}},
      {{2, 5, 9, 6}, {7, 5, 1, 1}, {}},
      {{40, 5, 3, 2}, {7, 5, 1, 1}, {}},
      {{2, 6, 9, 6}, {4, 3, 1, 1}, {{1, 1}, {0, 0}, {1, 1}, 2}},
      {{2, 5, 9, 6}, {7, 5, 1, 1}, {{2, 3}}},
      {{2, 4, 10, 11}, {6, 2, 3, 2}, {{2, 1}, {1, 2}, {1, 1}, 2}},
      {{2, 3, 12, 13}, {5, 3, 3, 4}, {{2, 3}, {2, 1}, {2, 2}}},
      {{2, 6, 7, 7}, {6, 1, 3, 3}, {{1, 1}, {1, 1}, {1, 1}, 6}},
      {{1, 2, 3, 3}, {3, 2, 5, 5}, {{1, 1}, {4, 4}}},
      {{1, 1, 4, 4}, {1, 1, 2, 2}, {{3, 3}, {5, 6}}},
      {{1, 8, 40, 60}, {12, 8, 3, 3}, {{1, 1}, {1, 1}}},
      {{2, 70, 9, 9}, {33, 70, 3, 3}, {{1, 1}, {1, 1}}},
      {{3, 7, 1, 200}, {5, 7, 1, 9}, {{1, 2}, {0, 4}}},
  };
  return all;
}

std::string describe(const ConvCase& c) {
  return "x " + to_string(c.x) + " weight " + to_string(c.weight) + " stride " +
         to_string(c.geometry.stride) + " padding " + to_string(c.geometry.padding) + " dilation " +
         to_string(c.geometry.dilation) + " groups " + std::to_string(c.geometry.groups);
}

Shape output_shape(const ConvCase& c, DType dtype = DType::f32) {
  const Meta metas[] = {{c.x, dtype}, {c.weight, dtype}};
  return op::Conv2d{c.geometry}.infer(metas)[0].shape;
}

/// Calls f(index in x, index in weight, index in y) for every product of the convolution.
template <class F>
void for_each_product(const ConvCase& c, F&& f) {
  const Shape y = output_shape(c);
  const Shape &x = c.x, &w = c.weight;
  const std::int64_t group_outputs = w[0] / c.geometry.groups;
  for (std::int64_t n = 0; n < x[0]; ++n)
    for (std::int64_t o = 0; o < w[0]; ++o)
      for (std::int64_t r = 0; r < y[2]; ++r)
        for (std::int64_t s = 0; s < y[3]; ++s)
          for (std::int64_t k = 0; k < w[1]; ++k)
            for (std::int64_t i = 0; i < w[2]; ++i)
              for (std::int64_t j = 0; j < w[3]; ++j) {
                const std::int64_t h =
                    r * c.geometry.stride[0] + i * c.geometry.dilation[0] - c.geometry.padding[0];
                const std::int64_t v =
                    s * c.geometry.stride[1] + j * c.geometry.dilation[1] - c.geometry.padding[1];
                if (h < 0 || h >= x[2] || v < 0 || v >= x[3]) continue;
                const std::int64_t channel = o / group_outputs * w[1] + k;
                f(at(((n * x[1] + channel) * x[2] + h) * x[3] + v),
                  at(((o * w[1] + k) * w[2] + i) * w[3] + j), at(((n * w[0] + o) * y[2] + r) * y[3] + s));
              }
}

struct Sums {
  Values y, dx, dweight;
  std::int64_t longest;  // terms in one element
};

Sums naive(const ConvCase& c, const Array& x, const Array& weight, const Array& dy) {
  const Values a = values_of(x), w = values_of(weight), d = values_of(dy);
  Sums sums{Values(d.size(), 0.0), Values(a.size(), 0.0), Values(w.size(), 0.0), 0};
  for_each_product(c, [&](std::size_t xi, std::size_t wi, std::size_t yi) {
    sums.y[yi] += a[xi] * w[wi];
    sums.dx[xi] += d[yi] * w[wi];
    sums.dweight[wi] += d[yi] * a[xi];
  });
  const Shape y = dy.shape();
  sums.longest = std::max(y[0] * y[2] * y[3], c.weight.numel());
  return sums;
}

void expect_case(const ConvCase& c, DType dtype, Storage storage) {
  SCOPED_TRACE(describe(c));
  const Array x = random(c.x, dtype, storage), weight = random(c.weight, dtype, storage, 2);
  const Array dy = random(output_shape(c), dtype, storage, 3),
              bias = random({c.weight[0]}, dtype, Storage::contiguous, 4);
  const Sums want = naive(c, x, weight, dy);
  const double tolerance = sum_tolerance(dtype, want.longest);
  expect_close(run(op::Conv2d{c.geometry}, {x, weight})[0], want.y, tolerance);
  Values biased = want.y;
  const Values b = values_of(bias);
  const std::size_t pixels = at(dy.shape()[2] * dy.shape()[3]);
  for (std::size_t i = 0; i < biased.size(); ++i) biased[i] += b[i / pixels % b.size()];
  expect_close(run(op::Conv2d{c.geometry}, {x, weight, bias})[0], biased, tolerance);
  expect_close(run(op::Conv2dInputGrad{c.geometry, c.x}, {dy, weight})[0], want.dx, tolerance);
  expect_close(run(op::Conv2dWeightGrad{c.geometry, c.weight}, {dy, x})[0], want.dweight, tolerance);
}

TEST(CpuConv2d, AgreesWithTheLoopsForwardAndBackward) {
  for (const ConvCase& c : cases()) {
    expect_case(c, DType::f32, Storage::contiguous);
    expect_case(c, DType::f64, Storage::contiguous);
  }
}

TEST(CpuConv2d, TakesEveryStorage) {
  for (const Storage storage : all_storages) expect_case(cases()[9], DType::f32, storage);
}

TEST(CpuConv2d, WritesAndAccumulatesGradientsIntoEveryLayout) {
  for (const ConvCase& c : cases()) {
    SCOPED_TRACE(describe(c));
    const Array x = random(c.x, DType::f32), weight = random(c.weight, DType::f32, Storage::contiguous, 2);
    const Array dy = random(output_shape(c), DType::f32, Storage::contiguous, 3);
    Sums want = naive(c, x, weight, dy);
    const double tolerance = sum_tolerance(DType::f32, want.longest);
    for (const Storage storage : {Storage::contiguous, Storage::spaced}) {
      Array y[] = {allocate(dy.shape(), DType::f32, storage)};
      run_kernel_into(op::Conv2d{c.geometry}, {x, weight}, y);
      expect_close(y[0], want.y, tolerance);
      Array dx[] = {random(c.x, DType::f32, storage, 5)},
            dweight[] = {random(c.weight, DType::f32, storage, 6)};
      Values dx_sum = values_of(dx[0]), dweight_sum = values_of(dweight[0]);
      for (std::size_t i = 0; i < dx_sum.size(); ++i) dx_sum[i] += want.dx[i];
      for (std::size_t i = 0; i < dweight_sum.size(); ++i) dweight_sum[i] += want.dweight[i];
      run_kernel_into(op::Conv2dInputGrad{c.geometry, c.x}, {dy, weight}, dx, 1);
      run_kernel_into(op::Conv2dWeightGrad{c.geometry, c.weight}, {dy, x}, dweight, 1);
      expect_close(dx[0], dx_sum, tolerance);
      expect_close(dweight[0], dweight_sum, tolerance);
    }
  }
}

TEST(CpuConv2d, TakesEmptyBatchesAndChannels) {
  for (const ConvCase& c :
       {ConvCase{{0, 3, 5, 5}, {4, 3, 3, 3}, {}}, ConvCase{{2, 0, 5, 5}, {4, 0, 3, 3}, {}},
        ConvCase{{2, 3, 5, 5}, {0, 3, 3, 3}, {}}})
    expect_case(c, DType::f32, Storage::contiguous);
}

TEST(CpuConv2d, LeavesOtherDtypesToTheComposition) {
  const Meta half{{1, 1, 3, 3}, DType::bf16}, single{{1, 1, 3, 3}, DType::f32};
  EXPECT_FALSE(accepts(Cpu{}, op::Conv2d{}, std::vector{half, half}));
  EXPECT_FALSE(accepts(Cpu{}, op::Conv2dInputGrad{}, std::vector{half, single}));
  EXPECT_TRUE(accepts(Cpu{}, op::Conv2dWeightGrad{}, std::vector{single, single}));
}

TEST(CpuConv2d, GivesTheSameBitsForAnyNumberOfThreads) {
  for (const ConvCase& c : cases()) {
    SCOPED_TRACE(describe(c));
    expect_same_bits_for_any_thread_count([&] {
      const Array x = random(c.x, DType::f32), weight = random(c.weight, DType::f32, Storage::contiguous, 2);
      const Array dy = random(output_shape(c), DType::f32, Storage::contiguous, 3);
      return std::vector{run(op::Conv2d{c.geometry}, {x, weight})[0],
                         run(op::Conv2dInputGrad{c.geometry, c.x}, {dy, weight})[0],
                         run(op::Conv2dWeightGrad{c.geometry, c.weight}, {dy, x})[0]};
    });
  }
}

}  // namespace
}  // namespace ferrite::testing
