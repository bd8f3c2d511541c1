// dropout: zeroes elements with probability p and scales the others by 1 / (1 - p). The mask is a function
// of (seed, stream, element index), so that backward and recomputation draw the same one.
#pragma once

#include "ferrite/ops/op.hpp"
#include "ferrite/ops/random.hpp"

namespace ferrite {
namespace op {

/// Element i (row-major) is kept where the uniform f32 draw i of (seed, stream) is >= p.
struct FERRITE_API Dropout {
  static constexpr LibraryName type_name = "dropout";
  double p = 0.5;
  std::uint64_t seed = 0;
  std::uint64_t stream = 0;

  Metas infer(MetaSpan in) const;
  static void attributes(auto& self, auto&& visit) {
    visit("p", self.p);
    visit("seed", self.seed);
    visit("stream", self.stream);
  }
  template <class B>
  Tensors<B> compose(B& b, TensorSpan<B> in) const {
    const Tensor<B> draw =
        create(b, Random{RandomFn::uniform, in[0].shape(), DType::f32, seed, stream, 0, 1});
    const double scale = p < 1 ? 1 / (1 - p) : 0;
    return {where(draw >= p, in[0] * scale, 0)};
  }
  template <class B>
  void vjp(Vjp<B>& v) const {
    v.into(0, *this, v.grad());
  }
};

}  // namespace op

// Kernels (backend/concept.hpp).
FERRITE_API void run(Cpu&, const op::Dropout& op, Ins in, Outs out, Accumulate mask = Accumulate::none);
FERRITE_API void run(Cuda&, const op::Dropout& op, Ins in, Outs out, Accumulate mask = Accumulate::none);

/// Takes the generator's next stream. p = 0 returns x itself.
template <class B>
Tensor<B> dropout(const Tensor<B>& x, double p, Rng& rng) {
  if (p == 0) return x;
  const RandomKey key = rng.next();
  return eval(op::Dropout{p, key.seed, key.stream}, x);
}

}  // namespace ferrite
