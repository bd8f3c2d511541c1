// What Lazy records, and the report on it. Separate from Lazy: it knows no backend and no list of ops.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "ferrite/ops/copy.hpp"
#include "ferrite/ops/fill.hpp"
#include "ferrite/ops/reduce.hpp"
#include "ferrite/ops/unary.hpp"
#include "ferrite/ops/where.hpp"

namespace ferrite {

namespace kernel {
class Kernel;
struct Grid;
}  // namespace kernel

struct FERRITE_API LazyConfig {
  /// A group runs once it has this many ops or reads this many arrays.
  int max_ops = 64;
  int max_arrays = 16;

  /// Throws ValueError unless value >= 1.
  LazyConfig with_max_ops(int value) const;
  /// Throws ValueError unless value >= 4.
  LazyConfig with_max_arrays(int value) const;
};

/// What was fused, what was not, and why the groups ran.
struct FERRITE_API FusionReport {
  struct Kernel {
    std::string ops;     // "mul add relu"
    std::string source;  // in the kernel language
    std::int64_t launches = 0;
  };
  /// A sentence, and how often it applied.
  using Reasons = std::vector<std::pair<std::string, std::int64_t>>;

  std::int64_t recorded = 0;     // ops
  std::int64_t fused = 0;        // ... that ran in a kernel with others
  std::int64_t single = 0;       // ... that ran one by one
  std::int64_t never_run = 0;    // ... whose result nobody asked for
  std::int64_t not_written = 0;  // results that lived and died inside a kernel
  std::vector<Kernel> kernels;   // most launches first
  Reasons ended;                 // what made groups run, most frequent first
  Reasons unfused;               // why groups of several ops ran op by op

  std::int64_t launches() const;
};
FERRITE_API std::string table(const FusionReport& report);

namespace lazy {

/// The ops that are recorded. Everything else runs at once.
using RecordedOp =
    std::variant<op::Fill, op::Copy, op::Unary, op::UnaryBackward, op::Binary, op::Where, op::Reduce>;
template <class Op>
concept Recordable = requires(const Op& op) {
  RecordedOp(std::in_place_type<Op>, op);
};

/// What the recorder needs from the backend below. Arrays have memory of that backend.
class FERRITE_API Executor {
 public:
  virtual ~Executor() = default;
  virtual Array allocate(const Meta& meta) = 0;
  virtual void run(const RecordedOp& op, Ins in, Outs out, Accumulate mask) = 0;
  /// On a GPU: arguments are as emitted kernels take them (kernel/emit.hpp).
  virtual void launch(const kernel::Kernel& kernel, const kernel::Grid& grid, void* const* arguments) = 0;
  /// Why kernels cannot run here; empty if they can.
  virtual std::string refusal() const = 0;
};

/// Keeps the groups: what is recorded, who reads and writes which buffer, and what a group becomes when it
/// runs. Only one thread at a time is inside.
class FERRITE_API Recorder {
 public:
  Recorder(Executor& executor, const LazyConfig& config, Device device);
  ~Recorder();

  /// An array without memory: it gets memory when it is first written.
  Array allocate(const Meta& meta);
  /// Records the op; false if it has to run at once.
  bool record(const RecordedOp& op, Ins in, Outs out, Accumulate mask);
  /// The array in the memory of the backend below, after everything recorded that it depends on has run.
  /// `who` reads or overwrites it; the report gives it as the reason.
  Array to_read(const Array& array, std::string_view who);
  Array to_write(const Array& array, std::string_view who);
  /// Runs everything recorded.
  void flush(std::string_view who);

  FusionReport report() const;
  void reset_report();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Inputs and outputs of an op that runs at once.
class FERRITE_API Settled {
 public:
  Settled(Recorder& recorder, std::string_view who, Ins in, Outs out);
  Ins in() const { return {refs_.data(), refs_.size()}; }
  Outs out() { return outs_; }

 private:
  SmallVector<Array, 4> ins_;
  SmallVector<Array, 3> outs_;
  SmallVector<const Array*, 4> refs_;
};

}  // namespace lazy

}  // namespace ferrite
