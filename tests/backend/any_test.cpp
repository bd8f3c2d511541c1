// AnyBackend: a backend by its name, with tensors, gradients, layers and trainers on it.
#include <gtest/gtest.h>

#include "ferrite/backend/cuda_device.hpp"
#include "ferrite/backend/own_table.hpp"
#include "ferrite/nn/linear.hpp"
#include "ferrite/nn/sequential.hpp"
#include "ferrite/ops/layer_norm.hpp"
#include "ferrite/ops/pointwise_loss.hpp"
#include "ferrite/ops/softmax.hpp"
#include "ferrite/optim/adam.hpp"
#include "ferrite/stacks.hpp"

namespace ferrite {
namespace {

using Floats = std::vector<float>;

TEST(AnyBackend, EveryNameMakesABackend) {
  for (const auto& [name, meaning] : AnyBackend::names()) {
    SCOPED_TRACE(name);
    EXPECT_FALSE(meaning.empty());
    if (name.find("cuda") != std::string::npos && cuda_device_count() == 0) {
      EXPECT_THROW(AnyBackend{name}, DeviceError);
      continue;
    }
    AnyBackend b(name);
    EXPECT_EQ(sum(ones(b, {2, 3}) * 2, {1}).to_vector(), (Floats{6, 6}));
  }
}

TEST(AnyBackend, SaysWhatAutoStandsFor) {
  EXPECT_EQ(AnyBackend("auto").describe(), AnyBackend(AnyBackend::automatic_name()).describe());
}

TEST(AnyBackend, ANameThatIsNoneIsRefusedWithTheNamesThereAre) {
  for (const char* name : {"gpu", "", "cpu:0", "cuda:", "cuda:x", "cuda:-1", "cuda:1x"}) {
    try {
      AnyBackend b(name);
      ADD_FAILURE() << name;
    } catch (const ValueError& e) {
      const std::string text = e.what();
      EXPECT_NE(text.find("'" + std::string(name) + "'"), std::string::npos) << text;
      EXPECT_NE(text.find("cpu, cpu-openblas, cpu-fastest, cuda, reference, lazy-cpu"), std::string::npos)
          << text;
    }
  }
}

TEST(AnyBackend, ObjectsOfOneBackendMixAsTheBackendItselfDoes) {
  AnyBackend a("cpu"), b("cpu"), other("reference");
  EXPECT_EQ((ones(a, {2}) + ones(b, {2})).to_vector(), (Floats{2, 2}));
  EXPECT_THROW(ones(a, {2}) + ones(other, {2}), DeviceError);
  AnyBackend lazy("lazy-cpu"), lazy_copy = lazy, lazy_other("lazy-cpu");
  EXPECT_EQ((ones(lazy, {2}) + ones(lazy_copy, {2})).to_vector(), (Floats{2, 2}));
  EXPECT_THROW(ones(lazy, {2}) + ones(lazy_other, {2}), DeviceError);
}

TEST(AnyBackend, GivesTheBitsOfTheBackendItHolds) {
  Autodiff<AnyBackend> any("cpu");
  Autodiff<Cpu> typed;
  const auto step = [](auto& b) {
    Rng rng(3);
    const auto w = parameter(randn(b, {5, 7}, rng), "w"), x = randn(b, {4, 7}, rng);
    const auto y = layer_norm(linear(x, w) + linear(x * 2, w), ones(b, {5}), zeros(b, {5}));
    return to_bytes(sum(square(softmax(y))).backward().of(w));
  };
  EXPECT_EQ(step(any), step(typed));
}

TEST(AnyBackend, ShowsWhatItHoldsAndReports) {
  AnyBackend cpu("cpu"), profiled("profiled-cpu"), parity("parity"), lazy("lazy-cpu");
  EXPECT_NE(cpu.get_if<Cpu>(), nullptr);
  EXPECT_EQ(cpu.get_if<Reference>(), nullptr);
  EXPECT_FALSE(cpu.profile());
  EXPECT_EQ(cpu.report(), "");
  softmax(ones(profiled, {2, 3}));
  ASSERT_TRUE(profiled.profile());
  EXPECT_NE(profiled.report().find("softmax"), std::string::npos);
  exp(ones(parity, {2}));
  EXPECT_NE(parity.report().find("exp"), std::string::npos);
  EXPECT_EQ((ones(lazy, {2}) * 3 + 1).to_vector(), (Floats{4, 4}));
  EXPECT_NE(lazy.report().find("fused"), std::string::npos);
}

// An op that is not of the list, with a kernel on the CPU.
struct Triple {
  static constexpr std::string_view type_name = "triple";
  inline static int kernels = 0;
  Metas infer(MetaSpan in) const { return {in[0]}; }
  static void attributes(auto&, auto&&) {}
  template <class B>
  Tensors<B> compose(B&, TensorSpan<B> in) const {
    return {in[0] * 3};
  }
};
void run(Cpu& b, const Triple&, Ins in, Outs out) {
  ++Triple::kernels;
  run(b, op::Binary{op::BinaryFn::mul, op::ScalarSide::right, 3}, in, out);
}

TEST(AnyBackend, FindsKernelsOfOpsFromOutside) {
  for (const char* name : {"cpu", "profiled-cpu", "lazy-cpu", "parity"}) {
    SCOPED_TRACE(name);
    AnyBackend b(name);
    const int before = Triple::kernels;
    EXPECT_EQ(eval(Triple{}, ones(b, {2})).to_vector(), (Floats{3, 3}));
    EXPECT_EQ(Triple::kernels, before + 1);
  }
  AnyBackend reference("reference");
  const int before = Triple::kernels;
  EXPECT_EQ(eval(Triple{}, ones(reference, {2})).to_vector(), (Floats{3, 3}));  // composed
  EXPECT_EQ(Triple::kernels, before);
}

// What PriorDatasets is to the training of `ferrite pfn train`: composed, it would be made on the host.
TEST(AnyBackend, KernelsOfOpsFromOutsideAreFoundThroughDecorators) {
  for (const char* name : {"cpu", "profiled-cpu", "lazy-cpu"}) {
    SCOPED_TRACE(name);
    Autodiff<Autocast<AnyBackend>> b{Autocast<AnyBackend>(AnyBackend(name))};
    const int before = Triple::kernels;
    EXPECT_EQ(eval(Triple{}, ones(b, {2})).to_vector(), (Floats{3, 3}));
    EXPECT_EQ(Triple::kernels, before + 1);
  }
  for (const AnyBackend& held : {AnyBackend("reference"), AnyBackend(Reference{})}) {  // no kernel: composed
    Autocast<AnyBackend> b(held);
    const int before = Triple::kernels;
    EXPECT_EQ(eval(Triple{}, ones(b, {2})).to_vector(), (Floats{3, 3}));
    EXPECT_EQ(Triple::kernels, before);
  }
}

TEST(AnyBackend, RefusesToRunAKernelThatItDoesNotHave) {
  AnyBackend b("reference");
  const Tensor<AnyBackend> x = ones(b, {2}), y = zeros(b, {2});
  const Array* in[] = {&x.primitive()};
  Array out = y.primitive();
  EXPECT_FALSE(accepts(b, Triple{}, std::array{x.meta()}));
  EXPECT_THROW(run(b, Triple{}, Ins(in, 1), Outs(&out, 1)), BackendError);
}

struct Own : Reference {};
void run(Own& b, const op::Fill& op, Ins in, Outs out) {
  run(static_cast<Reference&>(b), op::Fill{op.shape, op.dtype, 7}, in, out);
}

TEST(AnyBackend, HoldsABackendOfAnyType) {
  AnyBackend b{Own{}};
  EXPECT_EQ(ones(b, {2}).to_vector(), (Floats{7, 7}));
  EXPECT_EQ(eval(Triple{}, ones(b, {1})).to_vector(), (Floats{21}));
  ASSERT_NE(b.get_if<Own>(), nullptr);
}

TEST(AnyBackend, TrainsToTheWeightsOfTheTypedBackend) {
  const auto train = [](auto& b) {
    using B = std::remove_reference_t<decltype(b)>;
    Rng rng(5);
    nn::Sequential<B> net;
    net.add(nn::Linear<B>(b, nn::LinearConfig{3, 8}.with_activation(Activation::gelu), rng))
        .add(nn::Linear<B>(b, {8, 2}, rng));
    optim::AdamW<B> optimizer(net.parameters(), optim::AdamWConfig{}.with_lr(0.01).with_clip_norm(1));
    for (int step = 0; step < 5; ++step) {
      const auto x = randn(b, {16, 3}, rng), y = randn(b, {16, 2}, rng);
      optimizer.step(mse_loss(net.forward(x), y).backward());
    }
    std::vector<std::vector<std::byte>> weights;
    for (auto& [name, tensor] : net.state())
      weights.push_back(std::vector(tensor.bytes().begin(), tensor.bytes().end()));
    return weights;
  };
  Autodiff<AnyBackend> any("cpu");
  Autodiff<Cpu> typed;
  EXPECT_EQ(train(any), train(typed));
}

}  // namespace
}  // namespace ferrite
