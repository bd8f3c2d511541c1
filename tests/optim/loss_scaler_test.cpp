// Scaled losses: the same updates as without a scale, none where a gradient is not finite, and a scale that
// follows.
#include "ferrite/optim/loss_scaler.hpp"

#include "ferrite/optim/adam.hpp"
#include "ferrite/optim/sgd.hpp"
#include "nn/nn_test.hpp"

namespace ferrite::optim {
namespace {

using testing::expect_error;
using testing::tensor_of;

bool same_state(const NamedTensors& a, const NamedTensors& b) {
  return std::ranges::equal(a, b, [](const auto& x, const auto& y) {
    return x.first == y.first && std::ranges::equal(x.second.bytes(), y.second.bytes());
  });
}

class LossScalers : public testing::OnBackends {
 protected:
  using Parameter = nn::NamedParameter<B>;
  Parameter leaf() { return {"p", parameter(tensor_of(backend, {1, -2, 0.5}, {3}, DType::f32), "p")}; }
  /// Its gradient is g.
  Tensor<B> loss(const Parameter& p, std::vector<double> g) {
    return sum(p.tensor * tensor_of(backend, std::move(g), {3}, DType::f32));
  }
  void step(Optimizer<B>& optimizer, const Parameter& p, std::vector<double> g, double divisor = 1) {
    optimizer.step(optimizer.scaled(loss(p, std::move(g))).backward(), divisor);
  }
};
INSTANTIATE_TEST_SUITE_P(Names, LossScalers, ::testing::Values("reference", "cpu"), testing::name_of);

const std::vector<double> good{0.1, -0.3, 2}, overflowing{0.1, 1e38, 2};

/// The scale is a power of two, so that a scaled training rounds as one without a scale.
TEST_P(LossScalers, UpdatesAreThoseOfUnscaledLossesAndOverflowsAreLeftOut) {
  const auto expect_same = [&](auto make) {
    const Parameter p = leaf(), q = leaf();
    auto scaled = make(p), plain = make(q);
    scaled.scale_losses(LossScalerConfig{}.with_initial(1024).with_growth(2, 2));
    plain.keep_schedule_on_device();
    EXPECT_EQ(scaled.loss_scale(), 1024);
    EXPECT_EQ(plain.loss_scale(), 1);
    const auto expect_equal = [&](double scale) {
      EXPECT_EQ(p.tensor.to_vector(), q.tensor.to_vector());
      NamedTensors state = scaled.state();
      state.erase("loss_scale");
      state.erase("loss_scale.good_updates");
      EXPECT_TRUE(same_state(state, plain.state()));
      EXPECT_EQ(scaled.loss_scale(), scale);
    };
    step(scaled, p, good, 2);
    step(plain, q, good, 2);
    expect_equal(1024);
    step(scaled, p, overflowing);
    EXPECT_FALSE(std::isfinite(scaled.gradient_norm()));
    expect_equal(512);
    step(scaled, p, overflowing);
    expect_equal(256);
    for (const double scale : {256, 512, 512, 1024}) {  // grows after every second update
      step(scaled, p, good);
      step(plain, q, good);
      expect_equal(scale);
    }
  };
  expect_same([](const auto& p) { return AdamW<B>({p}, AdamWConfig{}.with_lr(0.1).with_clip_norm(1)); });
  expect_same([](const auto& p) { return Adam<B>({p}, AdamConfig{}.with_lr(0.1).with_weight_decay(0.1)); });
  expect_same([](const auto& p) { return AdamW<B>({p}, AdamWConfig{}.with_lr(0.1).with_clip_value(0.5)); });
  expect_same([](const auto& p) { return Sgd<B>({p}, SgdConfig{}.with_lr(0.1).with_momentum(0.9)); });
  expect_same([](const auto& p) { return Sgd<B>({p}, SgdConfig{}.with_lr(0.1)); });
}

TEST_P(LossScalers, NaNIsAnOverflowToo) {
  const Parameter p = leaf();
  Sgd<B> sgd({p});
  sgd.scale_losses();
  step(sgd, p, {0.1, std::nan(""), 1});
  EXPECT_EQ(p.tensor.to_vector(), (std::vector<float>{1, -2, 0.5f}));
  EXPECT_EQ(sgd.loss_scale(), 32768);
  EXPECT_EQ(sgd.state().at("steps").as<std::int64_t>()[0], 0);
}

TEST_P(LossScalers, TheNormIsThatOfTheUnscaledGradients) {
  const Parameter p = leaf();
  Sgd<B> sgd({p});
  sgd.scale_losses();
  step(sgd, p, {3, 0, 4}, 2);
  EXPECT_EQ(sgd.gradient_norm(), 2.5);
}

TEST_P(LossScalers, TheScaleStaysWithinItsBounds) {
  const Parameter p = leaf();
  Sgd<B> sgd({p});
  sgd.scale_losses(LossScalerConfig{}.with_initial(2).with_growth(0x1p63, 1).with_backoff(0.25));
  const double inf = std::numeric_limits<double>::infinity();
  step(sgd, p, {0, inf, 0});
  EXPECT_EQ(sgd.loss_scale(), 1);
  step(sgd, p, {0, 0, 0});
  step(sgd, p, {0, 0, 0});
  EXPECT_EQ(sgd.loss_scale(), 0x1p64);
}

TEST_P(LossScalers, AStateContinuesBitForBit) {
  const auto config = LossScalerConfig{}.with_initial(256).with_growth(2, 3);
  const auto run = [&](int interrupt_at) {
    const Parameter p = leaf();
    auto optimizer = std::make_unique<AdamW<B>>(std::vector{p}, AdamWConfig{}.with_lr(0.1));
    optimizer->scale_losses(config);
    for (int t = 1; t <= 8; ++t) {
      if (t == interrupt_at) {
        const NamedTensors state = optimizer->state();
        optimizer = std::make_unique<AdamW<B>>(std::vector{p}, AdamWConfig{});
        optimizer->scale_losses(config);
        optimizer->load_state(state);
      }
      step(*optimizer, p, t == 3 ? overflowing : good);
    }
    EXPECT_EQ(optimizer->loss_scale(), 256);
    return p.tensor.to_vector();
  };
  EXPECT_EQ(run(6), run(0));
  AdamW<B> plain({leaf()});
  const NamedTensors state = plain.state();
  plain.scale_losses();
  expect_error<ValueError>([&] { plain.load_state(state); }, {"missing 'loss_scale'"});
}

TEST_P(LossScalers, SettingsOutsideTheirDomainAreRefused) {
  Sgd<B> sgd({leaf()});
  const LossScalerConfig config;
  expect_error<ValueError>([&] { sgd.scale_losses(config.with_initial(0.5)); },
                           {"[loss scaler] initial 0.5"});
  expect_error<ValueError>([&] { sgd.scale_losses(config.with_growth(0.5, 10)); }, {"growth 0.5"});
  expect_error<ValueError>([&] { sgd.scale_losses(config.with_growth(2, 0)); }, {"growth interval 0"});
  expect_error<ValueError>([&] { sgd.scale_losses(config.with_backoff(1)); },
                           {"backoff 1: must lie in (0, 1)"});
}

}  // namespace
}  // namespace ferrite::optim
