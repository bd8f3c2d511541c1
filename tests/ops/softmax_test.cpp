#include "ferrite/ops/softmax.hpp"

#include "ops/fused_support.hpp"

namespace ferrite::testing {
namespace {

/// Calls f(index of element i of the line) for the lines along `axis`, each a list of places in row-major
/// order.
void for_lines(const Shape& shape, int axis, const std::function<void(const std::vector<std::size_t>&)>& f) {
  std::int64_t inner = 1;
  for (int i = axis + 1; i < shape.rank(); ++i) inner *= shape[i];
  const std::int64_t n = shape[axis], lines = shape.numel() / n;
  for (std::int64_t line = 0; line < lines; ++line) {
    std::vector<std::size_t> places;
    for (std::int64_t i = 0; i < n; ++i) places.push_back(at((line / inner * n + i) * inner + line % inner));
    f(places);
  }
}

Values softmax_of(const Values& x, const Shape& shape, int axis, bool logarithm) {
  Values y(x.size());
  for_lines(shape, axis, [&](const std::vector<std::size_t>& line) {
    double top = -infinity, total = 0;
    for (const std::size_t i : line) top = std::max(top, x[i]);
    for (const std::size_t i : line) total += std::exp(x[i] - top);
    for (const std::size_t i : line)
      y[i] = logarithm ? x[i] - top - std::log(total) : std::exp(x[i] - top) / total;
  });
  return y;
}

struct SoftmaxCase {
  Shape shape;
  int axis;
};
// Below, at and above the width of vectors and of their unrolled loop; axes that need a transposition.
const SoftmaxCase softmax_cases[] = {{{1, 1}, 1},      {{3, 2}, -1},     {{5, 7}, 1},     {{2, 16}, 1},
                                     {{4, 33}, -1},    {{9, 64}, 1},     {{3, 1000}, -1}, {{17, 5, 3}, 0},
                                     {{4, 6, 5}, 1},   {{2, 3, 70}, -1}, {{13}, 0},       {{2, 5000}, 1},
                                     {{400, 100}, -1}, {{0, 4}, 1},      {{3, 0}, -1}};

int positive(const SoftmaxCase& c) { return c.axis < 0 ? c.axis + c.shape.rank() : c.axis; }

TEST(CpuSoftmax, MatchesTheNaiveLoopsInEveryDtypeAndLayout) {
  for (const DType dtype : float_dtypes) {
    for (const SoftmaxCase& c : softmax_cases) {
      SCOPED_TRACE(to_string(dtype).data() + to_string(c.shape));
      const Array x = uniform(c.shape, dtype, 1, -8, 8);
      if (c.shape.numel() == 0) {
        run_list(op::Softmax{c.axis}, {x});
        run_list(op::LogSoftmax{c.axis}, {x});
        continue;
      }
      // exp turns the rounding of x - max, up to 16 in size, into a relative error.
      check(op::Softmax{c.axis}, {x},
            [&](const Lists& in) { return Lists{softmax_of(in[0], c.shape, positive(c), false)}; },
            {16, 1e-6});
      check(op::LogSoftmax{c.axis}, {x},
            [&](const Lists& in) { return Lists{softmax_of(in[0], c.shape, positive(c), true)}; }, {8, 1});
    }
  }
}

TEST(CpuSoftmax, BackwardsMatchTheNaiveLoopsInEveryDtypeAndLayout) {
  for (const DType dtype : float_dtypes) {
    for (const SoftmaxCase& c : softmax_cases) {
      if (c.shape.numel() == 0) continue;
      SCOPED_TRACE(to_string(dtype).data() + to_string(c.shape));
      const Array x = uniform(c.shape, dtype, 2, -4, 4), dy = uniform(c.shape, dtype, 3);
      const Array y = run_list(op::Softmax{c.axis}, {x})[0], log_y = run_list(op::LogSoftmax{c.axis}, {x})[0];
      check(op::SoftmaxBackward{c.axis}, {y, dy}, [&](const Lists& in) {
        Values dx(in[0].size());
        for_lines(c.shape, positive(c), [&](const std::vector<std::size_t>& line) {
          double dot = 0;
          for (const std::size_t i : line) dot += in[0][i] * in[1][i];
          for (const std::size_t i : line) dx[i] = in[0][i] * (in[1][i] - dot);
        });
        return Lists{dx};
      });
      check(op::LogSoftmaxBackward{c.axis}, {log_y, dy},
            [&](const Lists& in) {
              Values dx(in[0].size());
              for_lines(c.shape, positive(c), [&](const std::vector<std::size_t>& line) {
                double total = 0;
                for (const std::size_t i : line) total += in[1][i];
                for (const std::size_t i : line) dx[i] = in[1][i] - std::exp(in[0][i]) * total;
              });
              return Lists{dx};
            },
            {16, 3});
    }
  }
}

TEST(CpuSoftmax, HugeLogitsDoNotOverflowAndMinusInfinityGetsNoWeight) {
  const Array x =
      array_of({2, 5}, DType::f32, {1e30, 1e30, -1e30, -infinity, 0, 3e38, -infinity, -infinity, 0, -3e38});
  const Values y = values_of(run_list(op::Softmax{-1}, {x})[0]);
  EXPECT_EQ(y, (Values{0.5, 0.5, 0, 0, 0, 1, 0, 0, 0, 0}));
  const Values log_y = values_of(run_list(op::LogSoftmax{-1}, {x})[0]);
  EXPECT_NEAR(log_y[0], -std::log(2.0), 1e-7);
  EXPECT_EQ(log_y[3], -infinity);
  EXPECT_EQ(log_y[5], 0);
}

TEST(CpuSoftmax, RowsOfMinusInfinityOrWithNanAreNan) {
  const Array x = array_of({3, 2}, DType::f32, {-infinity, -infinity, 1, NAN, 1, 1});
  for (const Array& y : {run_list(op::Softmax{-1}, {x})[0], run_list(op::LogSoftmax{-1}, {x})[0]}) {
    const Values v = values_of(y);
    for (std::size_t i = 0; i < 4; ++i) EXPECT_TRUE(std::isnan(v[i])) << i;
    EXPECT_FALSE(std::isnan(v[4]) || std::isnan(v[5]));
  }
}

TEST(CpuSoftmax, ReadsBroadcastInputs) {
  const Array row = uniform({1, 40}, DType::f32, 5), many = row.with_layout(row.layout().expand({6, 40}));
  const Values y = values_of(run_list(op::Softmax{-1}, {many})[0]),
               one = values_of(run_list(op::Softmax{-1}, {row})[0]);
  for (std::size_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], one[i % 40]);
  const Array column = uniform({40, 1}, DType::f32, 6),
              flat = column.with_layout(column.layout().expand({40, 8}));
  for (const double v : values_of(run_list(op::Softmax{-1}, {flat})[0])) ASSERT_EQ(v, 0.125);
}

}  // namespace
}  // namespace ferrite::testing
