// sort. Elements become unsigned keys in the order wanted. A line of up to 1024 elements lies in shared
// memory, where each of its elements counts those that come before it; longer ones are sorted all together by
// CUB, with the number of the line above the key.
#include <algorithm>
#include <bit>

#include "backend_cuda/kit/axes.cuh"
#include "backend_cuda/kit/ordered_keys.cuh"
#include "backend_cuda/kit/radix_sort.hpp"
#include "ferrite/cuda/call.hpp"
#include "ferrite/cuda/launch.hpp"
#include "ferrite/ops/sort.hpp"

namespace ferrite {
namespace cuda {
namespace {

template <class T>
__device__ __forceinline__ KeyOf<T> key_of(T value, bool descending) {
  const KeyOf<T> key = ascending_key(value);
  return descending ? static_cast<KeyOf<T>>(~key) : key;
}

template <class T>
struct LinesArgs {
  const T* in;
  T* values;
  std::int64_t* indices;
  std::int64_t lines;
  Divider length;
  int lines_per_block;
  bool descending;
};
constexpr int longest_counted = 1024;

/// The place of an element is the number of those that are smaller, or equal and before it: n comparisons an
/// element, no scratch memory, one launch.
template <class T>
__global__ void __launch_bounds__(block_threads)
    count_sort_kernel(const __grid_constant__ LinesArgs<T> args) {
  using Key = KeyOf<T>;
  __shared__ Key keys[longest_counted];
  const int n = static_cast<int>(args.length.divisor);
  const std::int64_t first_line = static_cast<std::int64_t>(blockIdx.x) * args.lines_per_block;
  const int count = static_cast<int>(::min(args.lines - first_line, std::int64_t{args.lines_per_block})) * n;
  const T* const in = args.in + first_line * n;
  for (int i = threadIdx.x; i < count; i += block_threads) keys[i] = key_of(in[i], args.descending);
  __syncthreads();
  for (int i = threadIdx.x; i < count; i += block_threads) {
    const int start = static_cast<int>(args.length.quotient(i)) * n;
    const Key key = keys[i];
    int place = 0;
    for (int j = start; j < i; ++j) place += keys[j] <= key;
    for (int j = i + 1; j < start + n; ++j) place += keys[j] < key;
    const std::int64_t to = first_line * n + start + place;
    args.values[to] = in[i];
    args.indices[to] = i - start;
  }
}

template <class T, class Key>
struct SortKeysArgs {
  const T* in;
  Key* keys;
  std::uint32_t* positions;
  std::int64_t count;
  Divider length;
  bool descending;
};
/// Key of the element, below the number of its line where there are several.
template <class T, class Key>
__global__ void __launch_bounds__(block_threads)
    keys_kernel(const __grid_constant__ SortKeysArgs<T, Key> args) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * block_threads + threadIdx.x;
  if (i >= args.count) return;
  Key key = key_of(args.in[i], args.descending);
  if constexpr (sizeof(Key) > sizeof(T)) key |= static_cast<Key>(args.length.quotient(i)) << (8 * sizeof(T));
  args.keys[i] = key;
  args.positions[i] = static_cast<std::uint32_t>(i);
}

struct LineKeysArgs {
  const std::uint32_t* sorted;
  std::uint32_t *keys, *positions;
  std::int64_t count;
  Divider length;
};
__global__ void __launch_bounds__(block_threads) line_keys_kernel(const __grid_constant__ LineKeysArgs args) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * block_threads + threadIdx.x;
  if (i >= args.count) return;
  args.positions[i] = args.sorted[i];
  args.keys[i] = static_cast<std::uint32_t>(args.length.quotient(args.sorted[i]));
}

template <class T>
struct PlaceArgs {
  const T* in;
  const std::uint32_t* positions;
  T* values;
  std::int64_t* indices;
  std::int64_t count;
  Divider length;
};
template <class T>
__global__ void __launch_bounds__(block_threads) place_kernel(const __grid_constant__ PlaceArgs<T> args) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * block_threads + threadIdx.x;
  if (i >= args.count) return;
  const std::uint32_t position = args.positions[i];
  args.values[i] = args.in[position];
  args.indices[i] = position - args.length.quotient(i) * args.length.divisor;
}

/// Lines of any length, fewer than 2^32 elements in all.
template <class T>
void sort_by_radix(const Call& call, const LinesArgs<T>& args) {
  const std::int64_t count = args.lines * args.length.divisor, blocks = divide_up(count, block_threads);
  constexpr int element_bits = 8 * sizeof(T);
  const int line_bits = std::bit_width(static_cast<std::uint64_t>(args.lines - 1));
  const auto place = [&](const std::uint32_t* positions) {
    launch(call, place_kernel<T>, blocks,
           PlaceArgs<T>{args.in, positions, args.values, args.indices, count, args.length});
  };
  const auto sorted = [&]<class Key>(Key, int bits) {
    SortBuffers<Key> buffers(call, count);
    launch(
        call, keys_kernel<T, Key>, blocks,
        SortKeysArgs<T, Key>{args.in, buffers.keys(), buffers.values(), count, args.length, args.descending});
    buffers.sort(call, bits);
    return buffers;
  };
  const int bits = element_bits + line_bits;
  if (sizeof(T) <= 4 && bits <= 32) {
    if constexpr (sizeof(T) <= 4) place(sorted(std::uint32_t{}, bits).values());
  } else {
    const auto buffers = sorted(std::uint64_t{}, std::min(bits, 64));
    if (bits <= 64) return place(buffers.values());
    // The line does not fit above the key, so it is sorted by afterwards, which keeps the order within.
    SortBuffers<std::uint32_t> lines(call, count);
    launch(call, line_keys_kernel, blocks,
           LineKeysArgs{buffers.values(), lines.keys(), lines.values(), count, args.length});
    lines.sort(call, line_bits);
    place(lines.values());
  }
}

template <class T>
void sort_lines(const Call& call, LinesArgs<T> args) {
  const std::int64_t n = args.length.divisor;
  if (n <= longest_counted) {
    args.lines_per_block = static_cast<int>(longest_counted / n);
    return launch(call, count_sort_kernel<T>, divide_up(args.lines, args.lines_per_block), args);
  }
  // A quarter of a billion elements at a time, which bounds the memory for keys.
  const std::int64_t lines = args.lines, at_once = std::max<std::int64_t>((std::int64_t{1} << 28) / n, 1);
  for (std::int64_t done = 0; done < lines; done += at_once) {
    args.lines = std::min(at_once, lines - done);
    sort_by_radix(call, args);
    args.in += args.lines * n;
    args.values += args.lines * n;
    args.indices += args.lines * n;
  }
}

}  // namespace
}  // namespace cuda

using namespace cuda;

bool accepts(const Cuda&, const op::Sort& op, MetaSpan in) {
  return in[0].shape[normalize_axis(op.type_name, op.axis, in[0].shape.rank())] < std::int64_t{1} << 32;
}

void run(Cuda& cuda, const op::Sort& op, Ins in, Outs out) {
  if (in[0].shape().numel() == 0) return;
  const Call call(cuda, op.type_name);
  const int axis = normalize_axis(op.type_name, op.axis, in[0].shape().rank());
  const Array x = dense(cuda, axis_last(in[0], axis));
  Destination values(cuda, axis_last(out[0], axis), false), indices(cuda, axis_last(out[1], axis), false);
  const std::int64_t length = x.shape().back();
  visit_device_type(x.dtype(), [&]<class Element>() {
    using T = std::conditional_t<std::is_same_v<Element, bool>, std::uint8_t, Element>;
    sort_lines<T>(call, {reinterpret_cast<const T*>(x.data()), reinterpret_cast<T*>(values.array().data()),
                         reinterpret_cast<std::int64_t*>(indices.array().data()), x.shape().numel() / length,
                         Divider(length), 0, op.descending});
  });
  values.commit();
  indices.commit();
  call.finish();
}

}  // namespace ferrite
