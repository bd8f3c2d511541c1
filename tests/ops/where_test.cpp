// Cpu's where: dtypes, layouts, broadcasting, scalars, accumulation.
#include "ops/primitive_support.hpp"

namespace ferrite::cpu_test {
namespace {

using op::ScalarSide;

TEST(CpuWhere, ChoosesTensorsAndScalarsInEveryLayout) {
  for (const DType dtype : arithmetic_dtypes) {
    for (const Form form : all_forms) {
      Values every_third(2700);
      for (std::size_t i = 0; i < every_third.size(); ++i) every_third[i] = i % 3 == 0;
      const Array c = make(DType::bool_, {9, 300}, every_third, form);
      const Array a = random(dtype, {300}, 2, 0, 2), b = random(dtype, {9, 1}, 3, 0, 2, form);
      const Values x = broadcast_values(a, c.shape()), y = broadcast_values(b, c.shape());
      Values both(x.size()), left(x.size()), right(x.size());
      for (std::size_t i = 0; i < x.size(); ++i) {
        both[i] = i % 3 == 0 ? x[i] : y[i];
        left[i] = i % 3 == 0 ? 1 : y[i];
        right[i] = i % 3 == 0 ? x[i] : 1;
      }
      expect_close(values_of(run(op::Where{}, {c, a, b}, form)), both, 0);
      expect_close(values_of(run(op::Where{ScalarSide::left, true}, {c, b}, form)), left, 0);
      expect_close(values_of(run(op::Where{ScalarSide::right, true}, {c, a})), right, 0);
    }
  }
}

TEST(CpuWhere, PromotesTakesAnyByteForTrueAndAccumulates) {
  const Array c = cpu().allocate({{3}, DType::bool_});
  const std::uint8_t bytes[] = {2, 0, 255};
  std::memcpy(c.data(), bytes, 3);
  const Array a = make<double>(DType::u8, {3}, {1, 2, 3}), b = make<double>(DType::f16, {1}, {0.5});
  expect_close(values_of(run(op::Where{}, {c, a, b})), {1, 0.5, 3}, 0);
  const Array out = make<double>(DType::f16, {3}, {10, 20, 30});
  run_into(op::Where{}, {c, a, b}, out, add_to_output);
  expect_close(values_of(out), {11, 20.5, 33}, 0);
}

}  // namespace
}  // namespace ferrite::cpu_test
