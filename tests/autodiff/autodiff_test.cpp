// The graph: what is recorded, kept, reported and freed.
#include "ferrite/ops/cat.hpp"
#include "ferrite/ops/linear.hpp"
#include "ferrite/ops/statistic.hpp"
#include "ferrite/stacks.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace ferrite {
namespace {

using D = Autodiff<Reference>;

Tensor<D> leaf(D& b, std::vector<double> values, std::string name) {
  return parameter(from_vector(b, values), std::move(name));
}

TEST(Autodiff, GivesTheGradientOfAProduct) {
  D b;
  const auto x = leaf(b, {1, 2, 3}, "x"), y = leaf(b, {4, 5, 6}, "y");
  const auto g = sum(x * y).backward();
  EXPECT_EQ(g.of(x).to_vector<double>(), (std::vector<double>{4, 5, 6}));
  EXPECT_EQ(g.of(y).to_vector<double>(), (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(g.size(), 2u);
}

TEST(Autodiff, AddsUpEveryUseOfALeaf) {
  D b;
  const auto x = leaf(b, {3}, "x");
  const auto y = x * x + x * 2 + x;  // dy/dx = 2x + 3
  EXPECT_DOUBLE_EQ(sum(y).backward().of(x).item<double>(), 9);
}

TEST(Autodiff, LeavesAnAliasedGradientAlone) {
  // Both operands of the addition get the same incoming gradient; accumulating into one must not touch the
  // other.
  D b;
  const auto x = leaf(b, {1, 2}, "x"), y = leaf(b, {3, 4}, "y");
  const auto g = sum((x + y) + x * 10).backward();
  EXPECT_EQ(g.of(x).to_vector<double>(), (std::vector<double>{11, 11}));
  EXPECT_EQ(g.of(y).to_vector<double>(), (std::vector<double>{1, 1}));
}

TEST(Autodiff, NamesALeafWithoutGradient) {
  D b;
  const auto x = leaf(b, {1}, "x"), w = leaf(b, {2}, "fc1.weight");
  const auto g = sum(x * 2).backward();
  try {
    g.of(w);
    FAIL();
  } catch (const GradientError& e) {
    EXPECT_NE(std::string(e.what()).find("'fc1.weight' got no gradient"), std::string::npos) << e.what();
  }
  const std::vector<Tensor<D>> leaves{x, w};
  EXPECT_EQ(g.missing(leaves), std::vector<std::string>{"fc1.weight"});
}

TEST(Autodiff, OnlyLeavesHaveGradients) {
  D b;
  const auto w = leaf(b, {1, 2, 3}, "w"), y = w * 2;
  const Tensor<D> constant = ones(b, {3}, DType::f64), none;
  auto g = sum(w * w + constant).backward();
  for (const Tensor<D>& t : {constant, none, y, w.detach()}) {
    EXPECT_THROW(g.of(t), GradientError);
    EXPECT_FALSE(g.find(t).defined());
  }
  EXPECT_THROW(g.set(constant, g.of(w)), GradientError);
  Gradients<Reference> empty;
  EXPECT_THROW(empty.set(constant, g.of(w)), GradientError);
  EXPECT_EQ(empty.names(), std::vector<std::string>{});
  EXPECT_EQ(g.missing(std::vector<Tensor<D>>{constant}), std::vector<std::string>{"(no leaf)"});
  EXPECT_EQ(g.of(w).to_vector<double>(), (std::vector<double>{2, 4, 6}));
}

TEST(Autodiff, AReleasedGraphCannotRunAgain) {
  D b;
  const auto w = leaf(b, {1, 2}, "w");
  const auto y = sum(w + w);  // saves nothing
  backward(y, BackwardConfig<Reference>{}.with_release());
  EXPECT_THROW(y.backward(), GradientError);
}

TEST(Autodiff, RefusesWhatHasNoGradient) {
  D b;
  const auto constant = from_vector(b, std::vector<double>{1, 2});
  EXPECT_THROW(constant.backward(), GradientError);
  EXPECT_THROW(leaf(b, {1, 2}, "x").backward(), GradientError) << "not a scalar";
  EXPECT_THROW(parameter(from_vector(b, std::vector<int>{1}), "ids"), DTypeError);
}

TEST(Autodiff, PassesAGivenRootGradient) {
  D b;
  const auto x = leaf(b, {1, 2}, "x");
  const auto root = from_vector(b.inner(), std::vector<double>{10, 100});
  const auto g = backward(x * 3, BackwardConfig<Reference>{}.with_root(root));
  EXPECT_EQ(g.of(x).to_vector<double>(), (std::vector<double>{30, 300}));
}

TEST(Autodiff, AccumulatesIntoAnExistingContainer) {
  D b;
  const auto x = leaf(b, {1, 2}, "x");
  Gradients<Reference> grads;
  for (int micro = 0; micro < 3; ++micro) backward(sum(square(x)), grads);
  EXPECT_EQ(grads.of(x).to_vector<double>(), (std::vector<double>{6, 12}));
  const auto kept = grads.of(x);  // a copy the user holds must not be written to
  backward(sum(x), grads);
  EXPECT_EQ(kept.to_vector<double>(), (std::vector<double>{6, 12}));
  EXPECT_EQ(grads.of(x).to_vector<double>(), (std::vector<double>{7, 13}));
}

TEST(Autodiff, RunsBackwardTwiceOverOneGraph) {
  D b;
  const auto x = leaf(b, {2}, "x");
  const auto loss = sum(exp(x));
  EXPECT_EQ(loss.backward().of(x).to_vector<double>(), loss.backward().of(x).to_vector<double>());
}

TEST(Autodiff, FiresTheHookOnceALeafIsComplete) {
  D b;
  const auto w1 = leaf(b, {1}, "w1"), w2 = leaf(b, {2}, "w2");
  const auto loss = sum((w1 * w2) * w2 + w1);  // w2 is complete before w1
  std::vector<std::pair<std::string, double>> ready;
  const auto g = backward(loss, BackwardConfig<Reference>{}.with_on_ready(
                                    [&](const std::string& name, const Tensor<Reference>& grad) {
                                      ready.push_back({name, grad.item<double>()});
                                    }));
  ASSERT_EQ(ready.size(), 2u);
  for (const auto& [name, value] : ready) EXPECT_DOUBLE_EQ(value, name == "w1" ? 5 : 4);
}

TEST(Autodiff, RecordsNothingUnderNoGrad) {
  D b;
  const auto x = leaf(b, {1}, "x");
  const NoGrad guard;
  EXPECT_EQ((x * 2).primitive().node, nullptr);
}

TEST(Autodiff, DetachCutsTheGraph) {
  D b;
  const auto x = leaf(b, {3}, "x");
  EXPECT_DOUBLE_EQ(sum(x * x.detach()).backward().of(x).item<double>(), 3);
}

TEST(Autodiff, NoticesASavedTensorThatWasWrittenInPlace) {
  D b;
  const auto w = leaf(b, {2}, "w");
  const auto loss = sum(w * w);
  w.primitive().value.buffer()->bump_version();  // what an optimiser step does
  try {
    loss.backward();
    FAIL();
  } catch (const GradientError& e) {
    EXPECT_NE(std::string(e.what()).find("modified in place"), std::string::npos);
  }
}

TEST(Autodiff, FreesAGraphAMillionNodesDeep) {
  D b;
  const auto x = leaf(b, {0}, "x");
  Tensor<D> y = x;
  for (int i = 0; i < 1'000'000; ++i) y = y + 1;
  EXPECT_DOUBLE_EQ(y.item<double>(), 1e6);
  EXPECT_DOUBLE_EQ(sum(y).backward().of(x).item<double>(), 1);
  y = {};  // must not overflow the stack
}

TEST(Autodiff, KeepsInUseBytesFlatOverTraining) {
  D b;
  Rng rng(1);
  const auto x = randn(b, {16, 8}, rng), w = parameter(randn(b, {4, 8}, rng), "w");
  std::size_t after_first = 0;
  for (int i = 0; i < 100; ++i) {
    {
      const auto loss = mean(square(tanh(linear(x, w))));
      const auto grads = loss.backward();
      ASSERT_TRUE(grads.find(w).defined());
    }
    if (i == 0) after_first = b.memory_stats().in_use;
    ASSERT_EQ(b.memory_stats().in_use, after_first) << "step " << i;
  }
}

TEST(Autodiff, GraphsOfSeveralThreadsDoNotMeet) {
  D b;
  const auto shared = leaf(b, {2}, "shared");
  std::vector<std::thread> threads;
  std::vector<double> results(4);
  for (std::size_t t = 0; t < results.size(); ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i)
        results[t] =
            sum(pow(shared, static_cast<double>(t + 1))).backward().of(shared).template item<double>();
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(results, (std::vector<double>{1, 4, 12, 32}));
}

// An op without vjp and composition: asking for its gradient is an error, never a silent cut.
struct Opaque {
  static constexpr std::string_view type_name = "opaque";
  Metas infer(MetaSpan in) const { return {in[0]}; }
  static void attributes(auto&, auto&&) {}
};
struct OpaqueBackend : Reference {
  friend void run(OpaqueBackend& b, const Opaque&, Ins in, Outs out) {
    run(static_cast<Reference&>(b), op::Copy{in[0].dtype()}, in, out);
  }
};

TEST(Autodiff, AFusedOpWithoutVjpIsAnErrorWhenAGradientIsAskedFor) {
  Autodiff<OpaqueBackend> b;
  const auto constant = from_vector(b, std::vector<double>{1});
  EXPECT_EQ(eval(Opaque{}, constant).item<double>(), 1);
  try {
    eval(Opaque{}, parameter(constant, "x"));
    FAIL();
  } catch (const GradientError& e) {
    EXPECT_NE(std::string(e.what()).find("[opaque] has no gradient"), std::string::npos);
  }
}

/// Reads what it does not keep.
struct Forgetful {
  static constexpr std::string_view type_name = "forgetful";
  Metas infer(MetaSpan in) const { return {in[0]}; }
  static void attributes(auto&, auto&&) {}
  template <class B>
  Tensors<B> compose(B&, TensorSpan<B> in) const {
    return {in[0] * in[0]};
  }
  template <class B>
  void vjp(Vjp<B>& v) const {
    v.add(0, v.grad() * v.input(0) * 2);
  }
};

TEST(Saves, NameAllThatVjpReads) {
  Autodiff<Cpu> b;
  const auto loss = sum(eval(Forgetful{}, parameter(ones(b, {2}), "x")));
  EXPECT_THROW(loss.backward(), GradientError);
}

TEST(Saves, AreGivenByPosition) {
  constexpr Saves saves{.inputs = {0, 3}};
  static_assert(saves.inputs.contains(3) && !saves.inputs.contains(1) && saves.outputs == Positions{});
  static_assert(saves.inputs.count_below(3) == 1 && saves.inputs.count_below(4) == 2);
  // An op may have more inputs than can be saved.
  Autodiff<Cpu> b;
  const auto x = parameter(ones(b, {1}), "x");
  const std::vector<Tensor<Autodiff<Cpu>>> parts(40, x);
  EXPECT_EQ(sum(cat(parts, 0)).backward().of(x).item(), 40);
  std::vector<Tensor<Autodiff<Cpu>>> last_tracked(40, ones(b, {1}));
  last_tracked.back() = x;
  EXPECT_EQ(sum(cat(last_tracked, 0)).backward().of(x).item(), 1);
}

}  // namespace
}  // namespace ferrite
