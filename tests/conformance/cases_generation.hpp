// The ops of a step of generation.
#pragma once

#include "case.hpp"

namespace ferrite::conformance {

template <class B>
void add_cached_attention_cases(Cases<B>& cases) {
  const auto add = [&](const std::string& name, const Shape& q, const Shape& k, const Shape& keys,
                       std::int64_t window = 0) {
    const auto attend = [window](const auto& in) {
      const op::CachedAttention op{0.4, window};
      const auto all = eval_all(op, in[0], in[1], in[2], in[3], in[4], cast(in[5], DType::i32));
      return std::vector(all.begin(), all.end());
    };
    cases.add({"cached_attention" + name,
               {real(q), real(k), real(k), real(keys), real(keys), index({q[0]}, keys[2] - q[2] + 1)},
               floats,
               static_cast<double>(q[3] + keys[2])},
              attend);
  };
  add("", {2, 2, 1, 8}, {2, 2, 1, 8}, {2, 2, 5, 8});
  add("/grouped", {2, 6, 2, 8}, {2, 2, 2, 8}, {2, 2, 6, 8});
  add("/odd_depth", {1, 3, 3, 5}, {1, 1, 3, 5}, {1, 1, 4, 5});
  add("/window", {2, 4, 2, 8}, {2, 2, 2, 8}, {2, 2, 9, 8}, 3);
}

template <class B>
void add_fused_linear_cases(Cases<B>& cases) {
  const auto apply = [](const op::FusedLinear& op) {
    return [op](const auto& in) {
      using T = std::remove_cvref_t<decltype(in[0])>;
      return eval_list(op, TensorSpan<typename T::Backend>(in))[0];
    };
  };
  cases.add(Spec{"fused_linear", {real({3, 16}), real({5, 16})}, floats, 16}.also(
                {{{1, 8}, {1, 8}}, {{9, 16}, {5, 16}}, {{0, 16}, {5, 16}}, {{2, 6}, {3, 6}}}),
            apply({}));
  op::FusedLinear layer;
  layer.norm = RowNorm::layer, layer.activation = Activation::gelu, layer.bias = true;
  cases.add(Spec{"fused_linear/layer_norm",
                 {real({2, 16}), real({5, 16}), real({16}), real({16}), real({5})},
                 floats,
                 16}
                .also({{{8, 24}, {70, 24}, {24}, {24}, {70}}, {{10, 24}, {7, 24}, {24}, {24}, {7}}}),
            apply(layer));
  op::FusedLinear rms;
  rms.norm = RowNorm::rms, rms.activation = Activation::silu, rms.residual = true;
  cases.add({"fused_linear/rms_norm", {real({5, 16}), real({6, 16}), real({16}), real({5, 6})}, floats, 16},
            apply(rms));
  op::FusedLinear sum;
  sum.bias = sum.residual = true;
  cases.add({"fused_linear/sum", {real({4, 8}), real({6, 8}), real({6}), real({4, 6})}, floats, 8},
            apply(sum));
  op::FusedLinear small = layer;
  small.quantized = small.residual = true;
  Spec spec{
      "fused_linear/quantized",
      {real({1, 32}), index({5, 32}, 121), positive({5}), real({32}), real({32}), real({5}), real({1, 5})},
      floats,
      32};
  spec.differentiable = false;
  cases.add(spec.also({{{3, 16}, {2, 16}, {2}, {16}, {16}, {2}, {3, 2}}}), [=](const auto& in) {
    auto all = in;
    all[1] = cast(in[1] - 60, DType::i8);
    all[2] = cast(in[2], DType::f32) / 60;
    return apply(small)(all);
  });
}

template <class B>
void add_next_token_cases(Cases<B>& cases) {
  const auto add = [&](const std::string& name, const op::NextToken& op) {
    Spec spec{"next_token" + name,
              {real({3, 40}), index({3, 6}, 2), index({3}, 5), real({3, 6}, 0.01, 0.99), boolean({3, 40})}};
    spec.differentiable = false;
    cases.add(spec, [op](const auto& in) {
      // Tokens 0 are given, at the other places one is drawn.
      const auto all = eval_all(op, in[0], cast(in[1], DType::i32) - 1, cast(in[2], DType::i32),
                                cast(in[3], DType::f64), in[4]);
      return std::vector(all.begin(), all.end());
    });
  };
  add("", {});
  add("/greedy", {0});
  add("/penalty", {0.7, 0, 1, 1.5});
  add("/top_k", {0.8, 7});
  add("/top_p", {1.2, 0, 0.6});
  add("/both", {1, 9, 0.5, 1.2, 30});
}

template <class B>
void add_generation_cases(Cases<B>& cases) {
  add_cached_attention_cases(cases);
  add_fused_linear_cases(cases);
  add_next_token_cases(cases);
}

}  // namespace ferrite::conformance
