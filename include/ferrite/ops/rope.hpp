// rope: rotary position embedding (Su et al., 2021). Pairs of elements are rotated by an angle that grows
// with the position, so that the product of a query and a key depends on how far they are from each other.
#pragma once

#include <optional>
#include <vector>

#include "ferrite/core/config.hpp"
#include "ferrite/ops/cat.hpp"
#include "ferrite/ops/op.hpp"
#include "ferrite/tensor/tensor.hpp"

namespace ferrite {

/// Which elements of a row of D make a pair. halves: i and i + D/2, as in Hugging Face's transformers
/// (rotate_half). neighbours: 2 i and 2 i + 1, as in the paper and in Meta's own files of Llama.
enum class RopePairs : std::uint8_t { halves, neighbours };
constexpr int count_of(RopePairs) { return 2; }
FERRITE_API std::string_view to_string(RopePairs pairs);

namespace op {

/// # Shapes: x [..., D] with positions along `axis`, frequencies [D/2] (f32, or f64 for an x of f64),
/// positions (optional) i32 or i64 [T] -> like x
/// Pair i at position p is rotated by p frequencies[i], or by the negative angle if `inverse`. Without
/// positions, p = start + its index along the axis. Angles are computed in the dtype of the frequencies.
struct FERRITE_API Rope {
  static constexpr LibraryName type_name = "rope";
  int axis = -3;
  std::int64_t start = 0;
  RopePairs pairs = RopePairs::halves;
  bool inverse = false;

  Metas infer(MetaSpan in) const;
  Cost cost(MetaSpan in, MetaSpan out) const;
  double reduction_length(MetaSpan in) const;
  Metas example(DType d) const { return {{{2, 3, 2, 4}, d}, detail::statistics({2}, d)}; }
  static void attributes(auto& self, auto&& visit) {
    visit("axis", self.axis);
    visit("start", self.start);
    visit("pairs", self.pairs);
    visit("inverse", self.inverse);
  }

  template <class B>
  Tensors<B> compose(B& b, TensorSpan<B> in) const {
    // As [before, T, between, D].
    const Shape& shape = in[0].shape();
    const int place = axis < 0 ? axis + shape.rank() : axis;
    const std::int64_t count = shape[place], half = shape.back() / 2;
    std::int64_t before = 1, between = 1;
    for (int i = 0; i < place; ++i) before *= shape[i];
    for (int i = place + 1; i + 1 < shape.rank(); ++i) between *= shape[i];
    const Tensor<B> x = reshape(in[0], {before, count, between, 2 * half});
    const Tensor<B> positions = in.size() > 2 ? in[2] : arange(b, start, start + count, 1, DType::i64);
    const Tensor<B> angle = reshape(cast(positions, x.dtype()), {count, 1, 1}) * in[1];
    const Tensor<B> c = cos(angle), s = inverse ? -sin(angle) : sin(angle);
    const auto rotated = [&](const Tensor<B>& left, const Tensor<B>& right) {
      return std::vector<Tensor<B>>{left * c - right * s, right * c + left * s};
    };
    if (pairs == RopePairs::halves)
      return {reshape(cat(rotated(slice(x, -1, 0, half), slice(x, -1, half, 2 * half)), -1), shape)};
    const Tensor<B> by_pair = reshape(x, {before, count, between, half, 2});
    return {reshape(stack(rotated(select(by_pair, -1, 0), select(by_pair, -1, 1)), -1), shape)};
  }
  Saves saves() const { return {.inputs = {1, 2}}; }  // frequencies, positions
  /// Frequencies to be trained are composed.
  bool has_vjp(Positions needed) const { return !needed.contains(1); }
  template <class B>
  void vjp(Vjp<B>& v) const {
    const Rope back{axis, start, pairs, !inverse};
    if (v.input_count() > 2)
      v.into(0, back, v.grad(), v.input(1), v.input(2));
    else
      v.into(0, back, v.grad(), v.input(1));
  }
};

}  // namespace op

// Kernels (backend/concept.hpp).
FERRITE_API void run(Cpu&, const op::Rope& op, Ins in, Outs out, Accumulate mask = Accumulate::none);
FERRITE_API void run(Cuda&, const op::Rope& op, Ins in, Outs out, Accumulate mask = Accumulate::none);

/// How the frequencies of a model change, so that it reads longer texts than it was trained on.
struct FERRITE_API RopeScaling {
  /// linear: all are divided by `factor`. llama3: only those with wavelengths above original_context /
  /// low_freq_factor positions; those below original_context / high_freq_factor stay, and between the two the
  /// divisor goes over from one to the other.
  enum class Kind : std::uint8_t { linear, llama3 };
  Kind kind = Kind::llama3;
  double factor = 8;
  // Of llama3.
  double low_freq_factor = 1;
  double high_freq_factor = 4;
  std::int64_t original_context = 8192;

  static RopeScaling linear(double factor) { return {Kind::linear, factor, 1, 4, 8192}; }
  friend bool operator==(const RopeScaling&, const RopeScaling&) = default;
};

/// RopeConfig{theta}
struct FERRITE_API RopeConfig {
  /// Pair i of D/2 has the frequency theta^(-2 i / D).
  double theta = 10000;
  std::optional<RopeScaling> scaling = std::nullopt;
  RopePairs pairs = RopePairs::halves;

  RopeConfig with_scaling(std::optional<RopeScaling> v) const {
    return detail::with(*this, &RopeConfig::scaling, v);
  }
  RopeConfig with_pairs(RopePairs v) const { return detail::with(*this, &RopeConfig::pairs, v); }
  friend bool operator==(const RopeConfig&, const RopeConfig&) = default;

  /// Throws ValueError unless theta is above 0 and finite, factors are at least 1, low_freq_factor is above 0
  /// and below high_freq_factor, and original_context is at least 1.
  void check() const;
  /// Of rows of `width` elements: [width / 2], rounded to f32 in each step, as transformers computes them.
  /// Throws as `check` does, and ValueError for a width that is odd or below 2.
  std::vector<float> frequencies(std::int64_t width) const;
};

/// The frequencies as `rope` takes them, for an x of this dtype. Make them once: they are copied from the
/// host.
template <class B>
Tensor<B> rope_frequencies(B& backend, const RopeConfig& config, std::int64_t width,
                           DType dtype = DType::f32) {
  const Tensor<B> table = from_vector(backend, config.frequencies(width));
  return dtype == DType::f64 ? cast(table, DType::f64) : table;
}

/// # Shapes: x [..., D], frequencies [D/2] (rope_frequencies) -> like x
/// Rotates the pairs of x, whose positions start, start + 1, ... lie along `axis`: -3 for [N, T, H, D], -2
/// for [N, H, T, D].
template <class B>
Tensor<B> rope(const Tensor<B>& x, const Tensor<B>& frequencies, std::int64_t start = 0, int axis = -3,
               RopePairs pairs = RopePairs::halves) {
  return eval(op::Rope{axis, start, pairs}, x, frequencies);
}
/// The same at positions in a tensor, i32 or i64 [T]: a captured graph can advance them.
template <class B>
Tensor<B> rope(const Tensor<B>& x, const Tensor<B>& frequencies, const Tensor<B>& positions, int axis = -3,
               RopePairs pairs = RopePairs::halves) {
  return eval(op::Rope{axis, 0, pairs}, x, frequencies, positions);
}

}  // namespace ferrite
