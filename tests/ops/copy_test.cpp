// Cpu's copy: dtypes, layouts, accumulation, and the host's memory.
#include "ops/primitive_support.hpp"

namespace ferrite::cpu_test {
namespace {

TEST(CpuCopy, ConvertsBetweenAllDTypesAndLayouts) {
  for (const DType from : all_dtypes) {
    for (const DType to : all_dtypes) {
      for (const Form form : all_forms) {
        for (const Form out_form : all_forms) {
          const Array x = random(from, {65, 3, 41}, 1, 0, 100, form);
          Values expected = values_of(x);
          visit_any_dtype(from, [&]<class From>() {
            visit_any_dtype(to, [&]<class To>() {
              for (double& v : expected) v = convert<double>(convert<To>(convert<From>(v)));
            });
          });
          SCOPED_TRACE(to_string(x.meta()) + " to " + std::string(to_string(to)));
          expect_close(values_of(run(op::Copy{to}, {x}, out_form)), expected, 0);
        }
      }
    }
  }
}

TEST(CpuCopy, TransposesBigArraysAndAddsThem) {
  const Array x = random(DType::f32, {300, 5, 517}, 1, -1, 1, Form::transposed);
  expect_thread_invariance([&] { return run(op::Copy{DType::f32}, {x}); });
  const Array y = run(op::Copy{DType::f32}, {x});
  EXPECT_EQ(values_of(y), values_of(x));
  run_into(op::Copy{DType::f32}, {x}, y, add_to_output);
  Values doubled = values_of(x);
  for (double& v : doubled) v *= 2;
  EXPECT_EQ(values_of(y), doubled);
}

TEST(CpuCopy, MovesHostMemoryInAndOutOfAnyLayout) {
  const std::vector<float> source = {1, 2, 3, 4, 5, 6};
  for (const Form form : all_forms) {
    const Array x = allocate(DType::f32, {2, 3}, form);
    cpu().copy_from_host(x, source.data());
    std::vector<float> back(6);
    cpu().copy_to_host(x, back.data());
    EXPECT_EQ(back, source);
    EXPECT_EQ(values_of<float>(x), source);
  }
}

}  // namespace
}  // namespace ferrite::cpu_test
