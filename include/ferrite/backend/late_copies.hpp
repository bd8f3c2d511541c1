// late_copies: results that the host reads without waiting for the device: the tokens of a step, say, while
// the next steps already run. (LateReader of cuda_graph.hpp is the same for single numbers.)
//
//   const auto copies = late_copies(backend);
//   for (...) { step->replay(); copies->push(ids); if (copies->pending() > 2) use(copies->pop()); }
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <vector>

#include "ferrite/backend/evaluate.hpp"
#include "ferrite/backend/record.hpp"

namespace ferrite {

/// Copies of arrays in the order in which they were pushed.
class FERRITE_API LateCopies {
 public:
  virtual ~LateCopies() = default;
  /// Notes what the array holds after the work given so far. BackendError inside a recording.
  virtual void push(const Array& array) = 0;
  virtual std::size_t pending() const = 0;
  /// The bytes of the oldest note, dense and row-major; waits for it if necessary. ValueError if there is
  /// none.
  virtual std::vector<std::byte> pop() = 0;
};

namespace detail {

[[noreturn]] FERRITE_API void throw_nothing_pushed();

/// For a backend that has no other way: copies at once.
template <class B>
class ImmediateCopies final : public LateCopies {
 public:
  explicit ImmediateCopies(B& backend) : backend_(backend) {}
  void push(const Array& array) override {
    const Array dense = contiguous(*backend_, array);
    std::vector<std::byte> bytes(dense.meta().bytes());
    backend_->copy_to_host(dense, bytes.data());
    copies_.push_back(std::move(bytes));
  }
  std::size_t pending() const override { return copies_.size(); }
  std::vector<std::byte> pop() override {
    if (copies_.empty()) throw_nothing_pushed();
    std::vector<std::byte> bytes = std::move(copies_.front());
    copies_.pop_front();
    return bytes;
  }

 private:
  BackendRef<B> backend_;
  std::deque<std::vector<std::byte>> copies_;
};

}  // namespace detail

/// For arrays of the backend that runs kernels. Only Cuda, and what sends kernels on to it, copies late.
FERRITE_API std::unique_ptr<LateCopies> late_copies(Cuda& backend);
template <class B>
std::unique_ptr<LateCopies> late_copies(B& backend) {
  if constexpr (requires { backend.late_copies(); })
    return backend.late_copies();
  else if constexpr (detail::records_as_inner<B>)
    return late_copies(backend.inner());
  else
    return std::make_unique<detail::ImmediateCopies<B>>(backend);
}

}  // namespace ferrite
