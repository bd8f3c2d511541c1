// Lazy<B>: the decorator that waits. It records elementwise ops, casts, choices and the reductions of their
// results instead of running them. When a value is needed, the ops that lead to it run as one kernel, made in
// the kernel language. A value that nobody holds by then is never written. docs/lazy.md says what is fused,
// and when.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "ferrite/decorators/decorator.hpp"
#include "ferrite/decorators/lazy_recorder.hpp"

namespace ferrite {

namespace lazy {
/// A backend that launches kernels in its own memory: Cuda.
template <class B>
concept Launches = requires(B& b, const kernel::Kernel& k, const kernel::Grid& grid, void* const* arguments) {
  b.launch_kernel(k, grid, arguments);
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
  /// Arrays that outlive it keep their values.
  ~State() {
    try {
      recorder.flush("the end of the backend");
    } catch (...) {  // no memory, or the device is lost: nobody is left to tell
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
  /// "lazy-cpu (x86-64-v4, 2 threads)"
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
