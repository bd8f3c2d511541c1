// Unary, binary, where, casts and creation.
#pragma once

#include "case.hpp"

namespace ferrite::conformance {

template <class B>
void add_unary_cases(Cases<B>& cases) {
  using op::UnaryFn;
  for (int i = 0; i < op::unary_fn_count; ++i) {
    const auto fn = static_cast<UnaryFn>(i);
    const op::Unary unary{fn, fn == UnaryFn::leaky_relu ? 0.1 : fn == UnaryFn::softplus ? 1.5 : 1.0};
    const bool needs_positive = fn == UnaryFn::sqrt || fn == UnaryFn::rsqrt || fn == UnaryFn::log ||
                                fn == UnaryFn::log1p || fn == UnaryFn::reciprocal;
    Input input = needs_positive ? positive({3, 5}) : real({3, 5});
    if (fn == UnaryFn::tan) input = real({3, 5}, -1.2, 1.2);
    Spec spec{"unary/" + std::string(to_string(fn)), {input}, numbers};
    if (fn == UnaryFn::logical_not || fn == UnaryFn::isnan || fn == UnaryFn::isfinite) {
      spec.dtypes = every;
      spec.differentiable = false;
    }
    spec.any_shape = true;
    spec.same_dtype = fn == UnaryFn::neg || fn == UnaryFn::abs;  // u8 wraps
    cases.add(spec, [unary](const auto& in) { return eval(unary, in[0]); });
  }
}

template <class B>
void add_binary_cases(Cases<B>& cases) {
  using op::BinaryFn;
  for (int i = 0; i < op::binary_fn_count; ++i) {
    const auto fn = static_cast<BinaryFn>(i);
    const std::string name = "binary/" + std::string(to_string(fn));
    const bool real_only = fn == BinaryFn::pow;
    const bool discrete = is_comparison(fn) || is_logical(fn);
    const auto operand = [&](const Shape& shape) {
      if (fn == BinaryFn::pow || fn == BinaryFn::div || fn == BinaryFn::atan2 || fn == BinaryFn::remainder)
        return positive(shape);
      return real(shape);
    };
    Spec spec{name, {operand({3, 4}), operand({3, 4})}, real_only ? floats : discrete ? every : numbers};
    spec.any_shape = true;
    spec.same_dtype = true;
    spec.differentiable = !discrete;
    cases.add(spec, [fn](const auto& in) { return eval(op::Binary{fn}, in[0], in[1]); });

    spec.any_shape = false;
    spec.name = name + "/broadcast";
    spec.inputs = {operand({2, 1, 4}), operand({3, 1})};
    cases.add(spec, [fn](const auto& in) { return eval(op::Binary{fn}, in[0], in[1]); });

    spec.dtypes = floats;
    spec.inputs = {operand({3, 4})};
    spec.name = name + "/scalar_right";
    cases.add(spec, [fn](const auto& in) {
      return eval(op::Binary{fn, op::ScalarSide::right, 1.25}, in[0]);
    });
    spec.name = name + "/scalar_left";
    cases.add(spec, [fn](const auto& in) { return eval(op::Binary{fn, op::ScalarSide::left, 1.25}, in[0]); });
  }
}

/// Their one input names the backend, the shape and the dtype.
template <class B>
void add_creation_cases(Cases<B>& cases) {
  const auto add = [&](const char* name, const std::vector<DType>& dtypes, auto make) {
    Spec spec{name, {real({3, 40})}, dtypes};
    spec.same_dtype = true;
    spec.differentiable = false;
    spec.more = {{{}}, {{0, 4}}, {{1}}};
    cases.add(spec, [make](const auto& in) {
      Rng rng(3);
      return make(in[0].backend(), in[0].shape(), rng, in[0].dtype());
    });
  };
  add("fill", every, [](auto& b, const Shape& shape, Rng&, DType d) { return full(b, shape, 1, d); });
  add("fill/value", numbers, [](auto& b, const Shape& shape, Rng&, DType d) { return full(b, shape, 3, d); });
  add("iota", numbers,
      [](auto& b, const Shape& shape, Rng&, DType d) { return arange(b, 2, 2 + shape.numel(), 3, d); });
  add("iota/linspace", floats,
      [](auto& b, const Shape& shape, Rng&, DType d) { return linspace(b, -1.5, 2, shape.numel(), d); });
  add("random", floats,
      [](auto& b, const Shape& shape, Rng& rng, DType d) { return rand(b, shape, rng, -1, 3, d); });
  add("random/normal", floats,
      [](auto& b, const Shape& shape, Rng& rng, DType d) { return randn(b, shape, rng, 0.5, 2, d); });
  add("random/integer", numbers,
      [](auto& b, const Shape& shape, Rng& rng, DType d) { return randint(b, shape, rng, 2, 90, d); });
  add("random/bernoulli", every,
      [](auto& b, const Shape& shape, Rng& rng, DType d) { return bernoulli(b, shape, rng, 0.4, d); });
}

template <class B>
void add_elementwise_cases(Cases<B>& cases) {
  add_unary_cases(cases);
  add_binary_cases(cases);
  add_creation_cases(cases);
  cases.add(Spec{"where", {boolean({3, 4}), real({3, 4}), real({4})}, every}.also(
                {{{0, 4}, {0, 4}, {4}}, {{}, {}, {}}, {{3, 1}, {1}, {}}}),
            [](const auto& in) { return where(in[0], in[1], in[2]); });
  cases.add({"where/scalar", {boolean({3, 1}), real({3, 4})}},
            [](const auto& in) { return where(in[0], in[1], 0.5); });
  cases.add({"masked_fill", {boolean({4}), real({3, 4})}},
            [](const auto& in) { return masked_fill(in[1], in[0], -1.5); });
  cases.add({"clamp", {real({4, 4})}}, [](const auto& in) { return clamp(in[0], -0.7, 0.9); });
  for (DType to : all_dtypes) {
    Spec spec{"cast/" + std::string(to_string(to)), {real({3, 4}, -3, 100)}, every};
    spec.any_shape = spec.same_dtype = true;
    spec.differentiable = to == DType::f64;
    cases.add(spec, [to](const auto& in) { return eval(op::Copy{to}, in[0]); });
  }
  cases.add(
      Spec{"pointwise_loss/mse", {real({3, 4}), real({3, 4})}}.also({{{0, 4}, {0, 4}}, {{}, {}}, {{1}, {1}}}),
      [](const auto& in) { return mse_loss(in[0], in[1], Reduction::none); });
  cases.add(
      Spec{"pointwise_loss/l1", {real({3, 4}), real({3, 4})}}.also({{{0, 4}, {0, 4}}, {{}, {}}, {{1}, {1}}}),
      [](const auto& in) { return l1_loss(in[0], in[1], Reduction::none); });
  cases.add(Spec{"pointwise_loss/huber", {real({3, 4}), constant(real({3, 4}))}}.also(
                {{{0, 4}, {0, 4}}, {{}, {}}, {{1}, {1}}}),
            [](const auto& in) { return huber_loss(in[0], in[1], 0.8, Reduction::none); });
  cases.add(Spec{"pointwise_loss/bce", {real({3, 4}), constant(real({3, 4}, 0, 1))}}.also(
                {{{0, 4}, {0, 4}}, {{}, {}}, {{1}, {1}}}),
            [](const auto& in) { return bce_with_logits(in[0], in[1], Reduction::none); });
  cases.add({"pointwise_loss/mean", {real({3, 4}), constant(real({3, 4}))}, floats, 12},
            [](const auto& in) { return mse_loss(in[0], in[1]); });
  cases.add(Spec{"dropout", {real({5, 7})}}.also({{{0, 7}}, {{}}, {{1}}}), [](const auto& in) {
    Rng rng(3);
    return dropout(in[0], 0.4, rng);
  });
}

}  // namespace ferrite::conformance
