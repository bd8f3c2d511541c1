// Cpu's gather, scatter and scatter_add against loops.
#include "backend_cpu/cpu_primitive_support.hpp"

namespace ferrite::cpu_test {
namespace {

/// The multi-index of element i of a shape.
Shape place_of(const Shape& shape, std::int64_t i) {
  Shape place = shape;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    place[axis] = i % shape[axis];
    i /= shape[axis];
  }
  return place;
}
std::size_t number_of(const Shape& shape, const Shape& place) {
  std::int64_t i = 0;
  for (int axis = 0; axis < shape.rank(); ++axis) i = i * shape[axis] + place[axis];
  return size(i);
}

/// For every index in row-major order: its number and the number of the element of x it names.
template <class F>
void for_each_index(const Shape& x, const Array& index, int axis, F&& f) {
  const Values chosen = values_of(index);
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    Shape place = place_of(index.shape(), static_cast<std::int64_t>(i));
    const auto c = static_cast<std::int64_t>(chosen[i]);
    place[axis] = c < 0 ? c + x[axis] : c;
    f(i, number_of(x, place));
  }
}

struct Case {
  Shape x, index;
  int axis;
};
const Case cases[] = {{{7, 5, 33}, {20, 5, 33}, 0}, {{7, 5, 33}, {4, 9, 20}, 1},
                      {{7, 5, 33}, {7, 5, 70}, 2},  {{50, 3}, {4000, 3}, 0},
                      {{3000}, {5000}, 0},          {{4, 6}, {0, 6}, 0},
                      {{4, 600}, {40, 600}, 0},     {{1}, {1}, 0}};

Array random_index(DType dtype, const Case& c, Form form) {
  const auto length = static_cast<double>(c.x[c.axis]);
  return random(dtype, c.index, 11, dtype == DType::u8 || dtype == DType::u16 ? 0 : -length, length, form);
}

TEST(CpuGather, PicksWhatTheIndexNamesInEveryLayout) {
  for (const Case& c : cases) {
    for (const DType dtype : all_dtypes) {
      for (const DType index_dtype : {DType::i64, DType::i32, DType::u8, DType::u16}) {
        if (index_dtype == DType::u8 && c.x[c.axis] > 200) continue;
        for (const Form form : all_forms) {
          const Array x = random(dtype, c.x, 1, 0, 50, form);
          Array index = random_index(index_dtype, c, form);
          Values truncated = values_of(index);
          assign(index, truncated);
          const Values values = values_of(x);
          Values expected(size(c.index.numel()));
          for_each_index(c.x, index, c.axis,
                         [&](std::size_t i, std::size_t at) { expected[i] = values[at]; });
          SCOPED_TRACE(to_string(x.meta()) + " " + to_string(index.meta()));
          EXPECT_EQ(values_of(run(op::Gather{c.axis}, {x, index}, form)), expected);
        }
      }
    }
  }
}

TEST(CpuGather, PicksWholeRowsByABroadcastIndex) {
  const Array x = random(DType::f32, {100, 300}, 1), rows = random(DType::i32, {1000, 1}, 2, -100, 100);
  const Array index = rows.with_layout(rows.layout().expand({1000, 300}));
  const Array y = run(op::Gather{0}, {x, index});
  const Values source = values_of(x), result = values_of(y), chosen = values_of(rows);
  for (std::size_t i = 0; i < 1000; ++i) {
    const std::size_t row = size(static_cast<std::int64_t>(chosen[i]) + (chosen[i] < 0 ? 100 : 0));
    for (std::size_t j = 0; j < 300; ++j) ASSERT_EQ(result[i * 300 + j], source[row * 300 + j]);
  }
  expect_thread_invariance([&] { return run(op::Gather{0}, {x, index}); });
}

TEST(CpuScatter, TheLastWriteWinsAndSumsFollowTheIndexOrder) {
  for (const Case& c : cases) {
    for (const DType dtype : arithmetic_dtypes) {
      for (const Form form : all_forms) {
        const Array x = random(dtype, c.x, 1, 0, 3, form), index = random_index(DType::i64, c, form);
        Shape wider = c.index;
        for (int i = 0; i < wider.rank(); ++i) ++wider[i];
        const Array source = random(dtype, wider, 2, 0, 3, form);
        const Values updates = values_of(source);
        Values last = values_of(x), sum = last;
        for_each_index(c.x, index, c.axis, [&](std::size_t i, std::size_t at) {
          const double update = updates[number_of(wider, place_of(c.index, static_cast<std::int64_t>(i)))];
          last[at] = update;
          sum[at] += update;
        });
        SCOPED_TRACE(to_string(x.meta()) + " " + to_string(index.meta()));
        expect_close(values_of(run(op::Scatter{c.axis}, {x, index, source}, form)), last, 0);
        if (dtype == DType::bool_) continue;
        if (dtype == DType::u8)
          for (double& v : sum) v = std::fmod(v, 256);
        expect_close(values_of(run(op::ScatterAdd{c.axis}, {x, index, source}, form)), sum,
                     4 * epsilon(dtype));
      }
    }
  }
}

TEST(CpuScatter, GivesTheSameBitsForAnyNumberOfThreads) {
  const Array x = random(DType::f32, {50, 333}, 1), source = random(DType::f32, {2000, 333}, 2);
  const Array index = random(DType::i64, {2000, 333}, 3, 0, 50);
  expect_thread_invariance([&] { return run(op::ScatterAdd{0}, {x, index, source}); });
  expect_thread_invariance([&] { return run(op::Scatter{0}, {x, index, source}); });
}

template <class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const ValueError& error) {
    return error.what();
  }
  return "no ValueError";
}

TEST(CpuIndex, AnIndexOutOfRangeIsNamedWithItsPlace) {
  const Array x = random(DType::f32, {5, 3}, 1), source = random(DType::f32, {1, 3}, 2);
  const Array high = make<double>(DType::i64, {1, 3}, {0, 4, 7}),
              low = make<double>(DType::i32, {1, 3}, {0, -6, 9});
  EXPECT_EQ(message_of([&] {
              run(op::Gather{0}, {x, high});
            }),
            "[gather] index 7 at [0, 2] is out of range for axis 0 of length 5");
  EXPECT_EQ(message_of([&] {
              run(op::Scatter{0}, {x, low, source});
            }),
            "[scatter] index -6 at [0, 1] is out of range for axis 0 of length 5");
  EXPECT_EQ(message_of([&] {
              run(op::ScatterAdd{-2}, {x, high, source});
            }),
            "[scatter_add] index 7 at [0, 2] is out of range for axis 0 of length 5");
  const Array broadcast = make<double>(DType::i64, {3, 1}, {1, 5, 2});
  EXPECT_EQ(message_of([&] {
              run(op::Gather{0}, {x, broadcast.with_layout(broadcast.layout().expand({3, 3}))});
            }),
            "[gather] index 5 at [1, 0] is out of range for axis 0 of length 5");
}

}  // namespace
}  // namespace ferrite::cpu_test
