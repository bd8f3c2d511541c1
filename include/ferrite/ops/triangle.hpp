// triangle: the lower or upper triangle of matrices. tril, triu, eye.
#pragma once

#include <algorithm>

#include "ferrite/ops/op.hpp"

namespace ferrite {
namespace op {

/// # Shapes: [..., M, N] -> the same; elements outside the triangle become 0. `diagonal` shifts it right.
struct FERRITE_API Triangle {
  static constexpr LibraryName type_name = "triangle";
  static constexpr bool composes_as_given = true;
  bool lower = true;
  std::int64_t diagonal = 0;

  std::string_view name() const { return lower ? "tril" : "triu"; }
  Metas infer(MetaSpan in) const;
  static void attributes(auto& self, auto&& visit) {
    visit("lower", self.lower);
    visit("diagonal", self.diagonal);
  }
  template <class B>
  Tensors<B> compose(B& b, TensorSpan<B> in) const {
    const Tensor<B>& x = in[0];
    const std::int64_t shift = std::clamp(diagonal, -x.size(-2), x.size(-1));  // beyond this, nothing changes
    const Tensor<B> row = unsqueeze(arange(b, x.size(-2)), 1) + shift, column = arange(b, x.size(-1));
    return {where(lower ? column <= row : column >= row, x, false)};  // of a bool, false alone leaves a bool
  }
};

}  // namespace op

template <class B>
Tensor<B> tril(const Tensor<B>& x, std::int64_t diagonal = 0) {
  return eval(op::Triangle{true, diagonal}, x);
}
template <class B>
Tensor<B> triu(const Tensor<B>& x, std::int64_t diagonal = 0) {
  return eval(op::Triangle{false, diagonal}, x);
}
/// The n x n identity.
template <class B>
Tensor<B> eye(B& b, std::int64_t n, DType dtype = DType::f32) {
  check_extents("eye", {n, n});
  return cast(unsqueeze(arange(b, n), 1) == arange(b, n), dtype);
}

}  // namespace ferrite
