// Bad input: the error's type, and a message that says what was given and what is needed.
#include "ferrite/ops/cat.hpp"
#include "ferrite/ops/conv2d.hpp"
#include "ferrite/ops/dropout.hpp"
#include "ferrite/ops/linear_cross_entropy.hpp"
#include "ferrite/ops/linspace.hpp"
#include "ferrite/ops/optimizer_steps.hpp"
#include "ferrite/ops/pointwise_loss.hpp"
#include "ferrite/ops/softmax.hpp"
#include "ferrite/ops/triangle.hpp"
#include "ferrite/stacks.hpp"

#include <gtest/gtest.h>

#include <functional>

namespace ferrite {
namespace {

template <class E>
void expect_refusal(const std::function<void()>& f, const std::string& part) {
  try {
    f();
    ADD_FAILURE() << "no error; expected: " << part;
  } catch (const E& e) {
    EXPECT_NE(std::string(e.what()).find(part), std::string::npos)
        << "message: " << e.what() << "\nexpected part: " << part;
  }
}

class Errors : public ::testing::Test {
 protected:
  Cpu b;
  Tensor<Cpu> t(const Shape& shape, DType dtype = DType::f32) { return zeros(b, shape, dtype); }
};

TEST_F(Errors, MatmulNamesBothShapesAndTheInnerDimensions) {
  expect_refusal<ShapeError>(
      [&] {
        matmul(t({2, 3}), t({4, 5}));
      },
      "[matmul] lhs [2, 3] and rhs [4, 5]: inner dimensions 3 and 4 differ");
  expect_refusal<ShapeError>(
      [&] {
        matmul(t({2, 3, 4}), t({5, 4, 2}));
      },
      "[matmul] lhs [2, 3, 4] and rhs [5, 4, 2]: batch axes [2] and [5] must be equal, or 1");
  expect_refusal<ShapeError>([&] { matmul(t({}), t({3})); }, "at least one axis");
  expect_refusal<DTypeError>([&] { matmul(t({2, 2}, DType::bool_), t({2, 2}, DType::bool_)); }, "bool");
}

TEST_F(Errors, BroadcastingNamesTheOpAndBothShapes) {
  expect_refusal<ShapeError>([&] { t({2, 3}) + t({4, 3}); }, "[add]");
  expect_refusal<ShapeError>([&] { t({2, 3}) + t({4, 3}); }, "[2, 3]");
  expect_refusal<ShapeError>([&] { t({2, 3}) + t({4, 3}); }, "[4, 3]");
}

TEST_F(Errors, AxesOutOfRangeNameTheValidOnes) {
  expect_refusal<ShapeError>([&] { sum(t({2, 3}), {2}); }, "[sum]");
  expect_refusal<ShapeError>([&] { softmax(t({2, 3}), -3); }, "[softmax]");
  expect_refusal<ShapeError>([&] { sum(t({2, 3}), {0, -2}); }, "[sum]");
  expect_refusal<ShapeError>([&] { permute(t({2, 3}), {0, 0}); }, "[permute]");
}

TEST_F(Errors, ReshapeSaysHowManyElementsThereAre) {
  expect_refusal<ShapeError>([&] { reshape(t({2, 3}), {4}); }, "[reshape] [2, 3] to [4]: 6 elements");
  expect_refusal<ShapeError>([&] { reshape(t({2, 3}), {-1, -1}); }, "only one may be -1");
  expect_refusal<ShapeError>([&] { reshape(t({0, 3}), {0, -1}); }, "[reshape]");
}

TEST_F(Errors, EmptyReductionsAreRefusedWhereTheyHaveNoValue) {
  expect_refusal<ShapeError>([&] { max(t({0})); }, "[max] [0]");
  expect_refusal<ShapeError>([&] { argmax(t({2, 0})); }, "[argmax]");
  expect_refusal<ShapeError>([&] { mean(t({0})); }, "[mean]");
  expect_refusal<ShapeError>([&] { var(t({1})); }, "[var] 1 elements with correction 1");
  EXPECT_EQ(sum(t({0})).item<float>(), 0);
  EXPECT_EQ(prod(t({0})).item<float>(), 1);
}

TEST_F(Errors, IndicesOutOfRangeNameThePlace) {
  const auto index = from_vector(b, std::vector<std::int64_t>{0, 7, 1}, {3, 1});
  expect_refusal<ValueError>(
      [&] {
        gather(t({3, 5}), 1, index);
      },
      "[gather] index 7 at [1, 0] is out of range for axis 1 of length 5");
  expect_refusal<ValueError>([&] { scatter_add(t({3, 5}), 1, index, t({3, 1})); }, "[scatter_add] index 7");
  expect_refusal<ValueError>([&] { embedding(t({4, 2}), index); }, "[embedding]");
  expect_refusal<ValueError>([&] { select(t({3}), 0, 3); }, "[select] index 3");
  expect_refusal<ValueError>([&] { softmax_cross_entropy(t({3, 5}), reshape(index, {3})); }, "target 7");
  expect_refusal<ValueError>([&] { topk(t({3}), 4); }, "[topk] k 4");
}

TEST_F(Errors, WrongDtypesNameWhatIsNeeded) {
  expect_refusal<DTypeError>([&] { softmax(t({3}, DType::i32)); }, "needs a floating dtype");
  expect_refusal<DTypeError>([&] { where(t({3}), t({3}), t({3})); }, "[where] condition is f32: needs bool");
  expect_refusal<DTypeError>([&] { gather(t({3}), 0, t({3})); }, "[gather] index is f32: needs an integer");
  expect_refusal<DTypeError>([&] { neg(t({3}, DType::bool_)); }, "[neg]");
  expect_refusal<DTypeError>([&] { t({3}, DType::bool_) + t({3}, DType::bool_); }, "logical_or");
  expect_refusal<DTypeError>([&] { dtype_from_string("float"); }, "bf16");
}

TEST_F(Errors, OptimizerStateIsAsWideAsTheStatisticsOfItsParameter) {
  const auto sgd = [](DType parameter, DType buffer) {
    return op::Sgd{}.infer(Metas{{{3}, parameter}, {{3}, parameter}, {{3}, buffer}, {{}, DType::f32}});
  };
  const auto adam = [](DType parameter, DType first, DType second) {
    return op::Adam{}.infer(
        Metas{{{3}, parameter}, {{3}, parameter}, {{3}, first}, {{3}, second}, {{}, DType::f32}});
  };
  expect_refusal<DTypeError>([&] { sgd(DType::f64, DType::f32); },
                             "[sgd] state is f32: needs f64 for a parameter of f64");
  expect_refusal<DTypeError>([&] { adam(DType::f16, DType::f16, DType::f32); },
                             "[adamw] state is f16: needs f32 for a parameter of f16");
  expect_refusal<DTypeError>([&] { adam(DType::f32, DType::f32, DType::f64); },
                             "[adamw] state is f64: needs f32 for a parameter of f32");
  EXPECT_EQ(sgd(DType::bf16, DType::f32)[1].dtype, DType::f32);
  EXPECT_EQ(adam(DType::f64, DType::f64, DType::f64)[2].dtype, DType::f64);
}

TEST_F(Errors, LossesDoNotBroadcast) {
  expect_refusal<ShapeError>(
      [&] {
        mse_loss(t({4, 1}), t({4}));
      },
      "[mse_loss] prediction [4, 1] and target [4]");
}

TEST_F(Errors, AttributesOutOfTheirDomain) {
  Rng rng(0);
  expect_refusal<ValueError>([&] { dropout(t({3}), 1.5, rng); }, "[dropout] p 1.5");
  expect_refusal<ValueError>([&] { bernoulli(b, {3}, rng, -0.1); }, "[bernoulli]");
  expect_refusal<ValueError>([&] { randint(b, {3}, rng, 5, 5); }, "[randint]");
  expect_refusal<ValueError>([&] { arange(b, 0, 1, 0, DType::f32); }, "[arange]");
  expect_refusal<ValueError>([&] { norm(t({3}), 3); }, "[norm] order 3");
  expect_refusal<ValueError>(
      [&] {
        conv2d(t({1, 1, 3, 3}), t({1, 1, 2, 2}), {}, Conv2dConfig{}.with_stride(0));
      },
      "[conv2d] stride");
  expect_refusal<ShapeError>([&] { conv2d(t({1, 1, 3, 3}), t({1, 1, 5, 5})); }, "[conv2d] kernel extent 5");
  expect_refusal<ShapeError>([&] { conv2d(t({1, 3, 3, 3}), t({2, 2, 2, 2})); }, "groups");
  expect_refusal<ShapeError>(
      [&] {
        max_pool2d(t({1, 1, 3, 3}), PoolConfig(2).with_padding(2));
      },
      "[max_pool2d]");
  expect_refusal<ValueError>([&] { slice(t({3}), 0, 0, 3, 0); }, "[slice] step 0");
}

TEST_F(Errors, ShapesTooLargeForMemoryAreRefused) {
  expect_refusal<ShapeError>([&] { t({1ll << 40, 1ll << 40}); }, "[zeros]");
  expect_refusal<ShapeError>([&] { t({-1}); }, "[zeros]");
  EXPECT_THROW(t({1ll << 50}), Error);
}

TEST_F(Errors, CreationNamesTheFunctionThatWasCalled) {
  Rng rng(0);
  const Shape bad{-1};
  expect_refusal<ShapeError>([&] { zeros(b, bad); }, "[zeros]");
  expect_refusal<ShapeError>([&] { ones(b, bad); }, "[ones]");
  expect_refusal<ShapeError>([&] { full(b, bad, 2); }, "[full]");
  expect_refusal<ShapeError>([&] { empty(b, bad); }, "[empty]");
  expect_refusal<ShapeError>([&] { eye(b, -1); }, "[eye]");
  expect_refusal<ShapeError>([&] { arange(b, -1); }, "[arange]");
  expect_refusal<DTypeError>([&] { arange(b, 3, DType::bool_); }, "[arange] dtype bool");
  expect_refusal<ShapeError>([&] { linspace(b, 0, 1, -1); }, "[linspace]");
  expect_refusal<ShapeError>([&] { rand(b, bad, rng); }, "[rand]");
  expect_refusal<ShapeError>([&] { from_vector(b, {1.f}, bad); }, "[from_vector]");
  expect_refusal<ShapeError>([&] { from_vector(b, {1.f}, {2}); },
                             "[from_vector] 1 values for shape [2]: needs 2");
  expect_refusal<ShapeError>(
      [&] {
        from_vector(b, {{1.f, 2.f}, {3.f}});
      },
      "[from_vector] row 1 has 1 values");
  expect_refusal<ShapeError>([&] { from_span(b, std::span<const float>(), {2}); }, "[from_span]");
}

TEST_F(Errors, NoMemoryNamesTheOpAndTheShape) {
  const Shape huge{1ll << 46};
  expect_refusal<OutOfMemory>([&] { zeros(b, huge); },
                              "[zeros] f32[70368744177664] needs 281474976710656 bytes on cpu");
  expect_refusal<OutOfMemory>([&] { empty(b, huge); }, "[empty] f32[70368744177664]");
  expect_refusal<OutOfMemory>([&] { exp(expand(t({1}), huge)); }, "[exp] f32[70368744177664]");
  Reference reference;
  expect_refusal<OutOfMemory>([&] { ones(reference, huge); }, "[ones] f32[70368744177664]");
  Autodiff<Profiled<Cpu>> decorated;
  expect_refusal<OutOfMemory>([&] { ones(decorated, huge, DType::f64); }, "[ones] f64[70368744177664]");
  Parity<Cpu, Reference> parity;
  expect_refusal<OutOfMemory>([&] { ones(parity, huge); }, "[ones] f32[70368744177664]");
}

TEST_F(Errors, TensorsOfDifferentBackends) {
  Profiled<Cpu> one, other;
  expect_refusal<DeviceError>([&] { zeros(one, {2}) + zeros(other, {2}); },
                              "[add] the operands belong to different backend objects");
  EXPECT_EQ((zeros(one, {2}) + to(one, zeros(other, {2}))).numel(), 2);
}

TEST_F(Errors, CrossEntropyNeedsATargetPerRow) {
  expect_refusal<ShapeError>(
      [&] {
        softmax_cross_entropy(t({2, 3, 10}), t({3, 2}, DType::i64));
      },
      "[softmax_cross_entropy] logits [2, 3, 10] and targets [3, 2]: the targets need [2, 3]");
  expect_refusal<ShapeError>(
      [&] {
        softmax_cross_entropy(t({6, 10}), t({2, 3}, DType::i64));
      },
      "the targets need [6]");
  expect_refusal<ShapeError>(
      [&] {
        softmax_cross_entropy(t({3, 0}), t({4}, DType::i64));
      },
      "the targets need [3]");
  EXPECT_EQ(softmax_cross_entropy(t({2, 3, 10}), t({2, 3}, DType::i64)).rank(), 0);
  EXPECT_EQ(softmax_cross_entropy(t({10}), t({}, DType::i64)).rank(), 0);
  expect_refusal<ValueError>(
      [&] {
        softmax_cross_entropy(t({2, 10}), t({2}, DType::i64), CrossEntropyConfig{}.with_classes(11));
      },
      "[softmax_cross_entropy] classes 11");
}

TEST_F(Errors, LinearCrossEntropyNamesWhatDoesNotFit) {
  expect_refusal<ShapeError>(
      [&] {
        linear_cross_entropy(t({2, 3}), t({10, 4}), t({2}, DType::i64));
      },
      "[linear_cross_entropy] x [2, 3] and weight [10, 4]: the weight must be [classes, in]");
  expect_refusal<ShapeError>(
      [&] {
        linear_cross_entropy(t({2, 3, 4}), t({10, 4}), t({3, 2}, DType::i64));
      },
      "[linear_cross_entropy] x [2, 3, 4] and targets [3, 2]: the targets need [2, 3]");
  expect_refusal<DTypeError>(
      [&] {
        linear_cross_entropy(t({2, 4}, DType::f64), t({10, 4}), t({2}, DType::i64));
      },
      "[linear_cross_entropy] x is f64 and the weight f32");
  expect_refusal<ValueError>(
      [&] {
        linear_cross_entropy(t({1, 4}), t({10, 4}), full(b, {1}, 5, DType::i64),
                             CrossEntropyConfig{}.with_classes(5));
      },
      "[linear_cross_entropy] target 5 at position 0 is out of range for 5 classes");
}

TEST_F(Errors, TheWeightOfALayerDecidesItsDtype) {
  expect_refusal<DTypeError>(
      [&] {
        linear(t({2, 3}, DType::f64), t({4, 3}));
      },
      "[linear] x is f64 and the weight f32: the result would be f64; cast x by "
      "cast(x, DType::f32), or the weight");
  expect_refusal<DTypeError>([&] { linear(t({2, 3}, DType::i64), t({4, 3})); }, "[linear] x is i64");
  expect_refusal<DTypeError>(
      [&] {
        linear(t({2, 3}), t({4, 3}), t({4}, DType::f64));
      },
      "[linear] bias is f64");
  expect_refusal<DTypeError>(
      [&] {
        conv2d(t({1, 1, 3, 3}, DType::f64), t({1, 1, 2, 2}));
      },
      "[conv2d] x is f64");
  EXPECT_EQ(linear(t({2, 3}, DType::u8), t({4, 3})).dtype(), DType::f32);
  EXPECT_EQ(linear(t({2, 3}, DType::f16), t({4, 3})).dtype(), DType::f32);
}

TEST_F(Errors, IndicesSayWhatFits) {
  expect_refusal<ValueError>([&] { t({3})[3]; }, "[index] index 3 is out of range for axis 0 of length 3");
  expect_refusal<ValueError>(
      [&] {
        t({2, 3})[{ellipsis, -4}];
      },
      "[index] index -4 is out of range for axis 1");
  expect_refusal<ShapeError>([&] { t({})[0]; }, "[index]");
  expect_refusal<ShapeError>(
      [&] {
        slice(t({3}), {0, Range()});
      },
      "[slice] 2 entries for [3]: it has 1 axes");
  expect_refusal<ShapeError>([&] { t({3})[{ellipsis, ellipsis}]; }, "[index] 2 ellipses: at most one");
  expect_refusal<DTypeError>([&] { t({3})[t({3})]; }, "[index] the mask is f32: needs bool");
  expect_refusal<ShapeError>(
      [&] {
        masked_select(t({3, 2}), t({2}, DType::bool_));
      },
      "[masked_select] x [3, 2] and mask [2]: the mask needs x's shape, or the first part of it");
}

TEST_F(Errors, UndefinedTensors) {
  const Tensor<Cpu> undefined;
  EXPECT_THROW(undefined + t({2}), DeviceError);
  EXPECT_THROW(undefined.backend(), DeviceError);
  EXPECT_THROW(cat(std::vector<Tensor<Cpu>>{}), ShapeError);
}

TEST_F(Errors, ItemNeedsOneElement) {
  expect_refusal<ShapeError>([&] { t({2}).item(); }, "[item] [2]");
}

TEST_F(Errors, ComparisonsWithNanAreFalseAndExtremaPropagateIt) {
  const auto x = from_vector(b, std::vector<float>{NAN, 1, INFINITY});
  EXPECT_EQ((x == x).to_vector<bool>(), (std::vector<bool>{false, true, true}));
  EXPECT_EQ((x < INFINITY).to_vector<bool>(), (std::vector<bool>{false, true, false}));
  EXPECT_TRUE(std::isnan(max(x).item()));
  EXPECT_TRUE(std::isnan(maximum(x, 0).to_vector()[0]));
}

}  // namespace
}  // namespace ferrite
