// embedding: rows of a table by id. one_hot and index_select, its relatives.
#pragma once

#include "ferrite/ops/fill.hpp"
#include "ferrite/ops/gather.hpp"
#include "ferrite/ops/op.hpp"

namespace ferrite {
namespace op {

/// # Shapes: x [d0, ..., dn], index [m] -> x with extent m on `axis`.
struct FERRITE_API IndexSelect {
  static constexpr LibraryName type_name = "index_select";
  static constexpr bool takes_storage = true;
  static constexpr bool composes_as_given = true;
  int axis = 0;

  Metas infer(MetaSpan in) const;
  Cost cost(MetaSpan in, MetaSpan out) const;
  /// Large enough for a backend that leaves small selections to gather.
  Metas example(DType d) const { return {{{64, 64}, d}, detail::ids({32})}; }
  static void attributes(auto& self, auto&& visit) { visit("axis", self.axis); }
  template <class B>
  Tensors<B> compose(B&, TensorSpan<B> in) const {
    const int a = normalize_axis(type_name, axis, in[0].rank());
    Shape shape = in[0].shape(), line = Shape::filled(in[0].rank(), 1);
    line[a] = shape[a] = in[1].numel();
    return {gather(in[0], a, expand(reshape(in[1], line), shape))};
  }
};

/// # Shapes: weight [V, C], ids integer [...] -> [..., C]. An id outside [-V, V) is a ValueError.
struct FERRITE_API Embedding {
  static constexpr LibraryName type_name = "embedding";
  static constexpr Positions lowered = {0};
  static constexpr bool takes_storage = true;
  static constexpr bool composes_as_given = true;

  Metas infer(MetaSpan in) const;
  Cost cost(MetaSpan in, MetaSpan out) const;
  Metas example(DType d) const { return {{{5, 3}, d}, detail::ids({4})}; }
  static void attributes(auto&, auto&&) {}
  template <class B>
  Tensors<B> compose(B&, TensorSpan<B> in) const {
    const Tensor<B> rows = eval(IndexSelect{0}, in[0], reshape(in[1], {in[1].numel()}));
    Shape shape = in[1].shape();
    shape.push_back(in[0].size(1));
    return {reshape(rows, shape)};
  }
  Saves saves() const { return {.inputs = {1}}; }  // ids
  template <class B>
  void vjp(Vjp<B>& v) const;
};

/// dweight [rows, C] from (dy [..., C], ids [...]); contributions are added in order of position.
struct FERRITE_API EmbeddingBackward {
  static constexpr LibraryName type_name = "embedding_backward";
  static constexpr std::size_t index_input = 1;
  static constexpr bool composes_as_given = true;
  std::int64_t rows = 0;
  std::optional<DType> at_least = {};  // the result's dtype

  Metas infer(MetaSpan in) const;
  double reduction_length(MetaSpan in) const;
  Metas example(DType d) {
    rows = 5;
    return {{{4, 3}, d}, detail::ids({4})};
  }
  static void attributes(auto& self, auto&& visit) {
    visit("rows", self.rows);
    visit("at_least", self.at_least);
  }
  template <class B>
  Tensors<B> compose(B& b, TensorSpan<B> in) const {
    const std::int64_t n = in[1].numel(), channels = in[0].size(-1);
    const Tensor<B> index = expand(reshape(in[1], {n, 1}), {n, channels});
    const DType dtype = detail::sum_dtype(type_name, in[0].dtype(), at_least);
    const Tensor<B> dy = cast(reshape(in[0], {n, channels}), dtype);
    return {scatter_add(zeros(b, {rows, channels}, dy.dtype()), 0, index, dy)};
  }
};

template <class B>
void Embedding::vjp(Vjp<B>& v) const {
  const Meta& weight = v.input_meta(0);
  v.into(0, EmbeddingBackward{weight.shape[0], weight.dtype}, v.grad(), v.input(1));
}

/// # Shapes: ids integer [...] -> [..., classes], 1 at the id, 0 elsewhere. An id out of range gives all
/// zeros.
struct FERRITE_API OneHot {
  static constexpr LibraryName type_name = "one_hot";
  static constexpr bool composes_as_given = true;
  std::int64_t classes = 0;
  DType dtype = DType::f32;

  Metas infer(MetaSpan in) const;
  Metas example(DType d) {
    dtype = d;
    classes = 3;
    return {detail::ids({2})};
  }
  static void attributes(auto& self, auto&& visit) {
    visit("classes", self.classes);
    visit("dtype", self.dtype);
  }
  template <class B>
  Tensors<B> compose(B& b, TensorSpan<B> in) const {
    if (in[0].numel() == 0) {  // takes no memory, however many classes there are
      Shape shape = in[0].shape();
      shape.push_back(classes);
      return {zeros(b, shape, dtype)};
    }
    return {cast(unsqueeze(in[0], -1) == arange(b, classes), dtype)};
  }
};

}  // namespace op

// Kernels (backend/concept.hpp).
FERRITE_API void run(Cpu&, const op::Embedding& op, Ins in, Outs out);
FERRITE_API void run(Cuda&, const op::Embedding& op, Ins in, Outs out);
FERRITE_API void run(Cpu&, const op::EmbeddingBackward& op, Ins in, Outs out,
                     Accumulate mask = Accumulate::none);
FERRITE_API void run(Cuda&, const op::EmbeddingBackward& op, Ins in, Outs out,
                     Accumulate mask = Accumulate::none);
FERRITE_API void run(Cpu&, const op::IndexSelect& op, Ins in, Outs out);
FERRITE_API void run(Cuda&, const op::IndexSelect& op, Ins in, Outs out);
/// Selections of a few elements are left to gather.
FERRITE_API bool accepts(const Cpu&, const op::IndexSelect& op, MetaSpan in);

template <class B>
Tensor<B> index_select(const Tensor<B>& x, int axis, const Tensor<B>& index) {
  return eval(op::IndexSelect{axis}, x, index);
}
template <class B>
Tensor<B> embedding(const Tensor<B>& weight, const Tensor<B>& ids) {
  return eval(op::Embedding{}, weight, ids);
}
template <class B>
Tensor<B> one_hot(const Tensor<B>& ids, std::int64_t classes, DType dtype = DType::f32) {
  return eval(op::OneHot{classes, dtype}, ids);
}

}  // namespace ferrite
