// cat: tensors one after another along an axis; stack: along a new one.
#pragma once

#include <vector>

#include "ferrite/ops/copy.hpp"
#include "ferrite/ops/op.hpp"
#include "ferrite/ops/views.hpp"

namespace ferrite {
namespace op {

/// # Shapes: equal except for `axis`, whose extents add up. Dtypes promote.
struct FERRITE_API Cat {
  static constexpr LibraryName type_name = "cat";
  static constexpr bool takes_storage = true;
  int axis = 0;

  Metas infer(MetaSpan in) const;
  static void attributes(auto& self, auto&& visit) { visit("axis", self.axis); }
  template <class B>
  void assemble(B& b, Ins in, Outs out) const {
    const int a = normalize_axis(type_name, axis, out[0].shape().rank());
    std::int64_t start = 0;
    for (std::size_t i = 0; i < in.size(); ++i) {
      const std::int64_t n = in[i].shape()[a];
      Array target = out[0].with_layout(out[0].layout().slice(a, start, n, 1));
      const Array* source[] = {&in[i]};
      detail::run_kernel(b, Copy{target.dtype()}, Ins(source, 1), Outs(&target, 1));
      start += n;
    }
  }
  template <class B>
  void vjp(Vjp<B>& v) const {
    const int a = normalize_axis(type_name, axis, v.input_meta(0).shape.rank());
    std::int64_t start = 0;
    for (std::size_t i = 0; i < v.input_count(); ++i) {
      const std::int64_t n = v.input_meta(i).shape[a];
      if (v.needs(i)) v.add(i, eval(Slice{a, start, n, 1}, v.grad()));
      start += n;
    }
  }
};

}  // namespace op

template <class B>
Tensor<B> cat(const std::vector<Tensor<B>>& tensors, int axis = 0) {
  return eval_list(op::Cat{axis}, TensorSpan<B>(tensors))[0];
}
/// # Shapes: equal; the result has a new axis before position `axis`, as long as the list. Dtypes promote.
template <class B>
Tensor<B> stack(const std::vector<Tensor<B>>& tensors, int axis = 0) {
  return detail::run_parts("stack", [&] {
    std::vector<Tensor<B>> widened;
    for (const Tensor<B>& t : tensors) {
      detail::check_shape("stack", "a tensor", t.shape(), tensors[0].shape());
      widened.push_back(unsqueeze(t, axis));
    }
    return cat(widened, axis);
  });
}

}  // namespace ferrite
