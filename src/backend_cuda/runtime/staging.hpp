// Pinned host memory between user memory and the GPU. The copy engine reads only pinned pages. Our own ring
// lets the processor fill one part while the engine moves another, and frees the caller's memory at once.
// User memory that is pinned itself needs no ring: the engine moves it whole.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstddef>
#include <mutex>

namespace ferrite::cuda {

class DeviceContext;

class Staging {
 public:
  explicit Staging(DeviceContext& context) : context_(context) {}

  // Both for at least one byte, from any thread.
  /// Queues the copy on the compute stream; `source` may be changed afterwards. A copy larger than the ring
  /// waits for its first parts or, from pinned memory, for all of them.
  void upload(std::byte* target, const std::byte* source, std::size_t bytes);
  /// After the compute stream's work; returns when `target` is written.
  void download(std::byte* target, const std::byte* source, std::size_t bytes);

 private:
  /// One transfer; returns when it is done.
  void copy_pinned(void* target, const void* source, std::size_t bytes, cudaStream_t stream, const char* op);

  // The engine takes 80 us for 4 MiB at 55 GB/s: long compared with its 2 us start, short compared with a
  // batch.
  static constexpr std::size_t chunk_bytes = std::size_t{4} << 20;

  /// Pinned chunks, each with the event after its last transfer; taken at first use.
  template <std::size_t Count>
  struct Chunks {
    std::mutex mutex;
    std::byte* memory = nullptr;
    std::array<cudaEvent_t, Count> done{};
    std::byte* at(std::size_t chunk) const { return memory + chunk * chunk_bytes; }
    void prepare(DeviceContext& context);
  };

  DeviceContext& context_;
  Chunks<4> uploads_;
  std::size_t upload_chunk_ = 0, upload_offset_ = 0;  // where the ring goes on
  Chunks<2> downloads_;
};

}  // namespace ferrite::cuda
