#include "ferrite/ops/dropout.hpp"

#include "ops/fused_support.hpp"

namespace ferrite::testing {
namespace {

TEST(CpuDropout, KeepsWhatTheDrawsSayInEveryDtypeAndLayout) {
  for (const DType dtype : float_dtypes) {
    for (const Shape& shape : {Shape{1}, Shape{3, 5}, Shape{7, 301}, Shape{2, 17, 1000}, Shape{0, 3}}) {
      for (const double p : {0.0, 0.1, 0.5, 1.0}) {
        if (shape.numel() > 10000 && p != 0.1) continue;
        SCOPED_TRACE(to_string(Meta{shape, dtype}));
        check(op::Dropout{p, 12, (1ull << 40) + 3}, {uniform(shape, dtype, 1)}, [&](const Lists& in) {
          Values y(in[0].size());
          for (std::size_t i = 0; i < y.size(); ++i)
            if (uniform_at<float>({12, (1ull << 40) + 3}, i) >= static_cast<float>(p))
              y[i] = in[0][i] / (1 - p);
          return Lists{y};
        });
      }
    }
  }
}

TEST(CpuDropout, DroppedElementsAreZeroEvenWhereXIsNot) {
  const Array x = array_of({4}, DType::f32, {NAN, infinity, -infinity, 1});
  EXPECT_EQ(values_of(run_list(op::Dropout{1, 1, 1}, {x})[0]), Values(4, 0.0));
}

}  // namespace
}  // namespace ferrite::testing
