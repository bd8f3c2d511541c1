// Lazy<B>: the decorator that waits. It records elementwise ops, casts, choices and the reductions of their
// results instead of running them. When a value is needed, the ops that lead to it run as one kernel, made in
// the kernel language. A value that nobody holds by then is never written. docs/lazy.md says what is fused,
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
