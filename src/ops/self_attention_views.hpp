// The kernels of self_attention on any backend that has those of attention: the same, on views of the packed
// arrays.
#pragma once

#include "ferrite/ops/self_attention.hpp"

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

}  // namespace ferrite::op
