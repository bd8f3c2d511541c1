// Host memory with reuse. Tensor programs ask for the same sizes again and again, and a large block fresh
// from the system costs a page fault per page, so freed blocks are kept by size class.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <utility>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "core/spin.hpp"
#include "ferrite/core/array.hpp"
#include "ferrite/core/error.hpp"

namespace ferrite {
namespace {

constexpr std::size_t alignment = 64;
constexpr std::size_t max_bytes = std::size_t{1} << 47;  // beyond any address space

/// Blocks from here on are asked for in huge pages.
constexpr std::size_t huge_page = std::size_t{1} << 21, huge_from = 2 * huge_page;

/// Memory of the system, to be freed by std::free; null if there is none. A large block in pages of 2 MiB
/// has few page faults and few misses of the address cache. Linux gives such pages on request; without them
/// the block works as well.
void* allocate_from_system(std::size_t bytes) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  if (bytes >= huge_from) {
    void* const data = std::aligned_alloc(huge_page, (bytes + huge_page - 1) / huge_page * huge_page);
    // Whole pages only: the last one, if it is not full, would take memory that nobody uses.
    if (data) madvise(data, bytes / huge_page * huge_page, MADV_HUGEPAGE);
    return data;
  }
#endif
  return std::aligned_alloc(alignment, bytes);
}

struct SizeClass {
  std::size_t index;
  std::size_t bytes;
};

/// Up to 512 bytes in steps of 64; above, eight steps per power of two, which wastes less than 12.5 %.
constexpr SizeClass size_class(std::size_t bytes) {
  if (bytes <= 512) {
    const std::size_t step = bytes <= alignment ? 1 : (bytes + alignment - 1) / alignment;
    return {step - 1, step * alignment};
  }
  const int log2 = std::bit_width(bytes - 1) - 1;             // bytes is in (2^log2, 2^(log2+1)]
  const std::size_t steps = ((bytes - 1) >> (log2 - 3)) + 1;  // 9 to 16
  return {static_cast<std::size_t>(log2 - 8) * 8 + (steps - 9), steps << (log2 - 3)};
}
constexpr std::size_t class_count = size_class(max_bytes).index + 1;
static_assert(size_class(512).index == 7 && size_class(513).index == 8 && size_class(513).bytes == 576);
static_assert(size_class(1024).index == 15 && size_class(1025).index == 16);

std::size_t default_cache_limit() {
#if defined(__SANITIZE_ADDRESS__)
  return 0;  // a block kept for reuse would hide a use after free
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
  return 0;
#endif
#endif
  return std::size_t{1} << 30;
}

std::size_t cache_limit_from_environment() {
  const char* text = std::getenv("FERRITE_CACHE_BYTES");
  if (!text) return default_cache_limit();
  char* end = nullptr;
  const unsigned long long value = std::strtoull(text, &end, 10);
  if (end == text || *end != '\0' || *text == '-') {
    throw ValueError(
        fmt::format("[host_allocator] FERRITE_CACHE_BYTES='{}': must be a number of bytes", text));
  }
  return value;
}

bool poison_from_environment() {
  const char* text = std::getenv("FERRITE_POISON");
  return text && std::strcmp(text, "1") == 0;
}

/// All bytes 0xff are a NaN in every floating type.
constexpr int poison_byte = 0xff;

class HostAllocator final : public Allocator {
 public:
  std::shared_ptr<Buffer> allocate(std::size_t bytes) override;
  MemoryStats stats() const override {
    const std::lock_guard guard(lock_);
    return stats_;
  }
  void reset_peak() override {
    const std::lock_guard guard(lock_);
    stats_.peak = stats_.in_use;
  }
  void release_cache() override;

  void* acquire(std::size_t bytes);
  void release(void* data, std::size_t bytes) noexcept;

 private:
  /// A cached block holds the link to the next one of its class, so that freeing needs no memory.
  struct FreeBlock {
    FreeBlock* next;
  };
  using FreeLists = std::array<FreeBlock*, class_count>;

  // Both with the lock held.
  void count_allocation(std::size_t bytes) {
    stats_.in_use += bytes;
    stats_.peak = std::max(stats_.peak, stats_.in_use);
    ++stats_.allocations;
  }
  FreeLists take_cache();

  static void give_back(const FreeLists& lists) noexcept;
  void* from_system(std::size_t asked, std::size_t bytes);

  const std::size_t cache_limit_ = cache_limit_from_environment();
  const bool poison_ = poison_from_environment();
  mutable SpinLock lock_;
  MemoryStats stats_;  // in whole blocks: in_use + cached is what the system has given
  FreeLists free_{};
};

class HostBuffer final : public Buffer {
 public:
  HostBuffer(HostAllocator& allocator, std::size_t bytes)
      : Buffer(allocator.acquire(bytes), bytes, Device{}), allocator_(allocator) {}
  ~HostBuffer() override { allocator_.release(data(), bytes()); }

 private:
  HostAllocator& allocator_;
};

std::shared_ptr<Buffer> HostAllocator::allocate(std::size_t bytes) {
  return std::make_shared<HostBuffer>(*this, bytes);
}

void* HostAllocator::acquire(std::size_t bytes) {
  if (bytes > max_bytes) {
    throw OutOfMemory(fmt::format("[allocate] {} bytes on cpu: at most 2^47 can be addressed", bytes));
  }
  const SizeClass block = size_class(bytes);
  void* data = nullptr;
  {
    const std::lock_guard guard(lock_);
    if (FreeBlock*& head = free_[block.index]; head) {
      data = std::exchange(head, head->next);
      stats_.cached -= block.bytes;
      count_allocation(block.bytes);
    }
  }
  if (!data) {
    data = from_system(bytes, block.bytes);
    const std::lock_guard guard(lock_);
    count_allocation(block.bytes);
  }
  if (poison_) std::memset(data, poison_byte, block.bytes);
  return data;
}

void* HostAllocator::from_system(std::size_t asked, std::size_t bytes) {
  if (void* data = allocate_from_system(bytes)) return data;
  release_cache();
  if (void* data = allocate_from_system(bytes)) return data;
  throw OutOfMemory(
      fmt::format("[allocate] {} bytes on cpu: the system has no memory left, {} bytes are in use", asked,
                  stats().in_use));
}

void HostAllocator::release(void* data, std::size_t bytes) noexcept {
  const SizeClass block = size_class(bytes);
  if (block.bytes > cache_limit_) {
    std::free(data);
    const std::lock_guard guard(lock_);
    stats_.in_use -= block.bytes;
    return;
  }
  FreeLists stale;
  bool full;
  {
    const std::lock_guard guard(lock_);
    stats_.in_use -= block.bytes;
    // A full cache is emptied whole: its sizes are those of the past, and frees must not search.
    full = stats_.cached + block.bytes > cache_limit_;
    if (full) stale = take_cache();
    free_[block.index] = std::construct_at(static_cast<FreeBlock*>(data), FreeBlock{free_[block.index]});
    stats_.cached += block.bytes;
  }
  if (full) give_back(stale);
}

void HostAllocator::release_cache() {
  FreeLists lists;
  {
    const std::lock_guard guard(lock_);
    lists = take_cache();
  }
  give_back(lists);
}

HostAllocator::FreeLists HostAllocator::take_cache() {
  stats_.cached = 0;
  return std::exchange(free_, FreeLists{});
}

void HostAllocator::give_back(const FreeLists& lists) noexcept {
  for (FreeBlock* block : lists) {
    while (block) std::free(std::exchange(block, block->next));
  }
}

}  // namespace

Allocator& host_allocator() {
  // Never destroyed: buffers in the user's static objects may outlive every static of the library.
  static HostAllocator* const instance = new HostAllocator;
  return *instance;
}

}  // namespace ferrite
