// Block: one layer of a prior-fitted network.
#pragma once

#include "ferrite/models/pfn/config.hpp"
#include "ferrite/nn/attention.hpp"
#include "ferrite/nn/feed_forward.hpp"
#include "ferrite/nn/norm.hpp"
#include "ferrite/ops/cross_attention.hpp"

namespace ferrite::pfn {

/// What the rows of a context show to other rows. # Shapes: [N, S, K, dim] each
template <class B>
struct KeyValues {
  Tensor<B> key, value;
};

/// Three residual branches, each after a norm: attention among the cells of a row, attention among the rows
/// of a column, and a feed-forward. The projections that end a branch start as 0.
template <class B>
class Block final : public nn::Module<B> {
 public:
  nn::RmsNorm<B> norm1;
  nn::MultiHeadAttention<B> cells;
  nn::RmsNorm<B> norm2;
  nn::Linear<B> query, key, value, proj;  // among rows
  nn::RmsNorm<B> norm3;
  nn::FeedForward<B> ff;

  Block(B& backend, const Config& config, Rng& rng)
      : norm1(backend, norm(config)),
        cells(backend,
              nn::MultiHeadAttentionConfig{config.dim, config.heads()}
                  .with_bias(false)
                  .with_dtype(config.dtype)
                  .with_residual_init(nn::Initializer::zeros()),
              rng),
        norm2(backend, norm(config)),
        query(backend, projection(config, nn::Initializer::xavier_uniform()), rng),
        key(backend, projection(config, nn::Initializer::xavier_uniform()), rng),
        value(backend, projection(config, nn::Initializer::xavier_uniform()), rng),
        proj(backend, projection(config, nn::Initializer::zeros()), rng),
        norm3(backend, norm(config)),
        ff(backend,
           nn::FeedForwardConfig{config.dim, config.hidden}
               .with_bias(false)
               .with_dtype(config.dtype)
               .with_residual_init(nn::Initializer::zeros()),
           rng),
        heads_(config.heads()),
        width_(config.head_width) {}

  void visit(nn::Visitor<B>& v) override {
    v.child("norm1", norm1);
    v.child("cells", cells);
    v.child("norm2", norm2);
    v.child("query", query);
    v.child("key", key);
    v.child("value", value);
    v.child("proj", proj);
    v.child("norm3", norm3);
    v.child("ff", ff);
  }

  // # Shapes of all: x [N, R, K, dim], K cells in each of R rows.

  /// The first branch.
  Tensor<B> among_cells(const Tensor<B>& x) {
    const Tensor<B> rows = flatten(x, 0, 1);
    return reshape(cells.forward(norm1.forward(rows), {}, rows), x.shape());
  }
  /// The same for the last cell of each row alone, which looks at all: -> [N, R, 1, dim]
  Tensor<B> last_among_cells(const Tensor<B>& x) {
    const Tensor<B> rows = flatten(x, 0, 1), normed = norm1.forward(rows);
    const std::int64_t count = rows.size(1), dim = rows.size(2);
    const auto last = [&](const Tensor<B>& t) { return slice(t, 1, count - 1, count); };
    const auto heads = [&](const Tensor<B>& t) { return reshape(t, {t.size(0), t.size(1), heads_, width_}); };
    const Tensor<B>& weight = cells.qkv.weight;  // of queries, keys and values
    const Tensor<B> asked = linear(last(normed), slice(weight, 0, 0, dim)),
                    shown_cells = linear(normed, slice(weight, 0, dim, 3 * dim));
    const auto part = [&](std::int64_t i) {  // keys, values
      return slice(reshape(shown_cells, {rows.size(0), count, 2 * heads_, width_}), 2, i * heads_,
                   (i + 1) * heads_);
    };
    const Tensor<B> seen = cross_attention(heads(asked), part(0), part(1));
    const Tensor<B> joined = reshape(seen, {rows.size(0), 1, dim});
    return reshape(cells.proj.forward(joined, last(rows)), {x.size(0), x.size(1), 1, dim});
  }
  /// norm2 of rows, cell after cell: as three projections share it, their gradients meet in one place.
  /// # Shapes: -> [N R K, dim]
  Tensor<B> normed(const Tensor<B>& x) { return flatten(norm2.forward(x), 0, 2); }
  /// What rows show to others, from `normed` of them.
  KeyValues<B> shown(const Tensor<B>& x, const Tensor<B>& normed) {
    return {reshape(key.forward(normed), x.shape()), reshape(value.forward(normed), x.shape())};
  }
  /// The second branch, in which the rows look at those of a context, and the third.
  Tensor<B> among_rows(const Tensor<B>& x, const Tensor<B>& normed, const KeyValues<B>& context) {
    const Tensor<B> asked = reshape(query.forward(normed), x.shape()),
                    seen = cross_attention(columns(asked), columns(context.key), columns(context.value));
    const Tensor<B> y = proj.forward(reshape(seen, x.shape()), x);
    return ff.forward(norm3.forward(y), y);
  }

 private:
  /// Every head of every column attends on its own. # Shapes: [N, R, K, dim] -> [N, R, K heads, width]
  Tensor<B> columns(const Tensor<B>& x) const {
    return reshape(x, {x.size(0), x.size(1), x.size(2) * heads_, width_});
  }
  static nn::NormConfig norm(const Config& config) {
    return nn::NormConfig{config.dim}.with_eps(config.eps).with_dtype(config.dtype);
  }
  static nn::LinearConfig projection(const Config& config, const nn::Initializer& init) {
    return nn::LinearConfig{config.dim, config.dim}.with_bias(false).with_dtype(config.dtype).with_init(init);
  }

  std::int64_t heads_, width_;
};

}  // namespace ferrite::pfn
