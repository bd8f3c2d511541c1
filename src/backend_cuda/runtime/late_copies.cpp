// Copies into pinned memory, each with an event that says when it is there.
#include "ferrite/backend/late_copies.hpp"

#include <cuda_runtime_api.h>

#include <cstring>

#include "backend_cuda/runtime/device_context.hpp"
#include "ferrite/cuda/call.hpp"

namespace ferrite {
namespace {

class PinnedCopies final : public LateCopies {
 public:
  explicit PinnedCopies(Cuda& cuda) : cuda_(cuda) {}
  ~PinnedCopies() override {
    for (Note& note : pending_) {
      static_cast<void>(cudaEventSynchronize(note.event));  // the memory may still be written to
      free_.push_back(note);
    }
    for (const Note& note : free_) release(note);
  }
  PinnedCopies(const PinnedCopies&) = delete;
  PinnedCopies& operator=(const PinnedCopies&) = delete;

  void push(const Array& array) override {
    const cuda::Call call(cuda_, "push");
    if (call.context().is_capturing())
      throw BackendError(
          "[push] a copy inside a capture: would not be taken again by replays; push after replay()");
    const Array dense = cuda::dense(cuda_, array);
    Note note = make_note(dense.meta().bytes());
    cudaError_t status = cudaSuccess;
    if (note.bytes > 0)
      status = cudaMemcpyAsync(note.memory, dense.data(), note.bytes, cudaMemcpyDeviceToHost, call.stream());
    if (status == cudaSuccess) status = cudaEventRecord(note.event, call.stream());
    (status == cudaSuccess ? pending_ : free_).push_back(note);
    cuda::check(status, "push");
  }
  std::size_t pending() const override { return pending_.size(); }
  std::vector<std::byte> pop() override {
    if (pending_.empty()) detail::throw_nothing_pushed();
    const cuda::Call call(cuda_, "pop");
    const Note note = pending_.front();
    cuda::check(cudaEventSynchronize(note.event), "pop");
    pending_.pop_front();
    free_.push_back(note);
    std::vector<std::byte> bytes(note.bytes);
    if (note.bytes > 0) std::memcpy(bytes.data(), note.memory, note.bytes);
    return bytes;
  }

 private:
  struct Note {
    void* memory = nullptr;  // pinned
    std::size_t room = 0, bytes = 0;
    cudaEvent_t event = nullptr;
  };
  static void release(const Note& note) {
    if (note.event) static_cast<void>(cudaEventDestroy(note.event));
    if (note.memory) static_cast<void>(cudaFreeHost(note.memory));
  }
  /// One that was used before, if it has room for the bytes.
  Note make_note(std::size_t bytes) {
    for (auto known = free_.begin(); known != free_.end(); ++known) {
      if (known->room < bytes) continue;
      Note note = *known;
      free_.erase(known);
      note.bytes = bytes;
      return note;
    }
    Note note;
    note.room = bytes > 0 ? bytes : 1;
    note.bytes = bytes;
    cuda::check(cudaHostAlloc(&note.memory, note.room, cudaHostAllocDefault), "push");
    const cudaError_t status = cudaEventCreateWithFlags(&note.event, cudaEventDisableTiming);
    if (status != cudaSuccess) release(note);
    cuda::check(status, "push");
    return note;
  }

  Cuda cuda_;
  std::deque<Note> pending_, free_;
};

}  // namespace

std::unique_ptr<LateCopies> late_copies(Cuda& backend) { return std::make_unique<PinnedCopies>(backend); }

}  // namespace ferrite
