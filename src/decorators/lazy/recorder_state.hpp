// The inside of lazy::Recorder: recorder.cpp records ops, run.cpp runs groups, report.cpp makes the report.
#pragma once

#include <algorithm>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "decorators/lazy/functions.hpp"
#include "decorators/lazy/fused_kernel.hpp"
#include "decorators/lazy/group.hpp"

namespace ferrite::lazy {

struct Recorder::State {
  /// Shapes whose ops may be waiting at the same time.
  static constexpr std::size_t max_groups = 8;
  /// Number of kernels kept; beyond it all are dropped, and built again if needed.
  static constexpr std::size_t max_kernels = 1024;

  State(Executor& below, const LazyConfig& limits, Device where)
      : executor(below), config(limits), device(where) {}

  Executor& executor;
  LazyConfig config;
  Device device;
  std::mutex mutex;
  std::vector<std::unique_ptr<Group>> groups;  // at most one of each domain, oldest first

  // Recording.
  void record_elementwise(const RecordedOp& op, Ins in, Array& out, bool accumulates);
  bool record_reduction(const op::Reduce& op, const Array& in, Array& out);
  Group* find(const Shape& domain);
  /// The group of this domain, with room for one more op.
  Group& group_for(const Shape& domain, std::size_t arrays_needed);
  /// Whether a kernel over the domain has access to the element: it is in memory, or the same thread computes
  /// it.
  bool fits(const Array& array, const Layout& layout, const Shape& domain) const;
  Operand operand_of(Group& group, const Array& array);
  std::string_view reason_for_reading(const Array& array, const Shape& domain) const;
  bool writes(const Group& group, const Buffer* buffer) const;
  /// Runs the groups that must run before an op that overwrites `result`, over the domain.
  void run_unless_in_place(const Array& result, const Shape& domain);
  void run_users(const Buffer* buffer, std::string_view who);
  void give_memory(LazyBuffer& buffer);

  // Running.
  void run(Group& group, std::string_view who);
  void run_group(Group& group);
  void run_one_by_one(const Group& group, const Plan& plan);
  /// Whether anybody except the group holds the buffer.
  bool is_wanted(const Group& group, const Array& out) const;
  void launch(const Group& group, const Plan& plan);
  void reduce(const Group& group, const Reduction& reduction);
  /// From partial results to the result, by the backend's own reduction.
  void finish_reduction(const Group& group, const Plan& plan, std::size_t which, const Array& partial);
  FusedKernel& kernel_for(const Group& group, const Plan& plan);

  std::unordered_map<std::string, std::unique_ptr<FusedKernel>> kernels;  // by structure

  struct Counts {
    std::int64_t recorded = 0, fused = 0, single = 0, never_run = 0, not_written = 0;
    std::map<std::string, std::int64_t, std::less<>> ended, unfused;
  } counts;
};

}  // namespace ferrite::lazy
