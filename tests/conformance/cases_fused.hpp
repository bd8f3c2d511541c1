// The fused pairs: each against its composition on Reference, forward and by numerical gradient.
#pragma once

#include "case.hpp"

namespace ferrite::conformance {

template <class B>
void add_norm_cases(Cases<B>& cases) {
  cases.add(Spec{"softmax", {real({3, 7})}, floats, 7}.also({{{3, 0}}, {{0, 7}}, {{1, 1}}, {{1}}}),
            [](const auto& in) { return softmax(in[0]); });
  cases.add(Spec{"softmax/axis", {real({3, 4, 5})}, floats, 4}.also({{{3, 0, 5}}, {{3, 1, 0}}, {{1, 1, 1}}}),
            [](const auto& in) { return softmax(in[0], 1); });
  cases.add(Spec{"log_softmax", {real({3, 7})}, floats, 7}.also({{{3, 0}}, {{0, 7}}, {{1, 1}}, {{1}}}),
            [](const auto& in) { return log_softmax(in[0]); });
  cases.add(Spec{"log_softmax/axis", {real({4, 5})}, floats, 4}.also({{{0, 5}}, {{4, 0}}, {{1, 1}}}),
            [](const auto& in) { return log_softmax(in[0], 0); });
  cases.add(Spec{"layer_norm", {real({2, 3, 8}), real({8}), real({8})}, floats, 8}.also(
                {{{0, 8}, {8}, {8}}, {{0, 0}, {0}, {0}}, {{3}, {3}, {3}}}),
            [](const auto& in) { return layer_norm(in[0], in[1], in[2]); });
  cases.add(Spec{"rms_norm", {real({2, 3, 8}), real({8})}, floats, 8}.also(
                {{{0, 8}, {8}}, {{0, 0}, {0}}, {{2, 1}, {1}}, {{3}, {3}}}),
            [](const auto& in) { return rms_norm(in[0], in[1]); });
  cases.add(Spec{"batch_norm", {real({4, 3, 2, 2}), real({3}), real({3})}, floats, 16}.also(
                {{{4, 0, 2, 2}, {0}, {0}}, {{4, 1, 1, 1}, {1}, {1}}}),
            [](const auto& in) { return batch_norm(in[0], in[1], in[2]).y; });
  cases.add({"batch_norm/2d", {real({6, 3}), real({3}), real({3})}, floats, 6},
            [](const auto& in) { return batch_norm(in[0], in[1], in[2]).y; });
  cases.add({"batch_norm_with",
             {real({2, 3, 2, 2}), real({3}), real({3}), constant(real({3})), constant(positive({3}))}},
            [](const auto& in) { return batch_norm_with(in[0], in[1], in[2], in[3], in[4]); });
}

template <class B>
void add_linear_cases(Cases<B>& cases) {
  cases.add(Spec{"linear", {real({5, 4}), real({3, 4}), real({3})}, floats, 4}.also(
                {{{0, 4}, {3, 4}, {3}}, {{5, 0}, {3, 0}, {3}}, {{5, 4}, {0, 4}, {0}}, {{1, 1}, {1, 1}, {1}}}),
            [](const auto& in) { return linear(in[0], in[1], in[2]); });
  cases.add(Spec{"linear/no_bias", {real({2, 5, 4}), real({3, 4})}, floats, 4}.also(
                {{{0, 5, 4}, {3, 4}}, {{4}, {3, 4}}, {{2, 5, 0}, {3, 0}}}),
            [](const auto& in) { return linear(in[0], in[1]); });
  cases.add(Spec{"linear/residual", {real({5, 4}), real({3, 4}), real({3}), real({5, 3})}, floats, 4}.also(
                {{{0, 4}, {3, 4}, {3}, {0, 3}},
                 {{5, 0}, {3, 0}, {3}, {5, 3}},
                 {{5, 4}, {0, 4}, {0}, {5, 0}},
                 {{1, 1}, {1, 1}, {1}, {1, 1}}}),
            [](const auto& in) { return linear(in[0], in[1], in[2], Activation::none, in[3]); });
  cases.add(Spec{"linear/residual_no_bias", {real({2, 5, 4}), real({3, 4}), real({2, 5, 3})}, floats, 4}.also(
                {{{0, 5, 4}, {3, 4}, {0, 5, 3}}, {{4}, {3, 4}, {3}}, {{2, 5, 0}, {3, 0}, {2, 5, 3}}}),
            [](const auto& in) { return linear(in[0], in[1], {}, Activation::none, in[2]); });
  cases.add({"linear/residual_after_gelu", {real({5, 4}), real({3, 4}), real({3}), real({5, 3})}, floats, 4},
            [](const auto& in) { return linear(in[0], in[1], in[2], Activation::gelu, in[3]); });
  for (Activation act :
       {Activation::relu, Activation::gelu, Activation::silu, Activation::tanh, Activation::sigmoid})
    cases.add(
        {"linear/" + std::string(op::to_string(act)), {real({5, 4}), real({3, 4}), real({3})}, floats, 4},
        [act](const auto& in) { return linear(in[0], in[1], in[2], act); });
}

template <class B>
void add_quantized_linear_cases(Cases<B>& cases) {
  const auto weight = [](const auto& in) { return cast(in[1] - 60, DType::i8); };
  const auto inputs = [](std::int64_t rows, std::int64_t columns, std::int64_t inner) {
    return std::vector<Input>{real({rows, inner}), index({columns, inner}, 121), positive({columns}),
                              real({columns})};
  };
  cases.add(Spec{"quantized_linear", inputs(5, 3, 4), floats, 4}.also(
                {{{0, 4}, {3, 4}, {3}, {3}}, {{2, 3, 4}, {5, 4}, {5}, {5}}, {{5, 4}, {0, 4}, {0}, {0}}}),
            [=](const auto& in) { return quantized_linear(in[0], weight(in), in[2] / 127, in[3]); });
  cases.add({"quantized_linear/no_bias", {real({3, 20}), index({6, 20}, 121), positive({6})}, floats, 20},
            [=](const auto& in) { return quantized_linear(in[0], weight(in), in[2] / 127); });
  // Kernels differ by the number of rows; the gradient is that of the composition.
  for (const std::int64_t rows : {1, 3, 17}) {
    Spec spec{"quantized_linear/rows_" + std::to_string(rows), inputs(rows, 9, 48), floats, 48};
    spec.differentiable = false;
    cases.add(spec, [=](const auto& in) {
      return quantized_linear(in[0], weight(in), in[2] / 127, in[3], Activation::gelu);
    });
  }
}

template <class B>
void add_activation_backward_cases(Cases<B>& cases) {
  for (const auto fn : {op::UnaryFn::relu, op::UnaryFn::gelu_tanh, op::UnaryFn::silu, op::UnaryFn::tanh}) {
    const std::string name(op::Unary{fn}.name());
    // The slope of relu does not change with its input.
    const auto saved = [fn](const Shape& shape) {
      return fn == op::UnaryFn::relu ? constant(real(shape)) : real(shape);
    };
    const auto part = [fn](const auto& in, std::size_t i) {
      return eval_all(op::ActivationBackward{fn, 1, DType::f32}, in[0], in[1])[i];
    };
    cases.add(Spec{"activation_backward/" + name, {saved({5, 16}), real({5, 16})}, floats, 5}.also(
                  {{{0, 8}, {0, 8}}, {{3, 0}, {3, 0}}, {{1, 7}, {1, 7}}, {{2, 264}, {2, 264}}}),
              [part](const auto& in) { return part(in, 0); });
    cases.add(Spec{"activation_backward/sums/" + name, {saved({40, 24}), real({40, 24})}, floats, 40}.also(
                  {{{0, 8}, {0, 8}}, {{1, 7}, {1, 7}}}),
              [part](const auto& in) { return part(in, 1); });
  }
}

template <class B>
void add_attention_cases(Cases<B>& cases) {
  const Input q = real({2, 2, 5, 4}), k = real({2, 2, 6, 4}), v = real({2, 2, 6, 3});
  cases.add(Spec{"attention", {q, k, v}, floats, 10}.also({{{2, 2, 5, 4}, {2, 2, 0, 4}, {2, 2, 0, 3}},
                                                           {{2, 2, 0, 4}, {2, 2, 6, 4}, {2, 2, 6, 3}},
                                                           {{0, 2, 5, 4}, {0, 2, 6, 4}, {0, 2, 6, 3}},
                                                           {{1, 1, 1, 1}, {1, 1, 1, 1}, {1, 1, 1, 1}},
                                                           {{1, 1, 2, 4}, {1, 1, 3, 4}, {1, 1, 3, 0}}}),
            [](const auto& in) { return attention(in[0], in[1], in[2]); });
  cases.add(
      Spec{"attention/causal", {q, k, v}, floats, 10}.also(
          {{{1, 1, 3, 4}, {1, 1, 0, 4}, {1, 1, 0, 2}}, {{1, 1, 5, 2}, {1, 1, 2, 2}, {1, 1, 2, 3}}}),
      [](const auto& in) { return attention(in[0], in[1], in[2], AttentionConfig{}.with_causal(true)); });
  cases.add({"attention/bool_mask", {q, k, v, boolean({2, 1, 5, 6})}, floats, 10},
            [](const auto& in) { return attention(in[0], in[1], in[2], {}, in[3]); });
  cases.add({"attention/additive_mask", {q, k, v, real({5, 6})}, floats, 10},
            [](const auto& in) { return attention(in[0], in[1], in[2], {}, in[3]); });
  // Heads of queries that share keys and values, in groups and all of them; windows.
  const Input grouped = real({2, 4, 5, 4}), one_k = real({2, 1, 6, 4}), one_v = real({2, 1, 6, 3});
  cases.add(
      Spec{"attention/grouped", {grouped, k, v}, floats, 10}.also(
          {{{1, 6, 3, 2}, {1, 3, 3, 2}, {1, 3, 3, 2}},
           {{2, 4, 5, 4}, {2, 2, 0, 4}, {2, 2, 0, 3}},
           {{1, 0, 3, 2}, {1, 2, 3, 2}, {1, 2, 3, 2}},
           {{0, 4, 5, 4}, {0, 2, 6, 4}, {0, 2, 6, 3}}}),
      [](const auto& in) { return attention(in[0], in[1], in[2], AttentionConfig{}.with_causal(true)); });
  cases.add({"attention/multi_query", {grouped, one_k, one_v, boolean({4, 5, 6})}, floats, 10},
            [](const auto& in) { return attention(in[0], in[1], in[2], {}, in[3]); });
  cases.add(Spec{"attention/window", {q, k, v}, floats, 10}.also(
                {{{1, 1, 7, 2}, {1, 1, 3, 2}, {1, 1, 3, 2}}, {{1, 1, 2, 2}, {1, 1, 9, 2}, {1, 1, 9, 3}}}),
            [](const auto& in) { return attention(in[0], in[1], in[2], AttentionConfig{}.with_window(2)); });
  cases.add(Spec{"attention/window_causal", {grouped, k, v, real({5, 6})}, floats, 10}.also(
                {{{1, 2, 7, 2}, {1, 1, 3, 2}, {1, 1, 3, 2}, {7, 3}}}),
            [](const auto& in) {
              return attention(in[0], in[1], in[2], AttentionConfig{}.with_causal(true).with_window(3),
                               in[3]);
            });
  cases.add({"attention/scale", {q, k, v}, floats, 10},
            [](const auto& in) { return attention(in[0], in[1], in[2], AttentionConfig{}.with_scale(0.2)); });
  cases.add(Spec{"self_attention", {real({2, 5, 3, 2, 4})}, floats, 9}.also(
                {{{0, 5, 3, 2, 4}}, {{2, 0, 3, 2, 4}}, {{1, 2, 3, 0, 4}}, {{1, 1, 3, 1, 1}}}),
            [](const auto& in) { return self_attention(in[0]); });
  cases.add(Spec{"self_attention/causal", {real({2, 5, 3, 2, 4})}, floats, 9}, [](const auto& in) {
    return self_attention(in[0], AttentionConfig{}.with_causal(true).with_scale(0.7));
  });
  cases.add(Spec{"self_attention/window", {real({2, 5, 3, 2, 4})}, floats, 9}, [](const auto& in) {
    return self_attention(in[0], AttentionConfig{}.with_causal(true).with_window(2));
  });
  const Input queries = real({2, 5, 4, 3}), keys = real({2, 6, 2, 3}), values = real({2, 6, 2, 4});
  cases.add(Spec{"cross_attention", {queries, keys, values}, floats, 9}.also(
                {{{2, 5, 2, 4}, {2, 0, 2, 4}, {2, 0, 2, 3}},
                 {{2, 0, 2, 4}, {2, 6, 2, 4}, {2, 6, 2, 3}},
                 {{0, 5, 2, 4}, {0, 6, 2, 4}, {0, 6, 2, 3}},
                 {{1, 5, 0, 4}, {1, 6, 0, 4}, {1, 6, 0, 4}},
                 {{1, 1, 1, 1}, {1, 1, 1, 1}, {1, 1, 1, 1}}}),
            [](const auto& in) { return cross_attention(in[0], in[1], in[2]); });
  cases.add({"cross_attention/window", {queries, keys, values}, floats, 9}, [](const auto& in) {
    return cross_attention(in[0], in[1], in[2], AttentionConfig{}.with_causal(true).with_window(3));
  });
  cases.add({"cross_attention/bool_mask", {queries, keys, values, boolean({2, 1, 5, 6})}, floats, 9},
            [](const auto& in) { return cross_attention(in[0], in[1], in[2], {}, in[3]); });
  cases.add({"cross_attention/additive_mask", {queries, keys, values, real({5, 6})}, floats, 9},
            [](const auto& in) {
              return cross_attention(in[0], in[1], in[2], AttentionConfig{}.with_scale(0.4), in[3]);
            });
}

template <class B>
void add_rope_cases(Cases<B>& cases) {
  for (const RopePairs pairs : {RopePairs::halves, RopePairs::neighbours}) {
    const std::string name = "rope/" + std::string(to_string(pairs));
    const auto table = [](const auto& x) {
      return rope_frequencies(x.backend(), RopeConfig{100}, x.size(-1), x.dtype());
    };
    cases.add(Spec{name, {real({2, 5, 3, 8})}, floats, 2}.also(
                  {{{2, 0, 3, 8}}, {{0, 5, 3, 8}}, {{1, 1, 1, 2}}, {{1, 3, 9, 32}}, {{5, 3, 4}}}),
              [=](const auto& in) { return rope(in[0], table(in[0]), 3, -3, pairs); });
    cases.add(Spec{name + "/axis", {real({2, 3, 5, 6})}, floats, 2}.also({{{3, 4}}, {{2, 1, 5, 16}}}),
              [=](const auto& in) { return rope(in[0], table(in[0]), 0, -2, pairs); });
    cases.add({name + "/positions", {real({2, 5, 3, 4}), index({5}, 9)}, floats, 2},
              [=](const auto& in) { return rope(in[0], table(in[0]), in[1], 1, pairs); });
  }
}

template <class B>
void add_gated_activation_cases(Cases<B>& cases) {
  for (const Activation act : {Activation::none, Activation::gelu, Activation::silu, Activation::tanh})
    cases.add(
        Spec{"gated_activation/" + std::string(op::to_string(act)), {real({3, 8}), real({3, 8})}, floats, 2}
            .also({{{0, 8}, {0, 8}}, {{}, {}}, {{3, 5, 7}, {3, 5, 7}}, {{16}, {16}}}),
        [act](const auto& in) { return gated_activation(in[0], in[1], act); });
}

template <class B>
void add_loss_cases(Cases<B>& cases) {
  cases.add({"softmax_cross_entropy", {real({6, 5}), index({6}, 5)}, floats, 30},
            [](const auto& in) { return softmax_cross_entropy(in[0], in[1]); });
  // Rows of many vectors, with targets at places all over one.
  cases.add({"softmax_cross_entropy/long", {real({16, 131}), index({16}, 131)}, floats, 2096},
            [](const auto& in) { return softmax_cross_entropy(in[0], in[1]); });
  cases.add(Spec{"softmax_cross_entropy/none", {real({2, 3, 5}), index({2, 3}, 5)}, floats, 5}.also(
                {{{0, 3, 5}, {0, 3}}, {{5}, {}}}),
            [](const auto& in) {
              return softmax_cross_entropy(in[0], in[1],
                                           CrossEntropyConfig{}.with_reduction(Reduction::none));
            });
  cases.add({"softmax_cross_entropy/options", {real({6, 5}), index({6}, 5)}, floats, 30}, [](const auto& in) {
    return softmax_cross_entropy(
        in[0], in[1],
        CrossEntropyConfig{}.with_ignore_index(2).with_label_smoothing(0.1).with_reduction(Reduction::sum));
  });
  cases.add({"softmax_cross_entropy/classes", {real({6, 8}), index({6}, 5)}, floats, 30}, [](const auto& in) {
    return softmax_cross_entropy(in[0], in[1],
                                 CrossEntropyConfig{}.with_classes(5).with_label_smoothing(0.1));
  });
  cases.add({"softmax_cross_entropy/none/classes", {real({6, 8}), index({6}, 5)}, floats, 5},
            [](const auto& in) {
              return softmax_cross_entropy(
                  in[0], in[1], CrossEntropyConfig{}.with_classes(5).with_reduction(Reduction::none));
            });
}

template <class B>
void add_linear_loss_cases(Cases<B>& cases) {
  const std::vector<Input> inputs = {real({7, 3}), real({5, 3}), index({7}, 5)};
  cases.add(Spec{"linear_cross_entropy", {real({2, 3, 4}), real({5, 4}), index({2, 3}, 5)}, floats, 30}.also(
                {{{4}, {5, 4}, {}}, {{1, 1}, {5, 1}, {1}}}),
            [](const auto& in) { return linear_cross_entropy(in[0], in[1], in[2]); });
  cases.add({"linear_cross_entropy/none", inputs, floats, 5}, [](const auto& in) {
    return linear_cross_entropy(in[0], in[1], in[2], CrossEntropyConfig{}.with_reduction(Reduction::none));
  });
  for (const std::int64_t chunk : {1, 2, 3, 7, 100})
    cases.add({"linear_cross_entropy/chunks_of_" + std::to_string(chunk), inputs, floats, 35},
              [chunk](const auto& in) {
                return eval(op::LinearCrossEntropy{2, 0.1, chunk != 2, 0, chunk}, in[0], in[1], in[2]);
              });
  cases.add({"linear_cross_entropy/classes", {real({7, 3}), real({8, 3}), index({7}, 5)}, floats, 35},
            [](const auto& in) {
              return eval(op::LinearCrossEntropy{-100, 0.1, true, 5, 3}, in[0], in[1], in[2]);
            });
}

template <class B>
void add_spatial_cases(Cases<B>& cases) {
  const Input x = real({2, 4, 6, 5});
  cases.add(Spec{"conv2d", {x, real({3, 4, 3, 2}), real({3})}, floats, 24}.also(
                {{{0, 4, 6, 5}, {3, 4, 3, 2}, {3}},
                 {{2, 4, 6, 5}, {0, 4, 3, 2}, {0}},
                 {{2, 0, 6, 5}, {3, 0, 3, 2}, {3}},
                 {{1, 1, 1, 1}, {1, 1, 1, 1}, {1}}}),
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
  cases.add(Spec{"max_pool2d", {tall}}.also({{{0, 3, 6, 5}}, {{2, 0, 6, 5}}, {{1, 1, 2, 2}}}),
            [](const auto& in) { return max_pool2d(in[0], PoolConfig(2)); });
  cases.add({"max_pool2d/overlap", {tall}},
            [](const auto& in) { return max_pool2d(in[0], PoolConfig(3).with_stride(2).with_padding(1)); });
  cases.add(Spec{"avg_pool2d", {x}, floats, 4}.also({{{0, 3, 6, 5}}, {{2, 0, 6, 5}}, {{1, 1, 2, 2}}}),
            [](const auto& in) { return avg_pool2d(in[0], PoolConfig(2)); });
  cases.add({"avg_pool2d/overlap", {x}, floats, 9},
            [](const auto& in) { return avg_pool2d(in[0], PoolConfig(3).with_stride(2).with_padding(1)); });
}

/// The steps of optimisers, as new tensors: parameters, gradients, what the optimiser keeps, the clip factor.
template <class B>
void add_optimizer_cases(Cases<B>& cases) {
  const auto add = [&](const char* name, std::size_t kept, const auto& op) {
    Spec spec{name, {real({3, 5}), real({3, 5})}};
    spec.inputs.insert(spec.inputs.end(), kept, positive({3, 5}));
    spec.inputs.push_back(positive({}));
    spec.differentiable = false;
    cases.add(spec, [op](const auto& in) {
      using T = std::remove_cvref_t<decltype(in[0])>;
      auto all = in;
      for (std::size_t i = 2; i < all.size(); ++i)  // these are at least f32
        if (all[i].dtype() != DType::f64) all[i] = cast(all[i], DType::f32);
      const auto out = eval_list(op, TensorSpan<typename T::Backend>(all));
      return std::vector(out.begin(), out.end());
    });
  };
  add("sgd", 1, op::Sgd{0.1});
  add("sgd/momentum", 1, op::Sgd{0.1, 0.9, false, 0.01});
  add("sgd/nesterov", 1, op::Sgd{0.1, 0.9, true});
  op::Adam adam;
  adam.lr = 0.1, adam.weight_decay = 0.01, adam.step = 3;
  add("adam", 2, adam);
  adam.decoupled = false;
  add("adam/coupled", 2, adam);
}

template <class B>
void add_fused_cases(Cases<B>& cases) {
  add_norm_cases(cases);
  add_linear_cases(cases);
  add_quantized_linear_cases(cases);
  add_activation_backward_cases(cases);
  add_attention_cases(cases);
  add_rope_cases(cases);
  add_gated_activation_cases(cases);
  add_loss_cases(cases);
  add_linear_loss_cases(cases);
  add_spatial_cases(cases);
  add_optimizer_cases(cases);
}

}  // namespace ferrite::conformance
