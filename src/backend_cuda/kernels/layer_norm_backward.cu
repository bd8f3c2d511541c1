// The gradients of layer_norm and rms_norm. A thread has the same columns of every row, so that its sums for
// dweight and dbias stay in its registers until the block has seen all its rows.
#include "backend_cuda/kit/norm_backward_short.cuh"
#include "backend_cuda/kit/norm_sums.hpp"
#include "ferrite/ops/layer_norm.hpp"
#include "ferrite/ops/rms_norm.hpp"

namespace ferrite {
namespace cuda {
namespace {

template <class In>
struct NormBackwardArgs {
  In in;  // dy, x
  NormBackward norm;
};

/// Packs of a row that a thread keeps for both passes. None where the sums take all registers there are.
template <class T, int lanes, bool centred>
inline constexpr int held_packs = is_16_bit<T>&& lanes > 1 && centred ? 0 : 1;

/// Adds the sums of the block's teams, in their order, into the block's row of partial sums. The ring is
/// empty by now, so its memory holds the sums, [team][dweight, dbias][part].
template <class T, bool centred, int lanes, int items, int held>
__device__ __forceinline__ void write_sums(const NormBackwardArgs<RingArgs<2>>& args,
                                           Ring<T, lanes, 2, held>& rows, unsigned char* memory,
                                           const Compute<T> (&dweight)[items][lanes],
                                           const Compute<T> (&dbias)[items][lanes]) {
  using C = Compute<T>;
  const RingShape& shape = args.in.shape;
  const int length = rows.part_length(), teams = static_cast<int>(blockDim.x >> shape.threads_shift);
  C* const sums = reinterpret_cast<C*>(memory);
  C* const own = sums + 2 * rows.team().index() * length;
  __syncthreads();
#pragma unroll
  for (int i = 0; i < items; ++i) {
    const int first = (rows.team().lane() + i * rows.team().threads()) * lanes;
    if (first >= length) continue;
#pragma unroll
    for (int j = 0; j < lanes; ++j) {
      own[first + j] = dweight[i][j];
      if (centred) own[length + first + j] = dbias[i][j];
    }
  }
  __syncthreads();
  const auto parts = static_cast<unsigned>(shape.parts);
  const std::int64_t crew = blockIdx.x / parts, crews = gridDim.x / parts;
  for (int at = threadIdx.x; at < (centred ? 2 : 1) * length; at += blockDim.x) {
    C sum = 0;
    for (int t = 0; t < teams; ++t) sum += sums[2 * t * length + at];
    const int k = at < length ? 0 : 1;
    static_cast<C*>(
        args.norm.partial)[(k * crews + crew) * shape.length + rows.part_begin() + at - k * length] = sum;
  }
}

template <class T, class W, int lanes, bool centred>
__global__ void __launch_bounds__(most_row_threads, 1)
    norm_backward_kernel(const __grid_constant__ NormBackwardArgs<RingArgs<2>> args) {
  using C = Compute<T>;
  using Slopes = RowSlopes<T, centred>;
  extern __shared__ __align__(128) unsigned char memory[];
  const NormBackward& norm = args.norm;
  constexpr int packs = row_items(lanes, sizeof(T));
  Ring<T, lanes, 2, held_packs<T, lanes, centred>> rows(args.in, memory);
  const ParameterInShared<W, lanes> weight(norm.weight, rows.beside(), rows.part_begin(), rows.part_length());
  Slopes next = Slopes::read(norm, rows.row_ahead());
  C dweight[packs][lanes] = {}, dbias[packs][lanes] = {};
  __syncthreads();

  while (rows.next()) {
    Slopes row = next;
    next = Slopes::read(norm, rows.row_ahead());
    Sums<C, 2> found;
    rows.template each_item<packs>(
        [&](int, int slot, const auto& dy, const auto& x) { row.add(found, dy, x, weight.get(0, slot)); });
    row.follow_from(rows.team().total(found), norm.length);

    T* const dx = static_cast<T*>(norm.dx) + rows.row() * norm.length + rows.part_begin();
    rows.template each_item<packs>([&](int item, int slot, const auto& dy, const auto& x) {
      const auto w = weight.get(0, slot);
      Wide<C, lanes> result;
#pragma unroll
      for (int j = 0; j < lanes; ++j) {
        const C normed = row.normed(x.of[j]);
        result.of[j] = row.dx(dy.of[j], w.of[j], normed);
        dweight[item][j] += dy.of[j] * normed;
        if (centred) dbias[item][j] += dy.of[j];
      }
      write_pack<T, lanes>(dx, slot, result, norm.add);
    });
  }
  write_sums<T, centred, lanes>(args, rows, memory, dweight, dbias);
}

/// Rows too long for the ring: dx alone; the sums are taken by slabs of rows.
template <class T, bool centred>
__global__ void __launch_bounds__(most_row_threads, 1)
    long_norm_backward_kernel(const __grid_constant__ NormBackwardArgs<RowsArgs<2>> args) {
  using C = Compute<T>;
  const NormBackward& norm = args.norm;
  const C* const weight = static_cast<const C*>(norm.weight);
  Rows<T, 1, 2, false> rows(args.in);
  while (rows.next()) {
    RowSlopes<T, centred> row{};
    if (rows.active()) row = RowSlopes<T, centred>::read(norm, rows.row());
    Sums<C, 2> found;
    rows.pass([&](auto each) {
      each([&](auto pack, int, const auto& dy, const auto& x) {
        row.add(found, dy, x, Wide<C, 1>{{weight[pack]}});
      });
    });
    row.follow_from(rows.team().total(found), norm.length);
    T* const dx = static_cast<T*>(norm.dx) + rows.row() * norm.length;
    rows.pass([&](auto each) {
      each([&](auto pack, int, const auto& dy, const auto& x) {
        const Wide<C, 1> result{{row.dx(dy.of[0], weight[pack], row.normed(x.of[0]))}};
        write_pack<T, 1>(dx, pack, result, norm.add);
      });
    });
  }
}

template <bool centred>
void run_norm_backward(Cuda& cuda, const Call& call, Ins in, Outs out, Accumulate mask) {
  constexpr int count = centred ? 2 : 1;
  const DType dtype = out[0].dtype(), wide = dtype == DType::f64 ? DType::f64 : DType::f32;
  const std::int64_t length = in[2].shape().numel();
  if (length == 0) return;
  const RowArray dy = rows_of(cuda, in[0], dtype), x = rows_of(cuda, in[1], dtype);
  Destination dx(cuda, out[0], accumulates(mask, 0)), dweight(cuda, out[1], accumulates(mask, 1));
  Destination dbias(cuda, out[count], accumulates(mask, count));
  const int given_lanes = row_lanes(dtype, length, {dy.place(), x.place(), {dx.array().data(), length}});
  const bool is_short = given_lanes > 1 && length <= 32 * given_lanes;
  const auto parameter_bytes = static_cast<int>(size_of(norm_parameters(dtype, in[2].dtype(), given_lanes)));
  std::optional<RingPlan> ring;
  if (!is_short)
    ring = RingPlan::make(call, dtype, x.count, length, given_lanes,
                          {.inputs = 2,
                           .bytes_per_element = parameter_bytes,
                           .most_packs = row_items(given_lanes, size_of(dtype)),
                           .blocks = 2});
  const int lanes = is_short || ring ? given_lanes : 1;
  const DType parameters = norm_parameters(dtype, in[2].dtype(), lanes);
  const Array weight = norm_parameter(cuda, in[2], parameters);
  const Array mean = dense(cuda, in[3], wide), rstd = dense(cuda, in[in.size() - 1], wide);
  NormBackward norm{
      weight.data(), centred ? mean.data() : nullptr, rstd.data(), dx.array().data(), nullptr, length,
      dx.add()};

  const auto sum_partials = [&](const void* partial, std::int64_t parts) {
    sum_norm_partials(call, partial, dtype == DType::f64, parts, length,
                      {{dweight.array().data(), dbias.array().data()},
                       {out[1].dtype(), out[count].dtype()},
                       {dweight.add(), dbias.add()},
                       count});
  };
  const auto run_ring = [&]<class T, class W, int n>() {
    ring->fit(norm_backward_kernel<T, W, n, centred>);
    const Scratch<Compute<T>> partial(call, count * ring->crews() * length);
    norm.partial = partial.data();
    ring->launch(norm_backward_kernel<T, W, n, centred>, {{ring->shape(), {dy.place(), x.place()}}, norm});
    sum_partials(partial.data(), ring->crews());
  };
  const auto run_short = [&]<class T, class W, int n>() {
    constexpr int threads = short_norm_warps * 32;
    const std::int64_t blocks = std::min(divide_up(x.count, short_norm_warps * short_norm_rows),
                                         std::int64_t{2} * call.properties().multiProcessorCount);
    const Scratch<Compute<T>> partial(call, count * blocks * length);
    norm.partial = partial.data();
    if (blocks > 0)
      short_norm_backward_kernel<T, W, n, centred>
          <<<static_cast<unsigned>(blocks), threads, 0, call.stream()>>>(
              {dy.place(), x.place(), x.count, norm});
    sum_partials(partial.data(), blocks);
  };
  const auto run_long = [&]<class T>() {
    const RowPlan rows(call, dtype, x.count, length, 1);
    rows.launch(long_norm_backward_kernel<T, centred>, {{rows.shape(), {dy.place(), x.place()}}, norm});
    const std::int64_t slabs = std::min<std::int64_t>(x.count, 32);
    const Scratch<Compute<T>> partial(call, count * slabs * length);
    if (slabs > 0)
      slab_norm_sums(call,
                     {dy.array.data(), x.array.data(), dy.stride, x.stride, x.count, length, norm.mean,
                      norm.rstd, dtype},
                     partial.data(), slabs);
    sum_partials(partial.data(), slabs);
  };
  visit_floating(dtype, [&]<class T>() {
    if (!ring && !is_short) return run_long.template operator()<T>();
    if (lanes == 1) return run_ring.template operator()<T, Compute<T>, 1>();
    visit_parameters<T, pack_lanes<T>>(parameters, [&]<class W>() {
      if (is_short)
        run_short.template operator()<T, W, pack_lanes<T>>();
      else
        run_ring.template operator()<T, W, pack_lanes<T>>();
    });
  });
  dx.commit();
  dweight.commit();
  if (centred) dbias.commit();
  call.finish();
}

}  // namespace
}  // namespace cuda

using namespace cuda;

void run(Cuda& cuda, const op::LayerNormBackward& op, Ins in, Outs out, Accumulate mask) {
  const Call call(cuda, op_name(op));
  run_norm_backward<true>(cuda, call, in, out, mask);
}
void run(Cuda& cuda, const op::RmsNormBackward& op, Ins in, Outs out, Accumulate mask) {
  const Call call(cuda, op_name(op));
  run_norm_backward<false>(cuda, call, in, out, mask);
}

}  // namespace ferrite
