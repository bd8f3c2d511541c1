#include "ferrite/ops/pool2d.hpp"

#include "ops/fused_support.hpp"

namespace ferrite::testing {
namespace {

struct PoolCase {
  Shape x;
  op::PoolGeometry geometry;
};
// Windows that tile, overlap, leave gaps, reach into the padding, and cover everything.
const PoolCase pool_cases[] = {
    {{2, 3, 8, 8}, {{2, 2}, {0, 0}, {0, 0}}},  {{1, 2, 7, 9}, {{3, 3}, {2, 2}, {1, 1}}},
    {{1, 1, 5, 6}, {{3, 2}, {1, 1}, {1, 0}}},  {{2, 1, 11, 10}, {{2, 3}, {3, 4}, {0, 1}}},
    {{1, 2, 4, 4}, {{4, 4}, {1, 1}, {2, 2}}},  {{3, 2, 1, 1}, {{1, 1}, {1, 1}, {0, 0}}},
    {{1, 1, 6, 70}, {{2, 5}, {2, 1}, {1, 2}}}, {{40, 30, 8, 8}, {{2, 2}, {2, 2}, {0, 0}}}};

/// Calls f(plane, output place, input place inside the plane) for every tap inside the input.
void for_taps(const PoolCase& c, const Shape& y,
              const std::function<void(std::size_t, std::size_t, std::size_t)>& f) {
  const auto& g = c.geometry;
  for (std::int64_t p = 0; p < c.x[0] * c.x[1]; ++p)
    for (std::int64_t h = 0; h < y[2]; ++h)
      for (std::int64_t w = 0; w < y[3]; ++w)
        for (std::int64_t i = 0; i < g.kernel[0]; ++i)
          for (std::int64_t j = 0; j < g.kernel[1]; ++j) {
            const std::int64_t row = h * g.step(0) + i - g.padding[0],
                               column = w * g.step(1) + j - g.padding[1];
            if (row < 0 || row >= c.x[2] || column < 0 || column >= c.x[3]) continue;
            f(at(p), at((p * y[2] + h) * y[3] + w), at(row * c.x[3] + column));
          }
}

Lists largest(const PoolCase& c, const Shape& y, const Values& x) {
  const std::size_t plane = at(c.x[2] * c.x[3]);
  Values best(at(y.numel()), NAN), index(at(y.numel()), -1);
  for_taps(c, y, [&](std::size_t p, std::size_t out, std::size_t in) {
    const double v = x[p * plane + in];
    const bool first = index[out]<0, larger = v> best[out] || (std::isnan(v) && !std::isnan(best[out]));
    if (!first && !larger) return;
    best[out] = v;
    index[out] = static_cast<double>(in);
  });
  return {best, index};
}

TEST(CpuPool2d, MaxMatchesTheNaiveLoopsInEveryDtypeAndLayout) {
  for (const DType dtype : float_dtypes) {
    for (const PoolCase& c : pool_cases) {
      SCOPED_TRACE(to_string(Meta{c.x, dtype}));
      const Shape y = c.geometry.output("test", c.x);
      // Whole numbers, so that windows have ties.
      Values values = values_of(uniform(c.x, DType::i64, 1, -3, 3));
      const Array x = array_of(c.x, dtype, values);
      check(op::MaxPool2d{c.geometry}, {x}, [&](const Lists& in) { return largest(c, y, in[0]); }, {0, 1});

      const std::size_t plane = at(c.x[2] * c.x[3]);
      const Array index = run_list(op::MaxPool2d{c.geometry}, {x})[1], dy = uniform(y, dtype, 2);
      check(op::MaxPool2dBackward{c.x}, {dy, index}, [&](const Lists& in) {
        Values dx(at(c.x.numel()));
        const std::size_t outputs = at(y[2] * y[3]);
        for (std::size_t i = 0; i < in[0].size(); ++i)
          dx[i / outputs * plane + static_cast<std::size_t>(in[1][i])] += in[0][i];
        return Lists{dx};
      });
    }
  }
}

TEST(CpuPool2d, MeanMatchesTheNaiveLoopsInEveryDtypeAndLayout) {
  for (const DType dtype : float_dtypes) {
    for (const PoolCase& c : pool_cases) {
      SCOPED_TRACE(to_string(Meta{c.x, dtype}));
      const Shape y = c.geometry.output("test", c.x);
      const double area = static_cast<double>(c.geometry.kernel.numel());
      const std::size_t plane = at(c.x[2] * c.x[3]);
      check(op::AvgPool2d{c.geometry}, {uniform(c.x, dtype, 3)}, [&](const Lists& in) {
        Values mean(at(y.numel()));
        for_taps(c, y, [&](std::size_t p, std::size_t out, std::size_t from) {
          mean[out] += in[0][p * plane + from] / area;
        });
        return Lists{mean};
      });
      check(op::AvgPool2dBackward{c.geometry, c.x}, {uniform(y, dtype, 4)},
            [&](const Lists& in) {
              Values dx(at(c.x.numel()));
              for_taps(c, y, [&](std::size_t p, std::size_t out, std::size_t to) {
                dx[p * plane + to] += in[0][out] / area;
              });
              return Lists{dx};
            },
            {6, 3});
    }
  }
}

TEST(CpuPool2d, NanIsTheMaximumAndTheFirstOfEqualsWins) {
  const Array x = array_of({1, 1, 2, 6}, DType::f32,
                           {1, 5, NAN, 2, -infinity, -infinity, 5, 0, 9, NAN, -infinity, -infinity});
  const auto out = run_list(op::MaxPool2d{}, {x});
  const Values y = values_of(out[0]);
  EXPECT_EQ(y[0], 5);
  EXPECT_TRUE(std::isnan(y[1]));
  EXPECT_EQ(y[2], -infinity);
  EXPECT_EQ(values_of(out[1]), (Values{1, 2, 4}));
}

TEST(CpuPool2d, AnIndexOutsideItsPlaneIsAnError) {
  const Array dy = uniform({1, 2, 1, 1}, DType::f32, 1), index = array_of({1, 2, 1, 1}, DType::i64, {3, 4});
  EXPECT_EQ(message_of<ValueError>([&] {
              run_list(op::MaxPool2dBackward{{1, 2, 2, 2}}, {dy, index});
            }),
            "[max_pool2d_backward] index 4 at position 1 is out of range for planes of 4 elements");
}

}  // namespace
}  // namespace ferrite::testing
