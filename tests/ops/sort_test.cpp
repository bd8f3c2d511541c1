#include "ferrite/ops/sort.hpp"

#include <numeric>

#include "ops/fused_support.hpp"

namespace ferrite::testing {
namespace {

/// Stable, NaN above everything.
Lists sorted(const Values& x, const Shape& shape, int axis, bool descending) {
  const auto less = [](double a, double b) { return a < b || (std::isnan(b) && !std::isnan(a)); };
  std::int64_t inner = 1;
  for (int i = axis + 1; i < shape.rank(); ++i) inner *= shape[i];
  const std::int64_t n = shape[axis], lines = n > 0 ? shape.numel() / n : 0;
  Values values(x.size()), places(x.size());
  for (std::int64_t line = 0; line < lines; ++line) {
    const auto place = [&](std::int64_t i) { return at((line / inner * n + i) * inner + line % inner); };
    std::vector<std::int64_t> order(at(n));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::int64_t i, std::int64_t j) {
      return descending ? less(x[place(j)], x[place(i)]) : less(x[place(i)], x[place(j)]);
    });
    for (std::int64_t i = 0; i < n; ++i) {
      values[place(i)] = x[place(order[at(i)])];
      places[place(i)] = static_cast<double>(order[at(i)]);
    }
  }
  return {values, places};
}

struct SortCase {
  Shape shape;
  int axis;
};
const SortCase sort_cases[] = {{{1}, 0},       {{9}, 0},         {{4, 33}, 1}, {{30, 5}, 0}, {{3, 7, 4}, 1},
                               {{3, 2000}, 1}, {{120, 300}, -1}, {{0, 3}, 1},  {{3, 0}, -1}};

TEST(CpuSort, SortsStablyInEveryDtypeLayoutAndOrder) {
  for (const DType dtype : arithmetic_dtypes) {
    for (const SortCase& c : sort_cases) {
      for (const bool descending : {false, true}) {
        SCOPED_TRACE(to_string(Meta{c.shape, dtype}));
        // Few distinct values, so that stability shows.
        const Array x = array_of(c.shape, dtype,
                                 values_of(uniform(c.shape, DType::i64, 1, dtype == DType::u8 ? 0 : -9, 9)));
        check(op::Sort{c.axis, descending}, {x},
              [&](const Lists& in) {
                return sorted(in[0], c.shape, c.axis < 0 ? c.axis + c.shape.rank() : c.axis, descending);
              },
              {0, 1});
      }
    }
  }
}

TEST(CpuSort, PlacesNanInfinitiesAndZeros) {
  for (const DType dtype : float_dtypes) {
    for (const std::int64_t repeats : {1, 100}) {  // short lines and long ones take different roads
      Values values;
      for (std::int64_t i = 0; i < repeats; ++i)
        for (const double v : Values{NAN, 1.5, -infinity, -0.0, 0.0, infinity, -2.0, 6e-8, -NAN, 0.0, -0.0})
          values.push_back(v);
      const Shape shape{static_cast<std::int64_t>(values.size())};
      for (const bool descending : {false, true})
        check(op::Sort{0, descending}, {array_of(shape, dtype, values)},
              [&](const Lists& in) { return sorted(in[0], shape, 0, descending); }, {0, 1});
    }
  }
}

TEST(CpuSort, KeepsIntegersThatADoubleCannotHold) {
  const std::int64_t large = std::numeric_limits<std::int64_t>::max();
  const Array x = allocate({4}, DType::i64);
  const std::int64_t values[] = {large, -large - 1, large - 1, 0};
  std::memcpy(x.data(), values, sizeof values);
  const auto out = run_list(op::Sort{}, {x});
  EXPECT_EQ(values_of(out[1]), (Values{1, 3, 2, 0}));
  EXPECT_EQ(out[0].data<std::int64_t>()[2], large - 1);
}

}  // namespace
}  // namespace ferrite::testing
