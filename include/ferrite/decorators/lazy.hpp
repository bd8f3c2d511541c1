// Lazy<B>: the decorator that waits. Elementwise ops, casts, choices and the reductions behind them are
// recorded instead of run; when a value is needed, the ops that lead to it run as one kernel, made in the
// kernel language. What nobody asks for any more by then is never written. docs/lazy.md says what is fused,
// and when.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "ferrite/backend/evaluate.hpp"
#include "ferrite/decorators/lazy_recorder.hpp"

namespace ferrite {

namespace lazy {
/// A backend that launches kernels which lie in its own memory: Cuda.
template <class B>
concept Launches = requires(B& b, const kernel::Kernel& k, const kernel::Grid& grid, void* const* arguments) {
  b.launch_kernel(k, grid, arguments);
};
}  // namespace lazy

/// A handle: copies share what is recorded, and tensors keep it alive.
template <class B>
class Lazy {
 public:
  using Primitive = Array;
  using Inner = B;
  using Handle = Lazy;

  /// Arguments go to the constructor of B.
  template <class... Args>
  requires std::constructible_from<B, Args...>
  explicit Lazy(Args&&... args) : Lazy(LazyConfig{}, std::forward<Args>(args)...) {}
  template <class... Args>
  requires std::constructible_from<B, Args...>
  explicit Lazy(const LazyConfig& config, Args&&... args)
      : state_(std::make_shared<State>(config, std::forward<Args>(args)...)) {}
  friend bool operator==(const Lazy&, const Lazy&) = default;

  B& inner() { return state_->inner; }
  const B& inner() const { return state_->inner; }

  FusionReport fusion_report() const { return recorder().report(); }
  void reset_report() { recorder().reset_report(); }
  /// Runs everything recorded. Waits for nothing.
  void flush() { flush("flush"); }
  /// The array as the backend below sees it, its value computed.
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
  Device device() const { return inner().device(); }
  MemoryStats memory_stats() const { return inner().memory_stats(); }
  /// "lazy-cpu (AVX-512, 2 threads)"
  std::string describe() const { return "lazy-" + inner().describe(); }

  template <class Op>
  requires Runs<B, Op>
  friend bool accepts(const Lazy& b, const Op& op, MetaSpan in) {
    return detail::kernel_accepts(b.inner(), op, in);
  }
  template <class Op>
  requires Runs<B, Op>
  friend void run(Lazy& b, const Op& op, Ins in, Outs out) {
    if constexpr (lazy::Recordable<Op>) {
      if (b.recorder().record(lazy::RecordedOp(op), in, out, Accumulate::none)) return;
    }
    lazy::Settled arrays(b.recorder(), op_name(op), in, out);
    detail::run_kernel(b.inner(), op, arrays.in(), arrays.out());
  }
  template <class Op>
  requires RunsAccumulating<B, Op>
  friend void run(Lazy& b, const Op& op, Ins in, Outs out, Accumulate mask) {
    if constexpr (lazy::Recordable<Op>) {
      if (b.recorder().record(lazy::RecordedOp(op), in, out, mask)) return;
    }
    lazy::Settled arrays(b.recorder(), op_name(op), in, out);
    detail::run_kernel(b.inner(), op, arrays.in(), arrays.out(), mask);
  }

 private:
  void flush(std::string_view who) { recorder().flush(who); }

  class InnerExecutor final : public lazy::Executor {
   public:
    explicit InnerExecutor(B& inner) : inner_(inner) {}
    Array allocate(const Meta& meta) override { return detail::allocate_for(inner_, "fused", meta); }
    void run(const lazy::RecordedOp& op, Ins in, Outs out, Accumulate mask) override {
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
      if constexpr (lazy::Launches<B>) inner_.launch_kernel(kernel, grid, arguments);
    }
    std::string refusal() const override {
      const bool runs = lazy::Launches<B> || inner_.device().kind == DeviceKind::cpu;
      return runs ? "" : "a backend that launches no kernels";
    }

   private:
    B& inner_;
  };

  struct State {
    template <class... Args>
    explicit State(const LazyConfig& config, Args&&... args)
        : inner(std::forward<Args>(args)...), recorder(executor, config, inner.device()) {}
    /// Arrays that outlive it hold their values.
    ~State() {
      try {
        recorder.flush("the end of the backend");
      } catch (...) {  // no memory, or no device any more: nobody is left to tell
      }
    }
    B inner;
    InnerExecutor executor{inner};
    lazy::Recorder recorder;
  };
  lazy::Recorder& recorder() const { return state_->recorder; }

  std::shared_ptr<State> state_;
};

}  // namespace ferrite
