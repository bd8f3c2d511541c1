#include "ferrite/ops/order_statistics.hpp"

#include "ops/fused_support.hpp"

namespace ferrite::testing {
namespace {

constexpr QuantileMethod methods[] = {QuantileMethod::linear, QuantileMethod::inverted_cdf,
                                      QuantileMethod::averaged_inverted_cdf};

/// By sorting every column.
Lists by_sorting(const Lists& in, std::int64_t rows, std::int64_t columns, QuantileMethod method) {
  Values lower, upper, count;
  for (std::int64_t c = 0; c < columns; ++c) {
    Values column;
    for (std::int64_t r = 0; r < rows; ++r)
      if (const double v = in[0][at(r * columns + c)]; v == v) column.push_back(v);
    std::sort(column.begin(), column.end());
    count.push_back(static_cast<double>(column.size()));
    for (const double level : in[1]) {
      if (column.empty()) column.push_back(NAN);
      const auto p = quantile_position(method, level, static_cast<std::int64_t>(column.size()));
      lower.push_back(column[at(p.lower)]);
      upper.push_back(column[at(p.upper)]);
    }
  }
  return {lower, upper, count};
}

Array levels_of(int bins) {
  Values levels;
  for (int i = 0; i <= bins; ++i) levels.push_back(static_cast<double>(i) / bins);
  return array_of({bins + 1}, DType::f64, levels);
}

void expect_exact(const Array& x, int bins) {
  for (const QuantileMethod method : methods)
    check(op::OrderStatistics{method}, {x, levels_of(bins)},
          [&](const Lists& in) { return by_sorting(in, x.shape()[0], x.shape()[1], method); }, {0, 1});
}

TEST(CpuOrderStatistics, AreThoseOfTheSortedColumns) {
  for (const DType dtype : {DType::f32, DType::f64})
    for (const Shape& shape : {Shape{1, 1}, Shape{2, 3}, Shape{65, 2}, Shape{257, 20}, Shape{5000, 3}})
      for (const int bins : {1, 10, 99}) expect_exact(uniform(shape, dtype, 5), bins);
}

TEST(CpuOrderStatistics, OfALongColumnTakeSeveralRounds) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    Values values;  // eleven orders of magnitude, both signs
    for (std::uint64_t i = 0; i < 300'000; ++i) {
      const double u = uniform_at<double>({3, 7}, i);
      values.push_back((i % 3 ? 1 : -1) * std::exp(25 * u - 12));
    }
    const Array x = array_of({300'000, 1}, dtype, values);
    for (const QuantileMethod method : methods) {
      const auto got = run_list(op::OrderStatistics{method}, {x, levels_of(200)});
      const Lists want = by_sorting({values_of(x), values_of(levels_of(200))}, 300'000, 1, method);
      expect_same_bits(lists_of(got), want, "long column");
    }
  }
}

TEST(CpuOrderStatistics, LeaveNanOutAndKeepInfinitiesTiesAndDenormals) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    const double tiny = dtype == DType::f32 ? 0x1p-149 : 0x1p-1074;
    Values values;
    const Values pool{NAN, 0.0, 1, 1, 1, infinity, -infinity, tiny, -tiny, -1, NAN, 3e38};
    for (std::int64_t i = 0; i < 400; ++i)
      for (std::int64_t c = 0; c < 4; ++c)
        values.push_back(c == 0   ? NAN
                         : c == 1 ? 7
                         : c == 2 ? pool[at((i * 5 + i / 12) % 12)]
                                  : static_cast<double>(i % 4));
    expect_exact(array_of({400, 4}, dtype, values), 20);
  }
}

TEST(CpuOrderStatistics, CountMinusZeroAndZeroAsOneValue) {
  const Array x = array_of({4, 1}, DType::f32, {0.0, -0.0, -0.0, 0.0});
  const auto out = run_list(op::OrderStatistics{}, {x, levels_of(3)});
  for (const double v : values_of(out[0])) EXPECT_EQ(v, 0);
}

TEST(QuantilePosition, IsNumpys) {
  const auto linear = quantile_position(QuantileMethod::linear, 0.3, 11);
  EXPECT_EQ(linear.lower, 3);
  EXPECT_EQ(linear.upper, 4);
  EXPECT_EQ(linear.weight, 0);
  const auto averaged = quantile_position(QuantileMethod::averaged_inverted_cdf, 0.5, 10);
  EXPECT_EQ(averaged.lower, 4);
  EXPECT_EQ(averaged.upper, 5);
  EXPECT_EQ(averaged.weight, 0.5);
  for (const QuantileMethod method : methods) {
    EXPECT_EQ(quantile_position(method, 0, 10).lower, 0);
    EXPECT_EQ(quantile_position(method, 1, 10).upper, 9);
    EXPECT_EQ(quantile_position(method, 0.5, 1).upper, 0);
    EXPECT_EQ(quantile_position(method, 1e300, 10).lower, 9);  // ranks that no integer holds
    EXPECT_EQ(quantile_position(method, -1e300, 10).upper, 0);
    EXPECT_EQ(quantile_position(method, NAN, 10).lower, 0);
  }
}

TEST(InterpolateQuantile, NeedsNoFiniteEnds) {
  EXPECT_EQ(interpolate_quantile(1, 3, 0.25), 1.5);
  EXPECT_EQ(interpolate_quantile(1, 3, 1), 3);
  EXPECT_EQ(interpolate_quantile(-infinity, 3, 0.25), -infinity);
  EXPECT_EQ(interpolate_quantile(-infinity, 3, 0.5), 3);
  EXPECT_EQ(interpolate_quantile(-infinity, infinity, 0.75), infinity);
  EXPECT_EQ(interpolate_quantile(-1.7e308, 1.7e308, 0.5), 0);
}

TEST(OrderStatistics, SayWhatIsWrong) {
  const auto infer = [](const Meta& x, const Meta& levels) {
    const Meta in[] = {x, levels};
    return op::OrderStatistics{}.infer(in);
  };
  const Meta levels{{3}, DType::f64};
  EXPECT_THROW(infer({{0, 3}, DType::f32}, levels), ShapeError);
  EXPECT_THROW(infer({{3}, DType::f32}, levels), ShapeError);
  EXPECT_THROW(infer({{3, 2}, DType::i32}, levels), DTypeError);
  EXPECT_THROW(infer({{3, 2}, DType::f32}, {{3}, DType::f32}), DTypeError);
}

}  // namespace
}  // namespace ferrite::testing
