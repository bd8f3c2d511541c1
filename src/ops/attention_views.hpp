// The kernels of self_attention and cross_attention on any backend that has those of attention: the same, on
// views.
#pragma once

#include "ferrite/ops/cross_attention.hpp"
#include "ferrite/ops/self_attention.hpp"
#include "ops/attention_rules.hpp"

namespace ferrite::op {

template <class B>
bool accepts_parts(const B& backend, const SelfAttention& op, MetaSpan in) {
  const Meta part = part_of_packed(in[0]);
  return accepts(backend, Attention{op.causal, op.scale, op.window}, Metas{part, part, part});
}

template <class B>
void run_on_parts(B& backend, const SelfAttention& op, Ins in, Outs out) {
  const auto parts = heads_of_packed(in[0]);
  const Array* views[] = {&parts[0], &parts[1], &parts[2]};
  Array results[] = {heads_first(out[0]), out[1]};
  run(backend, Attention{op.causal, op.scale, op.window}, Ins(views, 3), Outs(results, 2));
}

template <class B>
bool accepts_parts(const B& backend, const SelfAttentionBackward& op, MetaSpan in) {
  const Meta part = part_of_packed(in[1]);
  const Meta grad{part.shape, in[0].dtype}, o{part.shape, in[2].dtype};
  return accepts(backend, AttentionBackward{op.causal, op.scale, op.window},
                 Metas{grad, part, part, part, o, in[3]});
}

template <class B>
void run_on_parts(B& backend, const SelfAttentionBackward& op, Ins in, Outs out, Accumulate mask) {
  const auto parts = heads_of_packed(in[1]);
  auto gradients = heads_of_packed(out[0]);
  const Array grad = heads_first(in[0]), o = heads_first(in[2]);
  const Array* views[] = {&grad, &parts[0], &parts[1], &parts[2], &o, &in[3]};
  const auto of_all_parts = static_cast<Accumulate>(accumulates(mask, 0) ? 0b111 : 0);
  run(backend, AttentionBackward{op.causal, op.scale, op.window}, Ins(views, 6), Outs(gradients.data(), 3),
      of_all_parts);
}

template <class B>
bool accepts_parts(const B& backend, const CrossAttention& op, MetaSpan in) {
  Metas parts{swapped(in[0]), swapped(in[1]), swapped(in[2])};
  if (in.size() > 3) parts.push_back(in[3]);
  return accepts(backend, Attention{op.causal, op.scale, op.window}, parts);
}

template <class B>
void run_on_parts(B& backend, const CrossAttention& op, Ins in, Outs out) {
  const Array q = heads_first(in[0]), k = heads_first(in[1]), v = heads_first(in[2]);
  const Array* views[] = {&q, &k, &v, in.size() > 3 ? &in[3] : nullptr};
  Array results[] = {heads_first(out[0]), out[1]};
  run(backend, Attention{op.causal, op.scale, op.window}, Ins(views, in.size()), Outs(results, 2));
}

template <class B>
bool accepts_parts(const B& backend, const CrossAttentionBackward& op, MetaSpan in) {
  Metas parts{swapped(in[0]), swapped(in[1]), swapped(in[2]), swapped(in[3]), swapped(in[4]), in[5]};
  if (in.size() > 6) parts.push_back(in[6]);
  return accepts(backend, AttentionBackward{op.causal, op.scale, op.window}, parts);
}

template <class B>
void run_on_parts(B& backend, const CrossAttentionBackward& op, Ins in, Outs out, Accumulate mask) {
  const Array grad = heads_first(in[0]), q = heads_first(in[1]), k = heads_first(in[2]),
              v = heads_first(in[3]), o = heads_first(in[4]);
  const Array* views[] = {&grad, &q, &k, &v, &o, &in[5], in.size() > 6 ? &in[6] : nullptr};
  Array gradients[] = {heads_first(out[0]), heads_first(out[1]), heads_first(out[2])};
  run(backend, AttentionBackward{op.causal, op.scale, op.window}, Ins(views, in.size()), Outs(gradients, 3),
      mask);
}

}  // namespace ferrite::op
