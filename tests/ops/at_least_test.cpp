// Sums with a result that is wider than their terms: nothing is rounded to 16 bits on the way.
#include <gtest/gtest.h>

#include "ferrite/stacks.hpp"

namespace ferrite {
namespace {

/// 1 + 2^-8 needs nine bits after the point: bf16 has seven.
constexpr float fine = 1.00390625f;

template <class B>
class AtLeast : public testing::Test {};
using AtLeastBackends = ::testing::Types<Reference, Cpu, Lazy<Cpu>>;
TYPED_TEST_SUITE(AtLeast, AtLeastBackends);

template <class B>
Tensor<B> bf16(B& b, const std::vector<float>& values, const Shape& shape) {
  return cast(from_vector(b, values, shape), DType::bf16);
}

TYPED_TEST(AtLeast, MatmulKeepsTheBitsOfItsSum) {
  TypeParam b;
  const auto lhs = bf16(b, {1, 0.00390625f}, {1, 2}), rhs = bf16(b, {1, 1}, {2, 1});
  EXPECT_EQ(eval(op::Matmul{}, lhs, rhs).dtype(), DType::bf16);
  const auto wide = eval(op::Matmul{DType::f32}, lhs, rhs);
  EXPECT_EQ(wide.dtype(), DType::f32);
  EXPECT_EQ(wide.template item<float>(), fine);
}

TYPED_TEST(AtLeast, SumKeepsTheBits) {
  TypeParam b;
  const auto wide =
      eval(op::Reduce{op::ReduceFn::sum, {0}, false, DType::f32}, bf16(b, {1, 0.00390625f}, {2}));
  EXPECT_EQ(wide.dtype(), DType::f32);
  EXPECT_EQ(wide.template item<float>(), fine);
}

TYPED_TEST(AtLeast, EmbeddingBackwardKeepsTheBits) {
  TypeParam b;
  const auto dy = bf16(b, {1, 0.00390625f}, {2, 1});
  const auto ids = from_vector(b, std::vector<std::int64_t>{1, 1});
  const auto wide = eval(op::EmbeddingBackward{3, DType::f32}, dy, ids);
  EXPECT_EQ(wide.dtype(), DType::f32);
  EXPECT_EQ(wide.template to_vector<float>(), (std::vector<float>{0, fine, 0}));
}

TYPED_TEST(AtLeast, ANarrowerOneChangesNothing) {
  TypeParam b;
  const auto x = from_vector(b, std::vector<float>{1, 2}, {1, 2});
  EXPECT_EQ(eval(op::Matmul{DType::bf16}, x, transpose(x, 0, 1)).dtype(), DType::f32);
  EXPECT_EQ(eval(op::Reduce{op::ReduceFn::sum, {}, false, DType::f16}, x).dtype(), DType::f32);
}

TYPED_TEST(AtLeast, IsForFloatingSumsOnly) {
  TypeParam b;
  const auto x = arange(b, 4), matrix = reshape(x, {2, 2});
  EXPECT_THROW(eval(op::Matmul{DType::f32}, matrix, matrix), DTypeError);
  EXPECT_THROW(eval(op::Reduce{op::ReduceFn::sum, {}, false, DType::f32}, x), DTypeError);
  const auto real = cast(x, DType::f32);
  EXPECT_THROW(eval(op::Reduce{op::ReduceFn::max, {}, false, DType::f32}, real), DTypeError);
  EXPECT_THROW(eval(op::Reduce{op::ReduceFn::sum, {}, false, DType::i64}, real), DTypeError);
}

}  // namespace
}  // namespace ferrite
