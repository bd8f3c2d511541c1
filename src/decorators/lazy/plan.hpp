// The plan of a group that runs: which ops are needed, what is written, and the loop nest over all arrays.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "decorators/lazy/group.hpp"

namespace ferrite::lazy {

/// Axes are ordered and merged so that the first axis has the longest strides. Strides are in elements.
struct Plan {
  static constexpr int max_axes = 4;  // of arrays in the kernel language

  std::vector<bool> needed;     // by op: a written result depends on it
  std::vector<int> arrays;      // arrays of the group that needed ops read
  std::vector<int> stored;      // ops whose results are written
  std::vector<int> reductions;  // reductions of the group that the kernel begins
  std::vector<int> later;       // reductions of the group that the backend does

  int rank = 0;
  std::int64_t extent[max_rank] = {};
  bool reduced[max_rank] = {};
  /// One entry per array, then per stored op, then per result of a reduction. A result has stride 0 along
  /// reduced axes.
  std::vector<std::array<std::int64_t, max_rank>> strides;

  /// The reduced axis that `partials` threads share. Thread i takes element (or pack) i, i + partials, ...
  /// and writes its partial result. -1 if nothing is reduced.
  int axis = -1;
  std::int64_t partials = 0;

  /// Elements that a thread takes at once from each array, and how often it does so. More than one only if
  /// every array is dense or broadcasts a single element.
  int pack = 1;
  int rounds = 1;

  std::int64_t threads() const;
  /// Extents of the grid.
  Shape grid() const;
  /// Extents of what the threads of a reduction write.
  Shape partial_shape() const;
  /// Why there is no kernel for it; empty if there is one.
  std::string obstacle;
};

/// `wanted` tells whether somebody still holds an array.
template <class Wanted>
Plan make_plan(const Group& group, Wanted&& wanted);

/// On the CPU, leaves reductions to the backend. A kernel that contains them does not pay there: the values
/// that it would not write and read again stay in the cache anyway.
void plan_reductions(const Group& group, Plan& plan, DeviceKind device);
/// Fills in the loop nest.
void plan_loops(const Group& group, Plan& plan);
/// For GPUs: as many elements at once as a vector has, if arrays are dense and aligned. Not along an axis
/// that is kept while another is reduced.
void plan_packs(const Group& group, Plan& plan);

template <class Wanted>
Plan make_plan(const Group& group, Wanted&& wanted) {
  Plan plan;
  plan.needed.resize(group.ops.size());
  for (std::size_t i = 0; i < group.reductions.size(); ++i) {
    if (!wanted(group.reductions[i].out)) continue;
    plan.reductions.push_back(static_cast<int>(i));
    plan.needed[static_cast<std::size_t>(group.reductions[i].of)] = true;
  }
  std::vector<bool> read(group.arrays.size());
  for (std::size_t i = group.ops.size(); i-- > 0;) {
    const Recorded& op = group.ops[i];
    if (!op.overwritten && wanted(op.out)) {
      plan.stored.push_back(static_cast<int>(i));
      plan.needed[i] = true;
    }
    if (!plan.needed[i]) continue;
    for (const Operand& x : op.operands) {
      if (x.op >= 0)
        plan.needed[static_cast<std::size_t>(x.op)] = true;
      else
        read[static_cast<std::size_t>(x.array)] = true;
    }
  }
  for (std::size_t i = 0; i < read.size(); ++i)
    if (read[i]) plan.arrays.push_back(static_cast<int>(i));
  return plan;
}

}  // namespace ferrite::lazy
