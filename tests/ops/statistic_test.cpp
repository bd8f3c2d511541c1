#include "ferrite/ops/statistic.hpp"

#include "ops/fused_support.hpp"

namespace ferrite::testing {
namespace {

using op::StatisticFn;

double statistic_of(StatisticFn fn, double parameter, const Values& x) {
  long double total = 0, squares = 0, magnitudes = 0;
  double top = -infinity, largest = 0;
  for (const double v : x) {
    total += v;
    magnitudes += std::abs(v);
    top = std::max(top, v);
    largest = std::max(largest, std::abs(v));
  }
  const long double count = static_cast<long double>(x.size());
  const long double centre = fn == StatisticFn::var ? total / count : 0;
  for (const double v : x) squares += (v - centre) * (v - centre);
  if (fn == StatisticFn::mean) return static_cast<double>(total / count);
  if (fn == StatisticFn::var) return static_cast<double>(squares / (count - parameter));
  if (fn == StatisticFn::norm)
    return std::isinf(parameter) ? largest
           : parameter == 1      ? static_cast<double>(magnitudes)
                                 : std::sqrt(static_cast<double>(squares));
  long double scaled = 0;
  for (const double v : x) scaled += std::exp(v - top);
  return top + std::log(static_cast<double>(scaled));
}

/// The elements of every result, by a walk over all indices.
Values reduce_naively(const Shape& shape, const Shape& axes, const Values& x,
                      const std::function<double(const Values&)>& f) {
  std::vector<Values> groups(at(op::reduced_shape(shape, axes, false).numel()));
  for (std::int64_t i = 0; i < shape.numel(); ++i) {
    std::int64_t rest = i, group = 0, scale = 1;
    for (int axis = shape.rank() - 1; axis >= 0; --axis) {
      const std::int64_t index = rest % shape[axis];
      rest /= shape[axis];
      if (std::find(axes.begin(), axes.end(), axis) != axes.end()) continue;
      group += index * scale;
      scale *= shape[axis];
    }
    groups[at(group)].push_back(x[at(i)]);
  }
  Values results;
  for (const Values& group : groups) results.push_back(f(group));
  return results;
}

struct Kind {
  StatisticFn fn;
  double parameter;
};
const Kind kinds[] = {{StatisticFn::mean, 0},       {StatisticFn::var, 1},  {StatisticFn::var, 0},
                      {StatisticFn::logsumexp, 0},  {StatisticFn::norm, 1}, {StatisticFn::norm, 2},
                      {StatisticFn::norm, infinity}};

struct StatisticCase {
  Shape shape, axes;
};
// Rows, columns, everything, axes apart, and rows of several segments.
const StatisticCase statistic_cases[] = {
    {{5, 7}, {1}},        {{5, 7}, {0}},  {{4, 33}, {0, 1}}, {{3, 4, 5}, {0, 2}}, {{3, 4, 5}, {1}},
    {{2, 3, 70}, {1, 2}}, {{70000}, {0}}, {{2, 40000}, {1}}, {{6, 2, 500}, {2}},  {{300, 100}, {0}}};

TEST(CpuStatistic, MatchesTheNaiveLoopsInEveryDtypeAndLayout) {
  for (const DType dtype :
       {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i32, DType::i64, DType::u8}) {
    for (const Kind& kind : kinds) {
      for (const StatisticCase& c : statistic_cases) {
        const op::Statistic op{kind.fn, c.axes, c.shape.rank() == 2, kind.parameter};
        SCOPED_TRACE(std::string(op.name()) + to_string(Meta{c.shape, dtype}) + " over " + to_string(c.axes));
        const Array x = uniform(c.shape, dtype, 1, dtype == DType::u8 ? 0 : -3, 3);
        const double terms = static_cast<double>(op::reduced_count(c.shape, c.axes));
        if (dtype == DType::f16 && kind.fn == StatisticFn::norm && terms > 10000) continue;  // beyond f16
        if (dtype != DType::f32 && dtype != DType::f16 && terms > 10000) continue;  // seen often enough
        check(op, {x},
              [&](const Lists& in) {
                return Lists{reduce_naively(c.shape, c.axes, in[0], [&](const Values& v) {
                  return statistic_of(kind.fn, kind.parameter, v);
                })};
              },
              {8 + std::sqrt(terms) / 8, 1});
      }
    }
  }
}

TEST(CpuStatistic, AMeanOfManyHalvesDoesNotOverflow) {
  const Array x = array_of({4096, 2}, DType::f16, Values(8192, 1000));
  for (const Shape& axes : {Shape{0}, Shape{0, 1}})
    for (const double v : values_of(run_list(op::Statistic{StatisticFn::mean, axes}, {x})[0]))
      EXPECT_EQ(v, 1000);
}

TEST(CpuStatistic, LogsumexpOfInfinities) {
  const Array x = array_of({5, 2}, DType::f32,
                           {-infinity, -infinity, infinity, 0, infinity, NAN, -infinity, 1, 1000, 1000});
  const Values y = values_of(run_list(op::Statistic{StatisticFn::logsumexp, {1}}, {x})[0]);
  EXPECT_EQ(y[0], -infinity);
  EXPECT_EQ(y[1], infinity);
  EXPECT_TRUE(std::isnan(y[2]));
  EXPECT_EQ(y[3], 1);
  EXPECT_FLOAT_EQ(static_cast<float>(y[4]), 1000.6931f);
}

TEST(CpuStatistic, NormsOfNanAndOfNothing) {
  const Array x = array_of({2, 3}, DType::f32, {1, NAN, 2, -3, 2, 1}), none = uniform({2, 0}, DType::f32, 1);
  for (const double order : {1.0, 2.0, infinity}) {
    EXPECT_TRUE(
        std::isnan(values_of(run_list(op::Statistic{StatisticFn::norm, {1}, false, order}, {x})[0])[0]));
    EXPECT_EQ(values_of(run_list(op::Statistic{StatisticFn::norm, {1}, false, order}, {none})[0]),
              Values(2, 0.0));
  }
}

TEST(CpuStatistic, OfElementsWhoseSquaresAreTooSmallOrTooLarge) {
  const auto result = [](StatisticFn fn, double parameter, double size) {
    const Array x = array_of({4}, DType::f32, {size, -size, size, -size});
    return values_of(run_list(op::Statistic{fn, {0}, false, parameter}, {x})[0])[0];
  };
  for (const double size : {1e-25, 1e-22, 1e-18, 1e25})
    EXPECT_NEAR(result(StatisticFn::norm, 2, size), 2 * size, 1e-6 * size);
  EXPECT_NEAR(result(StatisticFn::var, 0, 3e-19), 9e-38, 1e-42);
}

TEST(CpuStatistic, AnEmptyListOfAxesMeansAllAndAScalarIsItsOwnMean) {
  EXPECT_EQ(values_of(run_list(op::Statistic{}, {array_of({2, 2}, DType::f32, {1, 2, 3, 4})})[0]),
            Values{2.5});
  EXPECT_EQ(values_of(run_list(op::Statistic{}, {array_of({}, DType::f32, {7})})[0]), Values{7});
}

}  // namespace
}  // namespace ferrite::testing
