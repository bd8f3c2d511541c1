// record: the work of a step, recorded once and run again with one call, on a backend that can. Programs that
// do not know their backend ask can_record first.
//
//   if (can_record(backend)) {
//     const auto recorded = record(backend, [&] { optimizer.step(loss().backward()); });
//     for (...) { assign(x, batch.x); recorded->replay(); }
//   }
#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <utility>

#include "ferrite/backend/handle.hpp"
#include "ferrite/core/error.hpp"

namespace ferrite {

class Cuda;
template <class B>
class Autodiff;
template <class B>
class Autocast;

/// A step that a backend has recorded.
class FERRITE_API RecordedStep {
 public:
  virtual ~RecordedStep() = default;
  /// Runs the step on what its tensors hold now. May return before the work is done.
  virtual void replay() = 0;
};

namespace detail {

/// Decorators that only send kernels on: what the backend below records is the whole step.
template <class B>
inline constexpr bool records_as_inner = false;
template <class B>
inline constexpr bool records_as_inner<Autodiff<B>> = true;
template <class B>
inline constexpr bool records_as_inner<Autocast<B>> = true;

/// A backend that keeps copies of what the host may write to brings them up to date before a replay.
template <class B>
class RefreshedStep final : public RecordedStep {
 public:
  RefreshedStep(B& backend, std::unique_ptr<RecordedStep> step) : backend_(backend), step_(std::move(step)) {}
  void replay() override {
    backend_->refresh();
    step_->replay();
  }
  const RecordedStep& inner() const { return *step_; }

 private:
  BackendRef<B> backend_;
  std::unique_ptr<RecordedStep> step_;
};

[[noreturn]] FERRITE_API void throw_cannot_record(const std::string& backend);

}  // namespace detail

/// Whether `record` works on this backend: Cuda, and what only sends kernels on to it.
template <class B>
bool can_record(const B& backend) {
  if constexpr (std::same_as<B, Cuda>)
    return true;
  else if constexpr (detail::records_as_inner<B>)
    return can_record(backend.inner());
  else if constexpr (requires { backend.can_record(); })
    return backend.can_record();
  else
    return false;
}

/// Records what step() does, without doing it. The contract is that of CudaGraph: tensors that the step reads
/// keep their buffers, and those that it makes and that outlive it are filled by every replay. Throws
/// BackendError if the backend cannot record, or for an action that a replay would not repeat, such as a copy
/// to the host; the message names the op. A backend of another kind brings members can_record() and
/// record(step), or record(step, beside).
/// `beside` is an earlier recording of the same backend, with which this one shares memory, so that
/// recordings for many sizes need as much as the largest. Results of a replay are then valid until the other
/// is replayed.
FERRITE_API std::unique_ptr<RecordedStep> record(Cuda& backend, const std::function<void()>& step,
                                                 const RecordedStep* beside = nullptr);
template <class B>
std::unique_ptr<RecordedStep> record(B& backend, const std::function<void()>& step,
                                     const RecordedStep* beside = nullptr) {
  if constexpr (requires { backend.record(step, beside); }) {
    return backend.record(step, beside);
  } else if constexpr (requires { backend.record(step); }) {
    return backend.record(step);
  } else if constexpr (detail::records_as_inner<B> && requires { backend.refresh(); }) {
    using Refreshed = detail::RefreshedStep<B>;
    const auto* const other = dynamic_cast<const Refreshed*>(beside);
    return std::make_unique<Refreshed>(backend,
                                       record(backend.inner(), step, other ? &other->inner() : nullptr));
  } else if constexpr (detail::records_as_inner<B>) {
    return record(backend.inner(), step, beside);
  } else {
    detail::throw_cannot_record(backend.describe());
  }
}

/// While it lives, nothing that is recorded changes parameters (inference): graphs use the 16-bit copies of
/// parameters as they are, instead of making them again in every replay. For other backends it does nothing.
template <class B>
class FixedParameters {
 public:
  explicit FixedParameters(B& backend) : backend_(backend) {
    if constexpr (has_copies) backend_->begin_fixed();
  }
  ~FixedParameters() {
    if constexpr (has_copies) backend_->end_fixed();
  }
  FixedParameters(const FixedParameters&) = delete;
  FixedParameters& operator=(const FixedParameters&) = delete;

 private:
  static constexpr bool has_copies = requires(B & b) { b.begin_fixed(); };
  BackendRef<B> backend_;
};

}  // namespace ferrite
