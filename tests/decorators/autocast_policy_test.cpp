// Autocast's policy, op by op: which inputs are rounded to 16 bits, and that nothing else is.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "ferrite/ops/all.hpp"
#include "ferrite/ops/launch.hpp"
#include "ferrite/ops/list.hpp"
#include "ferrite/stacks.hpp"
#include "ferrite/stacks/replay_call.hpp"
#include "ferrite/stacks/self_test.hpp"
#include "ferrite/tensor/host.hpp"

namespace ferrite {
namespace {

/// The inputs of each op that are rounded.
const std::map<std::string_view, Positions> policy{
    // Products, which are faster in 16 bits.
    {"matmul", {0, 1}},
    {"linear", {0, 1, 2, 3}},
    {"fused_linear", {1}},
    {"quantized_linear", {0}},
    {"embedding", {0}},
    {"attention", {0, 1, 2}},
    {"attention_backward", {0, 1, 2, 3, 4}},
    {"self_attention", {0}},
    {"self_attention_backward", {0, 1, 2}},
    {"cross_attention", {0, 1, 2}},
    {"cross_attention_backward", {0, 1, 2, 3, 4}},
    {"linear_cross_entropy", {0, 1}},
    {"conv2d", {0, 1, 2}},
    {"conv2d_input_grad", {0, 1}},
    {"conv2d_weight_grad", {0, 1}},
    // clang-format off
    // All others get their inputs as they come. Primitives that move, make or combine elements:
    {"fill", {}}, {"iota", {}}, {"random", {}}, {"copy", {}}, {"unary", {}}, {"binary", {}}, {"where", {}},
    {"reduce", {}}, {"argreduce", {}}, {"scan", {}}, {"gather", {}}, {"scatter", {}}, {"scatter_add", {}},
    // Views.
    {"reshape", {}}, {"permute", {}}, {"slice", {}}, {"expand", {}}, {"windows", {}},
    // Elements, in another order or chosen.
    {"fold", {}}, {"pad", {}}, {"cat", {}}, {"sort", {}}, {"order_statistics", {}}, {"bucketize", {}},
    {"triangle", {}}, {"one_hot", {}}, {"index_select", {}}, {"rope", {}}, {"next_token", {}},
    // Functions of elements.
    {"unary_backward", {}}, {"activation_backward", {}}, {"gated_activation", {}},
    {"gated_activation_backward", {}}, {"dropout", {}},
    // Sums over many elements: norms, softmax, losses, pools.
    {"statistic", {}}, {"softmax", {}}, {"softmax_backward", {}}, {"log_softmax", {}},
    {"log_softmax_backward", {}}, {"layer_norm", {}}, {"layer_norm_backward", {}}, {"rms_norm", {}},
    {"rms_norm_backward", {}}, {"batch_norm", {}}, {"batch_norm_backward", {}},
    {"softmax_cross_entropy", {}}, {"softmax_cross_entropy_backward", {}},
    {"softmax_cross_entropy_with_gradient", {}}, {"cross_entropy_loss", {}}, {"pointwise_loss", {}},
    {"pointwise_loss_backward", {}}, {"max_pool2d", {}}, {"max_pool2d_backward", {}}, {"avg_pool2d", {}},
    {"avg_pool2d_backward", {}},
    // Gradients of a table are sums of rows, and keep their dtype.
    {"embedding_backward", {}},
    // Its queries come from products, and the cache has the dtype that it was made with.
    {"cached_attention", {}},
    // Optimisers work on the parameters themselves.
    {"global_norm", {}}, {"sgd", {}}, {"adam", {}},
    // Linear algebra needs all the bits there are.
    {"triangular_solve", {}}, {"cholesky", {}}, {"lu", {}}, {"solve", {}}, {"solve_factored", {}},
    {"qr", {}}, {"eigh", {}}, {"svd", {}},
    // Whoever wrote the kernel decides.
    {"launch", {}},
    // clang-format on
};

/// Inputs of the op's example in f32.
template <class Op>
std::vector<HostTensor> example_of(Op& op) {
  std::vector<HostTensor> inputs;
  for (const Meta& meta : op_example(op, DType::f32))
    inputs.push_back(example_input(meta, inputs.size() + 1, detail::DefinedOnHost<Op>));
  return inputs;
}

template <class B, class Op>
std::vector<HostTensor> results_on(B& b, const Op& op, const std::vector<Array>& inputs) {
  std::vector<const Array*> refs;
  for (const Array& x : inputs) refs.push_back(&x);
  std::vector<HostTensor> results;
  for (const Array& y : evaluate(b, op, Ins(refs.data(), refs.size())))
    results.push_back(detail::download(b, y));
  return results;
}

/// An op that is new rounds nothing, or needs a row.
Positions rounded_by(std::string_view op) {
  const auto row = policy.find(op);
  return row == policy.end() ? Positions{} : row->second;
}

TEST(AutocastPolicy, OpsRoundTheInputsOfTheTable) {
  std::set<std::string_view> names;
  op::Core::for_each([&]<class Op>() {
    names.insert(Op::type_name);
    EXPECT_EQ(op_lowered<Op>(), rounded_by(Op::type_name))
        << Op::type_name << ": say in `policy` which inputs are rounded";
  });
  for (const auto& [name, rounded] : policy) EXPECT_TRUE(names.contains(name)) << name << ": no such op";
}

/// Ops that a Cpu composes of products, whose intermediate results are rounded too.
const std::set<std::string_view> composed_ops{"attention",
                                              "attention_backward",
                                              "cached_attention",
                                              "conv2d",
                                              "conv2d_input_grad",
                                              "cross_attention",
                                              "cross_attention_backward",
                                              "self_attention",
                                              "self_attention_backward"};

/// Equal bits, or for composed ops a few roundings of bf16 apart.
void expect_same(std::string_view op, const HostTensor& got, const HostTensor& want) {
  EXPECT_EQ(got.dtype(), want.dtype());
  ASSERT_EQ(got.shape(), want.shape());
  if (std::ranges::equal(got.bytes(), want.bytes())) return;
  EXPECT_TRUE(composed_ops.contains(op)) << op << " gives other bits";
  Cpu cpu;
  const auto values = [&](const HostTensor& x) {
    return cast(from_host(cpu, x), DType::f64).to_vector<double>();
  };
  const auto a = values(got), b = values(want);
  const double largest = std::abs(*std::ranges::max_element(b, {}, [](double v) { return std::abs(v); }));
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], largest / 64) << i;
}

TEST(AutocastPolicy, AnOpGivesWhatItGivesOnInputsThatWereRoundedByHand) {
  Autocast<Cpu> mixed;
  Cpu cpu;
  op::Core::for_each([&]<class Op>() {
    SCOPED_TRACE(Op::type_name);
    Op op{};
    std::vector<Array> given, by_hand;
    for (const HostTensor& x : example_of(op)) {
      given.push_back(detail::upload(mixed, x));
      const bool rounded = rounded_by(Op::type_name).contains(by_hand.size()) && x.dtype() == DType::f32;
      const Tensor<Cpu> on_cpu(cpu, detail::upload(cpu, x));
      by_hand.push_back(rounded ? cast(on_cpu, DType::bf16).primitive() : on_cpu.primitive());
    }
    const auto got = results_on(mixed, op, given), want = results_on(cpu, op, by_hand);
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      SCOPED_TRACE(i);
      expect_same(Op::type_name, got[i], want[i]);
    }
  });
}

}  // namespace
}  // namespace ferrite
