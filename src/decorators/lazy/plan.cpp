#include "decorators/lazy/plan.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <utility>

namespace ferrite::lazy {

namespace {

/// Elements per partial result: enough that few results are written, and few enough to keep a GPU busy with
/// threads.
constexpr std::int64_t terms = 32;

/// Axes of the domain by descending stride of the operand that moves along most of them, preferably an
/// output.
std::vector<int> axis_order(const std::vector<Shape>& strides, std::size_t first_output, int rank) {
  std::size_t leader = 0;
  int best = -1;
  for (std::size_t k = 0; k < strides.size(); ++k) {
    const int moving = static_cast<int>(std::count_if(strides[k].begin(), strides[k].end(),
                                                      [](std::int64_t s) { return s != 0; })) *
                           2 +
                       (k >= first_output ? 1 : 0);
    if (moving > best) best = moving, leader = k;
  }
  std::vector<int> order(static_cast<std::size_t>(rank));
  for (int i = 0; i < rank; ++i) order[static_cast<std::size_t>(i)] = i;
  if (strides.empty()) return order;
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return std::abs(strides[leader][a]) > std::abs(strides[leader][b]); });
  return order;
}

/// Strides along the domain's axes of a result without the reduced ones.
Shape reduced_strides(const Group& group, const Layout& out) {
  Shape strides;
  int next = 0;
  for (int i = 0; i < group.domain.rank(); ++i) {
    const bool gone =
        std::find(group.reduced_axes.begin(), group.reduced_axes.end(), i) != group.reduced_axes.end();
    strides.push_back(gone ? 0 : out.strides[next++]);
  }
  return strides;
}

}  // namespace

std::int64_t Plan::threads() const {
  std::int64_t n = 1;
  for (const std::int64_t e : grid()) n *= e;
  return n;
}

Shape Plan::grid() const {
  Shape shape = partial_shape();
  if (axis < 0) shape[rank - 1] /= pack * rounds;
  return shape;
}

Shape Plan::partial_shape() const {
  Shape shape;
  for (int i = 0; i < rank; ++i) shape.push_back(i == axis ? partials : extent[i]);
  return shape;
}

void plan_reductions(const Group& group, Plan& plan, DeviceKind device) {
  if (plan.reductions.empty() || device == DeviceKind::cuda) return;
  for (const int i : plan.reductions) {
    const int of = group.reductions[static_cast<std::size_t>(i)].of;
    if (std::find(plan.stored.begin(), plan.stored.end(), of) == plan.stored.end()) plan.stored.push_back(of);
    if (group.ops[static_cast<std::size_t>(of)].overwritten)
      plan.obstacle = "a reduction of what is overwritten";
  }
  plan.later = std::exchange(plan.reductions, {});
}

void plan_loops(const Group& group, Plan& plan) {
  const int rank = group.domain.rank();
  std::vector<Shape> strides;
  for (const int i : plan.arrays)
    strides.push_back(group.arrays[static_cast<std::size_t>(i)].layout().strides);
  const std::size_t first_output = strides.size();
  for (const int i : plan.stored)
    strides.push_back(group.ops[static_cast<std::size_t>(i)].out.layout().strides);
  const std::vector<int> order = axis_order(strides, first_output, rank);
  for (const int i : plan.reductions)
    strides.push_back(reduced_strides(group, group.reductions[static_cast<std::size_t>(i)].out.layout()));

  plan.strides.resize(strides.size());
  const auto is_reduced = [&](int axis) {
    return !plan.reductions.empty() &&
           std::find(group.reduced_axes.begin(), group.reduced_axes.end(), axis) != group.reduced_axes.end();
  };
  for (const int axis : order) {
    const std::int64_t extent = group.domain[axis];
    bool merges = plan.rank > 0 && plan.reduced[plan.rank - 1] == is_reduced(axis);
    for (std::size_t k = 0; merges && k < strides.size(); ++k)
      merges = plan.strides[k][static_cast<std::size_t>(plan.rank - 1)] == strides[k][axis] * extent;
    if (!merges) {
      plan.extent[plan.rank] = 1;
      plan.reduced[plan.rank] = is_reduced(axis);
      ++plan.rank;
    }
    plan.extent[plan.rank - 1] *= extent;
    for (std::size_t k = 0; k < strides.size(); ++k)
      plan.strides[k][static_cast<std::size_t>(plan.rank - 1)] = strides[k][axis];
  }
  if (plan.rank == 0) {  // one element
    plan.rank = 1;
    plan.extent[0] = 1;
  }
  for (int i = 0; i < plan.rank; ++i)
    if (plan.reduced[i] && (plan.axis < 0 || plan.extent[i] >= plan.extent[plan.axis])) plan.axis = i;
  if (plan.axis >= 0) plan.partials = (plan.extent[plan.axis] + terms - 1) / terms;

  if (plan.rank > Plan::max_axes) plan.obstacle = "layouts of more than four axes";
  if (group.domain.numel() > std::numeric_limits<std::int32_t>::max())
    plan.obstacle = "2^31 elements or more";
}

void plan_packs(const Group& group, Plan& plan) {
  constexpr int pack = 4;
  if (plan.axis >= 0 && plan.axis != plan.rank - 1) return;
  const auto last = static_cast<std::size_t>(plan.rank - 1);
  bool fits = plan.extent[last] % pack == 0;
  std::size_t k = 0;
  const auto check = [&](const Array& array) {
    const auto& strides = plan.strides[k++];
    fits = fits && (strides[last] == 0 || strides[last] == 1);
    if (strides[last] == 0) return;
    for (std::size_t i = 0; i < last; ++i) fits = fits && strides[i] % pack == 0;
    const auto address = reinterpret_cast<std::uintptr_t>(array.data<void>());
    fits = fits && address % (pack * size_of(array.dtype())) == 0;
  };
  for (const int i : plan.arrays) check(in_memory(group.arrays[static_cast<std::size_t>(i)]));
  for (const int i : plan.stored) check(in_memory(group.ops[static_cast<std::size_t>(i)].out));
  if (!fits) return;
  plan.pack = pack;
  // Two packs at a time keep more loads in flight; a small grid has no threads to spare for this.
  if (plan.axis < 0 && plan.rank == 1 && plan.extent[0] % (2 * pack) == 0 && plan.extent[0] >= (1 << 22))
    plan.rounds = 2;
}

}  // namespace ferrite::lazy
