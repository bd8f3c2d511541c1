// Lazy<B>: the decorator that waits. It records elementwise ops, casts, choices and the reductions of their
// results instead of running them. When a value is needed, the ops that lead to it run as one kernel, made in
// the kernel language. A value that nobody holds by then is never written. docs/lazy.md says what is fused,
// and when.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "ferrite/decorators/decorator.hpp"

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

/// A backend that launches kernels in its own memory: Cuda.
template <class B>
concept Launches = requires(B& b, const kernel::Kernel& k, const kernel::Grid& grid, void* const* arguments) {
  b.launch_kernel(k, grid, arguments);
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

template <class B>
class ExecutorOn final : public Executor {
 public:
  explicit ExecutorOn(B& inner) : inner_(inner) {}
  Array allocate(const Meta& meta) override { return detail::allocate_for(inner_, "fused", meta); }
  void run(const RecordedOp& op, Ins in, Outs out, Accumulate mask) override {
    std::visit(
        [&]<class Op>(const Op& o) {
          if constexpr (RunsAccumulating<B, Op>)
            detail::run_kernel(inner_, o, in, out, mask);
          else if constexpr (Runs<B, Op>)
            detail::run_kernel(inner_, o, in, out);
        },
        op);
  }
  void launch(const kernel::Kernel& kernel, const kernel::Grid& grid, void* const* arguments) override {
    if constexpr (Launches<B>) inner_.launch_kernel(kernel, grid, arguments);
  }
  std::string refusal() const override {
    const bool runs = Launches<B> || inner_.device().kind == DeviceKind::cpu;
    return runs ? "" : "a backend that launches no kernels";
  }

 private:
  B& inner_;
};

template <class B>
struct State {
  State(const LazyConfig& config, B& inner) : executor(inner), recorder(executor, config, inner.device()) {}
  /// Arrays that outlive it hold their values.
  ~State() {
    try {
      recorder.flush("the end of the backend");
    } catch (...) {  // no memory, or no device any more: nobody is left to tell
    }
  }
  ExecutorOn<B> executor;
  Recorder recorder;
};

}  // namespace lazy

/// A handle: copies share what is recorded, and tensors keep it alive.
template <class B>
class Lazy : public Decorator<Lazy<B>, B, LazyConfig, lazy::State<B>> {
  using Base = Decorator<Lazy, B, LazyConfig, lazy::State<B>>;

 public:
  using Base::Base;
  using Base::inner;

  FusionReport fusion_report() const { return recorder().report(); }
  void reset_report() { recorder().reset_report(); }
  /// Runs everything recorded. Does not wait.
  void flush() { flush("flush"); }
  /// The computed array as the backend below sees it.
  Array settled(const Array& array) { return recorder().to_read(array, "a reader outside"); }

  Array allocate(const Meta& meta) { return recorder().allocate(meta); }
  void copy_from_host(const Array& array, const void* source) {
    inner().copy_from_host(recorder().to_write(array, "a copy from the host"), source);
  }
  void copy_to_host(const Array& array, void* target) {
    inner().copy_to_host(recorder().to_read(array, "a copy to the host"), target);
  }
  void synchronize() {
    flush("synchronize");
    inner().synchronize();
  }
  /// "lazy-cpu (AVX-512, 2 threads)"
  std::string describe() const { return "lazy-" + inner().describe(); }

  template <class Op>
  void call(const Op& op, Ins in, Outs out, Accumulate mask) {
    if constexpr (lazy::Recordable<Op>) {
      if (recorder().record(lazy::RecordedOp(op), in, out, mask)) return;
    }
    lazy::Settled arrays(recorder(), op_name(op), in, out);
    Base::call(op, arrays.in(), arrays.out(), mask);
  }

 private:
  void flush(std::string_view who) { recorder().flush(who); }

  lazy::Recorder& recorder() const { return Base::state().recorder; }
};

}  // namespace ferrite
