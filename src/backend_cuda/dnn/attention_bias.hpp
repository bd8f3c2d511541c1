// Masks as cuDNN takes them: numbers of the queries' dtype that are added to the scores. It has no rule for a
// query that sees no key; such rows are mended around it.
#pragma once

#include "ferrite/cuda/call.hpp"

namespace ferrite::cuda {

/// The mask of scores [B, H, T, S] as an array [B or 1, H or 1, T, S] to add, in rows of a multiple of 16
/// bytes. Undefined where cuDNN cannot take it: a mask of another dtype than bool or that of q would be
/// rounded, f16 has no number that hides a key, and a very large one is not worth the copy.
Array attention_bias(Cuda& cuda, const Call& call, const Array& q, const Array& k, const Array& mask);

/// After a forward pass with such a bias: a query that sees no key gives o = 0 and lse = -inf.
void clear_hidden_rows(const Call& call, const Array& o, const Array& lse);

/// For the gradient: lse with +inf in place of -inf, so that the weights of those queries are 0.
Array lse_without_hidden_rows(Cuda& cuda, const Call& call, const Array& lse);

}  // namespace ferrite::cuda
