// The fused pairs: each against its composition on Reference, forward and by numerical gradient.
#pragma once

#include "case.hpp"

namespace ferrite::conformance {

template <class B>
void add_norm_cases(Cases<B>& cases) {
  cases.add({"softmax", {real({3, 7})}, floats, 7}, [](const auto& in) { return softmax(in[0]); });
  cases.add({"softmax/axis", {real({3, 4, 5})}, floats, 4}, [](const auto& in) { return softmax(in[0], 1); });
  cases.add({"log_softmax", {real({3, 7})}, floats, 7}, [](const auto& in) { return log_softmax(in[0]); });
  cases.add({"log_softmax/axis", {real({4, 5})}, floats, 4},
            [](const auto& in) { return log_softmax(in[0], 0); });
  cases.add({"layer_norm", {real({2, 3, 8}), real({8}), real({8})}, floats, 8},
            [](const auto& in) { return layer_norm(in[0], in[1], in[2]); });
  cases.add({"rms_norm", {real({2, 3, 8}), real({8})}, floats, 8},
            [](const auto& in) { return rms_norm(in[0], in[1]); });
  cases.add({"batch_norm", {real({4, 3, 2, 2}), real({3}), real({3})}, floats, 16},
            [](const auto& in) { return batch_norm(in[0], in[1], in[2]).y; });
  cases.add({"batch_norm/2d", {real({6, 3}), real({3}), real({3})}, floats, 6},
            [](const auto& in) { return batch_norm(in[0], in[1], in[2]).y; });
  cases.add({"batch_norm_with",
             {real({2, 3, 2, 2}), real({3}), real({3}), constant(real({3})), constant(positive({3}))}},
            [](const auto& in) { return batch_norm_with(in[0], in[1], in[2], in[3], in[4]); });
}

template <class B>
void add_linear_cases(Cases<B>& cases) {
  cases.add({"linear", {real({5, 4}), real({3, 4}), real({3})}, floats, 4},
            [](const auto& in) { return linear(in[0], in[1], in[2]); });
  cases.add({"linear/no_bias", {real({2, 5, 4}), real({3, 4})}, floats, 4},
            [](const auto& in) { return linear(in[0], in[1]); });
  for (Activation act :
       {Activation::relu, Activation::gelu, Activation::silu, Activation::tanh, Activation::sigmoid})
    cases.add(
        {"linear/" + std::string(op::to_string(act)), {real({5, 4}), real({3, 4}), real({3})}, floats, 4},
        [act](const auto& in) { return linear(in[0], in[1], in[2], act); });
}

template <class B>
void add_attention_cases(Cases<B>& cases) {
  const Input q = real({2, 2, 5, 4}), k = real({2, 2, 6, 4}), v = real({2, 2, 6, 3});
  cases.add({"attention", {q, k, v}, floats, 10},
            [](const auto& in) { return attention(in[0], in[1], in[2]); });
  cases.add({"attention/causal", {q, k, v}, floats, 10}, [](const auto& in) {
    return attention(in[0], in[1], in[2], AttentionConfig{}.with_causal(true));
  });
  cases.add({"attention/bool_mask", {q, k, v, boolean({2, 1, 5, 6})}, floats, 10},
            [](const auto& in) { return attention(in[0], in[1], in[2], {}, in[3]); });
  cases.add({"attention/additive_mask", {q, k, v, real({5, 6})}, floats, 10},
            [](const auto& in) { return attention(in[0], in[1], in[2], {}, in[3]); });
  cases.add({"attention/scale", {q, k, v}, floats, 10},
            [](const auto& in) { return attention(in[0], in[1], in[2], AttentionConfig{}.with_scale(0.2)); });
}

template <class B>
void add_loss_cases(Cases<B>& cases) {
  cases.add({"softmax_cross_entropy", {real({6, 5}), index({6}, 5)}, floats, 30},
            [](const auto& in) { return softmax_cross_entropy(in[0], in[1]); });
  cases.add(
      {"softmax_cross_entropy/none", {real({2, 3, 5}), index({2, 3}, 5)}, floats, 5}, [](const auto& in) {
        return softmax_cross_entropy(in[0], in[1], CrossEntropyConfig{}.with_reduction(Reduction::none));
      });
  cases.add({"softmax_cross_entropy/options", {real({6, 5}), index({6}, 5)}, floats, 30}, [](const auto& in) {
    return softmax_cross_entropy(
        in[0], in[1],
        CrossEntropyConfig{}.with_ignore_index(2).with_label_smoothing(0.1).with_reduction(Reduction::sum));
  });
}

template <class B>
void add_spatial_cases(Cases<B>& cases) {
  const Input x = real({2, 4, 6, 5});
  cases.add({"conv2d", {x, real({3, 4, 3, 2}), real({3})}, floats, 24},
            [](const auto& in) { return conv2d(in[0], in[1], in[2]); });
  cases.add({"conv2d/1x1", {x, real({3, 4, 1, 1})}, floats, 4},
            [](const auto& in) { return conv2d(in[0], in[1]); });
  cases.add({"conv2d/stride_padding", {x, real({3, 4, 3, 3})}, floats, 36}, [](const auto& in) {
    return conv2d(in[0], in[1], {}, Conv2dConfig{}.with_stride(2, 1).with_padding(1, 2));
  });
  cases.add({"conv2d/dilation", {x, real({2, 4, 2, 2})}, floats, 16},
            [](const auto& in) { return conv2d(in[0], in[1], {}, Conv2dConfig{}.with_dilation(2)); });
  cases.add({"conv2d/groups", {x, real({6, 2, 3, 3}), real({6})}, floats, 18}, [](const auto& in) {
    return conv2d(in[0], in[1], in[2], Conv2dConfig{}.with_groups(2).with_padding(1));
  });
  const Input tall = distinct({2, 3, 6, 5});
  cases.add({"max_pool2d", {tall}}, [](const auto& in) { return max_pool2d(in[0], PoolConfig(2)); });
  cases.add({"max_pool2d/overlap", {tall}},
            [](const auto& in) { return max_pool2d(in[0], PoolConfig(3).with_stride(2).with_padding(1)); });
  cases.add({"avg_pool2d", {x}, floats, 4}, [](const auto& in) { return avg_pool2d(in[0], PoolConfig(2)); });
  cases.add({"avg_pool2d/overlap", {x}, floats, 9},
            [](const auto& in) { return avg_pool2d(in[0], PoolConfig(3).with_stride(2).with_padding(1)); });
}

template <class B>
void add_fused_cases(Cases<B>& cases) {
  add_norm_cases(cases);
  add_linear_cases(cases);
  add_attention_cases(cases);
  add_loss_cases(cases);
  add_spatial_cases(cases);
}

}  // namespace ferrite::conformance
