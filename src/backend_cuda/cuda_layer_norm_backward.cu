// The gradients of layer_norm and rms_norm. A thread has the same columns of every row, so that the sums for
// dweight and dbias stay in its block's shared memory until the block has seen all its rows.
#include "backend_cuda/norm_rows.cuh"
#include "backend_cuda/norm_sums.hpp"
#include "ferrite/ops/layer_norm.hpp"
#include "ferrite/ops/rms_norm.hpp"

namespace ferrite {
namespace cuda {
namespace {

struct NormBackwardArgs {
  RowsArgs<2> rows;                  // dy, x
  const void *weight, *mean, *rstd;  // no mean: rms_norm
  void *dx, *partial;                // partial sums [dweight, dbias][crews][length]; only of resident rows
  int slots;
  bool add;
};

/// The sums of one team over its rows.
template <class C, int lanes>
struct ColumnSums {
  SharedPacks<C, lanes> dweight, dbias;

  __device__ __forceinline__ ColumnSums(unsigned char* memory, int slots, int team)
      : dweight(memory + (2 * team) * SharedPacks<C, lanes>::bytes(slots), slots),
        dbias(memory + (2 * team + 1) * SharedPacks<C, lanes>::bytes(slots), slots) {}
};

template <class C, int lanes>
__device__ __forceinline__ void add_to(Wide<C, lanes>& sum, const Wide<C, lanes>& x) {
#pragma unroll
  for (int j = 0; j < lanes; ++j) sum.of[j] += x.of[j];
}

/// What the block's teams found, in their order, into the block's row of partial sums.
template <class C, int lanes>
__device__ void write_sums(const NormBackwardArgs& args, const RowTeam& team, unsigned char* memory) {
  const RowsShape& shape = args.rows.shape;
  const std::int64_t crew = blockIdx.x / shape.parts, crews = gridDim.x / shape.parts;
  __syncthreads();
  for (int slot = threadIdx.x; slot < args.slots; slot += blockDim.x) {
    const std::int64_t pack = pack_of_slot(shape, team, slot);
    if (pack >= shape.packs) continue;
    Wide<C, lanes> dweight{}, dbias{};
    for (int t = 0; t < static_cast<int>(blockDim.x >> shape.threads_shift); ++t) {
      const ColumnSums<C, lanes> sums(memory, args.slots, t);
      add_to(dweight, sums.dweight.get(slot));
      add_to(dbias, sums.dbias.get(slot));
    }
    C* const out = static_cast<C*>(args.partial) + crew * shape.length + pack * lanes;
#pragma unroll
    for (int j = 0; j < lanes; ++j) out[j] = dweight.of[j];
    if (!args.mean) continue;
#pragma unroll
    for (int j = 0; j < lanes; ++j) out[crews * shape.length + j] = dbias.of[j];
  }
}

template <class T, class W, int lanes, bool resident>
__global__ void __launch_bounds__(RowPlan::most_threads, 1)
    norm_backward_kernel(const __grid_constant__ NormBackwardArgs args) {
  using C = Compute<T>;
  extern __shared__ __align__(16) unsigned char memory[];
  const RowsShape& shape = args.rows.shape;
  const C* const means = static_cast<const C*>(args.mean);
  const C* const rstds = static_cast<const C*>(args.rstd);
  Rows<T, lanes, 2, resident> rows(args.rows);
  RowTeam& team = rows.team();
  C next_mean = means ? means[rows.row_ahead()] : C{0}, next_rstd = rstds[rows.row_ahead()];

  const Parameter<W, lanes, resident> weight(args.weight, memory, args.slots, shape, team);
  unsigned char* const sums_memory = memory + SharedPacks<W, lanes>::bytes(args.slots);
  ColumnSums<C, lanes> sums(sums_memory, args.slots, threadIdx.x >> shape.threads_shift);
  if constexpr (resident) {
    for (int slot = team.lane(); slot < args.slots; slot += team.threads()) {
      sums.dweight.set(slot, {});
      sums.dbias.set(slot, {});
    }
  }
  __syncthreads();

  while (rows.next()) {
    const C mean = next_mean, rstd = next_rstd;
    next_mean = means ? means[rows.row_ahead()] : C{0};
    next_rstd = rstds[rows.row_ahead()];
    Sums<C, 2> found;  // of dn = dy weight, and of dn times the normed row
    rows.template pass<false>([&](auto each) {
      each([&](int item, std::int64_t index, const auto& dy, const auto& x) {
        const auto w = weight.get((item << shape.threads_shift) + team.lane(), index);
#pragma unroll
        for (int j = 0; j < lanes; ++j) {
          const C dn = dy.of[j] * w.of[j];
          found.of[0] += dn;
          found.of[1] += dn * ((x.of[j] - mean) * rstd);
        }
      });
    });
    found = team.total(found);
    const C offset = means ? found.of[0] / static_cast<C>(shape.length) : C{0};
    const C slope = found.of[1] / static_cast<C>(shape.length);

    T* const dx = static_cast<T*>(args.dx) + rows.row() * shape.length;
    rows.template pass<true>([&](auto each) {
      each([&](int item, std::int64_t index, const auto& dy, const auto& x) {
        const int slot = (item << shape.threads_shift) + team.lane();
        const auto w = weight.get(slot, index);
        Wide<C, lanes> result, normed_dy;
#pragma unroll
        for (int j = 0; j < lanes; ++j) {
          const C normed = (x.of[j] - mean) * rstd;
          result.of[j] = (dy.of[j] * w.of[j] - offset - normed * slope) * rstd;
          normed_dy.of[j] = dy.of[j] * normed;
        }
        write_pack<T, lanes>(dx, index, result, args.add);
        if constexpr (resident) {
          auto dweight = sums.dweight.get(slot);
          add_to(dweight, normed_dy);
          sums.dweight.set(slot, dweight);
          if (means) {
            auto dbias = sums.dbias.get(slot);
            add_to(dbias, dy);
            sums.dbias.set(slot, dbias);
          }
        }
      });
    });
  }
  if constexpr (resident) write_sums<C, lanes>(args, team, sums_memory);
}

template <bool centred>
void run_norm_backward(Cuda& cuda, const Call& call, Ins in, Outs out, Accumulate mask) {
  constexpr int parameters = centred ? 2 : 1;
  const DType dtype = out[0].dtype(), wide = dtype == DType::f64 ? DType::f64 : DType::f32;
  const std::int64_t length = in[2].shape().numel();
  if (length == 0) return;
  const RowArray dy = rows_of(cuda, in[0], dtype), x = rows_of(cuda, in[1], dtype);
  Destination dx(cuda, out[0], accumulates(mask, 0)), dweight(cuda, out[1], accumulates(mask, 1));
  Destination dbias(cuda, out[parameters], accumulates(mask, parameters));
  NormPlan plan(call, dtype, in[2].dtype(), x.count, length,
                row_lanes(dtype, length, {dy.place(), x.place(), {dx.array().data(), length}}));
  const Array weight = dense(cuda, in[2], plan.parameters);
  const Array mean = dense(cuda, in[3], wide), rstd = dense(cuda, in[in.size() - 1], wide);

  NormBackwardArgs args{{plan.shape(), {dy.place(), x.place()}},
                        weight.data(),
                        centred ? mean.data() : nullptr,
                        rstd.data(),
                        dx.array().data(),
                        nullptr,
                        static_cast<int>(plan.slots()),
                        dx.add()};
  plan.visit([&]<class T, class W, int lanes, bool resident>() {
    using C = Compute<T>;
    const auto kernel = norm_backward_kernel<T, W, lanes, resident>;
    plan.fit(kernel, 512,
             SharedPacks<W, lanes>::bytes(plan.slots()) +
                 plan.teams_in_block() * 2 * SharedPacks<C, lanes>::bytes(plan.slots()));
    const std::int64_t parts = resident ? plan.crews() : std::min<std::int64_t>(x.count, 32);
    const Scratch<C> partial(call, parameters * parts * length);
    args.partial = partial.data();
    plan.launch(kernel, args);
    if (!resident && parts > 0)
      slab_norm_sums(call,
                     {dy.array.data(), x.array.data(), dy.stride, x.stride, x.count, length, args.mean,
                      args.rstd, dtype},
                     partial.data(), parts);
    sum_norm_partials(call, partial.data(), dtype == DType::f64, parts, length,
                      {{dweight.array().data(), dbias.array().data()},
                       {out[1].dtype(), out[parameters].dtype()},
                       {dweight.add(), dbias.add()},
                       parameters});
  });
  dx.commit();
  dweight.commit();
  if (centred) dbias.commit();
  call.finish();
}

}  // namespace
}  // namespace cuda

using namespace cuda;

void Cuda::run(const op::LayerNormBackward& op, Ins in, Outs out, Accumulate mask) {
  const Call call(*this, op_name(op));
  run_norm_backward<true>(*this, call, in, out, mask);
}
void Cuda::run(const op::RmsNormBackward& op, Ins in, Outs out, Accumulate mask) {
  const Call call(*this, op_name(op));
  run_norm_backward<false>(*this, call, in, out, mask);
}

}  // namespace ferrite
