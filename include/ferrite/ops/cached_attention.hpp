// cached_attention: attention of a few new positions to themselves and to those in a cache of fixed extents,
// which takes them in. How far each text has been read is a tensor, so that a captured step can be replayed.
#pragma once

#include <array>

#include "ferrite/ops/attention.hpp"
#include "ferrite/ops/gather.hpp"

namespace ferrite {
namespace op {

/// # Shapes: q [N, H, T, D], k and v [N, G, T, D], keys and values [N, G, C, D], read i32 [N]
/// -> o [N, H, T, D], keys, values
/// G divides H: query head h uses head h / (H / G) of the keys. Of text n the first read[n] positions of the
/// cache count, from 0 to C - T. The T new ones follow them, rounded to the dtype of the cache; query t sees
/// positions up to read[n] + t, or the last `window` of them if that is not 0. q, k, v have one dtype, keys
/// and values one. To change a cache in place, make outputs 1 and 2 the inputs 3 and 4. A read outside its
/// range is an error of the caller: results are then undefined, but nothing beyond the cache is touched.
struct FERRITE_API CachedAttention {
  static constexpr LibraryName type_name = "cached_attention";
  static constexpr std::string_view later_attribute = "window";
  static constexpr bool composes_as_given = true;
  double scale = 1;
  std::int64_t window = 0;

  Metas infer(MetaSpan in) const;
  Cost cost(MetaSpan in, MetaSpan out) const;
  double reduction_length(MetaSpan in) const;
  Metas example(DType d) const {
    return {{{2, 4, 1, 8}, d}, {{2, 2, 1, 8}, d}, {{2, 2, 1, 8}, d},
            {{2, 2, 4, 8}, d}, {{2, 2, 4, 8}, d}, {{2}, DType::i32}};
  }
  static void attributes(auto& self, auto&& visit) {
    visit("scale", self.scale);
    visit("window", self.window);
  }

  template <class B>
  Tensors<B> compose(B& b, TensorSpan<B> in) const {
    const Tensor<B>&q = in[0], &read = in[5];
    const std::int64_t n = q.size(0), heads = q.size(1), t = q.size(2), d = q.size(3);
    const std::int64_t groups = in[3].size(1), capacity = in[3].size(2);
    // Position p of the cache holds new row p - read, if there is such a row.
    const Tensor<B> row = arange(b, capacity) - unsqueeze(cast(read, DType::i64), 1);  // [N, C]
    const auto everywhere = [&](const Tensor<B>& x) {
      return expand(reshape(x, {n, 1, capacity, 1}), {n, groups, capacity, d});
    };
    const Tensor<B> source = everywhere(minimum(maximum(row, 0), t - 1));
    const Tensor<B> is_new = everywhere(logical_and(row >= 0, row < t));
    const auto stored = [&](const Tensor<B>& rows, const Tensor<B>& cache) {
      return where(is_new, cast(gather(rows, 2, source), cache.dtype()), cache);
    };
    const Tensor<B> keys = stored(in[1], in[3]), values = stored(in[2], in[4]);
    const DType wide = wide_dtype(std::array{q.meta(), keys.meta()});
    const auto for_heads = [&](const Tensor<B>& x) {
      const Tensor<B> repeated =
          expand(unsqueeze(cast(x, wide), 2), {n, groups, heads / groups, capacity, d});
      return reshape(repeated, {n, heads, capacity, d});
    };
    const Tensor<B> distance = reshape(arange(b, t), {1, 1, t, 1}) - reshape(row, {n, 1, 1, capacity});
    const Tensor<B> seen =
        window == 0 ? distance >= 0 : logical_and(distance >= 0, distance < static_cast<double>(window));
    // Not attention as an op: of its results only the first would carry a gradient.
    const std::array parts = {cast(q, wide), for_heads(keys), for_heads(values), seen};
    return {Attention{false, scale}.compose(b, TensorSpan<B>(parts))[0], keys, values};
  }
};

}  // namespace op

// Kernels (backend/concept.hpp). Outputs 1 and 2 may be inputs 3 and 4: then only the new rows are written.
FERRITE_API void run(Cuda&, const op::CachedAttention& op, Ins in, Outs out);
FERRITE_API bool accepts(const Cuda&, const op::CachedAttention& op, MetaSpan in);

}  // namespace ferrite
