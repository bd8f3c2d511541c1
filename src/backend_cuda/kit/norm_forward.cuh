// The kernels of layer_norm and rms_norm, which differ only in the mean and the bias.
#pragma once

#include "backend_cuda/kit/norm_rows.cuh"

namespace ferrite::cuda {

struct Norm {
  const void *weight, *bias;  // only of layer_norm, as the mean
  void *y, *mean, *rstd;
  double eps;
  std::int64_t length;
};
template <class In>
struct NormArgs {
  In in;
  Norm norm;
};

/// Mean and sum of squared distances from it, for every thread's elements and then merged. To avoid
/// cancellation, distances are taken from the thread's mean, which needs two passes. For 16 bits they are
/// taken from one of its elements, which costs at most a digit and saves a pass.
template <class T, class RowsOrRing>
__device__ __forceinline__ Moments<Compute<T>> moments_of(RowsOrRing& rows) {
  using C = Compute<T>;
  Moments<C> own;
  C sum = 0;
  if constexpr (is_16_bit<T>) {
    C origin = 0;
    rows.pass([&](auto each) {
      each([&](auto, int, const auto& x) {
        if (own.count == 0) origin = x.of[0];
        own.count += static_cast<C>(x.count);
#pragma unroll
        for (int j = 0; j < x.count; ++j) {
          const C distance = x.of[j] - origin;
          sum += distance;
          own.squares += distance * distance;
        }
      });
    });
    const C mean = own.count > 0 ? sum / own.count : C{0};
    own.mean = origin + mean;
    own.squares -= sum * mean;
  } else {
    rows.pass([&](auto each) {
      each([&](auto, int, const auto& x) {
        own.count += static_cast<C>(x.count);
#pragma unroll
        for (int j = 0; j < x.count; ++j) sum += x.of[j];
      });
    });
    own.mean = own.count > 0 ? sum / own.count : C{0};
    rows.pass([&](auto each) {
      each([&](auto, int, const auto& x) {
#pragma unroll
        for (int j = 0; j < x.count; ++j) own.squares += (x.of[j] - own.mean) * (x.of[j] - own.mean);
      });
    });
  }
  return rows.team().total(own);
}

template <class C, class RowsOrRing>
__device__ __forceinline__ C mean_square(RowsOrRing& rows, std::int64_t length) {
  Sums<C, 1> squares;
  rows.pass([&](auto each) {
    each([&](auto, int, const auto& x) {
#pragma unroll
      for (int j = 0; j < x.count; ++j) squares.of[0] += x.of[j] * x.of[j];
    });
  });
  return rows.team().total(squares).of[0] / static_cast<C>(length);
}

template <class T, int lanes, bool centred, class RowsOrRing, class Parameter>
__device__ __forceinline__ void norm_rows(RowsOrRing& rows, const Norm& norm, const Parameter& weight,
                                          const Parameter& bias) {
  using C = Compute<T>;
  while (rows.next()) {
    C mean = 0, variance;
    if constexpr (centred) {
      const Moments<C> moments = moments_of<T>(rows);
      mean = moments.mean;
      variance = moments.squares / static_cast<C>(norm.length);
    } else {
      variance = mean_square<C>(rows, norm.length);
    }
    const C rstd = ::rsqrt(variance + static_cast<C>(norm.eps));
    if (rows.team().is_first_thread() && rows.active()) {
      if (centred) static_cast<C*>(norm.mean)[rows.row()] = mean;
      static_cast<C*>(norm.rstd)[rows.row()] = rstd;
    }

    const C start = -mean * rstd;
    T* const y = static_cast<T*>(norm.y) + rows.row() * norm.length;
    rows.pass([&](auto each) {
      each([&](auto pack, int slot, auto x) {
        const auto w = weight.get(pack, slot);
        if constexpr (centred) {
          const auto b = bias.get(pack, slot);
#pragma unroll
          for (int j = 0; j < lanes; ++j) {
            const C normed = is_16_bit<T> ? x.of[j] * rstd + start : (x.of[j] - mean) * rstd;
            x.of[j] = normed * w.of[j] + b.of[j];
          }
        } else {
#pragma unroll
          for (int j = 0; j < lanes; ++j) x.of[j] = x.of[j] * rstd * w.of[j];
        }
        write_pack<T, lanes>(y, pack, x, false);
      });
    });
  }
}

template <class T, class W, int lanes, bool centred, bool resident>
__global__ void __launch_bounds__(most_row_threads, row_blocks<T, lanes, 1>)
    norm_kernel(const __grid_constant__ NormArgs<RowsArgs<1>> args) {
  Rows<T, lanes, 1, resident> rows(args.in);
  using Parameter = ParameterInMemory<W, lanes>;
  norm_rows<T, lanes, centred>(rows, args.norm, Parameter(args.norm.weight), Parameter(args.norm.bias));
}

template <class T, class W, int lanes, bool centred>
__global__ void __launch_bounds__(most_row_threads, 1)
    norm_ring_kernel(const __grid_constant__ NormArgs<RingArgs<1>> args) {
  extern __shared__ __align__(128) unsigned char memory[];
  Ring<T, lanes, 1, centred ? 4 : 0> rows(args.in, memory);
  using Parameter = ParameterInShared<W, lanes>;
  const int begin = rows.part_begin(), length = centred ? rows.part_length() : 0;
  const Parameter weight(args.norm.weight, rows.beside(), begin, rows.part_length());
  W* const behind = static_cast<W*>(rows.beside()) + args.in.shape.part_length;
  const Parameter bias(args.norm.bias, behind, begin, length);
  __syncthreads();
  norm_rows<T, lanes, centred>(rows, args.norm, weight, bias);
}

template <bool centred>
void run_norm(Cuda& cuda, const Call& call, double eps, Ins in, Outs out) {
  const DType dtype = out[0].dtype();
  const RowArray x = rows_of(cuda, in[0], dtype);
  Destination y(cuda, out[0], false), mean(cuda, out[1], false), rstd(cuda, out[centred ? 2 : 1], false);
  const bool one_dtype = !centred || in[1].dtype() == in[in.size() - 1].dtype();
  const DType given = one_dtype ? in[1].dtype() : DType::f32;
  const int lanes = row_lanes(dtype, x.length, {x.place(), {y.array().data(), x.length}});
  const auto parameter_bytes = static_cast<int>(size_of(norm_parameters(dtype, given, lanes)));
  RowsOrRingPlan plan(call, dtype, x.count, x.length, lanes,
                      {.inputs = 1,
                       .bytes_per_element = parameter_bytes * (centred ? 2 : 1),
                       .blocks = size_of(dtype) == 2 ? 1 : 2});
  const DType parameters = norm_parameters(dtype, given, plan.lanes());
  const Array weight = norm_parameter(cuda, in[1], parameters);
  const Array bias = centred ? norm_parameter(cuda, in[2], parameters) : weight;
  const Norm norm{weight.data(),
                  centred ? bias.data() : nullptr,
                  y.array().data(),
                  mean.array().data(),
                  rstd.array().data(),
                  eps,
                  x.length};
  visit_floating(dtype, [&]<class T>() {
    plan.visit<T>(
        [&]<int n, bool resident>(const RowPlan& rows) {
          visit_parameters<T, n>(parameters, [&]<class W>() {
            rows.launch(norm_kernel<T, W, n, centred, resident>, {{rows.shape(), {x.place()}}, norm});
          });
        },
        [&]<int n>(RingPlan& ring) {
          visit_parameters<T, n>(parameters, [&]<class W>() {
            ring.fit(norm_ring_kernel<T, W, n, centred>);
            ring.launch(norm_ring_kernel<T, W, n, centred>, {{ring.shape(), {x.place()}}, norm});
          });
        });
  });
  y.commit();
  if (centred) mean.commit();
  rstd.commit();
  call.finish();
}

}  // namespace ferrite::cuda
