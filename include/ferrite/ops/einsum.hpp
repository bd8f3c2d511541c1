// einsum: sums of products of tensors, by the names of their axes.
#pragma once

#include <string_view>
#include <vector>

#include "ferrite/ops/copy.hpp"
#include "ferrite/ops/matmul.hpp"
#include "ferrite/ops/reduce.hpp"
#include "ferrite/ops/solve.hpp"
#include "ferrite/ops/views.hpp"

namespace ferrite {

namespace detail {

/// The axes of every operand and of the result, by number: equal numbers are the same axis.
struct FERRITE_API EinsumAxes {
  std::vector<std::vector<int>> operands;
  std::vector<int> result;
  std::vector<std::int64_t> extents;  // of each number

  /// Throws ValueError for subscripts that make no sense, ShapeError for shapes that do not fit them.
  EinsumAxes(std::string_view subscripts, std::span<const Shape> shapes);
  /// Whether an axis is in the result, or in an operand from `first` on.
  bool is_needed(int axis, std::size_t first) const;
};

template <class B>
struct EinsumTerm {
  Tensor<B> x;
  std::vector<int> axes;

  bool has(int axis) const { return std::find(axes.begin(), axes.end(), axis) != axes.end(); }
  /// The axes in this order; those that it has not are left out.
  EinsumTerm in_order(const std::vector<int>& order) const {
    Shape permutation;
    EinsumTerm y;
    for (const int axis : order) {
      const auto place = std::find(axes.begin(), axes.end(), axis);
      if (place == axes.end()) continue;
      permutation.push_back(place - axes.begin());
      y.axes.push_back(axis);
    }
    y.x = permute(x, permutation);
    return y;
  }
};

/// An operand without repeated axes, and without those that nobody else needs.
template <class B>
EinsumTerm<B> einsum_operand(const EinsumAxes& plan, std::size_t i, Tensor<B> x, auto&& others_need) {
  EinsumTerm<B> term{x, plan.operands[i]};
  for (std::size_t a = 0; a < term.axes.size(); ++a) {
    const auto again =
        std::find(term.axes.begin() + static_cast<std::ptrdiff_t>(a) + 1, term.axes.end(), term.axes[a]);
    if (again == term.axes.end()) continue;
    Shape order;
    const auto second = again - term.axes.begin();
    for (int axis = 0; axis < term.x.rank(); ++axis)
      if (axis != static_cast<int>(a) && axis != second) order.push_back(axis);
    order.push_back(static_cast<std::int64_t>(a));
    order.push_back(second);
    const int axis = term.axes[a];
    term.x = diagonal_of(permute(term.x, order));
    term.axes.erase(again);
    term.axes.erase(term.axes.begin() + static_cast<std::ptrdiff_t>(a));
    term.axes.push_back(axis);
    a = static_cast<std::size_t>(-1);  // from the start again
  }
  Shape summed;
  std::vector<int> kept;
  for (std::size_t a = 0; a < term.axes.size(); ++a) {
    if (others_need(term.axes[a]))
      kept.push_back(term.axes[a]);
    else
      summed.push_back(static_cast<std::int64_t>(a));
  }
  if (!summed.empty()) term = {sum(term.x, summed), kept};
  return term;
}

/// The product of two terms as one batched matmul: axes of both that are needed later are the batch, axes of
/// both that are not are summed.
template <class B>
EinsumTerm<B> einsum_product(const EinsumTerm<B>& a, const EinsumTerm<B>& b, auto&& needed_later) {
  std::vector<int> batch, left, inner, right;
  for (const int axis : a.axes) (b.has(axis) ? needed_later(axis) ? batch : inner : left).push_back(axis);
  for (const int axis : b.axes)
    if (!a.has(axis)) right.push_back(axis);
  const auto joined = [](std::initializer_list<const std::vector<int>*> lists) {
    std::vector<int> all;
    for (const auto* list : lists) all.insert(all.end(), list->begin(), list->end());
    return all;
  };
  const EinsumTerm<B> lhs = a.in_order(joined({&batch, &left, &inner})),
                      rhs = b.in_order(joined({&batch, &inner, &right}));
  const auto extent = [](const EinsumTerm<B>& t, std::size_t begin, std::size_t end) {
    std::int64_t n = 1;
    for (std::size_t i = begin; i < end; ++i) n *= t.x.shape()[static_cast<int>(i)];
    return n;
  };
  const std::size_t nb = batch.size(), nl = left.size(), ni = inner.size(), nr = right.size();
  const std::int64_t count = extent(lhs, 0, nb), m = extent(lhs, nb, nb + nl),
                     k = extent(lhs, nb + nl, nb + nl + ni), n = extent(rhs, nb + ni, nb + ni + nr);
  Shape shape;
  for (std::size_t i = 0; i < nb + nl; ++i) shape.push_back(lhs.x.shape()[static_cast<int>(i)]);
  for (std::size_t i = nb + ni; i < nb + ni + nr; ++i) shape.push_back(rhs.x.shape()[static_cast<int>(i)]);
  const Tensor<B> y = matmul(reshape(lhs.x, {count, m, k}), reshape(rhs.x, {count, k, n}));
  return {reshape(y, shape), joined({&batch, &left, &right})};
}

}  // namespace detail

/// einsum("bij,bjk->bik", x, y): for every value of the axes after the arrow, the sum of products over the
/// values of all other axes, as in NumPy. Without an arrow the result has the axes that occur once, in
/// alphabetical order. "..." stands for any number of leading axes, which broadcast. Operands are multiplied
/// from left to right. The result has their promoted dtype; of bools it says whether any product is true.
template <class B>
Tensor<B> einsum(std::string_view subscripts, const std::vector<Tensor<B>>& operands) {
  std::vector<Shape> shapes;
  for (const Tensor<B>& x : operands) shapes.push_back(x.shape());
  const detail::EinsumAxes plan(subscripts, shapes);
  DType dtype = operands[0].dtype();
  for (const Tensor<B>& x : operands) dtype = promote(dtype, x.dtype());
  const bool of_bools = dtype == DType::bool_;
  const auto operand = [&](std::size_t i) {
    Shape shape;
    for (const int axis : plan.operands[i]) shape.push_back(plan.extents[static_cast<std::size_t>(axis)]);
    const Tensor<B> x = of_bools ? cast(operands[i], DType::i64) : operands[i];
    return detail::einsum_operand(plan, i, expand(x, shape), [&](int axis) {
      if (plan.is_needed(axis, i + 1)) return true;
      return std::any_of(
          plan.operands.begin(), plan.operands.begin() + static_cast<std::ptrdiff_t>(i),
          [&](const auto& axes) { return std::find(axes.begin(), axes.end(), axis) != axes.end(); });
    });
  };
  detail::EinsumTerm<B> total = operand(0);
  for (std::size_t i = 1; i < operands.size(); ++i)
    total = detail::einsum_product(total, operand(i), [&](int axis) { return plan.is_needed(axis, i + 1); });
  return cast(total.in_order(plan.result).x, dtype);
}
template <class B, std::same_as<Tensor<B>>... More>
Tensor<B> einsum(std::string_view subscripts, const Tensor<B>& first, const More&... more) {
  return einsum(subscripts, std::vector<Tensor<B>>{first, more...});
}

}  // namespace ferrite
