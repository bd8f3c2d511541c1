// Free blocks of a pool, found by size without a search tree: bins of 16 steps per power of two (a block is
// at most 1/16 larger than the least of its bin), a bitmap of the non-empty ones, intrusive lists in them.
// Does not depend on CUDA.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

namespace ferrite::cuda {

constexpr std::size_t block_alignment = 512;  // cudaMalloc guarantees 256; 512 serves every kernel
constexpr std::size_t max_block_bytes = std::size_t{1} << 47;  // beyond any address space

enum class BlockState : std::uint8_t {
  free,    // in a bin
  live,    // a buffer owns it
  parked,  // freed, but another stream may still use it
};

/// A piece of a segment. Neighbours are linked, so that freed ones can merge.
struct Block {
  std::byte* data = nullptr;
  std::size_t bytes = 0;
  Block* left = nullptr;  // neighbours by address; none at the ends of the segment
  Block* right = nullptr;
  Block* previous = nullptr;  // in its bin
  Block* next = nullptr;
  std::size_t requested = 0;  // what the owner asked for
  std::string_view op = {};   // ... and who it is
  BlockState state = BlockState::free;
  bool small = false;      // of a segment for small requests
  std::uint16_t uses = 0;  // other streams that use it

  bool is_whole_segment() const { return !left && !right; }
};

constexpr std::size_t bin_of(std::size_t bytes) {
  const std::size_t units = bytes / block_alignment;
  if (units < 16) return units;
  const auto log2 = static_cast<std::size_t>(std::bit_width(units) - 1);
  return (log2 - 3) * 16 + (units >> (log2 - 4)) - 16;
}
static_assert(bin_of(512 * 15) == 15 && bin_of(512 * 16) == 16 && bin_of(512 * 31) == 31 &&
              bin_of(512 * 32) == 32);
constexpr std::size_t bin_count = (bin_of(max_block_bytes) / 64 + 1) * 64;

class Bins {
 public:
  void insert(Block& block) noexcept {
    const std::size_t bin = bin_of(block.bytes);
    Block*& head = heads_[bin];
    block.previous = nullptr;
    block.next = head;
    if (head) head->previous = &block;
    head = &block;
    occupied_[bin / 64] |= std::uint64_t{1} << (bin % 64);
  }

  void remove(Block& block) noexcept {
    if (block.next) block.next->previous = block.previous;
    if (block.previous) {
      block.previous->next = block.next;
      return;
    }
    const std::size_t bin = bin_of(block.bytes);
    heads_[bin] = block.next;
    if (!block.next) occupied_[bin / 64] &= ~(std::uint64_t{1} << (bin % 64));
  }

  /// A good fit: the smallest of the first few in the request's own bin, else in the next larger bin. Never
  /// misses a block that fits.
  Block* find(std::size_t bytes) const noexcept {
    const std::size_t bin = bin_of(bytes);
    constexpr int few = 8;
    if (Block* block = smallest_fit(bin, bytes, few)) return block;
    if (const std::size_t larger = next_occupied(bin + 1); larger < bin_count) {
      return smallest_fit(larger, bytes, few);
    }
    return smallest_fit(bin, bytes, std::numeric_limits<int>::max());
  }

  std::size_t largest() const noexcept {
    for (std::size_t word = occupied_.size(); word-- > 0;) {
      if (!occupied_[word]) continue;
      std::size_t bytes = 0;
      const auto bin = word * 64 + static_cast<std::size_t>(std::bit_width(occupied_[word]) - 1);
      for (const Block* block = heads_[bin]; block; block = block->next) {
        if (block->bytes > bytes) bytes = block->bytes;
      }
      return bytes;
    }
    return 0;
  }

 private:
  Block* smallest_fit(std::size_t bin, std::size_t bytes, int tries) const noexcept {
    Block* best = nullptr;
    for (Block* block = heads_[bin]; block && tries > 0; block = block->next, --tries) {
      if (block->bytes == bytes) return block;
      if (block->bytes > bytes && (!best || block->bytes < best->bytes)) best = block;
    }
    return best;
  }

  /// The first non-empty bin from `bin` on; bin_count if there is none.
  std::size_t next_occupied(std::size_t bin) const noexcept {
    for (std::size_t word = bin / 64, skip = bin % 64; word < occupied_.size(); ++word, skip = 0) {
      if (const std::uint64_t bits = occupied_[word] >> skip << skip) {
        return word * 64 + static_cast<std::size_t>(std::countr_zero(bits));
      }
    }
    return bin_count;
  }

  std::array<Block*, bin_count> heads_{};
  std::array<std::uint64_t, bin_count / 64> occupied_{};
};

}  // namespace ferrite::cuda
