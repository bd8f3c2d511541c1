// What a group has to do when it runs: which ops are needed, what is written, and the loop nest over all
// arrays.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "decorators/lazy/group.hpp"

namespace ferrite::lazy {

/// Axes are ordered and merged so that the first axis has the longest strides. Strides are in elements.
struct Plan {
  static constexpr int max_axes = 4;  // of arrays in the kernel language

  std::vector<bool> needed;     // by op: its value leads to something that is written
  std::vector<int> arrays;      // of the group, that needed ops read
  std::vector<int> stored;      // ops whose results are written
  std::vector<int> reductions;  // of the group, that the kernel begins
  std::vector<int> later;       // of the group, that the backend does by itself

  int rank = 0;
  std::int64_t extent[max_rank] = {};
  bool reduced[max_rank] = {};
  /// Of arrays, stored ops and results of reductions, one after the other. Results do not move along reduced
  /// axes.
  std::vector<std::array<std::int64_t, max_rank>> strides;

  /// A reduced axis is walked by `partials` threads, each of which takes every so many-th element, or pack of
  /// them, and writes what it has got; -1 if nothing is reduced.
  int axis = -1;
  std::int64_t partials = 0;

  /// Elements that a thread takes at once from each array, and how many times it does so. More than one only
  /// where all arrays are dense, or one element for all.
  int pack = 1;
  int rounds = 1;

  std::int64_t threads() const;
  /// Extents of the grid.
  Shape grid() const;
  /// Extents of what the threads of a reduction write.
  Shape partial_shape() const;
  /// Why there is no kernel for it; empty if there is.
  std::string obstacle;
};

/// `wanted` says whether somebody still holds what an array shows.
template <class Wanted>
Plan make_plan(const Group& group, Wanted&& wanted);

/// Leaves reductions to the backend on the CPU, where a kernel of them does not pay: what it would not write
/// and read again stays in the cache.
void plan_reductions(const Group& group, Plan& plan, DeviceKind device);
/// Fills in the loop nest.
void plan_loops(const Group& group, Plan& plan);
/// For GPUs: as many elements at once as vectors have, where arrays are dense and aligned. Not along an axis
/// that stays when another is reduced.
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
