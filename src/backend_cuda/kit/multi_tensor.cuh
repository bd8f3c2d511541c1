// One launch for many tensors: the kernel's parameter is a table of them, and every block finds its own piece
// of a tensor.
#pragma once

#include <vector>

#include "ferrite/cuda/call.hpp"
#include "ferrite/cuda/device.cuh"

namespace ferrite::cuda {

inline constexpr int piece_threads = 256;
/// Elements per block.
inline constexpr std::int64_t piece_size = 4096;

/// `lists` arrays of equal length for each of up to `capacity` tensors. Parameters may take 32 KiB.
template <int lists, int capacity>
struct TensorTable {
  void* data[lists][capacity];
  std::int64_t length[capacity];
  std::uint32_t first_block[capacity];  // ascending
  int count = 0;
};

struct Piece {
  int tensor;
  std::int64_t begin, end;
};

/// The piece of this block.
template <class Table>
__device__ __forceinline__ Piece own_piece(const Table& table) {
  int low = 0, high = table.count - 1;  // the last tensor that begins at or before this block
  while (low < high) {
    const int middle = (low + high + 1) / 2;
    if (table.first_block[middle] <= blockIdx.x)
      low = middle;
    else
      high = middle - 1;
  }
  const std::int64_t begin = (blockIdx.x - table.first_block[low]) * piece_size;
  const std::int64_t end = begin + piece_size;
  return {low, begin, end < table.length[low] ? end : table.length[low]};
}

/// Calls launch(table, blocks) for tables that together hold every tensor: rows[k][i] is array i of list k.
/// Small tables for few tensors keep the launch cheap.
template <int lists, class Launch>
void for_tables(const std::vector<Array> (&rows)[lists], Launch&& launch) {
  const auto with_capacity = [&]<int capacity>() {
    TensorTable<lists, capacity> table;
    std::uint32_t blocks = 0;
    const auto flush = [&] {
      if (table.count > 0) launch(table, blocks);
      table.count = 0;
      blocks = 0;
    };
    for (std::size_t i = 0; i < rows[0].size(); ++i) {
      const std::int64_t length = rows[0][i].shape().numel();
      if (length == 0) continue;
      const std::int64_t own = divide_up(length, piece_size);
      if (table.count == capacity || own + blocks > (std::int64_t{1} << 30)) flush();
      for (int k = 0; k < lists; ++k) table.data[k][table.count] = rows[k][i].data();
      table.length[table.count] = length;
      table.first_block[table.count] = blocks;
      blocks += static_cast<std::uint32_t>(own);
      ++table.count;
    }
    flush();
  };
  if (rows[0].size() <= 32)
    with_capacity.template operator()<32>();
  else
    with_capacity.template operator()<448>();
}

/// True if the array can be read by packs of `lanes` elements.
template <class T>
__device__ __forceinline__ bool is_aligned_to(const T* data, int lanes) {
  return reinterpret_cast<std::uintptr_t>(data) % (sizeof(T) * static_cast<unsigned>(lanes)) == 0;
}

}  // namespace ferrite::cuda
