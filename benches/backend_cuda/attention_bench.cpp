// attention, forward and backward: sequences of a language model, the same with masks and with grouped heads,
// and the many short sequences of a model of tables.
#include "ferrite/ops/attention.hpp"
#include "suite.hpp"

namespace ferrite::bench {
namespace {

enum class Kind : std::uint8_t { plain, causal, mask, bias, grouped };

struct Case {
  Kind kind;
  std::int64_t batch, heads, length, columns;
  std::int64_t keys = 0;  // as many as queries, if 0
};

std::string kind_name(Kind kind) {
  const char* const names[] = {"plain", "causal", "mask", "bias", "grouped"};
  return names[static_cast<std::size_t>(kind)];
}

/// q, k, v and the mask, if there is one.
template <class B>
Inputs<B> draw_inputs(const Case& c, B& b, Rng& rng, DType dtype) {
  const std::int64_t keys = c.keys > 0 ? c.keys : c.length;
  const std::int64_t key_heads = c.kind == Kind::grouped ? c.heads / 4 : c.heads;
  const auto heads = [&](std::int64_t count, std::int64_t length) {
    return randn(b, {c.batch, count, length, c.columns}, rng, 0, 1, dtype);
  };
  Inputs<B> in{heads(c.heads, c.length), heads(key_heads, keys), heads(key_heads, keys)};
  if (c.kind == Kind::mask) in.push_back(rand(b, {c.length, keys}, rng) > 0.25);
  if (c.kind == Kind::bias) in.push_back(randn(b, {c.length, keys}, rng, 0, 1, dtype));
  return in;
}

}  // namespace

void add_attention(Suite& suite) {
  const auto add = [&](const Case& c, DType dtype = DType::bf16) {
    const bool causal = c.kind == Kind::causal || c.kind == Kind::grouped;
    const double scale = 1 / std::sqrt(static_cast<double>(c.columns));
    const auto name = [&](const char* op) {
      return row_name(op, to_string(dtype),
                      kind_name(c.kind) + "/" + extents({c.batch, c.heads, c.length, c.columns}) +
                          (c.keys > 0 ? "_to_" + std::to_string(c.keys) : ""));
    };
    suite.add_op(name("attention"), op::Attention{causal, scale},
                 [=](auto& b, Rng& rng) { return draw_inputs(c, b, rng, dtype); });
    suite.add_op(name("attention_backward"), op::AttentionBackward{causal, scale}, [=](auto& b, Rng& rng) {
      const auto in = draw_inputs(c, b, rng, dtype);
      const auto out = run(op::Attention{causal, scale}, in);
      auto all = std::vector{randn(b, out[0].shape(), rng, 0, 1, dtype)};
      all.insert(all.end(), in.begin(), in.begin() + 3);
      all.insert(all.end(), out.begin(), out.end());
      all.insert(all.end(), in.begin() + 3, in.end());
      return all;
    });
  };
  for (const Kind kind : {Kind::plain, Kind::causal, Kind::mask, Kind::bias}) add({kind, 32, 12, 1024, 64});
  add({Kind::causal, 64, 12, 1024, 64});
  add({Kind::causal, 8, 16, 2048, 128});
  add({Kind::mask, 8, 16, 2048, 128});
  add({Kind::grouped, 8, 32, 2048, 128});
  for (const std::int64_t length : {4, 8, 16, 32}) add({Kind::plain, 65536 * 8 / length, 6, length, 32});
  add({Kind::plain, 16384, 6, 64, 32});
  add({Kind::plain, 512, 6, 512, 32, 400});
  for (const Kind kind : {Kind::plain, Kind::causal, Kind::mask}) add({kind, 8, 12, 1024, 64}, DType::f32);
  add({Kind::causal, 4, 16, 2048, 128}, DType::f32);
  add({Kind::plain, 16384, 6, 16, 32}, DType::f32);
  add({Kind::plain, 64, 6, 512, 32, 400}, DType::f32);
}

}  // namespace ferrite::bench
