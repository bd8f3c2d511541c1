// next_token: a step of generation after the model has run: which token comes next, and the books on the
// texts so far. Everything it needs is on the device, so that a captured step can be replayed.
#pragma once

#include <algorithm>

#include "ferrite/ops/argreduce.hpp"
#include "ferrite/ops/scan.hpp"
#include "ferrite/ops/scatter.hpp"
#include "ferrite/ops/sort.hpp"

namespace ferrite {
namespace op {

/// # Shapes: scores [N, V], text i32 [N, C], read i32 [N], uniforms f64 [N, C], seen bool [N, V]
/// -> text, read, seen, ids i32 [N]
/// The model has read the tokens 0 to read[n] of text n, and scores are what it says of the next, at place
/// p = read[n] + 1. If text[n, p] is not negative, that is the token (of a prompt). Else one is drawn as
/// nn::Sampler does it, by the number uniforms[n, p] in [0, 1), and put there; -1 if the scores hold NaN or
/// have no finite maximum. The token becomes seen, ids[n] is it, and read[n] becomes p. Outputs may be the
/// inputs of the same name. p must lie in the text: beyond it is a ValueError, reported late by a GPU.
struct FERRITE_API NextToken {
  static constexpr LibraryName type_name = "next_token";
  static constexpr bool composes_as_given = true;
  // As nn::GenerateConfig has them.
  double temperature = 1;
  std::int64_t top_k = 0;
  double top_p = 1;
  double repetition_penalty = 1;
  std::int64_t vocabulary = 0;

  Metas infer(MetaSpan in) const;
  Metas example(DType d) const {
    return {
        {{2, 5}, d}, {{2, 4}, DType::i32}, {{2}, DType::i32}, {{2, 4}, DType::f64}, {{2, 5}, DType::bool_}};
  }
  static void attributes(auto& self, auto&& visit) {
    visit("temperature", self.temperature);
    visit("top_k", self.top_k);
    visit("top_p", self.top_p);
    visit("repetition_penalty", self.repetition_penalty);
    visit("vocabulary", self.vocabulary);
  }

  template <class B>
  Tensors<B> compose(B& b, TensorSpan<B> in) const {
    const Tensor<B>&text = in[1], &uniforms = in[3], &seen = in[4];
    const Tensor<B> place = unsqueeze(cast(in[2], DType::i64) + 1, 1);  // [N, 1]
    const std::int64_t all = in[0].size(1), kept = vocabulary > 0 ? std::min(all, vocabulary) : all;
    Tensor<B> scores = slice(cast(in[0], DType::f32), 1, 0, kept);
    if (repetition_penalty != 1)
      scores = where(slice(seen, 1, 0, kept),
                     where(scores > 0, scores / repetition_penalty, scores * repetition_penalty), scores);
    const Tensor<B> given = gather(text, 1, place);
    const Tensor<B> best = argmax(scores, -1, KeepDim::yes);
    const Tensor<B> highest = gather(scores, 1, best);  // NaN if there is one
    const Tensor<B> usable = where(isfinite(highest), scores, 0);
    Tensor<B> drawn = best;
    if (temperature != 0) drawn = draw(b, usable, gather(uniforms, 1, place));
    drawn = where(isfinite(highest), drawn, -1);
    const Tensor<B> token = where(given >= 0, cast(given, DType::i64), drawn);  // [N, 1]
    const Tensor<B> is_token = arange(b, all) == token;
    return {scatter(text, 1, place, cast(token, DType::i32)), cast(squeeze(place, {1}), DType::i32),
            logical_or(seen, is_token), cast(squeeze(token, {1}), DType::i32)};
  }

 private:
  /// # Shapes: scores [N, V], uniform [N, 1] -> i64 [N, 1]
  template <class B>
  Tensor<B> draw(B& b, const Tensor<B>& scores, const Tensor<B>& uniform) const {
    const std::int64_t count = scores.size(1);
    const auto [values, order] = sort(scores, 1, Order::descending);
    const Tensor<B> wide = cast(values, DType::f64);
    Tensor<B> weights = exp((wide - slice(wide, 1, 0, 1)) / temperature);
    if (top_k > 0 && top_k < count) weights = where(arange(b, count) < top_k, weights, 0);
    // A token stays if those before it do not have the share yet.
    if (top_p < 1) {
      const Tensor<B> before = cumsum(weights, 1) - weights;
      weights = where(before < sum(weights, {1}, KeepDim::yes) * top_p, weights, 0);
    }
    const Tensor<B> by_id = scatter(zeros(b, weights.shape(), DType::f64), 1, order, weights);
    const Tensor<B> sums = cumsum(by_id, 1);
    const Tensor<B> reached = sums > uniform * slice(sums, 1, count - 1, count);
    // The last one that has a weight takes what rounding leaves over.
    const Tensor<B> last = max(where(by_id > 0, arange(b, count), 0), {1}, KeepDim::yes);
    return argmax(cast(logical_or(reached, arange(b, count) == last), DType::i32), 1, KeepDim::yes);
  }
};

}  // namespace op

// Kernels (backend/concept.hpp).
/// Weights are computed in f32 and summed in f64.
FERRITE_API void run(Cuda&, const op::NextToken& op, Ins in, Outs out);
FERRITE_API bool accepts(const Cuda&, const op::NextToken& op, MetaSpan in);

}  // namespace ferrite
