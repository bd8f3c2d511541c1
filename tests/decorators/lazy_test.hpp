// What Lazy<B> must do on every backend B: the same values as B, as few kernels as promised. Instantiated for
// Cpu here and for Cuda in tests/backend_cuda/.
#pragma once

#include <gtest/gtest.h>

#include "ferrite/backend/cuda_device.hpp"
#include "ferrite/ops/cat.hpp"
#include "ferrite/ops/statistic.hpp"
#include "ferrite/stacks.hpp"

namespace ferrite::lazy_tests {

template <class B>
class LazyTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::same_as<B, Cuda> && cuda_device_count() == 0) GTEST_SKIP() << cuda_unavailable_reason();
  }
};

/// f(backend, rng) on B and on Lazy<B>: the same bytes. Returns the report.
template <class B, class F>
FusionReport expect_same_bytes(F&& f, LazyConfig config = {}) {
  B plain;
  Lazy<B> lazy(config);
  Rng rng(7), same(7);
  const auto expected = to_bytes(f(plain, rng));
  EXPECT_EQ(to_bytes(f(lazy, same)), expected);
  return lazy.fusion_report();
}

/// The same for functions that kernels of their own compute otherwise: within `ulps` of the largest value.
template <class B, class F>
FusionReport expect_close(F&& f, double ulps = 16) {
  B plain;
  Lazy<B> lazy;
  Rng rng(7), same(7);
  const auto expected = f(plain, rng);
  const auto got = f(lazy, same);
  EXPECT_EQ(got.meta(), expected.meta());
  const auto e = expected.template to_vector<double>(), g = got.template to_vector<double>();
  double scale = 0;
  for (double x : e)
    if (std::isfinite(x)) scale = std::max(scale, std::abs(x));
  for (std::size_t i = 0; i < e.size(); ++i) {
    if (g[i] == e[i] || (std::isnan(g[i]) && std::isnan(e[i]))) continue;
    EXPECT_LE(std::abs(g[i] - e[i]), ulps * epsilon(expected.dtype()) * scale) << "element " << i;
  }
  return lazy.fusion_report();
}

inline std::int64_t times(const FusionReport::Reasons& reasons, std::string_view reason) {
  for (const auto& [text, count] : reasons)
    if (text == reason) return count;
  return 0;
}

TYPED_TEST_SUITE_P(LazyTest);

TYPED_TEST_P(LazyTest, ChainIsOneKernelAndWritesOneResult) {
  const auto report = expect_same_bytes<TypeParam>([](auto& b, Rng& rng) {
    const auto x = randn(b, {1000}, rng), y = randn(b, {1000}, rng);
    return maximum(abs((x * 1.5 + y) * x - 0.25) / 3, 0.5) - y;
  });
  EXPECT_EQ(report.recorded, 8);
  EXPECT_EQ(report.fused, 8);
  EXPECT_EQ(report.not_written, 7);
  EXPECT_EQ(report.launches(), 1);
  ASSERT_EQ(report.kernels.size(), 1u);
  EXPECT_EQ(report.kernels[0].ops, "mul add mul sub abs div maximum sub");
}

TYPED_TEST_P(LazyTest, ValuesThatAreHeldAreWritten) {
  TypeParam plain;
  Lazy<TypeParam> b;
  Rng rng(1), same(1);
  const auto x = randn(b, {100}, rng);
  const auto kept = x * 2, used = kept + 1;
  const auto z = randn(plain, {100}, same);
  EXPECT_EQ(used.to_vector(), (z * 2 + 1).to_vector());
  EXPECT_EQ(b.fusion_report().not_written, 0);
  EXPECT_EQ(kept.to_vector(), (z * 2).to_vector());
  EXPECT_EQ(b.fusion_report().launches(), 1);
}

TYPED_TEST_P(LazyTest, WhatNobodyReadsNeverRuns) {
  Lazy<TypeParam> b;
  Rng rng(1);
  const auto x = randn(b, {100}, rng);
  { const auto dropped = exp(x) + 1; }
  b.synchronize();
  EXPECT_EQ(b.fusion_report().never_run, 2);
  EXPECT_EQ(b.fusion_report().launches(), 0);
}

TYPED_TEST_P(LazyTest, AnyLayoutOfInputs) {
  const auto report = expect_same_bytes<TypeParam>([](auto& b, Rng& rng) {
    const auto x = randn(b, {6, 5, 8}, rng);
    const auto turned = permute(x, {2, 1, 0}), every_second = slice(randn(b, {16, 5, 6}, rng), 0, 0, 16, 2);
    const auto row = randn(b, {6}, rng), column = randn(b, {8, 1, 1}, rng), one = randn(b, {1}, rng);
    return (turned + every_second) * row - column * flip(turned) + one;
  });
  EXPECT_EQ(report.launches(), 1);
  EXPECT_EQ(times(report.unfused, "layouts of more than four axes"), 0);
}

TYPED_TEST_P(LazyTest, UnitAxesDoNotBreakAGroup) {
  const auto report = expect_same_bytes<TypeParam>([](auto& b, Rng& rng) {
    const auto x = randn(b, {4, 1, 9}, rng);
    return squeeze(x * 2) + squeeze(x + 1);
  });
  EXPECT_EQ(report.launches(), 1);
  EXPECT_EQ(report.fused, 3);
}

TYPED_TEST_P(LazyTest, ViewsOfRecordedValuesAreReadFromMemory) {
  const auto report = expect_same_bytes<TypeParam>([](auto& b, Rng& rng) {
    const auto y = randn(b, {12, 12}, rng) * 3 + 1;
    return transpose(y, 0, 1) - y;
  });
  EXPECT_EQ(times(report.ended, "a view is read"), 1);
}

TYPED_TEST_P(LazyTest, MoreAxesThanKernelsHaveRunOneByOne) {
  const auto report = expect_same_bytes<TypeParam>([](auto& b, Rng& rng) {
    return randn(b, {2, 3, 2, 3, 2}, rng) * 2 + randn(b, {1, 3, 1, 3, 1}, rng);
  });
  EXPECT_EQ(report.launches(), 0);
  EXPECT_EQ(times(report.unfused, "layouts of more than four axes"), 1);
}

TYPED_TEST_P(LazyTest, ReadsComeBeforeLaterWrites) {
  // y = x * 2 is pending when x is overwritten, by a recorded op, by an op that runs at once, and from the
  // host.
  for (int way = 0; way < 3; ++way) {
    Lazy<TypeParam> b;
    const auto x = from_vector(b, std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8});
    const auto y = x * 2 + 1;
    Array target = x.primitive();
    if (way == 0) {
      const Array* in[] = {&target};
      run(b, op::Binary{op::BinaryFn::add, op::ScalarSide::right, 100}, Ins(in, 1), Outs(&target, 1));
    } else if (way == 1) {
      run(b, op::Iota{8, DType::f32, 100, 1}, Ins(nullptr, 0), Outs(&target, 1));
    } else {
      b.copy_from_host(target, std::vector<float>(8, 5).data());
    }
    EXPECT_EQ(y.to_vector(), (std::vector<float>{3, 5, 7, 9, 11, 13, 15, 17})) << way;
    EXPECT_EQ(x.to_vector()[1], way == 0 ? 102 : way == 1 ? 101 : 5) << way;
  }
}

TYPED_TEST_P(LazyTest, OverlappingViewsKeepTheOrderOfOps) {
  Lazy<TypeParam> b;
  const auto x = from_vector(b, std::vector<float>{1, 2, 3, 4, 5});
  const auto head = slice(x, 0, 0, 4), tail = slice(x, 0, 1, 5);
  const auto before = head + tail;
  // tail += 10 through the view, then a read of the other view.
  Array target = tail.primitive();
  const Array* in[] = {&target};
  run(b, op::Binary{op::BinaryFn::add, op::ScalarSide::right, 10}, Ins(in, 1), Outs(&target, 1));
  const auto after = head * 1;
  EXPECT_EQ(after.to_vector(), (std::vector<float>{1, 12, 13, 14}));
  EXPECT_EQ(before.to_vector(), (std::vector<float>{3, 5, 7, 9}));
  EXPECT_EQ(x.to_vector(), (std::vector<float>{1, 12, 13, 14, 15}));
}

TYPED_TEST_P(LazyTest, InPlaceChainsFuse) {
  Lazy<TypeParam> b;
  const auto x = from_vector(b, std::vector<float>{1, 2, 3});
  b.reset_report();
  Array target = x.primitive();
  const Array* in[] = {&target};
  const auto old = x + 0.5;
  for (int i = 0; i < 3; ++i)
    run(b, op::Binary{op::BinaryFn::mul, op::ScalarSide::right, 2}, Ins(in, 1), Outs(&target, 1));
  run(b, op::Unary{op::UnaryFn::neg}, Ins(in, 1), Outs(&target, 1), Accumulate::first);  // x += -x
  const auto result = x + 1;
  EXPECT_EQ(result.to_vector(), (std::vector<float>{1, 1, 1}));
  EXPECT_EQ(old.to_vector(), (std::vector<float>{1.5, 2.5, 3.5}));
  EXPECT_EQ(x.to_vector(), (std::vector<float>{0, 0, 0}));
  EXPECT_EQ(b.fusion_report().launches(), 1);
  EXPECT_EQ(b.fusion_report().fused, 6);
}

TYPED_TEST_P(LazyTest, PartsOfAResultAreWrittenByTheGroup) {
  const auto report = expect_same_bytes<TypeParam>([](auto& b, Rng& rng) {
    const auto x = randn(b, {3, 4}, rng), y = randn(b, {3, 4}, rng);
    return cat(std::vector{x * 2 + 1, y - 3}, 1);
  });
  EXPECT_EQ(report.recorded, 5);  // three ops and a copy for each part
}

TYPED_TEST_P(LazyTest, SixteenBitValuesRoundAsTheOpsDo) {
  for (const DType dtype : {DType::bf16, DType::f16}) {
    const auto report = expect_same_bytes<TypeParam>([&](auto& b, Rng& rng) {
      const auto x = randn(b, {500}, rng, 0, 1, dtype), y = randn(b, {500}, rng, 0, 1, dtype);
      return (x * 1.1 + y) * x - y / 3;
    });
    EXPECT_EQ(report.launches(), 1);
  }
}

TYPED_TEST_P(LazyTest, CastsToStorageAndBack) {
  for (const DType stored : storage_dtypes)
    for (const DType dtype : arithmetic_dtypes)
      expect_same_bytes<TypeParam>([&](auto& b, Rng& rng) {
        const auto x = cast(randn(b, {300}, rng, 0, 200), dtype);
        return cast(clone(cast(maximum(x, where(x > 0, x, 0)), stored)), dtype) == x;
      });
}

TYPED_TEST_P(LazyTest, EveryDtypeAndCast) {
  for (const DType from : arithmetic_dtypes) {
    for (const DType to : arithmetic_dtypes) {
      SCOPED_TRACE(std::string(to_string(from)) + " to " + std::string(to_string(to)));
      expect_same_bytes<TypeParam>([&](auto& b, Rng& rng) {
        const auto x = cast(randn(b, {300}, rng, 0, 200), from);
        const auto positive = x > 0;
        const auto y = where(positive, x, 1);
        return logical_and(cast(maximum(y, x), to) != 0, positive) == isfinite(cast(y, to));
      });
      expect_same_bytes<TypeParam>([&](auto& b, Rng& rng) {
        const auto x = cast(randn(b, {300}, rng, 0, 200), from);
        return cast(maximum(x, where(x > 0, x, 0)), to);
      });
    }
  }
}

TYPED_TEST_P(LazyTest, IntegersWrapAndTheirPowersRunAtOnce) {
  const auto report = expect_same_bytes<TypeParam>([](auto& b, Rng& rng) {
    const auto x = randint(b, {200}, rng, -2'000'000'000, 2'000'000'000, DType::i32);
    return abs(x * x + 7) - remainder(x, 13) + sign(x) * square(x) - relu(x);
  });
  EXPECT_EQ(times(report.ended, "remainder"), 0);
}

TYPED_TEST_P(LazyTest, EveryUnaryFunctionAndItsGradient) {
  for (int i = 0; i < op::unary_fn_count; ++i) {
    const auto fn = static_cast<op::UnaryFn>(i);
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16}) {
      SCOPED_TRACE(std::string(to_string(fn)) + " " + std::string(to_string(dtype)));
      const auto report = expect_close<TypeParam>([&](auto& b, Rng& rng) {
        const auto x =
            cat(std::vector{rand(b, {200}, rng, 0.01, 4, dtype), rand(b, {200}, rng, -4, 0, dtype)}, 0);
        return eval(op::Unary{fn, 0.7}, x * 1);
      });
      EXPECT_EQ(report.launches(), 1);
      if (fn == op::UnaryFn::neg || fn == op::UnaryFn::sign || fn >= op::UnaryFn::logical_not ||
          (fn >= op::UnaryFn::floor && fn <= op::UnaryFn::round))
        continue;
      expect_close<TypeParam>([&](auto& b, Rng& rng) {
        const auto x = rand(b, {200}, rng, 0.01, 4, dtype), dy = randn(b, {200}, rng, 0, 1, dtype);
        return eval(op::UnaryBackward{fn, 0.7}, x * 1, dy);
      });
    }
  }
}

TYPED_TEST_P(LazyTest, EdgesOfFunctions) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> edges{0,      -0.0, 1,   -1,   inf,   -inf, nan, 1e-30,
                                  -1e-30, 80,   -80, 1e30, -1e30, 0.5,  2.5, -2.5};
  for (int i = 0; i < op::unary_fn_count; ++i) {
    const auto fn = static_cast<op::UnaryFn>(i);
    for (const DType dtype : {DType::f32, DType::f64}) {
      SCOPED_TRACE(std::string(to_string(fn)) + " " + std::string(to_string(dtype)));
      for (const double edge : edges)
        expect_close<TypeParam>([&](auto& b, Rng&) {
          const auto x = cast(full(b, {3}, edge, DType::f64), dtype);
          return eval(op::Unary{fn, 1.5}, x);
        });
    }
  }
  for (int i = 0; i < op::binary_fn_count; ++i) {
    const auto fn = static_cast<op::BinaryFn>(i);
    SCOPED_TRACE(std::string(to_string(fn)));
    for (const double edge : edges)
      expect_close<TypeParam>([&](auto& b, Rng&) {
        const auto x = from_vector(b, edges), y = full(b, {16}, edge, DType::f64);
        return eval(op::Binary{fn}, x, y);
      });
  }
}

TYPED_TEST_P(LazyTest, ReductionsTakeTheirChainIn) {
  using enum op::ReduceFn;
  for (const op::ReduceFn fn : {sum, prod, max, min, any, all}) {
    for (const Shape& axes : {Shape{}, Shape{0}, Shape{1}, Shape{2}, Shape{0, 2}, Shape{1, 2}, Shape{0, 1}}) {
      for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::i32, DType::u8}) {
        for (const Shape& shape : {Shape{3, 70, 128}, Shape{7, 70, 5}, Shape{2, 3, 1280}}) {
          SCOPED_TRACE(std::string(to_string(fn)) + to_string(axes) + std::string(to_string(dtype)) +
                       to_string(shape));
          const auto report = expect_close<TypeParam>(
              [&](auto& b, Rng& rng) {
                const auto x = cast(rand(b, shape, rng, 0.99, 1.01), dtype);
                return eval(op::Reduce{fn, axes}, x * 1 + (is_floating(dtype) ? 0 : 1) * 2);
              },
              fn == prod || fn == sum ? 300 : 1);
          EXPECT_EQ(report.launches(), 1);
          const bool in_the_kernel = std::same_as<TypeParam, Cuda>;
          EXPECT_EQ(report.single, in_the_kernel ? 0 : 1);
        }
      }
    }
  }
}

TYPED_TEST_P(LazyTest, SeveralReductionsOfOneGroup) {
  const auto report = expect_close<TypeParam>([](auto& b, Rng& rng) {
    const auto x = randn(b, {40, 300}, rng) * 2 + 1;
    const auto first = sum(x, {1}), second = sum(x * x, {1}), largest = max(x, {1});
    return second - first * first / 300 + largest;
  });
  EXPECT_EQ(report.launches(), 2);  // one over the matrix, one over its rows
  EXPECT_EQ(times(report.ended, "the result of a reduction is read"), 1);
}

TYPED_TEST_P(LazyTest, ReductionsOfValuesThatAreOverwrittenLater) {
  Lazy<TypeParam> b;
  const auto x = from_vector(b, std::vector<float>{1, 2, 3, 4}, {2, 2}) * 2;
  const auto total = sum(x);
  Array target = x.primitive();
  const Array* in[] = {&target};
  run(b, op::Binary{op::BinaryFn::mul, op::ScalarSide::right, 10}, Ins(in, 1), Outs(&target, 1));
  EXPECT_EQ(total.template item<float>(), 20);
  EXPECT_EQ(x.to_vector(), (std::vector<float>{20, 40, 60, 80}));
}

TYPED_TEST_P(LazyTest, NanAndTruthInReductions) {
  for (const op::ReduceFn fn : {op::ReduceFn::max, op::ReduceFn::min, op::ReduceFn::sum, op::ReduceFn::all})
    expect_close<TypeParam>([&](auto& b, Rng& rng) {
      return eval(op::Reduce{fn, {1}}, randn(b, {9, 50}, rng) > 1.5);
    });
  expect_close<TypeParam>([](auto& b, Rng&) {
    std::vector<float> v(100, 1);
    v[57] = std::numeric_limits<float>::quiet_NaN();
    return max(from_vector(b, v) * 2);
  });
}

TYPED_TEST_P(LazyTest, LimitsEndGroups) {
  const auto chain = [](auto& b, Rng& rng) {
    auto x = randn(b, {50}, rng);
    for (int i = 0; i < 20; ++i) x = x * 1.01 + 0.5;
    return x;
  };
  const auto report = expect_same_bytes<TypeParam>(chain, LazyConfig{}.with_max_ops(10));
  EXPECT_EQ(report.launches(), 4);
  EXPECT_EQ(times(report.ended, "the limit of ops"), 3);
  const auto wide = expect_same_bytes<TypeParam>(
      [](auto& b, Rng& rng) {
        auto x = randn(b, {50}, rng);
        for (int i = 0; i < 9; ++i) x = x + randn(b, {50}, rng);
        return x;
      },
      LazyConfig{}.with_max_arrays(4));
  EXPECT_GE(times(wide.ended, "the limit of arrays"), 2);
  // Two long groups that differ in one operand, 256 ops away.
  const auto long_group = [](auto& b, int op) {
    auto x = arange(b, 8, DType::f32), kept = x;
    for (int i = 0; i < 300; ++i) {
      x = x * 0.99 + 0.01;
      if (2 * i + 1 == op) kept = x;
    }
    return to_bytes(x - kept);
  };
  TypeParam plain;
  Lazy<TypeParam> lazy(LazyConfig{}.with_max_ops(1000));
  for (const int op : {5, 261}) EXPECT_EQ(long_group(lazy, op), long_group(plain, op));
  EXPECT_THROW(LazyConfig{}.with_max_ops(0), ValueError);
  EXPECT_THROW(LazyConfig{}.with_max_arrays(3), ValueError);
}

TYPED_TEST_P(LazyTest, OneKernelForAllShapesAndScalars) {
  Lazy<TypeParam> b;
  Rng rng(3);
  for (int i = 1; i < 6; ++i) {
    const auto x = randn(b, {100 * i}, rng);
    (relu(x * i + 0.5 * i) - i).to_vector();
  }
  EXPECT_EQ(b.fusion_report().launches(), 5);
  EXPECT_EQ(b.fusion_report().kernels.size(), 1u);
}

TYPED_TEST_P(LazyTest, EmptyAndSingleElements) {
  expect_same_bytes<TypeParam>([](auto& b, Rng& rng) { return randn(b, {0, 3}, rng) * 2 + 1; });
  expect_same_bytes<TypeParam>([](auto& b, Rng& rng) { return sum(randn(b, {0, 3}, rng) * 2 + 1, {0}); });
  expect_same_bytes<TypeParam>([](auto& b, Rng& rng) { return reshape(randn(b, {1}, rng), {}) * 2 + 1; });
}

TYPED_TEST_P(LazyTest, TrainsAsTheBackendDoes) {
  const auto losses = [](auto& b) {
    Rng rng(5);
    const auto x = randn(b, {64, 8}, rng), y = sum(x * x, {1}, KeepDim::yes);
    auto w1 = parameter(randn(b, {8, 32}, rng, 0, 0.3), "w1"),
         w2 = parameter(randn(b, {32, 1}, rng, 0, 0.3), "w2");
    auto bias = parameter(zeros(b, {32}), "bias");
    std::vector<float> history;
    for (int step = 0; step < 20; ++step) {
      const auto error = matmul(silu(matmul(x, w1) + bias), w2) - y;
      const auto loss = mean(square(error)) + sum(abs(w1)) * 1e-4;
      history.push_back(loss.template item<float>());
      const auto grads = loss.backward();
      const auto next = [&](const auto& w, const char* name) {
        const auto g = grads.of(w);
        return parameter(lift(b, value(w) - g * 0.01), name);
      };
      w1 = next(w1, "w1"), w2 = next(w2, "w2"), bias = next(bias, "bias");
    }
    return history;
  };
  Autodiff<TypeParam> plain;
  Autodiff<Lazy<TypeParam>> lazy;
  const auto expected = losses(plain), got = losses(lazy);
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(got[i], expected[i], 2e-4 * expected[i]) << i;
  EXPECT_LT(got.back(), got.front());
  const FusionReport report = lazy.inner().fusion_report();
  EXPECT_LE(report.kernels.size(), 12u) << table(report);  // each group is compiled once
  EXPECT_GT(report.launches(), 60);
}

REGISTER_TYPED_TEST_SUITE_P(LazyTest, ChainIsOneKernelAndWritesOneResult, ValuesThatAreHeldAreWritten,
                            WhatNobodyReadsNeverRuns, AnyLayoutOfInputs, UnitAxesDoNotBreakAGroup,
                            ViewsOfRecordedValuesAreReadFromMemory, MoreAxesThanKernelsHaveRunOneByOne,
                            ReadsComeBeforeLaterWrites, OverlappingViewsKeepTheOrderOfOps, InPlaceChainsFuse,
                            PartsOfAResultAreWrittenByTheGroup, SixteenBitValuesRoundAsTheOpsDo,
                            EveryDtypeAndCast, CastsToStorageAndBack, IntegersWrapAndTheirPowersRunAtOnce,
                            EveryUnaryFunctionAndItsGradient, EdgesOfFunctions, ReductionsTakeTheirChainIn,
                            SeveralReductionsOfOneGroup, ReductionsOfValuesThatAreOverwrittenLater,
                            NanAndTruthInReductions, LimitsEndGroups, OneKernelForAllShapesAndScalars,
                            EmptyAndSingleElements, TrainsAsTheBackendDoes);

}  // namespace ferrite::lazy_tests
