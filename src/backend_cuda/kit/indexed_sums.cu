// Sorts by target, sums fixed chunks of the sorted list, and joins targets that lie in several chunks.
#include "backend_cuda/kit/indexed_sums.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "backend_cuda/kit/axes.cuh"
#include "backend_cuda/kit/indices.cuh"
#include "backend_cuda/kit/packs.cuh"
#include "backend_cuda/kit/radix_sort.hpp"
#include "ferrite/cuda/call.hpp"
#include "ferrite/cuda/launch.hpp"

namespace ferrite::cuda {
namespace {

/// Entries of the sorted list that one thread adds up. A longer target is assembled from chunks.
constexpr int chunk_length = 32;
constexpr int batch = 4;

enum Operand { of_index, of_source, of_target, of_line };

template <class Key>
struct KeysArgs {
  Key* keys;
  std::uint32_t* entries;
  Indices indices;
  Axes<4> axes;
  std::int64_t count;
};
template <class Key>
__global__ void __launch_bounds__(block_threads) keys_kernel(const __grid_constant__ KeysArgs<Key> args) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * block_threads + threadIdx.x;
  if (i >= args.count) return;
  const auto offsets = args.axes.offsets(i);
  args.keys[i] =
      static_cast<Key>(offsets.of[of_line] * args.indices.extent + args.indices.at(offsets.of[of_index]));
  args.entries[i] = static_cast<std::uint32_t>(i);
}

template <class Key>
struct HeadsArgs {
  const Key* keys;
  bool* heads;
  std::int64_t count;
};
/// Where a new target begins in the sorted list.
template <class Key>
__global__ void __launch_bounds__(block_threads) heads_kernel(const __grid_constant__ HeadsArgs<Key> args) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * block_threads + threadIdx.x;
  if (i < args.count) args.heads[i] = i == 0 || args.keys[i] != args.keys[i - 1];
}

/// Integers wrap around, which only unsigned ones may.
template <class T>
using Sum = std::conditional_t<std::is_integral_v<T>,
                               std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>, Compute<T>>;

/// How the last target of a chunk goes on.
enum Ending : std::uint8_t { closed, opens, passes };

template <class T, class R>
struct SumsArgs {
  const T* source;
  R* target;
  const std::uint32_t* entries;  // sorted by target
  const bool* heads;
  Sum<T>*first, *last;  // [chunks, channels]: what belongs to a target begun before, and to one that goes on
  Ending* endings;
  Indices indices;
  Axes<4> axes;
  Axes<2> channels;  // source, target; in packs
  std::int64_t count, chunks, step;
  Divider packs;  // of channels
  bool add;
};

/// A chunk and a pack of channels: the work of one thread.
template <class T, class R, int lanes>
struct Work {
  const SumsArgs<T, R>& args;
  std::int64_t item, chunk, pack;
  Axes<2>::Offsets channel;

  __device__ __forceinline__ explicit Work(const SumsArgs<T, R>& a)
      : args(a),
        item(static_cast<std::int64_t>(blockIdx.x) * block_threads + threadIdx.x),
        chunk(a.packs.quotient(item)),
        pack(item - chunk * a.packs.divisor),
        channel(a.channels.offsets(pack)) {}

  /// The sum belongs to the target of this entry.
  __device__ __forceinline__ void write(const Sum<T> (&sum)[lanes], std::uint32_t entry) const {
    const auto offsets = args.axes.offsets(entry);
    R* const at = args.target + offsets.of[of_target] + channel.of[1] +
                  args.indices.at(offsets.of[of_index]) * args.step;
    Pack<R, lanes> old = {};
    if (args.add) old = load_pack<lanes>(at);
    Pack<R, lanes> result;
#pragma unroll
    for (int v = 0; v < lanes; ++v)
      result.lane[v] = convert_to<R>(static_cast<Sum<T>>(convert_to<Sum<T>>(old.lane[v]) + sum[v]));
    store_pack(at, result);
  }
  __device__ __forceinline__ void keep(Sum<T>* partial, const Sum<T> (&sum)[lanes]) const {
#pragma unroll
    for (int v = 0; v < lanes; ++v) partial[item * lanes + v] = sum[v];
  }
};

template <class T, class R, int lanes>
__global__ void __launch_bounds__(block_threads) chunks_kernel(const __grid_constant__ SumsArgs<T, R> args) {
  const Work<T, R, lanes> work(args);
  if (work.chunk >= args.chunks) return;
  const std::int64_t begin = work.chunk * chunk_length, end = ::min(begin + chunk_length, args.count);
  bool begun_before = !args.heads[begin];
  Sum<T> sum[lanes] = {};
  std::uint32_t entry = 0;
  const auto finish = [&] {
    if (begun_before)
      work.keep(args.first, sum);
    else
      work.write(sum, entry);
  };
  for (std::int64_t i = begin; i < end; i += batch) {
    std::uint32_t entries[batch];
    bool heads[batch];
    Pack<T, lanes> packs[batch];
#pragma unroll
    for (int u = 0; u < batch; ++u) {
      if (i + u >= end) break;
      entries[u] = args.entries[i + u];
      heads[u] = args.heads[i + u];
    }
#pragma unroll
    for (int u = 0; u < batch; ++u) {
      if (i + u >= end) break;
      packs[u] =
          load_pack<lanes>(args.source + args.axes.offsets(entries[u]).of[of_source] + work.channel.of[0]);
    }
#pragma unroll
    for (int u = 0; u < batch; ++u) {
      if (i + u >= end) break;
      if (heads[u] && i + u > begin) {
        finish();
        begun_before = false;
#pragma unroll
        for (int v = 0; v < lanes; ++v) sum[v] = 0;
      }
#pragma unroll
      for (int v = 0; v < lanes; ++v) sum[v] += convert_to<Sum<T>>(packs[u].lane[v]);
      entry = entries[u];
    }
  }
  const bool goes_on = end < args.count && !args.heads[end];
  if (goes_on && !begun_before)
    work.keep(args.last, sum);
  else
    finish();
  if (work.pack == 0) args.endings[work.chunk] = !goes_on ? closed : begun_before ? passes : opens;
}

/// Targets that lie in several chunks, each handled by the thread of the chunk where it begins.
template <class T, class R, int lanes>
__global__ void __launch_bounds__(block_threads) join_kernel(const __grid_constant__ SumsArgs<T, R> args) {
  constexpr int ahead = 8;  // chunks looked at together: a target may go through thousands
  const Work<T, R, lanes> work(args);
  if (work.chunk >= args.chunks || args.endings[work.chunk] != opens) return;
  Sum<T> sum[lanes];
#pragma unroll
  for (int v = 0; v < lanes; ++v) sum[v] = args.last[work.item * lanes + v];
  bool goes_on = true;
  for (std::int64_t next = work.chunk + 1; goes_on; next += ahead) {
    Ending endings[ahead];
    Sum<T> parts[ahead][lanes];
#pragma unroll
    for (int u = 0; u < ahead; ++u) {
      if (next + u >= args.chunks) break;
      endings[u] = args.endings[next + u];
#pragma unroll
      for (int v = 0; v < lanes; ++v)
        parts[u][v] = args.first[((next + u) * args.packs.divisor + work.pack) * lanes + v];
    }
#pragma unroll
    for (int u = 0; u < ahead; ++u) {
      if (!goes_on) break;
#pragma unroll
      for (int v = 0; v < lanes; ++v) sum[v] += parts[u][v];
      goes_on = endings[u] == passes;
    }
  }
  work.write(sum, args.entries[(work.chunk + 1) * chunk_length]);
}

/// The index's axes by what they do.
struct Parts {
  unsigned entries = 0, channels = 0;  // bit masks
  std::int64_t entry_count = 1, channel_count = 1, lines = 1;
  Shape line_strides;  // numbers the targets' lines

  explicit Parts(const IndexedSum& sum) : line_strides(Shape::filled(sum.index.shape().rank(), 0)) {
    for (int i = line_strides.rank() - 1; i >= 0; --i) {
      const bool scattered = sum.scattered >> i & 1u;
      const std::int64_t extent = sum.index.shape()[i];
      if (!scattered && sum.index.layout().strides[i] == 0) {
        channels |= 1u << i;
        channel_count *= extent;
      } else {
        entries |= 1u << i;
        entry_count *= extent;
        if (!scattered) line_strides[i] = std::exchange(lines, lines * extent);
      }
    }
  }
};

/// The channels' axes in packs of `lanes`, or as they are if that cannot be; returns the lanes taken.
int pack_channels(const IndexedSum& sum, const Axes<4>& entries, Axes<2>& channels, std::int64_t count,
                  int lanes) {
  const int last = channels.rank - 1;
  const std::int64_t inner = last == 0 ? count : channels.extent[last].divisor;
  const auto bytes = [&](const Array& x) { return static_cast<std::size_t>(lanes) * size_of(x.dtype()); };
  bool fits = channels.stride[0][last] == 1 && channels.stride[1][last] == 1 && inner % lanes == 0 &&
              sum.step % lanes == 0 && is_aligned(sum.source.data(), bytes(sum.source)) &&
              is_aligned(sum.target.data(), bytes(sum.target));
  for (int k = 0; k < 2; ++k) {
    for (int i = 0; i < last; ++i) fits = fits && channels.stride[k][i] % lanes == 0;
    for (int i = 0; i < entries.rank; ++i) fits = fits && entries.stride[of_source + k][i] % lanes == 0;
  }
  if (!fits) return 1;
  channels.extent[last] = Divider(inner / lanes);
  channels.stride[0][last] = channels.stride[1][last] = lanes;
  return lanes;
}

template <class T, class R, int lanes>
void add_chunks(const Call& call, SumsArgs<T, R> args) {
  const std::int64_t partials = args.chunks * args.packs.divisor * lanes;
  const Scratch<Sum<T>> first(call, partials), last(call, partials);
  const Scratch<Ending> endings(call, args.chunks);
  args.first = first.data();
  args.last = last.data();
  args.endings = endings.data();
  const std::int64_t blocks = divide_up(args.chunks * args.packs.divisor, block_threads);
  launch(call, chunks_kernel<T, R, lanes>, blocks, args);
  launch(call, join_kernel<T, R, lanes>, blocks, args);
}

template <class Key>
void add_sorted(const Call& call, const IndexedSum& sum, const Parts& parts, bool add) {
  const Shape& shape = sum.index.shape();
  const Shape &source = sum.source.layout().strides, &target = sum.target.layout().strides;
  const Axes<4> entries(shape, {&sum.index.layout().strides, &source, &target, &parts.line_strides},
                        parts.entries);
  Axes<2> channels(shape, {&source, &target}, parts.channels);
  const std::int64_t count = parts.entry_count;

  const Indices indices(call, sum.index, sum.extent);
  const std::int64_t blocks = divide_up(count, block_threads);
  SortBuffers<Key> buffers(call, count);
  launch(call, keys_kernel<Key>, blocks,
         KeysArgs<Key>{buffers.keys(), buffers.values(), indices, entries, count});
  const auto largest = static_cast<std::uint64_t>(parts.lines * sum.extent - 1);
  buffers.sort(call, std::max(static_cast<int>(std::bit_width(largest)), 1));
  const Scratch<bool> heads(call, count);
  launch(call, heads_kernel<Key>, blocks, HeadsArgs<Key>{buffers.keys(), heads.data(), count});

  const auto add_as = [&]<class T, class R>() {
    constexpr int widest = pack_lanes<R>;
    const int lanes = pack_channels(sum, entries, channels, parts.channel_count, widest);
    const SumsArgs<T, R> args{reinterpret_cast<const T*>(sum.source.data()),
                              reinterpret_cast<R*>(sum.target.data()),
                              buffers.values(),
                              heads.data(),
                              nullptr,
                              nullptr,
                              nullptr,
                              indices,
                              entries,
                              channels,
                              count,
                              divide_up(count, chunk_length),
                              sum.step,
                              Divider(parts.channel_count / lanes),
                              add};
    if (lanes > 1)
      add_chunks<T, R, widest>(call, args);
    else
      add_chunks<T, R, 1>(call, args);
  };
  visit_device_type(sum.source.dtype(), [&]<class T>() {
    if constexpr (sizeof(T) == 2)
      if (sum.target.dtype() == DType::f32) return add_as.template operator()<T, float>();
    if constexpr (!std::is_same_v<T, bool>) add_as.template operator()<T, T>();
  });
}

}  // namespace

void add_indexed(const Call& call, const IndexedSum& sum, bool add) {
  if (sum.index.shape().numel() == 0) return;
  const Parts parts(sum);
  constexpr std::int64_t limit = (std::int64_t{1} << 32) - 1;
  if (parts.entry_count > limit)
    throw BackendError("[" + std::string(call.op()) + "] " + std::to_string(parts.entry_count) +
                       " indices: at most " + std::to_string(limit) + " can be sorted");
  if (parts.lines * sum.extent <= limit)
    add_sorted<std::uint32_t>(call, sum, parts, add);
  else
    add_sorted<std::uint64_t>(call, sum, parts, add);
}

}  // namespace ferrite::cuda
