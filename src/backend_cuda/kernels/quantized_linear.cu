// QuantizedLinear. A few rows, as in decoding, are limited by reading the weights: a warp multiplies one or
// four rows of 8-bit weights with all rows of x. For more rows the weight is widened, and what is left of the
// product (scale, bias, activation) is done after it.
#include "ferrite/ops/quantized_linear.hpp"

#include "backend_cuda/gemm/gemm.hpp"
#include "backend_cuda/kit/linear_parts.cuh"
#include "ferrite/cuda/kernel.cuh"
#include "ferrite/ops/fill.hpp"

namespace ferrite {

using namespace cuda;

namespace {

constexpr std::int64_t few_rows = 16;
constexpr int warps = 4;          // of a block
constexpr int pack_weights = 16;  // that a thread reads at once

/// What follows a product: activation(product * scale + bias). The bias is of the result's dtype or f32; at
/// most one of the two pointers is there.
template <class T>
struct FinishArgs {
  const float* scale;
  const T* bias;
  const float* wide_bias;
  T* y;
  std::int64_t columns;
  Activation activation;
};

template <class T>
using ActivationMath = std::conditional_t<is_16_bit<T>, CoarseMath, DeviceMath<float>>;

template <class T>
__device__ __forceinline__ void finish(const FinishArgs<T>& args, std::int64_t row, std::int64_t column,
                                       float product) {
  float value = product * args.scale[column];
  if (args.bias) value += convert_to<float>(args.bias[column]);
  if (args.wide_bias) value += args.wide_bias[column];
  args.y[row * args.columns + column] = convert_to<T>(activate(ActivationMath<T>{}, args.activation, value));
}

template <class T>
struct FewRowsArgs {
  const T* x;                 // [rows, inner]
  const std::int8_t* weight;  // [columns, inner]
  std::int64_t inner;         // a multiple of pack_weights
  int rows;
  FinishArgs<T> finish;
};

/// Up to `rows` rows of x, `columns` rows of the weight per warp. All data begin at multiples of 16 bytes.
template <class T, int rows, int columns>
__global__ void __launch_bounds__(warps * 32) few_rows_kernel(const __grid_constant__ FewRowsArgs<T> args) {
  wait_for_earlier_kernels();
  constexpr int at_once = pack_lanes<T>, outputs = rows * columns, shares = (outputs + 31) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t first =
      (static_cast<std::int64_t>(blockIdx.x) * warps + static_cast<int>(threadIdx.x) / 32) * columns;
  const std::int64_t last = args.finish.columns - 1;
  if (first > last) return;  // the whole warp

  float sums[rows][columns] = {};
#pragma unroll 2
  for (std::int64_t k = lane * pack_weights; k < args.inner; k += 32 * pack_weights) {
    uint4 packed[columns];
#pragma unroll
    for (int c = 0; c < columns; ++c) {
      // Rows beyond the last are the last: their results are not stored.
      const std::int64_t column = first + c < last ? first + c : last;
      packed[c] = *reinterpret_cast<const uint4*>(args.weight + column * args.inner + k);
    }
#pragma unroll
    for (int part = 0; part < pack_weights / at_once; ++part) {
      float weights[columns][at_once];
#pragma unroll
      for (int c = 0; c < columns; ++c) {
        const std::uint32_t words[4] = {packed[c].x, packed[c].y, packed[c].z, packed[c].w};
#pragma unroll
        for (int i = 0; i < at_once / 4; ++i)
#pragma unroll
          for (unsigned j = 0; j < 4; ++j)
            weights[c][4 * i + static_cast<int>(j)] = weight_of(words[part * (at_once / 4) + i], j);
      }
#pragma unroll
      for (int r = 0; r < rows; ++r) {
        const int row = r < args.rows ? r : args.rows - 1;
        const auto x = load_pack<at_once>(args.x + row * args.inner + k + part * at_once);
#pragma unroll
        for (int j = 0; j < at_once; ++j) {
          const float factor = convert_to<float>(x.lane[j]);
#pragma unroll
          for (int c = 0; c < columns; ++c) sums[r][c] = fmaf(factor, weights[c][j], sums[r][c]);
        }
      }
    }
  }

  // Every lane gets every sum, added in one order, and finishes its share of them.
  float mine[shares] = {};
#pragma unroll
  for (int r = 0; r < rows; ++r) {
#pragma unroll
    for (int c = 0; c < columns; ++c) {
      const float sum = warp_sum(sums[r][c]);
      const int index = r * columns + c;
      if (lane == index % 32) mine[index / 32] = sum;
    }
  }
#pragma unroll
  for (int share = 0; share < shares; ++share) {
    const int index = share * 32 + lane, row = index / columns;
    const std::int64_t column = first + index % columns;
    if (row < args.rows && row < rows && column <= last) finish(args.finish, row, column, mine[share]);
  }
}

template <class T>
void multiply_few(const Call& call, const FewRowsArgs<T>& args) {
  // A warp with four rows of weights reads x a quarter as often; there must be enough of them.
  constexpr std::int64_t many_columns = 8192;
  const auto start = [&]<int rows>() {
    const std::int64_t columns = args.finish.columns;
    const auto run = [&]<int per_warp>() {
      launch(call, few_rows_kernel<T, rows, per_warp>,
             grid_of(divide_up(columns, std::int64_t{warps * per_warp})), BlockSize{warps * 32}, args,
             Start::early);
    };
    if (columns >= many_columns)
      run.template operator()<4>();
    else
      run.template operator()<1>();
  };
  if (args.rows == 1)
    start.template operator()<1>();
  else if (args.rows <= 4)
    start.template operator()<4>();
  else if (args.rows <= 8)
    start.template operator()<8>();
  else
    start.template operator()<16>();
}

template <class T>
struct FinishAllArgs {
  const float* products;  // [rows, columns]
  std::int64_t count;
  FinishArgs<T> finish;
};

template <class T>
__global__ void finish_kernel(const __grid_constant__ FinishAllArgs<T> args) {
  wait_for_earlier_kernels();
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < args.count) finish(args.finish, i / args.finish.columns, i % args.finish.columns, args.products[i]);
}

/// The weights are exact in every floating dtype, and products of 16 bits have results of f32.
template <class T>
void multiply_many(Cuda& cuda, const Call& call, const Array& x, const Array& weight,
                   const FinishArgs<T>& finish) {
  const std::int64_t rows = x.shape()[0], columns = weight.shape()[0], inner = x.shape()[1];
  Array products = cuda.allocate({{rows, columns}, DType::f32});
  if (inner == 0) {
    run(cuda, op::Fill{products.shape(), DType::f32, 0}, Ins(nullptr, 0), Outs(&products, 1));
  } else {
    const Array wide = dense(cuda, weight, x.dtype());
    const Product product{x.dtype(),
                          DType::f32,
                          rows,
                          columns,
                          inner,
                          {x.data<void>(), inner, 1},
                          {wide.data<void>(), 1, inner},
                          {products.data<void>(), columns, 1}};
    if (!library_product(call, product, cuda.float32_products())) plain_product(call, product);
  }
  const std::int64_t count = rows * columns;
  launch(call, finish_kernel<T>, divide_up(count, std::int64_t{block_threads}),
         FinishAllArgs<T>{products.data<float>(), count, finish}, Start::early);
}

}  // namespace

bool accepts(const Cuda&, const op::QuantizedLinear&, MetaSpan in) {
  return in[0].dtype != DType::f64 && in[2].dtype != DType::f64 &&
         (in.size() < 4 || in[3].dtype != DType::f64);
}

void run(Cuda& cuda, const op::QuantizedLinear& op, Ins in, Outs out) {
  if (out[0].shape().numel() == 0) return;
  const Call call(cuda, op_name(op));
  const Array x = in_packs(cuda, in[0]), weight = in_packs(cuda, in[1]);
  const Array scale = dense(cuda, in[2], DType::f32);
  Array bias;
  if (in.size() > 3) bias = dense(cuda, in[3], in[3].dtype() == x.dtype() ? x.dtype() : DType::f32);
  Destination y(cuda, out[0], false);
  const std::int64_t rows = x.shape()[0], inner = x.shape()[1];
  visit_floating(x.dtype(), [&]<class T>() {
    if constexpr (!std::is_same_v<T, double>) {
      const bool same = bias.defined() && bias.dtype() == x.dtype();
      const FinishArgs<T> finish{scale.data<float>(),
                                 same ? bias.data<T>() : nullptr,
                                 bias.defined() && !same ? bias.data<float>() : nullptr,
                                 y.array().data<T>(),
                                 weight.shape()[0],
                                 op.activation};
      if (rows <= few_rows && inner > 0 && inner % pack_weights == 0)
        multiply_few(call, FewRowsArgs<T>{x.data<T>(), weight.data<std::int8_t>(), inner,
                                          static_cast<int>(rows), finish});
      else
        multiply_many(cuda, call, x, weight, finish);
    }
  });
  y.commit();
  call.finish();
}

}  // namespace ferrite
