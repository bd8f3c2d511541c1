// Pool: the stream-ordered caching allocator of one GPU. cudaMalloc and cudaFree take 10 us to milliseconds
// and stop the device. A tensor program asks for the same sizes again and again, so memory is taken in
// segments, cut into blocks and kept. Freed memory is reused at once: every kernel runs on the one stream of
// the pool, so whoever gets the block next also runs next.
//
// The algorithm does not depend on CUDA: segments and events come through two interfaces, and CI tests it on
// the host.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "backend_cuda/runtime/pool_bins.hpp"
#include "core/spin.hpp"
#include "ferrite/core/array.hpp"

namespace ferrite::cuda {

/// Where a pool's segments come from. Called by one thread at a time except for fill.
class SegmentSource {
 public:
  virtual ~SegmentSource() = default;
  /// 512-byte aligned; nullptr when there is no memory left.
  virtual void* allocate(std::size_t bytes) = 0;
  virtual void free(void* segment) noexcept = 0;
  /// What allocate could still return, for messages.
  virtual std::size_t free_bytes() = 0;
  /// Sets bytes in the order of the pool's stream (poisoning).
  virtual void fill(void* data, std::size_t bytes, int value) = 0;
};

/// Marks in streams, for memory that a stream other than the pool's uses.
class StreamEvents {
 public:
  virtual ~StreamEvents() = default;
  /// A mark after all work given to the stream so far; nullptr if there is nothing to wait for.
  virtual void* record(void* stream) noexcept = 0;
  /// passed: false while work before the mark is running; wait: until it is done. A mark that was passed or
  /// waited for is gone.
  virtual bool passed(void* event) noexcept = 0;
  virtual void wait(void* event) noexcept = 0;
};

/// Names the op that allocates on this thread, for messages and reports. The name must outlive the pool: op
/// names are literals.
class FERRITE_API OpScope {
 public:
  explicit OpScope(std::string_view op) noexcept : outer_(exchange(op)) {}
  ~OpScope() { exchange(outer_); }
  OpScope(const OpScope&) = delete;
  OpScope& operator=(const OpScope&) = delete;

  static std::string_view current() noexcept;
  /// Names the op and returns the previous name.
  static std::string_view exchange(std::string_view op) noexcept;

 private:
  std::string_view outer_;
};

struct PoolOptions {
  std::size_t limit = max_block_bytes;  // bytes reserved at most
  bool poison = false;                  // fill fresh memory with 0xFF: NaN in every floating type
  /// Segments are given back only when the pool ends (arenas).
  bool keep_segments = false;

  /// FERRITE_CUDA_MEMORY_LIMIT ("512M", "8G") and FERRITE_POISON=1. Throws ValueError for an invalid size.
  FERRITE_API static PoolOptions from_environment();
};

/// All in bytes as cut, in whole blocks: reserved == in_use + cached.
struct PoolStats {
  std::size_t in_use = 0;        // owned by buffers
  std::size_t peak = 0;          // highest in_use since the last reset
  std::size_t reserved = 0;      // taken from the device
  std::size_t cached = 0;        // reserved, but not in use
  std::size_t parked = 0;        // the part of cached that waits for another stream
  std::size_t largest_free = 0;  // the largest block that can be handed out without a new segment
  std::size_t limit = 0;
  std::size_t allocations = 0;  // calls so far
  std::size_t live_blocks = 0;
  std::size_t segments = 0;             // held now
  std::size_t segment_allocations = 0;  // taken from the device so far
  /// 0: all free memory is one piece; near 1: it is in crumbs.
  FERRITE_API double fragmentation() const;
};

struct PoolEvent {
  enum class Kind : std::uint8_t { allocate, free, segment, segment_release, out_of_memory };
  Kind kind;
  std::size_t bytes;
  std::string_view op;
  std::chrono::nanoseconds time;  // since the log was started
};
FERRITE_API std::string_view to_string(PoolEvent::Kind kind);

/// What the live blocks of one op hold.
struct OpMemory {
  std::string_view op;
  std::size_t bytes = 0;
  std::size_t blocks = 0;
  std::size_t largest = 0;
};

class Pool;
struct PoolCloser {
  FERRITE_API void operator()(Pool* pool) const noexcept;
};
/// Closes the pool; its memory is given back when its last buffer is gone.
using PoolHandle = std::unique_ptr<Pool, PoolCloser>;

class FERRITE_API Pool final : public Allocator {
 public:
  /// `source` and `events` outlive the pool.
  static PoolHandle make(Device device, SegmentSource& source, StreamEvents& events,
                         PoolOptions options = {});
  /// A separate pool for a captured graph or a lane. A graph's replays use these addresses, so memory freed
  /// in the arena is reused only in the arena, until it is closed. Its segments are blocks of `parent`, which
  /// outlives it, and count as in use there. Buffers of `parent` that a capture uses are not protected: the
  /// graph's owner must hold them.
  /// `take` is how the arena takes a segment of its parent; without it, by parent.allocate().
  using Taking = std::function<std::shared_ptr<Buffer>(Pool& parent, std::size_t bytes)>;
  static PoolHandle make_arena(Pool& parent, Taking take = {});

  /// At least `bytes`, 512-byte aligned. If the device or the limit refuses, cached segments are given back
  /// and the request is tried once more; then throws OutOfMemory. About 0.1 us from the cache.
  std::shared_ptr<Buffer> allocate(std::size_t bytes) override;
  MemoryStats stats() const override;
  void reset_peak() override;
  void release_cache() override;

  /// Work already given to `stream` uses the buffer: once freed, it waits until that work is done. Throws
  /// BackendError if the buffer does not belong to a pool.
  static void record_use(const Buffer& buffer, void* stream);

  PoolStats pool_stats() const;
  std::size_t limit() const;
  /// Never frees memory in use: a limit below it makes every new segment fail.
  void set_limit(std::size_t bytes);

  /// Keeps the last `capacity` events from now on; 0 stops.
  void log_events(std::size_t capacity);
  /// Oldest first.
  std::vector<PoolEvent> events() const;
  /// Largest sum of bytes first.
  std::vector<OpMemory> live_by_op() const;
  /// A table for people: totals, the ops that hold most, fragmentation.
  std::string memory_report() const;
  std::string memory_report_json() const;

 private:
  friend class PoolBuffer;
  friend struct PoolCloser;
  struct Use {
    Block* block;
    void* stream;
    void* event;
  };

  Pool(Device device, SegmentSource& source, StreamEvents& events, PoolOptions options);
  ~Pool() override;
  void close() noexcept;

  Block& acquire(std::size_t bytes);
  void release(Block& block) noexcept;
  Block& acquire_from_device(std::size_t bytes, std::size_t size);
  void* grow(std::size_t bytes);
  void release_segments() noexcept;
  [[noreturn]] void throw_out_of_memory(std::size_t bytes);

  // With lock_ held.
  Block* take(Bins& bins, std::size_t bytes, std::size_t size);
  void add_segment(void* data, std::size_t bytes, bool small);
  Block& new_block();
  void make_free(Block& block) noexcept;
  void park(Block& block) noexcept;
  enum class Unpark { ready, all };
  void unpark(Unpark which) noexcept;
  void log(PoolEvent::Kind kind, std::size_t bytes, std::string_view op) noexcept;
  Bins& bins_of(const Block& block) { return block.small ? small_ : large_; }

  const Device device_;
  SegmentSource& source_;
  StreamEvents& stream_events_;
  std::unique_ptr<SegmentSource> own_source_;  // of an arena
  const PoolOptions options_;

  /// Held by whoever takes segments from the device or gives them back; taken before lock_.
  std::mutex growth_;
  mutable SpinLock lock_;
  Bins small_, large_;
  std::vector<Block*> segments_;  // the leftmost block of each
  std::deque<Block> descriptors_;
  Block* spare_ = nullptr;  // descriptors free for reuse
  std::vector<Use> uses_;
  std::size_t parked_blocks_ = 0;
  PoolStats stats_;  // except cached and largest_free, which are found on demand
  bool closed_ = false;

  std::vector<PoolEvent> log_;  // a ring
  std::size_t log_capacity_ = 0, log_next_ = 0;
  std::chrono::steady_clock::time_point log_start_;
};

/// "512M" -> 2^29. A whole number and K, M, G or T (powers of 1024; "MiB" and "MB" mean the same).
/// `name` is what the ValueError calls it.
FERRITE_API std::size_t parse_bytes(std::string_view name, std::string_view text);
/// "1.50 GiB"
FERRITE_API std::string format_bytes(std::size_t bytes);

}  // namespace ferrite::cuda
