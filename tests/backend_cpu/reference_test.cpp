// Reference's memory and its kernels other than the elementwise ones, against small literal results.
#include "ferrite/backend/reference.hpp"

#include <gtest/gtest.h>

#include <array>

#include "backend_cpu/reference_arrays.hpp"

namespace ferrite::testing {
namespace {

using op::ArgReduceFn;
using op::RandomFn;
using op::ReduceFn;

Array transposed(const Array& x) { return x.with_layout(x.layout().permute({1, 0})); }
Array counting(const Shape& shape, DType dtype = DType::f32) {  // 0, 1, 2, ...
  std::vector<double> values(static_cast<std::size_t>(shape.numel()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i);
  return make(dtype, shape, values);
}

TEST(Reference, DescribesItselfAndCountsItsMemory) {
  EXPECT_EQ(backend().describe(), "reference");
  EXPECT_EQ(backend().device(), Device{});
  const std::size_t before = backend().memory_stats().in_use;
  const Array x = backend().allocate({{1000}, DType::f64});
  EXPECT_GE(backend().memory_stats().in_use, before + 8000);
}

TEST(Reference, CopiesToAndFromTheHost) {
  const std::array<float, 6> source = {1, 2, 3, 4, 5, 6};
  std::array<float, 6> target{};
  const Array x = backend().allocate({{2, 3}, DType::f32});
  backend().copy_from_host(x, source.data());
  backend().copy_to_host(x, target.data());
  EXPECT_EQ(target, source);
  backend().copy_to_host(transposed(x), target.data());
  EXPECT_EQ(target, (std::array<float, 6>{1, 4, 2, 5, 3, 6}));
  backend().copy_to_host(backend().allocate({{0}, DType::f32}), nullptr);
  EXPECT_EQ(message_of<ShapeError>([&] { backend().copy_from_host(transposed(x), source.data()); }),
            "[copy_from_host] array of shape [3, 2] and strides [1, 3]: must be contiguous");
}

TEST(ReferenceFill, ConvertsTheValueToTheDType) {
  expect_array(run(op::Fill{{2, 2}, DType::f32, 0.1}, {}), {{2, 2}, DType::f32}, {0.1f, 0.1f, 0.1f, 0.1f});
  expect_array(run(op::Fill{{}, DType::bool_, 0.5}, {}), {{}, DType::bool_}, {1});
  expect_array(run(op::Fill{{1}, DType::i32, -2.7}, {}), {{1}, DType::i32}, {-2});
  expect_array(run(op::Fill{{0, 3}, DType::f64, 1}, {}), {{0, 3}, DType::f64}, {});
  EXPECT_EQ(values_of<std::int64_t>(run(op::Fill{{1}, DType::i64, INT64_MAX}, {}))[0], INT64_MAX);
  const Array x = counting({2, 3});
  run_into(op::Fill{{2}, DType::f32, 9}, {}, x.with_layout(x.layout().slice(1, 1, 1, 1)));
  expect_values(x, {0, 9, 2, 3, 9, 5});
}

TEST(ReferenceIota, CountsInTheKindOfItsDType) {
  expect_array(run(op::Iota{4, DType::i32, 5, -2}, {}), {{4}, DType::i32}, {5, 3, 1, -1});
  expect_array(run(op::Iota{3, DType::f32, 0, 0.1}, {}), {{3}, DType::f32}, {0, 0.1f, 0.2f});
  expect_array(run(op::Iota{0, DType::i64, 0, 1}, {}), {{0}, DType::i64}, {});
  const std::int64_t big = 9007199254740993;
  EXPECT_EQ(values_of<std::int64_t>(run(op::Iota{2, DType::i64, big, 1}, {}))[1], big + 1);
}

TEST(ReferenceIota, RoundsProductAndSumSeparatelyOnEveryMachine) {
  // The last one is 8.3e-17 where the compiler fuses 7 * 0.1 - 0.7.
  expect_values(run(op::Iota{8, DType::f64, -0.7, 0.1}, {}),
                {-0.7, -0.6, -0.49999999999999994, -0.3999999999999999, -0.29999999999999993,
                 -0.19999999999999996, -0.09999999999999987, 1.1102230246251565e-16});
}

Array random(RandomFn fn, DType dtype, double low, double high, const Shape& shape = {1000}) {
  return run(op::Random{fn, shape, dtype, 42, 7, low, high}, {});
}

TEST(ReferenceRandom, UniformsAreTheGeneratorsStretched) {
  const RandomKey key{42, 7};
  const std::vector<double> f32 = values_of(random(RandomFn::uniform, DType::f32, 0, 1));
  const std::vector<double> f64 = values_of(random(RandomFn::uniform, DType::f64, -2, 6));
  for (std::size_t i = 0; i < f32.size(); ++i) {
    EXPECT_EQ(f32[i], uniform_at<float>(key, i));
    EXPECT_EQ(f64[i], 8 * uniform_at<double>(key, i) - 2);  // a power of two: no rounding
  }
}

TEST(ReferenceRandom, UniformsStayBelowTheirUpperBoundInEveryDType) {
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
    SCOPED_TRACE(to_string(dtype));
    double largest = 0;
    for (const double v : values_of(random(RandomFn::uniform, dtype, 1, 2, {20000}))) {
      EXPECT_GE(v, 1);
      EXPECT_LT(v, 2);
      largest = std::max(largest, v);
    }
    EXPECT_GT(largest, 1.98);
  }
}

TEST(ReferenceRandom, NormalsHaveTheirMeanAndDeviation) {
  const Array x = random(RandomFn::normal, DType::f32, 3, 0.5, {100, 100});
  double sum = 0, squares = 0;
  for (const double v : values_of(x)) {
    sum += v;
    squares += (v - 3) * (v - 3);
  }
  EXPECT_NEAR(sum / 1e4, 3, 0.02);
  EXPECT_NEAR(squares / 1e4, 0.25, 0.02);
  EXPECT_EQ(values_of<float>(x)[17], static_cast<float>(3 + 0.5 * normal_at<float>({42, 7}, 17)));
}

TEST(ReferenceRandom, BernoulliAndIntegersKeepTheirRange) {
  double ones = 0;
  for (const double v : values_of(random(RandomFn::bernoulli, DType::bool_, 0.25, 0, {10000}))) ones += v;
  EXPECT_NEAR(ones / 1e4, 0.25, 0.02);
  expect_values(random(RandomFn::bernoulli, DType::f32, 1, 0, {3}), {1, 1, 1});
  expect_values(random(RandomFn::bernoulli, DType::f32, 0, 0, {3}), {0, 0, 0});
  std::array<int, 5> seen{};
  for (const std::int64_t v : values_of<std::int64_t>(random(RandomFn::integer, DType::i32, -2, 3))) {
    ASSERT_TRUE(v >= -2 && v < 3);
    ++seen[static_cast<std::size_t>(v + 2)];
  }
  for (const int count : seen) EXPECT_NEAR(count, 200, 60);
}

TEST(ReferenceRandom, ElementsDependOnTheirRowMajorIndexAlone) {
  const Array x = backend().allocate({{3, 2}, DType::f32});
  run_into(op::Random{RandomFn::uniform, {2, 3}, DType::f32, 42, 7, 0, 1}, {}, transposed(x));
  EXPECT_EQ(values_of(transposed(x)), values_of(random(RandomFn::uniform, DType::f32, 0, 1, {2, 3})));
}

TEST(ReferenceCopy, ConvertsBetweenAnyTwoDTypes) {
  for (const DType from : all_dtypes) {
    for (const DType to : all_dtypes) {
      SCOPED_TRACE(std::string(to_string(from)) + " to " + std::string(to_string(to)));
      expect_array(run(op::Copy{to}, {make(from, {2}, {0, 1})}), {{2}, to}, {0, 1});
    }
  }
}

TEST(ReferenceCopy, FollowsTheConversionRules) {
  const Array x = make(DType::f64, {6}, {2.7, -2.7, not_a_number, 1e300, -1e300, 0.25});
  EXPECT_EQ(values_of<std::int64_t>(run(op::Copy{DType::i64}, {x})),
            (std::vector<std::int64_t>{2, -2, 0, INT64_MAX, INT64_MIN, 0}));
  expect_values(run(op::Copy{DType::bool_}, {x}), {1, 1, 1, 1, 1, 1});
  expect_values(run(op::Copy{DType::f32}, {x}), {2.7f, -2.7f, not_a_number, inf, -inf, 0.25});
  expect_values(run(op::Copy{DType::u8}, {make(DType::i32, {3}, {256, -1, 300})}), {0, 255, 44});
  expect_values(run(op::Copy{DType::u16}, {make(DType::i32, {3}, {65537, -1, 300})}), {1, 65535, 300});
  expect_values(run(op::Copy{DType::i8}, {make(DType::f32, {3}, {-200, 127.9, 3.5})}), {-128, 127, 3});
  expect_values(run(op::Copy{DType::u32}, {make(DType::f64, {3}, {-1, 4294967295.0, 1e10})}),
                {0, 4294967295.0, 4294967295.0});
  expect_values(run(op::Copy{DType::f16}, {make(DType::f32, {2}, {2049, 65520})}), {2048, inf});
  // 2^24 + 1 is no f32; from i64 it is rounded once.
  expect_values(run(op::Copy{DType::f32}, {make(DType::i64, {1}, {16777217})}), {16777216});
}

TEST(ReferenceCopy, GoesFromAnyLayoutToAnyLayout) {
  const Array x = counting({2, 3});
  expect_array(run(op::Copy{DType::f32}, {transposed(x)}), {{3, 2}, DType::f32}, {0, 3, 1, 4, 2, 5});
  const Array row = counting({3});
  expect_values(run(op::Copy{DType::f32}, {row.with_layout(row.layout().expand({2, 3}))}),
                {0, 1, 2, 0, 1, 2});
  expect_values(run(op::Copy{DType::i32}, {row.with_layout(row.layout().windows(0, 2, 1))}), {0, 1, 1, 2});
  const Array y = counting({3, 2});
  run_into(op::Copy{DType::f32}, {x}, transposed(y).with_layout(transposed(y).layout().flip(0)));
  expect_values(y, {3, 0, 4, 1, 5, 2});
}

Array reduce(ReduceFn fn, const Array& x, const Shape& axes = {}, bool keepdim = false) {
  return run(op::Reduce{fn, axes, keepdim}, {x});
}

TEST(ReferenceReduce, FoldsOverAnySetOfAxes) {
  const Array x = counting({2, 3, 2});
  expect_array(reduce(ReduceFn::sum, x), {{}, DType::f32}, {66});
  expect_array(reduce(ReduceFn::sum, x, {0}), {{3, 2}, DType::f32}, {6, 8, 10, 12, 14, 16});
  expect_array(reduce(ReduceFn::sum, x, {1}, true), {{2, 1, 2}, DType::f32}, {6, 9, 24, 27});
  expect_array(reduce(ReduceFn::sum, x, {-1, 0}), {{3}, DType::f32}, {14, 22, 30});
  expect_array(reduce(ReduceFn::sum, x, {}, true), {{1, 1, 1}, DType::f32}, {66});
  expect_array(reduce(ReduceFn::max, x, {1}), {{2, 2}, DType::f32}, {4, 5, 10, 11});
  expect_array(reduce(ReduceFn::min, x, {0, 2}), {{3}, DType::f32}, {0, 2, 4});
  expect_array(reduce(ReduceFn::prod, x, {2}), {{2, 3}, DType::f32}, {0, 6, 20, 42, 72, 110});
  expect_array(reduce(ReduceFn::any, x, {1, 2}), {{2}, DType::bool_}, {1, 1});
  expect_array(reduce(ReduceFn::all, x, {1, 2}), {{2}, DType::bool_}, {0, 1});
  expect_array(reduce(ReduceFn::sum, make(DType::f32, {}, {5})), {{}, DType::f32}, {5});
}

TEST(ReferenceReduce, ReadsEveryLayout) {
  const Array x = counting({2, 3});
  expect_values(reduce(ReduceFn::sum, transposed(x), {0}), {3, 12});
  expect_values(reduce(ReduceFn::sum, x.with_layout(x.layout().slice(1, 2, 2, -2)), {1}), {2, 8});
  const Array row = counting({3});
  expect_values(reduce(ReduceFn::sum, row.with_layout(row.layout().expand({4, 3})), {0}), {0, 4, 8});
  const Array y = counting({2});
  run_into(op::Reduce{ReduceFn::sum, {1}}, {x}, y.with_layout(y.layout().flip(0)));
  expect_values(y, {12, 3});
}

TEST(ReferenceReduce, OfNothingIsTheNeutralElement) {
  const Array none = counting({2, 0});
  expect_array(reduce(ReduceFn::sum, none, {1}), {{2}, DType::f32}, {0, 0});
  expect_values(reduce(ReduceFn::prod, none, {1}), {1, 1});
  expect_values(reduce(ReduceFn::any, none), {0});
  expect_values(reduce(ReduceFn::all, none), {1});
  expect_array(reduce(ReduceFn::sum, none, {0}), {{0}, DType::f32}, {});
  expect_array(reduce(ReduceFn::max, none, {0}), {{0}, DType::f32}, {});
  EXPECT_THROW(reduce(ReduceFn::max, none, {1}), ShapeError);
}

TEST(ReferenceReduce, NaNIsTheExtremeAndTrue) {
  const Array x = make(DType::f64, {3, 2}, {1, 2, not_a_number, 0, 0, not_a_number});
  expect_values(reduce(ReduceFn::max, x, {1}), {2, not_a_number, not_a_number});
  expect_values(reduce(ReduceFn::min, x, {1}), {1, not_a_number, not_a_number});
  expect_values(reduce(ReduceFn::any, x, {1}), {1, 1, 1});
  expect_values(reduce(ReduceFn::max, make(DType::f32, {2}, {-inf, -inf})), {-inf});
}

TEST(ReferenceReduce, AccumulatesWiderThanItStores) {
  // 1 + 4096 * 2^-24 is lost term by term in f32, and 2048 + 1 in f16.
  std::vector<double> tiny(4097, 0x1p-24);
  tiny[0] = 1;
  expect_values(reduce(ReduceFn::sum, make(DType::f32, {4097}, tiny)), {1.000244140625});
  expect_array(reduce(ReduceFn::sum, make(DType::f16, {5}, {2048, 1, 1, 1, 1})), {{}, DType::f16}, {2052});
}

TEST(ReferenceReduce, IntegersWidenAndWrap) {
  expect_array(reduce(ReduceFn::sum, make(DType::u8, {3}, {200, 200, 200})), {{}, DType::i64}, {600});
  expect_array(reduce(ReduceFn::sum, make(DType::bool_, {3}, {1, 0, 1})), {{}, DType::i64}, {2});
  expect_array(reduce(ReduceFn::max, make(DType::i32, {3}, {-5, -7, -6})), {{}, DType::i32}, {-5});
  expect_array(reduce(ReduceFn::min, make(DType::u8, {3}, {5, 7, 6})), {{}, DType::u8}, {5});
  const Array big = make<std::int64_t>(DType::i64, {2}, {INT64_MAX, 1});
  EXPECT_EQ(values_of<std::int64_t>(reduce(ReduceFn::sum, big))[0], INT64_MIN);
  EXPECT_EQ(values_of<std::int64_t>(reduce(ReduceFn::max, big))[0], INT64_MAX);
}

TEST(ReferenceArgReduce, TheFirstOfEqualsWinsAndNaNIsTheExtreme) {
  const Array x = make(DType::f32, {3, 4}, {3, 7, 7, 1, 1, 5, 1, 5, 2, not_a_number, 9, not_a_number});
  const auto arg = [&](ArgReduceFn fn, int axis, bool keepdim) {
    return run(op::ArgReduce{fn, axis, keepdim}, {x});
  };
  expect_array(arg(ArgReduceFn::argmax, -1, false), {{3}, DType::i64}, {1, 1, 1});
  expect_array(arg(ArgReduceFn::argmin, 1, true), {{3, 1}, DType::i64}, {3, 0, 1});
  expect_array(arg(ArgReduceFn::argmax, 0, false), {{4}, DType::i64}, {0, 2, 2, 2});
  expect_values(run(op::ArgReduce{ArgReduceFn::argmax, 0}, {transposed(x)}), {1, 1, 1});
}

TEST(ReferenceArgReduce, ComparesLargeIntegersExactly) {
  const std::int64_t big = 9007199254740992;  // 2^53: the next integer is no double
  expect_values(run(op::ArgReduce{}, {make<std::int64_t>(DType::i64, {3}, {big, big + 1, big})}), {1});
  EXPECT_THROW(run(op::ArgReduce{}, {counting({2, 0})}), ShapeError);
  expect_array(run(op::ArgReduce{ArgReduceFn::argmin, 1}, {counting({0, 2})}), {{0}, DType::i64}, {});
}

TEST(ReferenceScan, RunsAlongAnAxisInEitherDirection) {
  const Array x = counting({2, 3});
  expect_array(run(op::Scan{-1}, {x}), {{2, 3}, DType::f32}, {0, 1, 3, 3, 7, 12});
  expect_values(run(op::Scan{-1, true}, {x}), {3, 3, 2, 12, 9, 5});
  expect_values(run(op::Scan{0}, {x}), {0, 1, 2, 3, 5, 7});
  expect_values(run(op::Scan{0, true}, {x}), {3, 5, 7, 3, 4, 5});
  expect_values(run(op::Scan{0}, {transposed(x)}), {0, 3, 1, 7, 3, 12});
  expect_array(run(op::Scan{0}, {make(DType::bool_, {3}, {1, 1, 1})}), {{3}, DType::i64}, {1, 2, 3});
  expect_array(run(op::Scan{1}, {counting({2, 0})}), {{2, 0}, DType::f32}, {});
  run_into(op::Scan{1}, {x}, x);
  expect_values(x, {0, 1, 3, 3, 7, 12});
}

TEST(ReferenceScan, RoundsEveryPartialSumOnceFromTheExactOne) {
  expect_values(run(op::Scan{0}, {make(DType::f16, {4}, {2048, 1, 1, 1})}), {2048, 2048, 2050, 2052});
}

TEST(ReferenceMatmul, MultipliesMatricesOfAnyStrides) {
  const Array a = make(DType::f32, {2, 3}, {1, 2, 3, 4, 5, 6});
  const Array b = make(DType::f32, {3, 2}, {1, 0, 2, 1, 0, 3});
  expect_array(run(op::Matmul{}, {a, b}), {{2, 2}, DType::f32}, {5, 11, 14, 23});
  expect_array(run(op::Matmul{}, {transposed(a), a}), {{3, 3}, DType::f32},
               {17, 22, 27, 22, 29, 36, 27, 36, 45});
  expect_values(run(op::Matmul{}, {a.with_layout(a.layout().flip(0)), b}), {14, 23, 5, 11});
  const Array y = counting({2, 2});
  run_into(op::Matmul{}, {a, b}, transposed(y));
  expect_values(y, {5, 14, 11, 23});
  expect_array(run(op::Matmul{}, {counting({2, 0}), counting({0, 2})}), {{2, 2}, DType::f32}, {0, 0, 0, 0});
  expect_array(run(op::Matmul{}, {counting({0, 3}), b}), {{0, 2}, DType::f32}, {});
}

TEST(ReferenceMatmul, BatchAxesBroadcast) {
  const Array a = counting({2, 1, 1, 2});  // [0 1], [2 3]
  const Array b = make(DType::f32, {3, 2, 1}, {1, 0, 0, 1, 1, 1});
  expect_array(run(op::Matmul{}, {a, b}), {{2, 3, 1, 1}, DType::f32}, {0, 1, 1, 2, 3, 5});
  expect_array(run(op::Matmul{}, {counting({2, 1, 2}), make(DType::f32, {2, 1}, {1, 10})}),
               {{2, 1, 1}, DType::f32}, {10, 32});
}

TEST(ReferenceMatmul, AccumulatesWideAndWrapsIntegers) {
  expect_array(
      run(op::Matmul{}, {make(DType::f16, {1, 3}, {2048, 1, 1}), make(DType::f16, {3, 1}, {1, 1, 1})}),
      {{1, 1}, DType::f16}, {2050});
  expect_array(run(op::Matmul{}, {make(DType::u8, {1, 2}, {16, 1}), make(DType::u8, {2, 1}, {16, 3})}),
               {{1, 1}, DType::u8}, {3});
  const Array big = make<std::int64_t>(DType::i64, {1, 1}, {INT64_MAX});
  EXPECT_EQ(values_of<std::int64_t>(run(op::Matmul{}, {big, big}))[0], 1);
  expect_array(run(op::Matmul{}, {make(DType::i32, {1, 1}, {3}), make(DType::f32, {1, 1}, {0.5})}),
               {{1, 1}, DType::f64}, {1.5});
}

TEST(ReferenceGather, PicksAlongAnAxis) {
  const Array x = counting({3, 4});
  const Array index = make(DType::i64, {2, 3}, {0, 1, 2, 2, -1, -3});
  expect_array(run(op::Gather{0}, {x, index}), {{2, 3}, DType::f32}, {0, 5, 10, 8, 9, 2});
  expect_values(run(op::Gather{1}, {x, index}), {0, 1, 2, 6, 7, 5});
  expect_values(run(op::Gather{-1}, {transposed(x), make(DType::i32, {1, 2}, {2, 1})}), {8, 4});
  expect_values(run(op::Gather{1}, {x, transposed(make(DType::u8, {2, 3}, {3, 2, 1, 0, 0, 0}))}),
                {3, 0, 6, 4, 9, 8});
  expect_array(run(op::Gather{0}, {x, make(DType::i64, {0, 4}, {})}), {{0, 4}, DType::f32}, {});
}

TEST(ReferenceGather, NamesTheFirstIndexOutOfRange) {
  const Array index = make(DType::i64, {2, 3}, {0, 1, 7, 9, 0, 0});
  EXPECT_EQ(message_of<ValueError>([&] {
              run(op::Gather{0}, {counting({5, 3}), index});
            }),
            "[gather] index 7 at [0, 2] is out of range for axis 0 of length 5");
  EXPECT_EQ(message_of<ValueError>([&] {
              run(op::Gather{-1}, {counting({2, 3}), make(DType::i64, {2, 1}, {0, -4})});
            }),
            "[gather] index -4 at [1, 0] is out of range for axis 1 of length 3");
  EXPECT_EQ(message_of<ValueError>([&] {
              run(op::Gather{0}, {counting({0}), make(DType::i64, {1}, {0})});
            }),
            "[gather] index 0 at [0] is out of range for axis 0 of length 0");
}

TEST(ReferenceScatter, WritesIntoACopyAndTheLastWriteWins) {
  const Array x = counting({2, 3}), source = make(DType::f32, {2, 4}, {10, 20, 30, 99, 40, 50, 60, 99});
  const Array index = make(DType::i64, {2, 3}, {0, 0, -1, 2, 1, 2});
  expect_array(run(op::Scatter{1}, {x, index, source}), {{2, 3}, DType::f32}, {20, 1, 30, 3, 50, 60});
  expect_values(x, {0, 1, 2, 3, 4, 5});
  expect_values(run(op::Scatter{0}, {x, make(DType::i64, {1, 2}, {1, 0}), source}), {0, 20, 2, 10, 4, 5});
  expect_values(run(op::Scatter{0}, {transposed(x), make(DType::i64, {1, 1}, {2}), source}),
                {0, 3, 1, 4, 10, 5});
  expect_values(run(op::Scatter{0}, {x, make(DType::i64, {0, 3}, {}), source}), {0, 1, 2, 3, 4, 5});
  EXPECT_EQ(message_of<ValueError>([&] {
              run(op::Scatter{1}, {x, make(DType::i64, {1, 1}, {3}), source});
            }),
            "[scatter] index 3 at [0, 0] is out of range for axis 1 of length 3");
}

TEST(ReferenceScatterAdd, AddsEveryContribution) {
  const Array x = counting({2, 3}), source = make(DType::f32, {2, 3}, {10, 20, 30, 40, 50, 60});
  const Array index = make(DType::i64, {2, 3}, {0, 0, -1, 1, 1, 1});
  expect_array(run(op::ScatterAdd{1}, {x, index, source}), {{2, 3}, DType::f32}, {30, 1, 32, 3, 154, 5});
  expect_values(run(op::ScatterAdd{0}, {x, make(DType::i64, {2, 2}, {1, 0, 1, 1}), source}),
                {0, 21, 2, 53, 54, 5});
  expect_array(run(op::ScatterAdd{0}, {make(DType::u8, {1}, {250}), make(DType::i64, {2}, {0, 0}),
                                       make(DType::u8, {2}, {5, 5})}),
               {{1}, DType::u8}, {4});
  expect_values(run(op::ScatterAdd{0}, {make(DType::f16, {1}, {2048}), make(DType::i64, {2}, {0, 0}),
                                        make(DType::f16, {2}, {1, 1})}),
                {2050});
}

TEST(ReferenceScatterAdd, LeavesTheOutputUntouchedOnABadIndexAndWorksInPlace) {
  const Array x = counting({3}), source = make(DType::f32, {2}, {10, 20});
  EXPECT_EQ(message_of<ValueError>([&] {
              run_into(op::ScatterAdd{0}, {x, make(DType::i64, {2}, {1, 3}), source}, x);
            }),
            "[scatter_add] index 3 at [1] is out of range for axis 0 of length 3");
  expect_values(x, {0, 1, 2});
  run_into(op::ScatterAdd{0}, {x, make(DType::i64, {2}, {1, 1}), source}, x);
  expect_values(x, {0, 31, 2});
}

}  // namespace
}  // namespace ferrite::testing
