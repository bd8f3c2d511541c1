// The elementwise kernels where the conformance suite does not go: many blocks, odd and misaligned ends, rows
// of packs, transposed copies, accumulation, special values, more elements than 32 bits count. What computes
// nothing or rounds once must have Cpu's very bits.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>

#include "backend_cuda/axes_support.hpp"
#include "ferrite/ops/dropout.hpp"
#include "ferrite/ops/layer_norm.hpp"
#include "ferrite/ops/softmax.hpp"

namespace ferrite {
namespace {

using op::BinaryFn;
using op::UnaryFn;

struct CudaElementwise : testing::CudaAxes {
  /// Whole numbers from 0 to 49, which every dtype holds, their sums and products too (bool: 0 or 1).
  Tensor<Cpu> numbers(const Shape& shape, DType dtype) { return CudaAxes::numbers(shape, dtype, 0, 50); }
};

constexpr DType number_dtypes[] = {DType::f32, DType::f64, DType::f16, DType::bf16,
                                   DType::i32, DType::i64, DType::u8};

TEST_F(CudaElementwise, ManyBlocksWithOddAndMisalignedEnds) {
  for (const DType dtype : number_dtypes) {
    for (const std::int64_t n : {1, 3, 255, 4097, 300001, 2500003}) {
      const auto a = numbers({n + 3}, dtype), b = numbers({n + 3}, dtype);
      for (const std::int64_t start : {0, 1, 3}) {
        SCOPED_TRACE(std::string(to_string(dtype)) + " from " + std::to_string(start));
        expect_same({a, b}, [&](const auto& in) {
          const auto x = slice(in[0], 0, start, start + n), y = slice(in[1], 0, 3, 3 + n);
          return where(x < y, x * y + 1, maximum(x - 7, y));
        });
      }
    }
  }
}

TEST_F(CudaElementwise, RowsAndColumnsBroadcast) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::u8}) {
    for (const std::int64_t width : {16, 768, 770, 771}) {
      const auto a = numbers({3, 40, width}, dtype), row = numbers({width}, dtype);
      const auto column = numbers({40, 1}, dtype), one = numbers({}, dtype);
      SCOPED_TRACE(std::string(to_string(dtype)) + " of width " + std::to_string(width));
      expect_same({a, row, column, one}, [](const auto& in) { return (in[0] + in[1]) * in[3] + in[2]; });
      expect_same({a, column, row}, [](const auto& in) { return where(in[1] < in[2], in[0], in[2]); });
      // The inner part of a frame: rows with gaps, at a start that is aligned or not.
      for (const std::int64_t edge : {1, 8})
        expect_same({a, row}, [&](const auto& in) {
          return slice(in[0], 2, edge, -edge) + slice(in[1], 0, edge, -edge);
        });
    }
  }
}

TEST_F(CudaElementwise, CopiesBetweenAllDTypesAndOrders) {
  for (const DType from : all_dtypes) {
    const auto x = numbers({37, 5, 130}, from);
    for (const Shape& order :
         {Shape{0, 1, 2}, Shape{2, 1, 0}, Shape{0, 2, 1}, Shape{1, 0, 2}, Shape{2, 0, 1}}) {
      expect_same({x}, [&](const auto& in) { return clone(permute(in[0], order)); });
      expect_same({x}, [&](const auto& in) { return clone(flip(permute(in[0], order), {0})); });
    }
    for (const DType to : all_dtypes)
      expect_same({x}, [&](const auto& in) { return eval(op::Copy{to}, transpose(in[0], 0, 2)); });
  }
}

TEST_F(CudaElementwise, ConvertsFloatsByTheLibrarysRules) {
  const double inf = std::numeric_limits<double>::infinity();
  std::vector<double> values = {0,        -0.0,        0.5,  -0.5,  1 + 0x1p-11, 1 + 0x1p-11 + 0x1p-40,
                                65519.99, 65520,       1e-8, 3e-42, 1e300,       -1e300,
                                3e9,      -3e9,        256,  -1,    255.9,       inf,
                                -inf,     std::nan("")};
  while (values.size() < 100) values.push_back(values[values.size() - 20] * 1.0001);
  const auto x = from_vector(cpu, values);
  for (const DType from : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    for (const DType to : all_dtypes) {
      SCOPED_TRACE(std::string(to_string(from)) + " to " + std::string(to_string(to)));
      const auto given = cast(x, from);
      const auto want = cast(given, to).to_vector<double>();
      for (const std::int64_t start : {0, 1}) {  // packs, and element by element
        const auto device = ferrite::to(*gpu, given);
        const auto got = cast(slice(device, 0, start), to).to_vector<double>();
        for (std::size_t i = 0; i < got.size(); ++i) {
          const double w = want[i + static_cast<std::size_t>(start)];
          ASSERT_TRUE(got[i] == w || (std::isnan(got[i]) && std::isnan(w))) << got[i] << ", not " << w;
        }
      }
    }
  }
}

TEST_F(CudaElementwise, AddsToOutputsOfEveryLayout) {
  for (const DType dtype : number_dtypes) {
    const auto a = numbers({70, 96}, dtype), b = numbers({96}, dtype), old = numbers({70, 96}, dtype);
    for (const int layout : {0, 1, 2}) {
      const auto change = [&](auto& backend, auto x, auto y, auto target) {
        auto out = clone(target);  // dense; transposed; every second column
        if (layout == 1) out = transpose(clone(transpose(target, 0, 1)), 0, 1);
        if (layout == 2) out = slice(clone(repeat(target, {1, 2})), 1, 0, std::nullopt, 2);
        const auto before = clone(out);
        const Array* in[] = {&x.primitive(), &y.primitive()};
        run(backend, op::Binary{BinaryFn::mul}, Ins(in, 2), Outs(&out.primitive(), 1), Accumulate::first);
        run(backend, op::Copy{dtype}, Ins(in, 1), Outs(&out.primitive(), 1), Accumulate::first);
        return cast(out, DType::f64) - cast(before, DType::f64);
      };
      const auto got = change(*gpu, to(*gpu, a), to(*gpu, b), to(*gpu, old)).to_vector<double>();
      const auto want = change(cpu, a, b, old).to_vector<double>();
      EXPECT_EQ(got, want) << to_string(dtype) << " layout " << layout;
    }
  }
  auto flags = to(*gpu, numbers({5}, DType::bool_));
  const Array* in[] = {&flags.primitive(), &flags.primitive()};
  EXPECT_THROW(
      run(*gpu, op::Binary{BinaryFn::lt}, Ins(in, 2), Outs(&flags.primitive(), 1), Accumulate::first),
      BackendError);
}

TEST_F(CudaElementwise, WritesOverAnInput) {
  const auto a = numbers({100003}, DType::f32), b = numbers({100003}, DType::f32);
  auto x = to(*gpu, a);
  const auto y = to(*gpu, b);
  const Array* in[] = {&x.primitive(), &y.primitive()};
  run(*gpu, op::Binary{BinaryFn::sub}, Ins(in, 2), Outs(&x.primitive(), 1));
  EXPECT_TRUE(to_bytes(x) == to_bytes(a - b));
}

TEST_F(CudaElementwise, SpecialValuesOfEveryFunction) {
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> values = {0.0f,   -0.0f, 1e-40f, -1e-40f, 1e-7f, 0.5f,  -0.5f, 1.0f,
                                     -1.0f,  2.5f,  -2.5f,  10.0f,   -10.f, 88.0f, -88.f, 104.0f,
                                     -104.f, 1e10f, -1e10f, inf,     -inf,  NAN};
  const auto x = from_vector(*gpu, values);
  const auto wide = cast(from_vector(reference, values), DType::f64);
  for (int i = 0; i < op::unary_fn_count; ++i) {
    const op::Unary op{static_cast<UnaryFn>(i), 1.5};
    const auto want = eval(op, wide).to_vector<float>();
    for (const auto& given : {x, flip(clone(flip(x)))}) {  // packs, and element by element
      const auto got = eval(op, given).to_vector<float>();
      for (std::size_t k = 0; k < values.size(); ++k) {
        const float g = got[k], w = want[k];
        if (g == w || (std::isnan(g) && std::isnan(w))) continue;
        EXPECT_LE(std::abs(g - w), 4 * 0x1p-23f * (std::abs(w) + 1)) << op.name() << " of " << values[k];
      }
    }
  }
}

TEST_F(CudaElementwise, IntegersWrapAndFollowPython) {
  const std::vector<std::int64_t> values = {0, 1, -1, 2, -2, 7, -7, 63, INT64_MAX, INT64_MIN, INT64_MIN + 1};
  std::vector<std::int64_t> left, right;
  for (const auto a : values)
    for (const auto b : values) left.push_back(a), right.push_back(b);
  const auto a = from_vector(cpu, left), b = from_vector(cpu, right);
  for (const BinaryFn fn : {BinaryFn::add, BinaryFn::sub, BinaryFn::mul, BinaryFn::pow, BinaryFn::remainder})
    for (const DType dtype : {DType::i64, DType::i32, DType::u8})
      expect_same({cast(a, dtype), cast(b, dtype)},
                  [&](const auto& in) { return eval(op::Binary{fn}, in[0], in[1]); });
  for (const UnaryFn fn : {UnaryFn::neg, UnaryFn::abs, UnaryFn::sign, UnaryFn::square})
    expect_same({a}, [&](const auto& in) { return eval(op::Unary{fn}, in[0]); });
}

TEST_F(CudaElementwise, DrawsTheNumbersOfTheCpu) {
  using op::RandomFn;
  const std::uint64_t stream = (1ull << 40) + 3;
  for (const std::int64_t n : {1, 7, 1000003}) {
    for (const DType dtype : arithmetic_dtypes) {
      SCOPED_TRACE(std::string(to_string(dtype)) + " " + std::to_string(n));
      const auto draw = [&](auto& b, RandomFn fn, double low, double high) {
        return create(b, op::Random{fn, {n}, dtype, 9, stream, low, high});
      };
      const auto same = [&](RandomFn fn, double low, double high) {
        EXPECT_TRUE(to_bytes(draw(*gpu, fn, low, high)) == to_bytes(draw(cpu, fn, low, high)));
      };
      same(RandomFn::integer, dtype == DType::u8 || dtype == DType::bool_ ? 0 : -3,
           dtype == DType::bool_ ? 2 : 100);
      same(RandomFn::bernoulli, 0.3, 0);
      if (!is_floating(dtype)) continue;
      same(RandomFn::uniform, 0, 1);
      same(RandomFn::uniform, -0.3, 1.7);
      const auto got = draw(*gpu, RandomFn::normal, 0, 1).template to_vector<double>();
      const auto want = draw(cpu, RandomFn::normal, 0, 1).template to_vector<double>();
      for (std::size_t i = 0; i < got.size(); ++i)
        ASSERT_NEAR(got[i], want[i], 8 * epsilon(dtype) * std::abs(want[i])) << "element " << i;
      const auto x = numbers({n}, dtype);
      expect_same({x}, [&](const auto& in) { return eval(op::Dropout{0.5, 9, stream}, in[0]); });
    }
  }
}

TEST_F(CudaElementwise, KernelsThatStartEarlyWaitForWhatTheyRead) {
  // Each reads what the one before it has just written, in memory that the pool hands round, and no result is
  // that of the step before. Rows in registers and in rings; products as small as ours.
  const auto run = [&](std::int64_t columns, bool waits) {
    const auto next = [&](const Tensor<Cuda>& x) {
      if (waits) gpu->synchronize();
      return x;
    };
    Rng draws(3);
    auto x = randn(*gpu, {256, columns}, draws), scale = randn(*gpu, {columns}, draws);
    auto mix = next(randn(*gpu, {64, 64}, draws, 0, 0.125));
    std::vector<std::vector<std::byte>> results;
    for (int i = 0; i < 30; ++i) {
      scale = next(scale * 0.5 + 0.25 * (i + 1));
      x = next(layer_norm(x, scale, scale));
      x = next(flip(softmax(x, 1), {0}));
      scale = next(sum(x, {0}));
      mix = next(matmul(mix, mix + 0.01 * i));
      mix = next(mix * (1.0 / 64));
    }
    for (const auto& y : {x, scale, mix}) results.push_back(to_bytes(y));
    return results;
  };
  for (const std::int64_t columns : {96, 768, 30000}) {
    SCOPED_TRACE(columns);
    const auto expected = run(columns, true);
    for (int again = 0; again < 3; ++again) EXPECT_TRUE(run(columns, false) == expected);
  }
}

TEST_F(CudaElementwise, CountsBeyond32Bits) {
  constexpr std::int64_t billion = std::int64_t{1} << 30, n = 3 * billion + 5;
  if (cuda_devices()[0].free_bytes < std::size_t{16} << 30) GTEST_SKIP() << "needs 16 GiB of GPU memory";
  const auto at = [](const Tensor<Cuda>& x, std::int64_t i) { return select(x, 0, i).item<int>(); };
  const auto ones = full(*gpu, {n}, 1, DType::u8);
  const auto two = ones + ones;
  const auto last = slice(two, 0, n - 3) * 5;  // its own memory, of three elements
  EXPECT_EQ(last.to_vector<int>(), (std::vector<int>{10, 10, 10}));
  for (const std::int64_t i : {std::int64_t{0}, 2 * billion - 1, 2 * billion, n - 1})
    EXPECT_EQ(at(two, i), 2);
  const auto counted = arange(*gpu, n, DType::u8);
  for (const std::int64_t i : {2 * billion - 1, 2 * billion + 77, n - 1}) EXPECT_EQ(at(counted, i), i % 256);
  const auto stepped = slice(counted, 0, 1, std::nullopt, 3) + flip(slice(ones, 0, 0, n / 3 + 1));
  EXPECT_EQ(at(stepped, n / 3), (1 + n / 3 * 3 + 1) % 256);
}

}  // namespace
}  // namespace ferrite
