// The algorithm of the pool: requests of at most 1 MiB are cut from segments of 2 MiB, larger ones from
// larger segments, so that a long-lived small tensor never splits the memory of large ones. Every block is
// found by a good fit (pool_bins.hpp), split to size and merged with its free neighbours when freed.
#include "backend_cuda/runtime/pool.hpp"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "ferrite/core/error.hpp"

namespace ferrite::cuda {
namespace {

constexpr std::size_t MiB = std::size_t{1} << 20;
constexpr std::size_t small_limit = 1 * MiB;
constexpr std::size_t segment_unit = 2 * MiB;  // the page size of the GPU
// A request below `shared_limit` gets a segment that others will share.
constexpr std::size_t shared_limit = 16 * MiB, shared_segment = 32 * MiB;
constexpr int poison_byte = 0xff;

constexpr std::size_t whole_units(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

thread_local std::string_view current_op = "allocate";

}  // namespace

std::string_view OpScope::current() noexcept { return current_op; }
std::string_view OpScope::exchange(std::string_view op) noexcept { return std::exchange(current_op, op); }

/// Pool and block of one allocation; goes back where it came from.
class PoolBuffer final : public Buffer {
 public:
  PoolBuffer(Pool& pool, std::size_t bytes) : PoolBuffer(pool, pool.acquire(bytes), bytes) {}
  ~PoolBuffer() override { pool_.release(block_); }
  void record_use(void* stream) const {
    const std::lock_guard guard(pool_.lock_);
    const auto same = [&](const Pool::Use& use) { return use.block == &block_ && use.stream == stream; };
    if (std::any_of(pool_.uses_.begin(), pool_.uses_.end(), same)) return;
    pool_.uses_.push_back({&block_, stream, nullptr});
    ++block_.uses;
  }

 private:
  PoolBuffer(Pool& pool, Block& block, std::size_t bytes)
      : Buffer(block.data, bytes, pool.device_), pool_(pool), block_(block) {}
  Pool& pool_;
  Block& block_;
};

namespace {

/// The segments of an arena are buffers of its parent.
class ArenaSource final : public SegmentSource {
 public:
  ArenaSource(Pool& parent, SegmentSource& device, Pool::Taking take)
      : parent_(parent), device_(device), take_(std::move(take)) {}
  void* allocate(std::size_t bytes) override {
    auto buffer = take_ ? take_(parent_, bytes) : parent_.allocate(bytes);
    void* const data = buffer->data();
    segments_.emplace(data, std::move(buffer));
    return data;
  }
  void free(void* segment) noexcept override { segments_.erase(segment); }
  std::size_t free_bytes() override { return device_.free_bytes(); }
  void fill(void* data, std::size_t bytes, int value) override { device_.fill(data, bytes, value); }

 private:
  Pool& parent_;
  SegmentSource& device_;
  Pool::Taking take_;
  std::unordered_map<void*, std::shared_ptr<Buffer>> segments_;
};

}  // namespace

PoolHandle Pool::make(Device device, SegmentSource& source, StreamEvents& events, PoolOptions options) {
  return PoolHandle(new Pool(device, source, events, options));
}

PoolHandle Pool::make_arena(Pool& parent, Taking take) {
  auto source = std::make_unique<ArenaSource>(parent, parent.source_, std::move(take));
  PoolOptions options{.poison = parent.options_.poison};
  options.keep_segments = true;
  PoolHandle arena(new Pool(parent.device_, *source, parent.stream_events_, options));
  arena->own_source_ = std::move(source);
  return arena;
}

Pool::Pool(Device device, SegmentSource& source, StreamEvents& events, PoolOptions options)
    : device_(device), source_(source), stream_events_(events), options_(options) {
  stats_.limit = options.limit;
}

Pool::~Pool() {
  unpark(Unpark::all);
  for (Block* segment : segments_) source_.free(segment->data);
}

void PoolCloser::operator()(Pool* pool) const noexcept { pool->close(); }

void Pool::close() noexcept {
  bool last;
  {
    const std::lock_guard guard(lock_);
    closed_ = true;
    last = stats_.live_blocks == 0;
  }
  if (last) delete this;
}

std::shared_ptr<Buffer> Pool::allocate(std::size_t bytes) {
  return std::make_shared<PoolBuffer>(*this, bytes);
}

void Pool::record_use(const Buffer& buffer, void* stream) {
  const auto* ours = dynamic_cast<const PoolBuffer*>(&buffer);
  if (!ours) {
    throw BackendError("[record_use] a buffer on " + to_string(buffer.device()) + ": must be of a CUDA pool");
  }
  ours->record_use(stream);
}

Block& Pool::acquire(std::size_t bytes) {
  if (bytes > max_block_bytes) throw_out_of_memory(bytes);
  const std::size_t size = std::max(block_alignment, whole_units(bytes, block_alignment));
  Block* block;
  {
    const std::lock_guard guard(lock_);
    if (parked_blocks_) unpark(Unpark::ready);
    block = take(size <= small_limit ? small_ : large_, bytes, size);
  }
  if (!block) block = &acquire_from_device(bytes, size);
  if (options_.poison) source_.fill(block->data, block->bytes, poison_byte);
  return *block;
}

Block* Pool::take(Bins& bins, std::size_t bytes, std::size_t size) {
  Block* const block = bins.find(size);
  if (!block) return nullptr;
  if (block->bytes > size) {
    Block& rest = new_block();
    bins.remove(*block);
    rest = {.data = block->data + size, .bytes = block->bytes - size, .left = block, .right = block->right};
    rest.small = block->small;
    if (rest.right) rest.right->left = &rest;
    block->right = &rest;
    block->bytes = size;
    bins.insert(rest);
  } else {
    bins.remove(*block);
  }
  block->state = BlockState::live;
  block->requested = bytes;
  block->op = current_op;
  stats_.in_use += size;
  stats_.peak = std::max(stats_.peak, stats_.in_use);
  ++stats_.allocations;
  ++stats_.live_blocks;
  if (log_capacity_) log(PoolEvent::Kind::allocate, bytes, block->op);
  return block;
}

void Pool::release(Block& block) noexcept {
  bool last;
  {
    const std::lock_guard guard(lock_);
    stats_.in_use -= block.bytes;
    --stats_.live_blocks;
    if (log_capacity_) log(PoolEvent::Kind::free, block.requested, block.op);
    if (block.uses)
      park(block);
    else
      make_free(block);
    last = closed_ && stats_.live_blocks == 0;
  }
  if (last) delete this;
}

void Pool::make_free(Block& freed) noexcept {
  Block* block = &freed;
  Bins& bins = bins_of(freed);
  const auto absorb_right = [&](Block& left) {
    Block& right = *left.right;
    left.bytes += right.bytes;
    left.right = right.right;
    if (left.right) left.right->left = &left;
    right.next = std::exchange(spare_, &right);
  };
  if (block->right && block->right->state == BlockState::free) {
    bins.remove(*block->right);
    absorb_right(*block);
  }
  if (block->left && block->left->state == BlockState::free) {
    block = block->left;
    bins.remove(*block);
    absorb_right(*block);
  }
  block->state = BlockState::free;
  bins.insert(*block);
}

Block& Pool::new_block() {
  if (spare_) return *std::exchange(spare_, spare_->next);
  return descriptors_.emplace_back();
}

void Pool::park(Block& block) noexcept {
  block.state = BlockState::parked;
  stats_.parked += block.bytes;
  ++parked_blocks_;
  for (Use& use : uses_) {
    if (use.block == &block) use.event = stream_events_.record(use.stream);
  }
}

/// Streams are queues, so old marks pass first: polling stops at the first that has not passed.
void Pool::unpark(Unpark which) noexcept {
  std::size_t kept = 0;
  bool polling = true;
  for (Use& use : uses_) {
    bool done = use.block->state == BlockState::parked;
    if (done && use.event) {
      if (which == Unpark::all)
        stream_events_.wait(use.event);
      else
        done = polling = polling && stream_events_.passed(use.event);
    }
    if (!done) {
      uses_[kept++] = use;
    } else if (--use.block->uses == 0) {
      stats_.parked -= use.block->bytes;
      --parked_blocks_;
      make_free(*use.block);
    }
  }
  uses_.resize(kept);
}

/// From a new segment. If the device or the limit refuses it: give back what is cached and try once more,
/// then take a block of any segment rather than fail.
Block& Pool::acquire_from_device(std::size_t bytes, std::size_t size) {
  const std::lock_guard growing(growth_);
  const bool small = size <= small_limit;
  const std::size_t least = whole_units(size, segment_unit);
  const std::size_t shared = small || size >= shared_limit ? least : shared_segment;
  Bins& bins = small ? small_ : large_;
  const auto retake = [&]() -> Block* {  // another thread may have grown the pool or freed a block
    const std::lock_guard guard(lock_);
    return take(bins, bytes, size);
  };
  if (Block* block = retake()) return *block;
  for (const bool last_try : {false, true}) {
    for (std::size_t want = shared;; want = least) {
      if (void* data = grow(want)) {
        const std::lock_guard guard(lock_);
        add_segment(data, want, small);
        return *take(bins, bytes, size);
      }
      if (want == least) break;
    }
    if (last_try) break;
    {
      const std::lock_guard guard(lock_);
      unpark(Unpark::all);
    }
    if (Block* block = retake()) return *block;
    release_segments();
  }
  {
    const std::lock_guard guard(lock_);
    if (Block* block = take(small ? large_ : small_, bytes, size)) return *block;
  }
  throw_out_of_memory(bytes);
}

/// A segment's memory, or nullptr.
void* Pool::grow(std::size_t bytes) {
  {
    const std::lock_guard guard(lock_);
    if (bytes > stats_.limit || stats_.reserved > stats_.limit - bytes) return nullptr;
    segments_.reserve(segments_.size() + 1);
  }
  void* const data = source_.allocate(bytes);
  if (!data) return nullptr;
  const std::lock_guard guard(lock_);
  stats_.reserved += bytes;
  ++stats_.segments;
  ++stats_.segment_allocations;
  if (log_capacity_) log(PoolEvent::Kind::segment, bytes, current_op);
  return data;
}

void Pool::add_segment(void* data, std::size_t bytes, bool small) {
  Block& block = new_block();
  block = {.data = static_cast<std::byte*>(data), .bytes = bytes};
  block.small = small;
  segments_.push_back(&block);
  bins_of(block).insert(block);
}

void Pool::release_cache() {
  const std::lock_guard growing(growth_);
  {
    const std::lock_guard guard(lock_);
    unpark(Unpark::all);
  }
  release_segments();
}

/// Gives back every segment that is one free block. With growth_ held.
void Pool::release_segments() noexcept {
  if (options_.keep_segments) return;
  Block* idle = nullptr;
  {
    const std::lock_guard guard(lock_);
    std::erase_if(segments_, [&](Block* block) {
      if (block->state != BlockState::free || !block->is_whole_segment()) return false;
      bins_of(*block).remove(*block);
      block->next = std::exchange(idle, block);
      return true;
    });
  }
  while (idle) {
    Block& block = *std::exchange(idle, idle->next);
    source_.free(block.data);
    const std::lock_guard guard(lock_);
    stats_.reserved -= block.bytes;
    --stats_.segments;
    if (log_capacity_) log(PoolEvent::Kind::segment_release, block.bytes, current_op);
    block.next = std::exchange(spare_, &block);
  }
}

}  // namespace ferrite::cuda
