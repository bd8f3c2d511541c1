// Names, counts, modes and states of module trees.
#include "ferrite/nn/conv.hpp"
#include "ferrite/nn/transformer.hpp"
#include "nn/nn_test.hpp"

namespace ferrite::nn {
namespace {

using testing::Exact;
using testing::expect_error;
using testing::expect_values;

template <class B>
Sequential<B> small_net(B& backend, std::uint64_t seed = 1) {
  Rng rng(seed);
  Sequential<B> net;
  net.add(Conv2d<B>(backend, Conv2dConfig{1, 2, 3}.with_bias(false), rng));
  net.add("norm", BatchNorm2d<B>(backend, {2}));
  net.add(Activation::relu).add(Flatten<B>()).add(Dropout<B>(0.5, rng));
  net.add("head", Linear<B>(backend, {8, 3}, rng));
  return net;
}

template <class B>
std::vector<std::string> names(Module<B>& module) {
  std::vector<std::string> result;
  for (const auto& p : module.parameters()) result.push_back(p.name);
  return result;
}

TEST(Module, NamesAreJoinedFromTheRootDown) {
  Reference backend;
  Rng rng(1);
  Sequential<Reference> net;
  net.add("block0", TransformerBlock<Reference>(backend, {4, 2}, rng));
  EXPECT_EQ(names(net), (std::vector<std::string>{
                            "block0.norm1.weight", "block0.norm1.bias", "block0.attn.qkv.weight",
                            "block0.attn.qkv.bias", "block0.attn.proj.weight", "block0.attn.proj.bias",
                            "block0.norm2.weight", "block0.norm2.bias", "block0.ff.up.weight",
                            "block0.ff.up.bias", "block0.ff.down.weight", "block0.ff.down.bias"}));
  EXPECT_EQ(net.parameter_count(), 2 * 8 + (12 * 4 + 12) + (16 + 4) + (64 + 16) + (64 + 4));
}

TEST(Module, ALeafTakesTheNameItsModelGivesIt) {
  Exact backend;
  Rng rng(1);
  Sequential<Exact> net;
  net.add("first", Linear<Exact>(backend, {2, 2}, rng)).add("second", Linear<Exact>(backend, {2, 2}, rng));
  const auto parameters = net.parameters();
  const auto grads = sum(net[0].forward(ones(backend, {1, 2}))).backward();
  expect_error<GradientError>([&] { grads.of(parameters[2].tensor); }, {"'second.weight' got no gradient"});
}

TEST(Module, ATiedWeightIsListedOnceUnderItsFirstName) {
  Reference backend;
  Rng rng(1);
  struct Tied final : Module<Reference> {
    Linear<Reference> a, b;
    Tied(Reference& backend, Rng& rng) : a(backend, LinearConfig{2, 2}.with_bias(false), rng), b(a) {}
    void visit(Visitor<Reference>& v) override {
      v.child("a", a);
      v.child("b", b);
    }
  } net(backend, rng);
  EXPECT_EQ(names(net), std::vector<std::string>{"a.weight"});
  EXPECT_EQ(net.state().size(), 1u);
  EXPECT_EQ(net.parameter_count(), 4);
}

TEST(Module, PartsOfOneBufferAreTensorsOfTheirOwn) {
  struct Parts final : nn::Module<Cpu> {
    Tensor<Cpu> all, low, high, turned;
    explicit Parts(Cpu& b)
        : all(arange(b, 0, 6, 1, DType::f32)),
          low(slice(all, 0, 0, 3)),
          high(slice(all, 0, 3, 6)),
          turned(transpose(reshape(low, {3, 1}), 0, 1)) {}
    void visit(nn::Visitor<Cpu>& v) override {
      v.parameter("low", low);
      v.buffer("high", high);
      v.parameter("turned", turned);  // low again
    }
  };
  Cpu b;
  Parts parts(b);
  EXPECT_EQ(parts.parameter_count(), 3);
  EXPECT_EQ(parts.state().size(), 2u);
}

TEST(Module, TwoLeavesOfOneTensorAreAnErrorThatSaysHowToTieThem) {
  Exact backend;
  struct Net final : Module<Exact> {
    Tensor<Exact> a, b;
    explicit Net(const Tensor<Exact>& x) : a(parameter(x, "a")), b(parameter(x, "b")) {}
    void visit(Visitor<Exact>& v) override {
      v.parameter("a", a);
      v.parameter("b", b);
    }
  } net(ones(backend, {2}));
  expect_error<ValueError>([&] { net.parameters(); },
                           {"[parameters] 'a' and 'b' are two leaves over the same memory", "one leaf"});
  EXPECT_EQ(net.state().size(), 1u);  // what was trained can be saved all the same
  EXPECT_EQ(net.parameter_count(), 2);
  net.b = net.a;
  EXPECT_EQ(names(net), std::vector<std::string>{"a"});
  net.b = parameter(clone(net.a), "b");
  EXPECT_EQ(names(net), (std::vector<std::string>{"a", "b"}));
}

TEST(Module, TwoPartsUnderOneNameAreAnErrorThatNamesThem) {
  Reference backend;
  Rng rng(1);
  /// Shows two parts of any kinds.
  struct Pair final : Module<Reference> {
    std::function<void(Visitor<Reference>&)> first, second;
    void visit(Visitor<Reference>& v) override {
      first(v);
      second(v);
    }
  };
  struct Outer final : Module<Reference> {
    Pair pair;
    void visit(Visitor<Reference>& v) override { v.child("block", pair); }
  } net;
  Linear<Reference> a(backend, {2, 3}, rng), b(backend, {2, 3}, rng);
  const auto expect_refusal = [&](auto first, auto second, std::string_view name) {
    net.pair.first = first;
    net.pair.second = second;
    expect_error<ValueError>([&] { net.state(); }, {"[visit] two parts are called", name});
    expect_error<ValueError>([&] { net.parameters(); }, {name});
    expect_error<ValueError>([&] { net.load_state({}); }, {name});
  };
  using V = Visitor<Reference>&;
  expect_refusal([&](V v) { v.child("fc", a); }, [&](V v) { v.child("fc", b); }, "'block.fc'");
  expect_refusal([&](V v) { v.parameter("w", a.weight); }, [&](V v) { v.parameter("w", b.weight); },
                 "'block.w'");
  expect_refusal([&](V v) { v.parameter("w", a.weight); }, [&](V v) { v.buffer("w", b.weight); },
                 "'block.w'");
  expect_refusal([&](V v) { v.child("fc", a); }, [&](V v) { v.parameter("fc.weight", b.weight); },
                 "'block.fc.weight'");
  net.pair.first = [&](V v) { v.child("a", a); };
  net.pair.second = [&](V v) { v.child("b", b); };
  EXPECT_EQ(net.state().size(), 4u);
}

TEST(Module, AFrozenPartKeepsItsValuesAndGetsNoGradient) {
  Exact backend;
  Rng rng(1);
  Sequential<Exact> net;
  net.add("body", Linear<Exact>(backend, {2, 2}, rng)).add("head", Linear<Exact>(backend, {2, 1}, rng));
  const auto loss = [&] { return sum(net.forward(ones(backend, {1, 2}))); };
  const auto held = names(net);
  net[0].freeze();
  EXPECT_EQ(names(net), held);  // names and states stay
  EXPECT_FALSE(is_trainable(net.parameters()[0].tensor));
  auto reached = loss().backward().names();
  std::ranges::sort(reached);
  EXPECT_EQ(reached, (std::vector<std::string>{"head.bias", "head.weight"}));
  net[0].unfreeze();
  const auto parameters = net.parameters();
  const auto grads = loss().backward();
  EXPECT_EQ(grads.size(), 4u);
  EXPECT_TRUE(grads.find(parameters[0].tensor).defined());
}

TEST(Module, ATiedWeightIsOneLeafAgainAfterAFreeze) {
  Exact backend;
  Rng rng(1);
  struct Tied final : Module<Exact> {
    Linear<Exact> a, b;
    Tied(Exact& backend, Rng& rng) : a(backend, LinearConfig{2, 2}.with_bias(false), rng), b(a) {}
    void visit(Visitor<Exact>& v) override {
      v.child("a", a);
      v.child("b", b);
    }
  } net(backend, rng);
  net.freeze();
  net.unfreeze();
  const auto grads = sum(net.b.forward(net.a.forward(ones(backend, {1, 2})))).backward();
  EXPECT_EQ(grads.size(), 1u);
  EXPECT_TRUE(grads.find(net.parameters()[0].tensor).defined());
}

TEST(Module, TheModeReachesEveryChildAndAScopePutsItBack) {
  Reference backend;
  auto net = small_net(backend);
  net[4].set_mode(Mode::inference);
  for (const Mode mode : {Mode::inference, Mode::training}) {
    const ModeScope<Reference> scope(net, mode);
    for (std::size_t i = 0; i < net.size(); ++i) EXPECT_EQ(net[i].mode(), mode);
  }
  EXPECT_EQ(net.mode(), Mode::training);
  for (std::size_t i = 0; i < net.size(); ++i)
    EXPECT_EQ(net[i].mode(), i == 4 ? Mode::inference : Mode::training);
}

TEST(Module, AScopePutsTheModeOfASharedPartBackAndLeavesThatOfANewOne) {
  Rng rng(1);
  struct Shared final : Module<Reference> {
    Dropout<Reference> part;
    explicit Shared(Rng& rng) : part(0.5, rng) {}
    void visit(Visitor<Reference>& v) override {
      v.child("first", part);
      v.child("second", part);
    }
  } shared(rng);
  { const ModeScope<Reference> scope(shared, Mode::inference); }
  EXPECT_EQ(shared.part.mode(), Mode::training);
  Sequential<Reference> net;
  {
    const ModeScope<Reference> scope(net, Mode::inference);
    net.add(Flatten<Reference>());
    net[0].set_mode(Mode::inference);
  }
  EXPECT_EQ(net.mode(), Mode::training);
  EXPECT_EQ(net[0].mode(), Mode::inference);
}

TEST(Module, AStateMovesAModelFromTrainingToInference) {
  Exact training;
  Reference inference;
  auto trained = small_net(training, 1);
  auto served = small_net(inference, 2);
  Rng rng(3);
  const std::vector<float> pixels = rand(inference, {2, 1, 4, 4}, rng).to_vector();
  trained.forward(from_vector(training, pixels, {2, 1, 4, 4}));  // moves the running statistics
  served.load_state(trained.state());
  trained.set_mode(Mode::inference);
  served.set_mode(Mode::inference);
  EXPECT_EQ(trained.forward(from_vector(training, pixels, {2, 1, 4, 4})).to_vector(),
            served.forward(from_vector(inference, pixels, {2, 1, 4, 4})).to_vector());
}

TEST(Module, AStateHoldsParametersAndBuffers) {
  Reference backend;
  auto net = small_net(backend);
  std::vector<std::string> keys;
  for (const auto& item : net.state()) keys.push_back(item.first);
  EXPECT_EQ(keys, (std::vector<std::string>{"0.weight", "head.bias", "head.weight", "norm.bias",
                                            "norm.running_mean", "norm.running_var", "norm.weight"}));
}

TEST(Module, LoadingWritesIntoTheBuffersThatOthersHold) {
  Exact backend;
  Rng rng(1);
  Linear<Exact> layer(backend, {1, 2}, rng);
  const Tensor<Exact> held = layer.weight;
  layer.load_state({{"weight", HostTensor::from(std::span<const float>({5.0f, 7.0f}), {2, 1})},
                    {"bias", HostTensor::from(std::span<const double>({1.0, 2.0}), {2})}});
  expect_values(held, {5, 7});
  expect_values(layer.bias, {1, 2});  // f64 converts to f32
  EXPECT_EQ(layer.bias.dtype(), DType::f32);
}

TEST(Module, AStateThatDoesNotFitIsRefusedWithNamesAndChangesNothing) {
  Reference backend;
  auto net = small_net(backend);
  const NamedTensors before = net.state();
  const auto expect_unchanged = [&] {
    for (const auto& [name, tensor] : net.state())
      EXPECT_TRUE(std::ranges::equal(tensor.bytes(), before.at(name).bytes())) << name;
  };
  NamedTensors other = small_net(backend, 2).state();
  NamedTensors renamed = other;
  renamed.erase("head.bias");
  renamed["tail.bias"] = HostTensor();
  expect_error<ValueError>([&] { net.load_state(renamed); },
                           {"[load_state] missing 'head.bias'; unexpected 'tail.bias'"});
  expect_unchanged();
  NamedTensors reshaped = other;
  reshaped["head.weight"] = HostTensor::from(std::span<const float>({1.0f, 2.0f}), {1, 2});
  expect_error<ShapeError>([&] { net.load_state(reshaped); },
                           {"'head.weight' has shape [1, 2] and needs [3, 8]"});
  expect_unchanged();
  NamedTensors integers = other;
  integers["norm.bias"] = HostTensor::from(std::span<const std::int64_t>({1, 2}), {2});
  expect_error<DTypeError>([&] { net.load_state(integers); }, {"'norm.bias' is i64 and needs f32"});
  expect_unchanged();
}

TEST(Module, LoadingUnderAGraphThatStillNeedsTheOldValuesIsAnError) {
  Exact backend;
  Rng rng(1);
  Linear<Exact> layer(backend, {2, 2}, rng);
  const auto loss = sum(layer.forward(parameter(ones(backend, {1, 2}), "x")));
  layer.load_state(layer.state());
  expect_error<GradientError>([&] { loss.backward(); }, {"modified in place"});
}

}  // namespace
}  // namespace ferrite::nn
