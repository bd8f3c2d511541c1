// Cpu's scatter and scatter_add against loops, and what an index out of range says.
#include "messages.hpp"
#include "ops/index_support.hpp"

namespace ferrite::cpu_test {
namespace {

using testing::message_of;

TEST(CpuScatter, TheLastWriteWinsAndSumsFollowTheIndexOrder) {
  for (const IndexCase& c : index_cases) {
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

TEST(CpuIndex, AnIndexOutOfRangeIsNamedWithItsPlace) {
  const Array x = random(DType::f32, {5, 3}, 1), source = random(DType::f32, {1, 3}, 2);
  const Array high = make<double>(DType::i64, {1, 3}, {0, 4, 7}),
              low = make<double>(DType::i32, {1, 3}, {0, -6, 9});
  EXPECT_EQ(message_of<ValueError>([&] {
              run(op::Gather{0}, {x, high});
            }),
            "[gather] index 7 at [0, 2] is out of range for axis 0 of length 5");
  EXPECT_EQ(message_of<ValueError>([&] {
              run(op::Scatter{0}, {x, low, source});
            }),
            "[scatter] index -6 at [0, 1] is out of range for axis 0 of length 5");
  EXPECT_EQ(message_of<ValueError>([&] {
              run(op::ScatterAdd{-2}, {x, high, source});
            }),
            "[scatter_add] index 7 at [0, 2] is out of range for axis 0 of length 5");
  const Array broadcast = make<double>(DType::i64, {3, 1}, {1, 5, 2});
  EXPECT_EQ(message_of<ValueError>([&] {
              run(op::Gather{0}, {x, broadcast.with_layout(broadcast.layout().expand({3, 3}))});
            }),
            "[gather] index 5 at [1, 0] is out of range for axis 0 of length 5");
}

}  // namespace
}  // namespace ferrite::cpu_test
