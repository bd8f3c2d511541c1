// rope: a thread rotates the same pairs in several rows of one position, so that it computes their sines
// once.
#include "ferrite/ops/rope.hpp"

#include "backend_cuda/kit/axes.cuh"
#include "backend_cuda/kit/packs.cuh"
#include "ferrite/cuda/call.hpp"
#include "ferrite/cuda/launch.hpp"

namespace ferrite {

using namespace cuda;

namespace {

constexpr int rows_per_thread = 4;

template <class T>
struct RopeArgs {
  const T* x;
  T* y;
  const Compute<T>* frequencies;
  const void* positions;  // nullptr: start, start + 1, ...
  bool wide_positions;    // i64, else i32
  bool inverse, add;
  std::int64_t start;
  std::int64_t count;               // of threads: groups of rows, positions and packs
  std::int64_t rows;                // at one position
  std::int64_t x_stride, y_stride;  // from one position to the next
  std::int64_t half;
  Divider packs, groups;
  Axes<2> axes;  // the rows at one position, of x and y

  __device__ __forceinline__ Compute<T> position(std::int64_t t) const {
    if (!positions) return static_cast<Compute<T>>(start + t);
    return wide_positions ? static_cast<Compute<T>>(static_cast<const std::int64_t*>(positions)[t])
                          : static_cast<Compute<T>>(static_cast<const std::int32_t*>(positions)[t]);
  }
};

// The range reduction is CUDA's own, which is good for every angle.
__device__ __forceinline__ void sine_and_cosine(float x, float& s, float& c) { sincosf(x, &s, &c); }
__device__ __forceinline__ void sine_and_cosine(double x, double& s, double& c) { sincos(x, &s, &c); }

/// `lanes` pairs of one row. With halves they are two packs, else one of twice the size, in two parts.
template <RopePairs pairs, int lanes, class T>
struct PairsOfRow {
  Pack<T, lanes> part[2];

  static __device__ __forceinline__ std::int64_t offset(int i, std::int64_t pair, std::int64_t half) {
    return pairs == RopePairs::halves ? pair + i * half : 2 * pair + i * lanes;
  }
  __device__ __forceinline__ void load(const T* row, std::int64_t pair, std::int64_t half) {
#pragma unroll
    for (int i = 0; i < 2; ++i) part[i] = load_pack<lanes>(row + offset(i, pair, half));
  }
  __device__ __forceinline__ void store(T* row, std::int64_t pair, std::int64_t half) const {
#pragma unroll
    for (int i = 0; i < 2; ++i) store_pack<lanes>(row + offset(i, pair, half), part[i]);
  }
  /// Element 0 or 1 of a pair.
  __device__ __forceinline__ T& element(int pair, int which) {
    if constexpr (pairs == RopePairs::halves) return part[which].lane[pair];
    return part[(2 * pair + which) / lanes].lane[(2 * pair + which) % lanes];
  }
};

template <RopePairs pairs, int lanes, class T>
__global__ void __launch_bounds__(block_threads) rope_kernel(const __grid_constant__ RopeArgs<T> args) {
  wait_for_earlier_kernels();
  using C = Compute<T>;
  const std::int64_t index = static_cast<std::int64_t>(blockIdx.x) * block_threads + threadIdx.x;
  if (index >= args.count) return;
  const std::int64_t place = args.packs.quotient(index), t = args.groups.quotient(place);
  const std::int64_t pair = (index - place * args.packs.divisor) * lanes;
  const std::int64_t first = (place - t * args.groups.divisor) * rows_per_thread;
  const C position = args.position(t);
  C s[lanes], c[lanes];
#pragma unroll
  for (int i = 0; i < lanes; ++i) {
    sine_and_cosine(position * args.frequencies[pair + i], s[i], c[i]);
    if (args.inverse) s[i] = -s[i];
  }
#pragma unroll
  for (int r = 0; r < rows_per_thread; ++r) {
    if (first + r >= args.rows) return;
    const auto offsets = args.axes.offsets(first + r);
    T* const to = args.y + offsets.of[1] + t * args.y_stride;
    PairsOfRow<pairs, lanes, T> row, old;
    row.load(args.x + offsets.of[0] + t * args.x_stride, pair, args.half);
    if (args.add) old.load(to, pair, args.half);
#pragma unroll
    for (int i = 0; i < lanes; ++i) {
      const C left = convert_to<C>(row.element(i, 0)), right = convert_to<C>(row.element(i, 1));
      C turned_left = left * c[i] - right * s[i], turned_right = right * c[i] + left * s[i];
      if (args.add) {
        turned_left += convert_to<C>(old.element(i, 0));
        turned_right += convert_to<C>(old.element(i, 1));
      }
      row.element(i, 0) = convert_to<T>(turned_left);
      row.element(i, 1) = convert_to<T>(turned_right);
    }
    row.store(to, pair, args.half);
  }
}

bool has_dense_rows(const Array& x) { return x.layout().strides.back() == 1; }

/// Whether packs of 16 bytes may start at every multiple of 16 bytes of a row.
bool takes_packs(const Array& x) {
  const auto elements = 16 / static_cast<std::int64_t>(size_of(x.dtype()));
  const Layout& l = x.layout();
  bool fits = is_aligned(x.data(), 16) && l.shape.back() / 2 % elements == 0;
  for (int i = 0; i + 1 < l.shape.rank(); ++i)
    fits = fits && (l.shape[i] == 1 || l.strides[i] % elements == 0);
  return fits;
}

template <RopePairs pairs, int lanes, class T>
void start(const Call& call, RopeArgs<T> args, std::int64_t positions) {
  const std::int64_t packs = args.half / lanes, groups = divide_up(args.rows, rows_per_thread);
  args.packs = Divider(packs);
  args.groups = Divider(groups);
  args.count = positions * groups * packs;
  launch(call, rope_kernel<pairs, lanes, T>, divide_up(args.count, block_threads), args, Start::early);
}
template <int lanes, class T>
void start(const Call& call, const RopeArgs<T>& args, std::int64_t positions, RopePairs pairs) {
  if (pairs == RopePairs::halves)
    start<RopePairs::halves, lanes>(call, args, positions);
  else
    start<RopePairs::neighbours, lanes>(call, args, positions);
}

}  // namespace

void run(Cuda& cuda, const op::Rope& op, Ins in, Outs out, Accumulate mask) {
  if (out[0].shape().numel() == 0) return;
  const Call call(cuda, op_name(op));
  const Array x = has_dense_rows(in[0]) ? in[0] : dense(cuda, in[0]);
  const Array frequencies = dense(cuda, in[1]), positions = in.size() > 2 ? dense(cuda, in[2]) : Array();
  const bool adds = accumulates(mask, 0), in_place = has_dense_rows(out[0]);
  const Array y = in_place ? out[0] : cuda.allocate(out[0].meta());
  const Shape& shape = x.shape();
  const int place = op.axis < 0 ? op.axis + shape.rank() : op.axis;
  const unsigned others = (1u << (shape.rank() - 1)) - 1u - (1u << place);
  const Shape* const strides[] = {&x.layout().strides, &y.layout().strides};
  visit_floating(x.dtype(), [&]<class T>() {
    RopeArgs<T> args{};
    args.x = x.data<T>();
    args.y = y.data<T>();
    args.frequencies = frequencies.data<Compute<T>>();
    args.positions = positions.defined() ? positions.data() : nullptr;
    args.wide_positions = positions.defined() && positions.dtype() == DType::i64;
    args.inverse = op.inverse;
    args.add = adds && in_place;
    args.start = op.start;
    args.rows = shape.numel() / (shape.back() * shape[place]);
    args.x_stride = x.layout().strides[place];
    args.y_stride = y.layout().strides[place];
    args.half = shape.back() / 2;
    args.axes = Axes<2>(shape, strides, others);
    if (takes_packs(x) && takes_packs(y))
      start<pack_lanes<T>>(call, args, shape[place], op.pairs);
    else
      start<1>(call, args, shape[place], op.pairs);
  });
  if (!in_place) copy_into(cuda, y, out[0], adds);
  call.finish();
}

}  // namespace ferrite
