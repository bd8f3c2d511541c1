// Cpu's fill: in every dtype and layout.
#include "ops/primitive_support.hpp"

namespace ferrite::cpu_test {
namespace {

TEST(CpuFill, FillsEveryDTypeAndLayout) {
  for (const DType dtype : all_dtypes) {
    for (const Form form : all_forms) {
      for (const Shape& shape : {Shape{40, 3, 1000}, Shape{}, Shape{0, 2}}) {
        const Array out = allocate(dtype, shape, form);
        run_into(op::Fill{shape, dtype, 1}, {}, out);
        EXPECT_EQ(values_of(out), Values(size(shape.numel()), 1));
      }
    }
  }
  EXPECT_EQ(values_of(run(op::Fill{{1}, DType::i32, 2.9}, {}))[0], 2);
}

}  // namespace
}  // namespace ferrite::cpu_test
