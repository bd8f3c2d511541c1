// Cpu's gather against loops.
#include "ops/index_support.hpp"

namespace ferrite::cpu_test {
namespace {

TEST(CpuGather, PicksWhatTheIndexNamesInEveryLayout) {
  for (const IndexCase& c : index_cases) {
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

}  // namespace
}  // namespace ferrite::cpu_test
