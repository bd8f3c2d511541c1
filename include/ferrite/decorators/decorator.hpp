// Decorator: what every backend around another one has in common. Profiled, Parity and Lazy stand on it.
#pragma once

#include <memory>
#include <string_view>
#include <utility>

#include "ferrite/backend/evaluate.hpp"

namespace ferrite {

/// The base of a decorator of backends that run kernels:
///
///   template <class B>
///   class Counting : public Decorator<Counting<B>, B, Counts> { ... };
///
/// A handle: copies share the backend below and the State, and tensors keep both alive. State is made of a
/// Config, as State(config) or State(config, backend below). Whatever Self does not bring itself goes to the
/// backend below. It must bring `std::string describe() const`.
template <class Self, RunsKernels B, class Config, class State = Config>
class Decorator {
  static_assert(
      !requires(B inner, const Array& x) { inner.lower(x); },
      "Autocast goes around other decorators, so that they see its 16-bit inputs: "
      "Autocast<Profiled<Cpu>>, not Profiled<Autocast<Cpu>>");

 public:
  using Primitive = Array;
  using Inner = B;
  using Handle = Self;

  /// Arguments go to the constructor of B.
  template <class... Args>
  requires std::constructible_from<B, Args...>
  explicit Decorator(Args&&... args) : Decorator(Config{}, std::forward<Args>(args)...) {}
  template <class... Args>
  requires std::constructible_from<B, Args...>
  explicit Decorator(const Config& config, Args&&... args)
      : shared_(std::make_shared<Shared>(config, std::forward<Args>(args)...)) {}
  friend bool operator==(const Decorator&, const Decorator&) = default;

  B& inner() { return shared_->inner; }
  const B& inner() const { return shared_->inner; }

  Array allocate(const Meta& meta, std::string_view op = "allocate") {
    return detail::allocate_for(inner(), op, meta);
  }
  void copy_from_host(const Array& array, const void* source) { inner().copy_from_host(array, source); }
  void copy_to_host(const Array& array, void* target) { inner().copy_to_host(array, target); }
  void synchronize() { inner().synchronize(); }
  Device device() const { return inner().device(); }
  MemoryStats memory_stats() const { return inner().memory_stats(); }
  bool is_capturing() const requires requires(const B& b) { b.is_capturing(); }
  { return inner().is_capturing(); }

  /// Every kernel runs through it, if the backend below has one. There is a mask only where that one can add.
  template <class Op>
  void call(const Op& op, Ins in, Outs out, Accumulate mask) {
    if constexpr (RunsAccumulating<B, Op>) {
      if (mask != Accumulate::none) return detail::run_kernel(inner(), op, in, out, mask);
    }
    detail::run_kernel(inner(), op, in, out);
  }

  template <class Op>
  requires Runs<B, Op>
  friend bool accepts(const Self& b, const Op& op, MetaSpan in) {
    return detail::kernel_accepts(b.inner(), op, in);
  }
  template <class Op>
  requires Runs<B, Op>
  friend void run(Self& b, const Op& op, Ins in, Outs out) { b.call(op, in, out, Accumulate::none); }
  template <class Op>
  requires(Runs<B, Op>&& RunsAccumulating<B, Op>) friend void run(Self& b, const Op& op, Ins in, Outs out,
                                                                  Accumulate mask) {
    b.call(op, in, out, mask);
  }

 protected:
  State& state() const { return shared_->state; }

 private:
  struct Shared {
    template <class... Args>
    explicit Shared(const Config& config, Args&&... args)
        : inner(std::forward<Args>(args)...), state(make_state(config, inner)) {}
    static State make_state(const Config& config, B& inner) {
      if constexpr (std::constructible_from<State, const Config&, B&>)
        return State(config, inner);
      else
        return State(config);
    }
    B inner;
    State state;
  };
  std::shared_ptr<Shared> shared_;
};

}  // namespace ferrite
