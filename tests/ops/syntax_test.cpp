// Everyday syntax: printing, x[i], +=, one axis by its number, values in braces, masks.
#include <gtest/gtest.h>

#include <sstream>

#include "ferrite/ops/statistic.hpp"
#include "ferrite/stacks.hpp"

namespace ferrite {
namespace {

using Floats = std::vector<float>;

template <class T>
std::string text_of(const T& x) {
  std::ostringstream out;
  out << x;
  return out.str();
}

template <class B>
struct Syntax : ::testing::Test {
  B backend;
  /// 0 1 2 3 / 4 5 6 7 / 8 9 10 11
  Tensor<B> matrix() { return reshape(arange(backend, 12, DType::f32), {3, 4}); }
};
using SyntaxBackends = ::testing::Types<Cpu, Reference, Lazy<Cpu>, Autodiff<Cpu>, Parity<Cpu, Reference>>;
TYPED_TEST_SUITE(Syntax, SyntaxBackends);

TYPED_TEST(Syntax, TensorsShapesAndDtypesPrint) {
  auto& b = this->backend;
  EXPECT_EQ(text_of(from_vector(b, {1.f, -2.5f})), "[ 1.0, -2.5]");
  EXPECT_EQ(text_of(Tensor<TypeParam>()), "undefined");
  EXPECT_EQ(text_of(Shape{2, 3}), "[2, 3]");
  EXPECT_EQ(text_of(DType::bf16), "bf16");
  EXPECT_EQ(text_of(Meta{{2}, DType::i32}), "i32[2]");
  EXPECT_EQ(text_of(Device{}), "cpu");
}

TYPED_TEST(Syntax, BracketsPickAlongTheFirstAxis) {
  const auto x = this->matrix();
  EXPECT_EQ(to_vector(x[1]), (Floats{4, 5, 6, 7}));
  EXPECT_EQ(item(x[-1][2]), 10);
  EXPECT_EQ(x[0].shape(), (Shape{4}));
}

TYPED_TEST(Syntax, AListPicksAlongSeveralAxes) {
  const auto x = this->matrix();
  EXPECT_EQ(to_vector(slice(x, {Range(0, 2), Range(1, 4, 2)})), (Floats{1, 3, 5, 7}));
  EXPECT_EQ(to_vector(x[{Range(), 0}]), (Floats{0, 4, 8}));
  EXPECT_EQ(to_vector(x[{ellipsis, -1}]), (Floats{3, 7, 11}));
  EXPECT_EQ(to_vector(x[{Range(std::nullopt, std::nullopt, -1), 1}]), (Floats{9, 5, 1}));
  EXPECT_EQ(to_vector(x[{Range(2), Range(std::nullopt, -2)}]), (Floats{8, 9}));
  EXPECT_EQ((x[{1, 2}].shape()), Shape{});
  EXPECT_EQ((x[{Range(), new_axis, Range(0, 2)}].shape()), (Shape{3, 1, 2}));
  EXPECT_EQ((x[{new_axis, ellipsis, new_axis}].shape()), (Shape{1, 3, 4, 1}));
  EXPECT_EQ((slice(x, {Range(1, 1)}).shape()), (Shape{0, 4}));
}

TYPED_TEST(Syntax, AMaskPicksWhatIsTrue) {
  auto& b = this->backend;
  const auto x = this->matrix();
  EXPECT_EQ(to_vector(x[x > 8]), (Floats{9, 10, 11}));
  EXPECT_EQ(to_vector(masked_select(transpose(x, 0, 1), transpose(x, 0, 1) < 2)), (Floats{0, 1}));
  const auto rows = x[from_vector(b, {true, false, true})];
  EXPECT_EQ(rows.shape(), (Shape{2, 4}));
  EXPECT_EQ(to_vector(rows), (Floats{0, 1, 2, 3, 8, 9, 10, 11}));
  EXPECT_EQ(x[x < 0].shape(), (Shape{0}));
  EXPECT_EQ(x[zeros(b, {3}, DType::bool_)].shape(), (Shape{0, 4}));
  EXPECT_EQ(x[full(b, {}, true, DType::bool_)].shape(), (Shape{1, 3, 4}));
  EXPECT_EQ(x[x > 8].dtype(), DType::f32);
}

TYPED_TEST(Syntax, AssignmentBindsTheNameToANewValue) {
  auto& b = this->backend;
  auto x = from_vector(b, {1.f, 2.f});
  const auto before = x;
  x += 1;
  x *= x;
  x -= before;
  x /= 2;
  EXPECT_EQ(to_vector(x), (Floats{1.5, 3.5}));
  EXPECT_EQ(to_vector(before), (Floats{1, 2}));
  (x += 1) *= 2;
  EXPECT_EQ(to_vector(x), (Floats{5, 9}));
  EXPECT_EQ(x.dtype(), DType::f32);
}

TYPED_TEST(Syntax, OneAxisIsANumber) {
  const auto x = this->matrix();
  EXPECT_EQ(to_vector(sum(x, 1)), (Floats{6, 22, 38}));
  EXPECT_EQ(sum(x, {}).shape(), Shape{});
  EXPECT_EQ(item(sum(x, {0, 1})), 66);
  EXPECT_EQ(sum(x, -1, KeepDim::yes).shape(), (Shape{3, 1}));
  EXPECT_EQ(to_vector(mean(x, 0)), (Floats{4, 5, 6, 7}));
  EXPECT_EQ(to_vector(var(x, 0, KeepDim::no, 0)), to_vector(var(x, {0}, KeepDim::no, 0)));
  EXPECT_EQ(to_vector(prod(x, 1)), (Floats{0, 840, 7920}));
  EXPECT_EQ(to_vector(max(x, 1)), (Floats{3, 7, 11}));
  EXPECT_EQ(to_vector(min(x, 0)), (Floats{0, 1, 2, 3}));
  EXPECT_EQ(to_vector<bool>(any(x > 9, 1)), (std::vector<bool>{false, false, true}));
  EXPECT_EQ(to_vector<bool>(all(x > 3, 1)), (std::vector<bool>{false, true, true}));
  EXPECT_EQ(to_vector(logsumexp(x, 1)), to_vector(logsumexp(x, {1})));
  EXPECT_EQ(to_vector(norm(x, 1, 0)), (Floats{12, 15, 18, 21}));
  EXPECT_EQ(to_vector<int>(argmax(x, 0)), (std::vector<int>{2, 2, 2, 2}));
  EXPECT_EQ(squeeze(sum(x, 0, KeepDim::yes), 0).shape(), (Shape{4}));
  EXPECT_EQ(to_vector(flip(x[0], 0)), (Floats{3, 2, 1, 0}));
}

TYPED_TEST(Syntax, ValuesStandInBraces) {
  auto& b = this->backend;
  EXPECT_EQ(from_vector(b, {1.f, 2.f}).meta(), (Meta{{2}, DType::f32}));
  EXPECT_EQ(from_vector(b, {1, 2, 3, 4}, {2, 2}).meta(), (Meta{{2, 2}, DType::i32}));
  EXPECT_EQ(from_vector(b, {1.0}).dtype(), DType::f64);
  EXPECT_EQ(to_vector<bool>(from_vector(b, {true, false})), (std::vector<bool>{true, false}));
  const auto rows = from_vector(b, {{1.f, 2.f, 3.f}, {4.f, 5.f, 6.f}});
  EXPECT_EQ(rows.shape(), (Shape{2, 3}));
  EXPECT_EQ(item<float>(rows[1][0]), 4);
  EXPECT_EQ(from_vector(b, {{true, false}}).shape(), (Shape{1, 2}));
}

TYPED_TEST(Syntax, ItemIsADoubleUnlessAskedOtherwise) {
  auto& b = this->backend;
  static_assert(std::same_as<decltype(scalar(b, 0.1, DType::f64).item()), double>);
  EXPECT_EQ(scalar(b, 0.1, DType::f64).item(), 0.1);
  EXPECT_EQ(item(scalar(b, 0.1)), static_cast<double>(0.1f));
  EXPECT_EQ(item<std::int64_t>(full(b, {}, 7, DType::i64)), 7);
}

TEST(SyntaxGradient, FlowsThroughIndicesMasksAndAssignments) {
  Autodiff<Cpu> b;
  const auto w = parameter(from_vector(b, {{1.f, 2.f}, {3.f, 4.f}}), "w");
  auto total = sum(w[1]) * 2;
  total += sum(w[w > 1.5] * w[w > 1.5]);
  total += item(w[{0, 0}]) + sum(w[{ellipsis, 0}]) * 10;
  EXPECT_EQ(total.backward().of(w).to_vector(), (Floats{10, 4, 18, 10}));
}

}  // namespace
}  // namespace ferrite
