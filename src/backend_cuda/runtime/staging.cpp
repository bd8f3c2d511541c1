// Copies between user memory and the GPU through pinned chunks.
#include "backend_cuda/runtime/staging.hpp"

#include <algorithm>
#include <cstring>

#include "backend_cuda/runtime/device_context.hpp"
#include "ferrite/core/error.hpp"
#include "ferrite/core/thread_pool.hpp"

namespace ferrite::cuda {
namespace {

/// One core moves 10 to 15 GB/s, the bus 55.
void copy_host_memory(std::byte* target, const std::byte* source, std::size_t bytes) {
  constexpr std::int64_t grain = 512 * 1024;
  parallel_ranges(static_cast<std::int64_t>(bytes), grain, [&](std::int64_t begin, std::int64_t end) {
    std::memcpy(target + begin, source + begin, static_cast<std::size_t>(end - begin));
  });
}

/// Takes a microsecond: only large copies ask.
bool is_pinned(const void* memory, const char* op) {
  cudaPointerAttributes attributes{};
  check(cudaPointerGetAttributes(&attributes, memory), op);
  return attributes.type == cudaMemoryTypeHost;
}

void refuse_capture(const DeviceContext& context, const char* what) {
  if (!context.is_capturing()) return;
  throw BackendError(std::string("[") + what + "] on " + to_string(context.device()) +
                     ": cannot be captured into a CUDA graph; do it before or after the capture");
}

}  // namespace

template <std::size_t Count>
void Staging::Chunks<Count>::prepare(DeviceContext& context) {
  if (memory) return;
  for (cudaEvent_t& event : done) {
    if (!event) event = context.events().take();
  }
  void* pinned = nullptr;
  check(cudaHostAlloc(&pinned, Count * chunk_bytes, cudaHostAllocPortable), "pinned memory");
  memory = static_cast<std::byte*>(pinned);
}

void Staging::copy_pinned(void* target, const void* source, std::size_t bytes, cudaStream_t stream,
                          const char* op) {
  const PooledEvent done(context_.events());
  check(cudaMemcpyAsync(target, source, bytes, cudaMemcpyDefault, stream), op);
  check(cudaEventRecord(done.get(), stream), op);
  check(cudaEventSynchronize(done.get()), op);
}

void Staging::upload(std::byte* target, const std::byte* source, std::size_t bytes) {
  refuse_capture(context_, "copy_from_host");
  context_.refuse_aside("copy_from_host");
  const DeviceGuard device(context_.index());
  // Does not wait for what fits in the ring.
  if (bytes > uploads_.done.size() * chunk_bytes && is_pinned(source, "copy_from_host"))
    return copy_pinned(target, source, bytes, context_.stream(), "copy_from_host");
  const std::lock_guard guard(uploads_.mutex);
  uploads_.prepare(context_);
  while (bytes > 0) {
    if (upload_offset_ == chunk_bytes) {  // full: go on in the next, once its transfers are done
      check(cudaEventRecord(uploads_.done[upload_chunk_], context_.stream()), "copy_from_host");
      const std::size_t next = (upload_chunk_ + 1) % uploads_.done.size();
      check(cudaEventSynchronize(uploads_.done[next]), "copy_from_host");
      upload_chunk_ = next;
      upload_offset_ = 0;
    }
    const std::size_t part = std::min(bytes, chunk_bytes - upload_offset_);
    std::byte* const staged = uploads_.at(upload_chunk_) + upload_offset_;
    copy_host_memory(staged, source, part);
    check(cudaMemcpyAsync(target, staged, part, cudaMemcpyHostToDevice, context_.stream()), "copy_from_host");
    constexpr std::size_t line = 256;
    upload_offset_ = (upload_offset_ + part + line - 1) / line * line;
    target += part;
    source += part;
    bytes -= part;
  }
}

void Staging::download(std::byte* target, const std::byte* source, std::size_t bytes) {
  refuse_capture(context_, "copy_to_host");
  const DeviceGuard device(context_.index());
  cudaStream_t stream = context_.stream();
  if (bytes > chunk_bytes) {  // other threads' kernels can run meanwhile
    const PooledEvent written(context_.events());
    check(cudaEventRecord(written.get(), stream), "copy_to_host");
    stream = context_.copy_stream();
    check(cudaStreamWaitEvent(stream, written.get(), 0), "copy_to_host");
    if (is_pinned(target, "copy_to_host")) return copy_pinned(target, source, bytes, stream, "copy_to_host");
  }
  const std::lock_guard guard(downloads_.mutex);
  downloads_.prepare(context_);
  const std::size_t parts = (bytes + chunk_bytes - 1) / chunk_bytes;
  const auto part_bytes = [&](std::size_t part) { return std::min(chunk_bytes, bytes - part * chunk_bytes); };
  const auto start = [&](std::size_t part) {
    check(cudaMemcpyAsync(downloads_.at(part % 2), source + part * chunk_bytes, part_bytes(part),
                          cudaMemcpyDeviceToHost, stream),
          "copy_to_host");
    check(cudaEventRecord(downloads_.done[part % 2], stream), "copy_to_host");
  };
  start(0);
  for (std::size_t part = 0; part < parts; ++part) {
    if (part + 1 < parts) start(part + 1);
    check(cudaEventSynchronize(downloads_.done[part % 2]), "copy_to_host");
    copy_host_memory(target + part * chunk_bytes, downloads_.at(part % 2), part_bytes(part));
  }
}

}  // namespace ferrite::cuda
