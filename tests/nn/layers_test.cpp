// Layers against numbers worked out by hand and against central differences.
#include "ferrite/nn/conv.hpp"
#include "ferrite/nn/linear.hpp"
#include "ferrite/nn/norm.hpp"
#include "ferrite/nn/sequential.hpp"
#include "nn/nn_test.hpp"

namespace ferrite::nn {
namespace {

using testing::Exact;
using testing::expect_error;
using testing::expect_gradients;
using testing::expect_values;
using testing::tensor_of;

template <class B>
void set(const Tensor<B>& parameter, const std::vector<double>& values) {
  assign(parameter, HostTensor::from(std::span<const double>(values), parameter.shape()));
}

class Layers : public testing::OnBackends {};
INSTANTIATE_TEST_SUITE_P(Names, Layers, ::testing::Values("reference", "cpu"), testing::name_of);

TEST_P(Layers, LinearIsAnAffineMapWithAnActivation) {
  Rng rng(1);
  Linear<B> layer(backend, {2, 3}, rng);
  set(layer.weight, {1, 2, 3, 4, -5, -6});
  set(layer.bias, {0.5, -0.5, 1});
  const auto x = tensor_of(backend, {1, -1, 2, 0}, {2, 2}, DType::f32);
  expect_values(layer.forward(x), {-0.5, -1.5, 2, 2.5, 5.5, -9});
  EXPECT_EQ(layer.forward(reshape(x, {2, 1, 2})).shape(), (Shape{2, 1, 3}));
  Linear<B> plain(backend, LinearConfig{2, 3}.with_bias(false).with_activation(Activation::relu), rng);
  set(plain.weight, {1, 2, 3, 4, -5, -6});
  EXPECT_FALSE(plain.bias.defined());
  expect_values(plain.forward(x), {0, 0, 1, 2, 6, 0});
  expect_error<ShapeError>(
      [&] {
        layer.forward(ones(backend, {2, 3}));
      },
      {"[linear] x [2, 3] and weight [3, 2]"});
}

TEST_P(Layers, LinearStartsAsPyTorchDoes) {
  Rng rng(1);
  Linear<B> layer(backend, {100, 200}, rng);
  const auto bounded = [](const std::vector<double>& values) {
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    EXPECT_GE(*low, -0.1 - 1e-8);
    EXPECT_LE(*high, 0.1 + 1e-8);
    EXPECT_LT(*low, -0.09);
    EXPECT_GT(*high, 0.09);
  };
  bounded(layer.weight.to_vector<double>());
  bounded(layer.bias.to_vector<double>());
}

TEST_P(Layers, EmbeddingLooksUpRowsAndGathersTheirGradients) {
  Rng rng(1);
  Embedding<B> table(backend, {3, 2}, rng);
  set(table.weight, {1, 2, 3, 4, 5, 6});
  const auto ids = from_vector(backend, std::vector<std::int64_t>{2, 0, 2, 2}, {2, 2});
  const auto y = table.forward(ids);
  EXPECT_EQ(y.shape(), (Shape{2, 2, 2}));
  expect_values(y, {5, 6, 1, 2, 5, 6, 5, 6});
  expect_values(sum(y).backward().of(table.weight), {1, 1, 0, 0, 3, 3});
}

TEST_P(Layers, NormsOverTheLastAxis) {
  const auto x = tensor_of(backend, {1, 2, 3, 4, 0, 0, 0, 0}, {2, 4}, DType::f32);
  LayerNorm<B> layer(backend, {4});
  const double s = 1 / std::sqrt(1.25 + 1e-5);
  expect_values(layer.forward(x), {-1.5 * s, -0.5 * s, 0.5 * s, 1.5 * s, 0, 0, 0, 0});
  RmsNorm<B> rms(backend, NormConfig{4}.with_eps(0.5));
  set(rms.weight, {1, 1, 1, 2});
  const double r = 1 / std::sqrt(7.5 + 0.5);
  expect_values(rms.forward(x), {r, 2 * r, 3 * r, 8 * r, 0, 0, 0, 0});
}

TEST_P(Layers, BatchNormFollowsTheBatchAndKeepsRunningStatistics) {
  BatchNorm2d<B> layer(backend, {2});
  // Channel 0: 1, 2, 3, 6 (mean 3, biased variance 3.5, unbiased 14/3); channel 1: constant 5.
  const auto x = tensor_of(backend, {1, 2, 5, 5, 3, 6, 5, 5}, {2, 2, 1, 2}, DType::f32);
  const double s = 1 / std::sqrt(3.5 + 1e-5);
  expect_values(layer.forward(x), {-2 * s, -s, 0, 0, 0, 3 * s, 0, 0});
  expect_values(layer.running_mean, {0.3, 0.5});
  expect_values(layer.running_var, {0.9 + 0.1 * 14 / 3, 0.9}, 1e-5);
  layer.forward(x);
  expect_values(layer.running_mean, {0.57, 0.95});
  layer.set_mode(Mode::inference);
  const double var = 0.9 * (0.9 + 0.1 * 14 / 3) + 0.1 * 14 / 3, t = 1 / std::sqrt(var + 1e-5);
  const double u = 1 / std::sqrt(0.81 + 1e-5);
  expect_values(layer.forward(x),
                {(1 - 0.57) * t, (2 - 0.57) * t, 4.05 * u, 4.05 * u, (3 - 0.57) * t, (6 - 0.57) * t, 4.05 * u,
                 4.05 * u},
                1e-5);
  expect_values(layer.running_mean, {0.57, 0.95});
  expect_error<ShapeError>(
      [&] {
        layer.forward(ones(backend, {2, 3, 1, 1}));
      },
      {"[BatchNorm2d]", "[3]", "[2]"});
  layer.set_mode(Mode::training);
  expect_error<ShapeError>([&] { layer.forward(ones(backend, {1, 2, 1, 1})); }, {"more than one element"});
}

TEST_P(Layers, Conv2dCorrelatesWithStrideAndPadding) {
  Rng rng(1);
  Conv2d<B> layer(backend, Conv2dConfig{1, 1, 2}.with_stride(2).with_padding(1), rng);
  set(layer.weight, {1, 2, 3, 4});
  set(layer.bias, {10});
  const auto x = tensor_of(backend, {1, 2, 3, 4, 5, 6, 7, 8, 9}, {1, 1, 3, 3}, DType::f32);
  // Windows of the padded image: (0 0 0 1) (0 0 2 3) (0 4 0 7) (5 6 8 9).
  expect_values(layer.forward(x), {14, 10 + 6 + 12, 10 + 8 + 28, 10 + 5 + 12 + 24 + 36});
  Conv2d<B> grouped(backend, Conv2dConfig(4, 6, Shape{3, 1}).with_groups(2).with_bias(false), rng);
  EXPECT_EQ(grouped.weight.shape(), (Shape{6, 2, 3, 1}));
  EXPECT_EQ(grouped.forward(ones(backend, {2, 4, 5, 5})).shape(), (Shape{2, 6, 3, 5}));
  expect_error<ValueError>(
      [&] {
        Conv2d<B>(backend, Conv2dConfig{3, 4, 1}.with_groups(2), rng);
      },
      {"[Conv2d] 3 to 4 channels in 2 groups"});
}

TEST_P(Layers, PoolsTakeTheMaximumOrTheMean) {
  const auto x = tensor_of(backend, {1, 2, 3, 4, 5, 6, 7, 8}, {1, 1, 2, 4}, DType::f32);
  expect_values(MaxPool2d<B>(PoolConfig(2)).forward(x), {6, 8});
  expect_values(AvgPool2d<B>(PoolConfig(2)).forward(x), {3.5, 5.5});
  expect_values(MaxPool2d<B>(PoolConfig(2).with_stride(1)).forward(x), {6, 7, 8});
}

TEST_P(Layers, DropoutScalesWhatItKeepsAndDependsOnItsSeedAlone) {
  const auto run = [&](std::uint64_t seed, int times) {
    Rng rng(seed);
    Dropout<B> layer(0.25, rng);
    std::vector<float> y;
    for (int i = 0; i < times; ++i) y = layer.forward(ones(backend, {1000})).to_vector();
    return y;
  };
  const auto y = run(1, 1);
  const auto kept = std::count_if(y.begin(), y.end(), [](float v) { return v != 0; });
  EXPECT_NEAR(static_cast<double>(kept), 750, 60);
  EXPECT_TRUE(
      std::all_of(y.begin(), y.end(), [](float v) { return v == 0 || std::abs(v - 4.0f / 3) < 1e-6f; }));
  EXPECT_EQ(run(1, 1), y);
  EXPECT_NE(run(1, 2), y);
  EXPECT_NE(run(2, 1), y);
  Rng rng(1);
  Dropout<B> layer(0.25, rng);
  layer.set_mode(Mode::inference);
  expect_values(layer.forward(ones(backend, {3})), {1, 1, 1});
  expect_error<ValueError>([&] { Dropout<B>(1.5, rng); }, {"[Dropout] p 1.5"});
}

TEST_P(Layers, SequentialHoldsLayersOfAnyType) {
  Rng rng(1);
  Sequential<B> net;
  net.add(Flatten<B>()).add("linear", Linear<B>(backend, LinearConfig{4, 2}.with_bias(false), rng));
  net.add(Activation::relu).add(Apply<B>([](const Tensor<B>& x) { return x * 2; }));
  set(static_cast<Linear<B>&>(net[1]).weight, {1, 1, 1, 1, -1, -1, -1, -1});
  expect_values(net.forward(tensor_of(backend, {1, 2, 3, 4}, {1, 2, 2}, DType::f32)), {20, 0});
  EXPECT_EQ(net.parameters()[0].name, "linear.weight");
  expect_error<ValueError>([&] { net.add("linear", Flatten<B>()); }, {"[Sequential] 'linear'"});
}

TEST_P(Layers, AnErrorInsideSequentialNamesTheLayerAndKeepsItsType) {
  Rng rng(1);
  Sequential<B> block;
  block.add("first", Linear<B>(backend, {4, 3}, rng)).add("second", Linear<B>(backend, {5, 2}, rng));
  Sequential<B> net;
  net.add(Flatten<B>()).add("block", std::move(block));
  expect_error<ShapeError>(
      [&] {
        net.forward(ones(backend, {2, 2, 2}));
      },
      {"[linear]", "\n  in layer 'second', whose input is f32[2, 3]",
       "\n  in layer 'block', whose input is f32[2, 4]"});
  Sequential<B> ids;
  ids.add("table", Embedding<B>(backend, {10, 2}, rng));
  expect_error<DTypeError>([&] { ids.forward(ones(backend, {2})); }, {"in layer 'table'"});
  // A user's own exception passes as it is.
  Sequential<B> own;
  own.add(Apply<B>([](const Tensor<B>& x) -> Tensor<B> {
    if (x.defined()) throw std::out_of_range("mine");
    return x;
  }));
  EXPECT_THROW(own.forward(ones(backend, {2})), std::out_of_range);
}

TEST_P(Layers, WithoutAWeightAreNamed) {
  Rng rng(1);
  expect_error<ShapeError>([&] { Linear<B>(backend, {-1, 3}, rng); }, {"[Linear] shape [3, -1]"});
  expect_error<ShapeError>([&] { Embedding<B>(backend, {-1, 3}, rng); }, {"[Embedding] shape [-1, 3]"});
  expect_error<DTypeError>(
      [&] {
        Linear<B>(backend, LinearConfig{1, 3}.with_dtype(DType::i32), rng);
      },
      {"[Linear] dtype is i32"});
}

TEST_P(Layers, GradientsAgreeWithCentralDifferences) {
  Rng rng(7);
  Sequential<B> net;
  net.add(Conv2d<B>(backend, Conv2dConfig{2, 3, 3}.with_padding(1).with_dtype(DType::f64), rng));
  net.add(BatchNorm2d<B>(backend, BatchNormConfig{3}.with_dtype(DType::f64)));
  net.add(Activation::silu).add(AvgPool2d<B>(PoolConfig(2))).add(Flatten<B>());
  net.add(
      Linear<B>(backend, LinearConfig{12, 6}.with_activation(Activation::gelu).with_dtype(DType::f64), rng));
  net.add(LayerNorm<B>(backend, NormConfig{6}.with_dtype(DType::f64)));
  net.add(
      Linear<B>(backend, LinearConfig{6, 6}.with_activation(Activation::tanh).with_dtype(DType::f64), rng));
  net.add(RmsNorm<B>(backend, NormConfig{6}.with_dtype(DType::f64)));
  const auto x = randn(backend, {2, 2, 4, 4}, rng, 0, 1, DType::f64);
  expect_gradients<B>(net, [&] { return net.forward(x); });
}

}  // namespace
}  // namespace ferrite::nn
