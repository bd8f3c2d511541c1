// Optimisers against their published formulas in f64, and everything around the update itself: clipping,
// groups, accumulation, skipped parameters, states.
#include "ferrite/nn/linear.hpp"
#include "ferrite/optim/adam.hpp"
#include "ferrite/optim/sgd.hpp"
#include "nn/nn_test.hpp"

namespace ferrite::optim {
namespace {

using testing::expect_error;
using testing::expect_values;
using testing::tensor_of;

class Optimizers : public testing::OnBackends {
 protected:
  nn::NamedParameter<B> leaf(std::string name, std::vector<double> values, DType dtype = DType::f64) {
    const Shape shape{static_cast<std::int64_t>(values.size())};
    return {name, parameter(tensor_of(backend, std::move(values), shape, dtype), name)};
  }
  /// Gradients of our choice: the derivative of sum(p g) in p is g.
  void add_gradient(Gradients<typename B::Inner>& grads, const nn::NamedParameter<B>& p,
                    std::vector<double> g) {
    const auto weights = tensor_of(backend, std::move(g), p.tensor.shape(), p.tensor.dtype());
    backward(sum(p.tensor * weights), grads);
  }
  Gradients<typename B::Inner> gradient(const nn::NamedParameter<B>& p, std::vector<double> g) {
    Gradients<typename B::Inner> grads;
    add_gradient(grads, p, std::move(g));
    return grads;
  }
};
INSTANTIATE_TEST_SUITE_P(Names, Optimizers, ::testing::Values("reference", "cpu"), testing::name_of);

const std::vector<double> start{1.0, -2.0, 0.5};

/// A different gradient each step.
std::vector<double> gradient_at(int step) { return {0.1 * step, -0.3 + 0.2 * step, 1.0 / step}; }

TEST_P(Optimizers, SgdFollowsItsFormula) {
  for (const auto nesterov : {Nesterov::no, Nesterov::yes}) {
    for (const double momentum : {0.0, 0.9}) {
      if (momentum == 0 && nesterov == Nesterov::yes) continue;
      const auto p = leaf("p", start);
      Sgd<B> sgd(
          {p},
          SgdConfig{}.with_lr(0.1).with_momentum(momentum).with_nesterov(nesterov).with_weight_decay(0.01));
      std::vector<double> expected = start, velocity(3, 0.0);
      for (int t = 1; t <= 5; ++t) {
        const auto g = gradient_at(t);
        sgd.step(gradient(p, g));
        for (std::size_t i = 0; i < 3; ++i) {
          const double d = g[i] + 0.01 * expected[i];
          velocity[i] = momentum * velocity[i] + d;
          expected[i] -= 0.1 * (nesterov == Nesterov::yes ? d + momentum * velocity[i] : velocity[i]);
        }
        expect_values(p.tensor, expected, 1e-14);
      }
    }
  }
}

TEST_P(Optimizers, AdamAndAdamWFollowTheirFormulas) {
  const auto check = [&](auto& optimizer, const nn::NamedParameter<B>& p, double coupled, double decoupled) {
    std::vector<double> expected = start, m(3, 0.0), v(3, 0.0);
    for (int t = 1; t <= 5; ++t) {
      const auto given = gradient_at(t);
      optimizer.step(gradient(p, given));
      for (std::size_t i = 0; i < 3; ++i) {
        const double g = given[i] + coupled * expected[i];
        expected[i] *= 1 - 0.02 * decoupled;
        m[i] = 0.8 * m[i] + 0.2 * g;
        v[i] = 0.95 * v[i] + 0.05 * g * g;
        const double m_hat = m[i] / (1 - std::pow(0.8, t)), v_hat = v[i] / (1 - std::pow(0.95, t));
        expected[i] -= 0.02 * m_hat / (std::sqrt(v_hat) + 1e-6);
      }
      expect_values(p.tensor, expected, 1e-13);
    }
  };
  const auto a = leaf("p", start), w = leaf("p", start);
  Adam<B> adam({a}, AdamConfig{}.with_lr(0.02).with_betas(0.8, 0.95).with_eps(1e-6).with_weight_decay(0.1));
  check(adam, a, 0.1, 0);
  AdamW<B> adamw({w},
                 AdamWConfig{}.with_lr(0.02).with_betas(0.8, 0.95).with_eps(1e-6).with_weight_decay(0.1));
  check(adamw, w, 0, 0.1);
}

TEST_P(Optimizers, DefaultsArePyTorchs) {
  EXPECT_EQ(AdamConfig{}.lr, 1e-3);
  EXPECT_EQ(AdamConfig{}.beta1, 0.9);
  EXPECT_EQ(AdamConfig{}.beta2, 0.999);
  EXPECT_EQ(AdamConfig{}.eps, 1e-8);
  EXPECT_EQ(AdamConfig{}.weight_decay, 0);
  EXPECT_EQ(AdamWConfig{}.weight_decay, 0.01);
  EXPECT_EQ(SgdConfig{}.lr, 1e-3);
  EXPECT_EQ(SgdConfig{}.momentum, 0);
  // The first step of Adam is lr in the direction of the gradient's sign.
  const auto p = leaf("p", {1, 1, 1});
  Adam<B> adam({p});
  adam.step(gradient(p, {5, -0.01, 0}));
  expect_values(p.tensor, {0.999, 1.001, 1}, 1e-8);
}

TEST_P(Optimizers, ClippingByNormScalesAllGradientsTogether) {
  const auto a = leaf("a", {0, 0}), b = leaf("b", {0});
  Sgd<B> sgd({a, b}, SgdConfig{}.with_lr(1).with_clip_norm(1));
  auto grads = gradient(a, {3, 0});
  add_gradient(grads, b, {4});
  sgd.step(grads);
  expect_values(a.tensor, {-0.6, 0}, 1e-6);  // PyTorch divides by norm + 1e-6
  expect_values(b.tensor, {-0.8}, 1e-6);
  EXPECT_NEAR(sgd.gradient_norm(), 5, 1e-12);
  sgd.step(gradient(b, {0.5}));  // below the bound: as it is
  expect_values(b.tensor, {-1.3}, 1e-6);
}

TEST_P(Optimizers, ClippingByValueClampsEachElement) {
  const auto p = leaf("p", {0, 0, 0});
  Sgd<B> sgd({p}, SgdConfig{}.with_lr(1).with_clip_value(0.5));
  sgd.step(gradient(p, {3, -0.25, -7}));
  expect_values(p.tensor, {-0.5, 0.25, 0.5});
}

TEST_P(Optimizers, AccumulatedGradientsAreDividedBeforeClipping) {
  const auto p = leaf("p", {0, 0});
  Sgd<B> plain({p}, SgdConfig{}.with_lr(1));
  auto grads = gradient(p, {1, 2});
  add_gradient(grads, p, {3, -1});
  add_gradient(grads, p, {5, 2});
  plain.step(grads, 3);
  expect_values(p.tensor, {-3, -1}, 1e-14);
  const auto q = leaf("q", {0, 0}), r = leaf("r", {0, 0});
  Sgd<B> by_norm({q}, SgdConfig{}.with_lr(1).with_clip_norm(2.5));
  by_norm.step(gradient(q, {6, 8}), 2);  // the mean gradient (3, 4) has norm 5
  expect_values(q.tensor, {-1.5, -2}, 1e-6);
  EXPECT_NEAR(by_norm.gradient_norm(), 5, 1e-12);
  Sgd<B> by_value({r}, SgdConfig{}.with_lr(1).with_clip_value(3.5));
  by_value.step(gradient(r, {6, 8}), 2);
  expect_values(r.tensor, {-3, -3.5}, 1e-14);
}

TEST_P(Optimizers, GroupsHaveTheirOwnDecayAndRate) {
  Rng rng(1);
  nn::Linear<B> layer(backend, nn::LinearConfig{1, 1}.with_dtype(DType::f64), rng);
  layer.load_state({{"weight", HostTensor::from(std::span<const double>({2.0}), {1, 1})},
                    {"bias", HostTensor::from(std::span<const double>({2.0}), {1})}});
  Sgd<B> sgd(layer.parameters(),
             SgdConfig{}.with_lr(0.1).with_weight_decay(0.5).with_no_decay(biases_and_norms));
  const auto zero = [&] { return (sum(layer.weight) * 0 + sum(layer.bias) * 0).backward(); };
  sgd.step(zero());
  expect_values(layer.weight, {2 - 0.1 * 0.5 * 2}, 1e-14);
  expect_values(layer.bias, {2}, 1e-14);

  const auto slow = leaf("slow", {1}), fast = leaf("fast", {1});
  Sgd<B> scaled({slow, fast},
                SgdConfig{}.with_lr(0.1).with_group(
                    {[](std::string_view name, const Shape&) { return name == "slow"; }, 0.1, {}}));
  auto grads = gradient(slow, {1});
  add_gradient(grads, fast, {1});
  scaled.step(grads);
  expect_values(slow.tensor, {0.99}, 1e-14);
  expect_values(fast.tensor, {0.9}, 1e-14);
  EXPECT_TRUE(under("encoder")("encoder.weight", {}));
  EXPECT_FALSE(under("encoder")("encoder2.weight", {}));
}

TEST_P(Optimizers, ParametersWithoutGradientStayAndCountTheirOwnSteps) {
  const auto a = leaf("a", {1}), b = leaf("b", {1});
  AdamW<B> adamw({a, b}, AdamWConfig{}.with_lr(0.1).with_weight_decay(0));
  const auto only_a = gradient(a, {1});
  EXPECT_EQ(adamw.missing(only_a), std::vector<std::string>{"b"});
  adamw.step(only_a);
  adamw.step(only_a);
  expect_values(b.tensor, {1}, 1e-15);
  auto both = gradient(a, {1});
  add_gradient(both, b, {1});
  EXPECT_TRUE(adamw.missing(both).empty());
  adamw.step(both);
  // A constant gradient moves by lr each step if the bias corrections are right for each parameter.
  expect_values(a.tensor, {0.7}, 1e-6);
  expect_values(b.tensor, {0.9}, 1e-6);
}

TEST_P(Optimizers, GradientsOfAnotherModelAreAnErrorThatSaysSo) {
  const auto mine = leaf("mine", {1}), other = leaf("other", {1});
  Sgd<B> sgd({mine}), of_other({other});
  expect_error<GradientError>([&] { sgd.step(gradient(other, {1})); },
                              {"[sgd]", "none of the 1 parameters ('mine'", "they are of 'other'"});
  expect_error<GradientError>([&] { sgd.step(Gradients<typename B::Inner>{}); }, {"there are none at all"});
  expect_values(mine.tensor, {1});
  EXPECT_EQ(sgd.state().at("steps").as<std::int64_t>()[0], 0);
}

TEST_P(Optimizers, AChildForgottenInVisitIsNamedByTheFirstStep) {
  struct Forgetful final : nn::Layer<B> {
    nn::Linear<B> listed, forgotten;
    Forgetful(B& backend, Rng& rng) : listed(backend, {2, 2}, rng), forgotten(backend, {2, 2}, rng) {}
    void visit(nn::Visitor<B>& v) override { v.child("listed", listed); }
    Tensor<B> forward(const Tensor<B>& x) override { return forgotten.forward(listed.forward(x)); }
  };
  Rng rng(1);
  Forgetful net(backend, rng);
  const auto grads = [&] { return sum(net.forward(ones(backend, {1, 2}))).backward(); };
  Sgd<B> sgd(net.parameters());
  const auto before = net.listed.weight.to_vector();
  expect_error<GradientError>([&] { sgd.step(grads()); }, {"'weight' f32[2, 2]", "'bias' f32[2]",
                                                           "no module lists it in visit", "with_unlisted"});
  EXPECT_EQ(net.listed.weight.to_vector(), before);
  Sgd<B> told(net.parameters(), SgdConfig{}.with_unlisted(Unlisted::allow));
  EXPECT_NO_THROW(told.step(grads()));
  // What another optimiser has is no stranger: two models that are trained in turn.
  Sgd<B> second(net.forgotten.parameters());
  EXPECT_NO_THROW(sgd.step(grads()));
}

TEST_P(Optimizers, TwoLeavesOfOneTensorAreRefused) {
  const auto x = tensor_of(backend, {1, 2}, {2}, DType::f64);
  const nn::NamedParameter<B> a{"a", parameter(x, "a")}, b{"b", parameter(x, "b")};
  expect_error<ValueError>(
      [&] {
        Sgd<B>({a, b}, SgdConfig{});
      },
      {"[sgd] 'a' and 'b' are two leaves", "clone"});
  const nn::NamedParameter<B> again{"c", a.tensor};
  expect_error<ValueError>(
      [&] {
        Sgd<B>({a, again}, SgdConfig{});
      },
      {"[sgd] one parameter is listed twice", "list it once"});
}

TEST_P(Optimizers, NoticesNameWhatNoErrorSays) {
  const auto a = leaf("a", {1}), b = leaf("b", {1}), narrow = leaf("n", {1}, DType::bf16);
  EXPECT_TRUE(Sgd<B>({a, b}).notices().empty());
  Sgd<B> sgd({a, b, narrow}, SgdConfig{}.with_group({under("encoder"), 0.1, {}}));
  ASSERT_EQ(sgd.notices().size(), 2u);
  EXPECT_NE(sgd.notices()[0].find("16-bit parameters 'n'"), std::string::npos) << sgd.notices()[0];
  EXPECT_NE(sgd.notices()[1].find("group 0: selects no parameter"), std::string::npos) << sgd.notices()[1];
  sgd.step(gradient(a, {1}));
  sgd.step(gradient(a, {1}));  // said once
  ASSERT_EQ(sgd.notices().size(), 3u);
  EXPECT_NE(sgd.notices()[2].find("no gradient in the first step for 'b', 'n'"), std::string::npos);
  expect_error<ValueError>([&] { Sgd<B>({a, a}); }, {"[sgd] two parameters are called 'a'"});
}

TEST_P(Optimizers, SmallStepsAreLostInSixteenBits) {
  const auto narrow = leaf("narrow", {1}, DType::bf16), wide = leaf("wide", {1}, DType::f32);
  Sgd<B> sgd({narrow, wide}, SgdConfig{}.with_lr(1e-3));
  for (int t = 0; t < 100; ++t) {
    auto grads = gradient(narrow, {1});
    add_gradient(grads, wide, {1});
    sgd.step(grads);
  }
  expect_values(narrow.tensor, {1}, 1e-9);
  expect_values(wide.tensor, {0.9}, 1e-4);
}

TEST_P(Optimizers, FrozenParametersArePassedOver) {
  Rng rng(1);
  nn::Linear<B> layer(backend, {2, 2}, rng);
  layer.freeze();
  expect_error<ValueError>([&] { Sgd<B>(layer.parameters()); }, {"[sgd] no parameters", "frozen"});
  nn::Linear<B> head(backend, {2, 1}, rng);
  std::vector<nn::NamedParameter<B>> all = layer.parameters();
  for (auto& p : head.parameters()) all.push_back({"head." + p.name, p.tensor});
  Sgd<B> sgd(all);
  EXPECT_EQ(sgd.parameters().size(), 2u);
  const auto before = layer.weight.to_vector();
  sgd.step(sum(head.forward(layer.forward(ones(backend, {1, 2})))).backward());
  EXPECT_EQ(layer.weight.to_vector(), before);
  EXPECT_TRUE(sgd.notices().empty());
}

TEST_P(Optimizers, GradientsThatAreNotFiniteAreNamed) {
  const auto a = leaf("a", {1, 1}, DType::f32), b = leaf("b", {1, 1}, DType::f32);
  Sgd<B> sgd({a, b});
  auto grads = gradient(a, {3e38, 3e38});  // the norm overflows, the gradients do not
  add_gradient(grads, b, {1, 2});
  EXPECT_TRUE(sgd.non_finite(grads).empty());
  add_gradient(grads, b, {NAN, 0});
  EXPECT_EQ(sgd.non_finite(grads), std::vector<std::string>{"b"});
}

TEST_P(Optimizers, UpdatesGoIntoTheBufferOfTheLeaf) {
  const auto p = leaf("p", {1});
  const Tensor<B> held = p.tensor;
  const auto graph = sum(square(held));
  Sgd<B> sgd({p}, SgdConfig{}.with_lr(0.5));
  sgd.step(gradient(p, {1}));
  expect_values(held, {0.5});
  expect_error<GradientError>([&] { graph.backward(); }, {"modified in place"});
}

TEST_P(Optimizers, SixteenBitParametersKeepWideMoments) {
  const auto p = leaf("p", {1, 1}, DType::bf16);
  Adam<B> adam({p}, AdamConfig{}.with_lr(0.25));
  adam.step(gradient(p, {1, -1}));
  EXPECT_EQ(p.tensor.dtype(), DType::bf16);
  expect_values(p.tensor, {0.75, 1.25}, 1e-2);
  EXPECT_EQ(adam.state().at("p.exp_avg").dtype(), DType::f32);
  const auto q = leaf("q", {1, 1}, DType::f16);
  Sgd<B> sgd({q}, SgdConfig{}.with_lr(0.25));
  sgd.step(gradient(q, {1, -1}));
  expect_values(q.tensor, {0.75, 1.25}, 1e-3);
}

TEST_P(Optimizers, AStateContinuesBitForBit) {
  const auto run = [&](int interrupt_at) {
    auto p = leaf("p", {1.0, -2.0, 0.5}, DType::f32);
    auto optimizer = std::make_unique<AdamW<B>>(std::vector{p}, AdamWConfig{}.with_lr(0.1));
    for (int t = 1; t <= 6; ++t) {
      if (t == interrupt_at) {
        const NamedTensors state = optimizer->state();
        optimizer = std::make_unique<AdamW<B>>(std::vector{p}, AdamWConfig{});
        optimizer->load_state(state);
      }
      optimizer->step(gradient(p, gradient_at(t)));
    }
    return p.tensor.to_vector();
  };
  EXPECT_EQ(run(4), run(0));
}

TEST_P(Optimizers, RefuseALearningRateThatIsNone) {
  const auto p = leaf("p", start);
  Sgd<B> optimizer({p}, SgdConfig{}.with_lr(0.25));
  for (const double lr : {-1.0, HUGE_VAL, std::nan("")})
    EXPECT_THROW(optimizer.set_learning_rate(lr), ValueError) << lr;
  optimizer.set_learning_rate(0);
  EXPECT_EQ(optimizer.learning_rate(), 0);
}

TEST_P(Optimizers, RefuseADivisorThatIsNone) {
  const auto p = leaf("p", start);
  Sgd<B> optimizer({p}, SgdConfig{}.with_lr(0.25));
  const auto before = p.tensor.to_vector();
  for (const double divisor : {0.0, -1.0, HUGE_VAL, std::nan("")})
    EXPECT_THROW(optimizer.step(gradient(p, gradient_at(1)), divisor), ValueError) << divisor;
  EXPECT_EQ(p.tensor.to_vector(), before);
}

TEST_P(Optimizers, AScheduleOnTheDeviceGivesTheSameSteps) {
  const auto train = [&](auto& optimizer, const nn::NamedParameter<B>& p, bool on_device) {
    for (int t = 1; t <= 6; ++t) {
      if (t == 3 && on_device) optimizer.keep_schedule_on_device();  // in the middle of a training
      optimizer.set_learning_rate(0.1 / t);
      optimizer.step(gradient(p, gradient_at(t)));
    }
  };
  const auto expect_same = [&](auto make) {
    const auto p = leaf("p", start), q = leaf("p", start);
    auto host = make(p), device = make(q);
    train(host, p, false);
    train(device, q, true);
    expect_values(q.tensor, p.tensor.to_vector<double>(), 1e-15);
    EXPECT_EQ(device.state().at("steps").template as<std::int64_t>()[0], 6);
    EXPECT_EQ(device.state().at("lr").template as<double>()[0], 0.1 / 6);
  };
  expect_same([](const auto& p) { return AdamW<B>({p}, AdamWConfig{}.with_weight_decay(0.1)); });
  expect_same([](const auto& p) { return Adam<B>({p}, AdamConfig{}.with_weight_decay(0.1)); });
  expect_same([](const auto& p) { return Sgd<B>({p}, SgdConfig{}.with_momentum(0.9)); });
  expect_same([](const auto& p) { return Sgd<B>({p}); });
}

TEST_P(Optimizers, AStateNamesItsTensorsAndIsCheckedWhole) {
  const auto p = leaf("block0.weight", start);
  Sgd<B> with_momentum({p}, SgdConfig{}.with_momentum(0.9)), without({p});
  NamedTensors state = with_momentum.state();
  ASSERT_EQ(state.size(), 3u);
  EXPECT_TRUE(state.contains("block0.weight.momentum"));
  EXPECT_EQ(without.state().size(), 2u);  // lr and steps
  expect_error<ValueError>([&] { without.load_state(state); }, {"unexpected 'block0.weight.momentum'"});
  state.erase("block0.weight.momentum");
  expect_error<ValueError>([&] { with_momentum.load_state(state); }, {"missing 'block0.weight.momentum'"});
}

TEST_P(Optimizers, SettingsOutsideTheirDomainAreRefused) {
  const auto p = leaf("p", start);
  expect_error<ValueError>([&] { Sgd<B>({p}, SgdConfig{}.with_lr(-1)); }, {"[sgd] learning rate -1"});
  expect_error<ValueError>([&] { Sgd<B>({p}, SgdConfig{}.with_nesterov()); }, {"[sgd] nesterov", "momentum"});
  expect_error<ValueError>([&] { Adam<B>({p}, AdamConfig{}.with_betas(1, 0.9)); }, {"[adam] beta1 1"});
  expect_error<ValueError>([&] { AdamW<B>({p}, AdamWConfig{}.with_weight_decay(NAN)); },
                           {"[adamw] weight decay"});
  expect_error<ValueError>([&] { AdamW<B>({p}, AdamWConfig{}.with_clip_norm(-2)); },
                           {"[adamw] clip norm -2"});
  expect_error<ValueError>([&] { AdamW<B>(std::vector<nn::NamedParameter<B>>{}); },
                           {"[adamw] no parameters"});
}

}  // namespace
}  // namespace ferrite::optim
