// Cpu's scans against loops in double.
#include "ops/primitive_support.hpp"

namespace ferrite::cpu_test {
namespace {

TEST(CpuScan, SumsAlongEveryAxisInBothDirections) {
  for (const DType dtype : arithmetic_dtypes) {
    for (const Shape& shape : {Shape{7, 5, 33}, Shape{3000, 3}, Shape{3, 3000}, Shape{2, 0}, Shape{1}}) {
      for (int axis = 0; axis < shape.rank(); ++axis) {
        for (const Form form : all_forms) {
          const Array x = random(dtype, shape, 4, 0, 3, form);
          for (const bool reverse : {false, true}) {
            Values expected = values_of(x);
            std::int64_t step = 1;
            for (int i = axis + 1; i < shape.rank(); ++i) step *= shape[i];
            const auto n = static_cast<std::int64_t>(expected.size());
            for (std::int64_t k = 0; k < n; ++k) {
              const std::int64_t i = reverse ? n - 1 - k : k;
              const bool first = i / step % shape[axis] == (reverse ? shape[axis] - 1 : 0);
              if (!first) expected[size(i)] += expected[size(reverse ? i + step : i - step)];
            }
            const Array y = run(op::Scan{axis, reverse}, {x}, form);
            SCOPED_TRACE(to_string(x.meta()) + " axis " + std::to_string(axis) +
                         (reverse ? " reversed" : ""));
            expect_close(values_of(y), expected, epsilon(y.dtype()));
          }
        }
      }
    }
  }
  const Array x = random(DType::f32, {100, 1000}, 1);
  expect_thread_invariance([&] { return run(op::Scan{0}, {x}); });
  expect_thread_invariance([&] { return run(op::Scan{1}, {x}); });
}

}  // namespace
}  // namespace ferrite::cpu_test
