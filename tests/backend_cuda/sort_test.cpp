// sort and topk: short lines (counted), long ones (radix), several long ones together, ties, special values.
#include "backend_cuda/axes_support.hpp"

namespace ferrite::testing {
namespace {

struct CudaSort : CudaAxes {
  void expect_sorted_as_on_cpu(const Tensor<Cpu>& x, int axis) {
    for (const Order order : {Order::ascending, Order::descending}) {
      SCOPED_TRACE(to_string(x.meta()) + " axis " + std::to_string(axis) +
                   (order == Order::descending ? " descending" : ""));
      expect_same({x}, [&](const auto& in) { return sort(in[0], axis, order).first; });
      expect_same({x}, [&](const auto& in) { return sort(in[0], axis, order).second; });
    }
  }
};

TEST_F(CudaSort, TiesKeepTheirOrderInLinesOfAnyLength) {
  for (const DType dtype : arithmetic_dtypes)
    for (const Shape& shape : {Shape{1}, Shape{1000, 1}, Shape{300, 5}, Shape{7, 1024}, Shape{5, 1025},
                               Shape{130, 1500}, Shape{100'000}, Shape{3, 40'000}})
      expect_sorted_as_on_cpu(numbers(shape, dtype, 0, 50), -1);
}

TEST_F(CudaSort, WholeRangeOfEveryDType) {
  for (const DType dtype : {DType::i32, DType::i64})
    for (const std::int64_t n : {700, 9000}) {
      const std::int64_t top = dtype == DType::i32 ? 1ll << 31 : 1ll << 52;
      expect_sorted_as_on_cpu(numbers({3, n}, dtype, -top, top), -1);
    }
  for (const DType dtype : floats)
    for (const std::int64_t n : {700, 9000}) {
      auto values = (randn(cpu, {2, n}, rng, 0, 100, DType::f64)).to_vector<double>();
      const double special[] = {nan, infinity, -infinity, 0.0, -0.0, 1e300, -1e300, 1e-310};
      for (std::size_t i = 0; i < values.size(); i += 9) values[i] = special[i / 9 % 8];
      expect_sorted_as_on_cpu(cast(from_vector(cpu, values, {2, n}), dtype), -1);
    }
}

TEST_F(CudaSort, AnyAxisAndLayout) {
  for (const Shape& shape : {Shape{40, 3, 7}, Shape{1200, 3, 5}}) {
    const auto x = numbers(shape, DType::f32, 0, 1000);
    for (int axis = 0; axis < 3; ++axis) {
      expect_sorted_as_on_cpu(x, axis);
      for (int view = 1; view < view_count; ++view)
        expect_same({x}, [&](const auto& in) { return sort(view_of(in[0], view), axis).second; });
    }
  }
  const auto x = numbers({4, 5000}, DType::bf16, 0, 200);
  expect_same({x}, [](const auto& in) { return topk(in[0], 10).second; });
  expect_same({x}, [](const auto& in) { return topk(in[0], 3, 0, Order::ascending).first; });
}

}  // namespace
}  // namespace ferrite::testing
