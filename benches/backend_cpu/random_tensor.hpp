// Random f32 tensors and the two ways to run an op on them: as the backend does, and by its composition.
#pragma once

#include "ferrite/stacks.hpp"

namespace ferrite::bench {

inline Tensor<Cpu> random_tensor(Cpu& cpu, const Shape& shape, std::uint64_t seed) {
  const Array x = cpu.allocate({shape, DType::f32});
  for (std::int64_t i = 0; i < shape.numel(); ++i)
    x.data<float>()[i] = 2 * uniform_at<float>({seed, 0}, static_cast<std::uint64_t>(i)) - 1;
  return {cpu, x};
}

using TensorList = SmallVector<Tensor<Cpu>, 7>;

template <class Op>
Tensors<Cpu> fused(const Op& op, const TensorList& in) {
  return eval_list(op, TensorSpan<Cpu>(in.data(), in.size()));
}

template <class Op>
Tensors<Cpu> composed(Cpu& cpu, const Op& op, const TensorList& in) {
  return op.template compose<Cpu>(cpu, TensorSpan<Cpu>(in.data(), in.size()));
}

}  // namespace ferrite::bench
