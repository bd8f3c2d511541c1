// sort: values and their places along one axis, stable. topk. Sorted on the host unless a backend runs it.
#pragma once

#include <utility>
#include <vector>

#include "ferrite/ops/op.hpp"
#include "ferrite/ops/scatter.hpp"

namespace ferrite {

namespace detail {
/// Defined in backend/evaluate.hpp, which whoever runs an op includes.
template <class B>
Array contiguous(B& b, const Array& x);
}  // namespace detail

namespace op {

/// Outputs (values, indices i64). NaN sorts last in ascending and first in descending order.
struct FERRITE_API Sort {
  static constexpr LibraryName type_name = "sort";
  int axis = -1;
  bool descending = false;

  Metas infer(MetaSpan in) const;
  static void attributes(auto& self, auto&& visit) {
    visit("axis", self.axis);
    visit("descending", self.descending);
  }
  template <class B>
  void assemble(B& b, Ins in, Outs out) const {
    const Array dense = detail::contiguous(b, in[0]);
    const Meta meta = dense.meta();
    std::vector<std::byte> source(meta.bytes()), values(meta.bytes());
    std::vector<std::int64_t> indices(static_cast<std::size_t>(meta.shape.numel()));
    b.copy_to_host(dense, source.data());
    sort_on_host(meta, source.data(), values.data(), indices.data());
    b.copy_from_host(out[0], values.data());
    b.copy_from_host(out[1], indices.data());
  }
  void sort_on_host(const Meta& meta, const std::byte* source, std::byte* values,
                    std::int64_t* indices) const;

  Saves saves() const { return {.outputs = {1}}; }  // indices
  template <class B>
  void vjp(Vjp<B>& v) const {
    const Tensor<B> base = full(v.backend(), v.input_meta(0).shape, 0, v.grad().dtype());
    v.into(0, Scatter{axis}, base, v.output(1), v.grad());
  }
};

}  // namespace op

// Kernels (backend/concept.hpp).
FERRITE_API void run(Cpu&, const op::Sort& op, Ins in, Outs out);
FERRITE_API void run(Cuda&, const op::Sort& op, Ins in, Outs out);
FERRITE_API bool accepts(const Cuda&, const op::Sort& op, MetaSpan in);

enum class Order : bool { ascending, descending };

/// (sorted values, indices into x).
template <class B>
std::pair<Tensor<B>, Tensor<B>> sort(const Tensor<B>& x, int axis = -1, Order order = Order::ascending) {
  auto out = eval_all(op::Sort{axis, order == Order::descending}, x);
  return {out[0], out[1]};
}
/// The k largest (or smallest) along an axis, best first, and where they are.
template <class B>
std::pair<Tensor<B>, Tensor<B>> topk(const Tensor<B>& x, std::int64_t k, int axis = -1,
                                     Order order = Order::descending) {
  axis = normalize_axis("topk", axis, x.rank());
  if (k < 0 || k > x.shape()[axis])
    throw ValueError("[topk] k " + std::to_string(k) + ": axis " + std::to_string(axis) + " of " +
                     to_string(x.shape()) + " has " + std::to_string(x.shape()[axis]) + " elements");
  auto [values, indices] = sort(x, axis, order);
  return {slice(values, axis, 0, k), slice(indices, axis, 0, k)};
}

}  // namespace ferrite
