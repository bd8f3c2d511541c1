// Cpu's iota: in every dtype and layout.
#include "ops/primitive_support.hpp"

namespace ferrite::cpu_test {
namespace {

TEST(CpuIota, CountsInEveryDTypeAndLayout) {
  for (const DType dtype :
       {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i32, DType::i64, DType::u8}) {
    for (const Form form : all_forms) {
      const op::Iota op{70000, dtype, 3, is_floating(dtype) ? Scalar(0.1) : Scalar(2)};
      const Array out = run(op, {}, form);
      visit_dtype(dtype, [&]<class T>() {
        for (const std::int64_t i : {0, 1, 2, 77, 32768, 69999}) {
          volatile double product = 0.1 * static_cast<double>(i);  // rounded before it is added
          const T expected = is_floating(dtype) ? convert<T>(3 + product) : convert<T>(3 + 2 * i);
          EXPECT_EQ(values_of(out)[size(i)], convert<double>(expected))
              << to_string(dtype) << " element " << i;
        }
      });
    }
  }
}

}  // namespace
}  // namespace ferrite::cpu_test
