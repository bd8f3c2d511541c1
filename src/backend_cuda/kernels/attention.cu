// Attention without a buffer of all scores: for each tile of queries the keys pass by tile by tile, with a
// running maximum and sum per query (Milakov and Gimelshein 2018; Dao et al. 2022). The kernel here is that
// of f32, in plain f32 arithmetic; 16 bits are attended by cuDNN or by attention_16bit.cuh.
#include "backend_cuda/dnn/attention_bias.hpp"
#include "backend_cuda/dnn/attention_plans.hpp"
#include "backend_cuda/kit/attention.cuh"
#include "ferrite/ops/attention.hpp"

namespace ferrite {

using namespace cuda;
using namespace cuda::attention;

namespace {

__device__ __forceinline__ float row_max(float value) {
#pragma unroll
  for (int step = side / 2; step > 0; step /= 2)
    value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, step));
  return value;
}
__device__ __forceinline__ float row_sum(float value) {
#pragma unroll
  for (int step = side / 2; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
  return value;
}

template <int most>
__global__ void __launch_bounds__(threads)
    attention_kernel(Problem p, Heads<const float> q, Heads<const float> k, Heads<const float> v,
                     Heads<float> o, float* lse, std::int64_t lse_batch, std::int64_t lse_head,
                     std::int64_t lse_row) {
  extern __shared__ __align__(16) float memory[];
  float *const q_tile = memory, *const kv_tile = q_tile + tile_floats(most),
               *const weights = kv_tile + tile_floats(most);
  const int x = threadIdx.x % side, y = threadIdx.x / side;
  const std::int64_t blocks = divide_up(p.queries, tile), head = blockIdx.x / blocks;
  const std::int64_t first = (blocks - 1 - blockIdx.x % blocks) * tile;  // the longest causal rows first
  const std::int64_t b = head / p.heads, h = head % p.heads, key_head = h / p.group;
  const int depth = (p.depth + 3) / 4 * 4;

  float top[per_thread], sum[per_thread];
  Columns<most> output = {};
#pragma unroll
  for (int i = 0; i < per_thread; ++i) {
    top[i] = hidden;
    sum[i] = 0;
  }
  load_tile<most>(q_tile, q, q.at(b, h), first, p.queries, p.depth);
  const Range keys = p.keys_of(first, ::min(first + tile, p.queries));
  for (std::int64_t key = keys.first / tile * tile; key < keys.last; key += tile) {
    __syncthreads();
    load_tile<most>(kv_tile, k, k.at(b, key_head), key, p.keys, p.depth);
    __syncthreads();
    float s[per_thread][per_thread];
    multiply_rows<most>(q_tile, kv_tile, depth, x, y, s);
#pragma unroll
    for (int i = 0; i < per_thread; ++i) {
      const Line line = p.line_of_query(b, h, first + y + i * side);
      float highest = hidden;
#pragma unroll
      for (int j = 0; j < per_thread; ++j) {
        s[i][j] = p.score(s[i][j], line, static_cast<int>(key) + x + j * side);
        highest = fmaxf(highest, s[i][j]);
      }
      highest = fmaxf(top[i], row_max(highest));
      const float shift = highest == hidden ? 0.0f : highest;
      float part = 0;
#pragma unroll
      for (int j = 0; j < per_thread; ++j) {
        s[i][j] = expf(s[i][j] - shift);
        part += s[i][j];
        weights[(y + i * side) * square_stride + x + j * side] = s[i][j];
      }
      const float factor = top[i] == hidden ? 0.0f : expf(top[i] - highest);
      sum[i] = sum[i] * factor + row_sum(part);
      top[i] = highest;
#pragma unroll
      for (int j = 0; j < most / side; ++j) output[i][j] *= factor;
    }
    __syncthreads();
    load_tile<most>(kv_tile, v, v.at(b, key_head), key, p.keys, p.width);
    __syncthreads();
    accumulate<most>(weights, kv_tile, x, y, output);
  }
  float factor[per_thread];
#pragma unroll
  for (int i = 0; i < per_thread; ++i) {
    const bool sees_none = sum[i] == 0;
    factor[i] = sees_none ? 0.0f : 1 / sum[i];
    const std::int64_t query = first + y + i * side;
    if (x == 0 && query < p.queries)
      lse[b * lse_batch + h * lse_head + query * lse_row] = sees_none ? hidden : top[i] + logf(sum[i]);
  }
  store_rows<most>(output, factor, o, o.at(b, h), first, p.queries, p.width, x, y, false);
}

}  // namespace

constexpr int shared_floats(int most) { return 2 * tile_floats(most) + square_floats; }

bool accepts(const Cuda& cuda, const op::Attention&, MetaSpan in) {
  return takes(cuda, in[0], in[1], in[2], in.size() > 3 ? &in[3] : nullptr, shared_floats);
}

void run(Cuda& cuda, const op::Attention& op, Ins in, Outs out) {
  const Array &q = in[0], &k = in[1], &v = in[2], &lse = out[1];
  if (lse.shape().numel() == 0) return;
  const Call call(cuda, op_name(op));
  const bool has_mask = in.size() > 3;
  const auto own = [&] {
    const Problem p = problem_of(q, k, v, has_mask ? &in[3] : nullptr, op.causal, op.window, op.scale);
    if (q.dtype() == DType::bf16) return attend<__nv_bfloat16>(call, p, q, k, v, out[0], lse);
    if (q.dtype() == DType::f16) return attend<__half>(call, p, q, k, v, out[0], lse);
    const Shape& strides = lse.layout().strides;
    const std::int64_t blocks = q.shape()[0] * q.shape()[1] * divide_up(p.queries, tile);
    visit_columns(std::max(p.depth, p.width), [&]<int most>() {
      launch(call, attention_kernel<most>, blocks, shared_floats(most), p, Heads<const float>::of(q),
             Heads<const float>::of(k), Heads<const float>::of(v), Heads<float>::of(out[0]),
             lse.data<float>(), strides[0], strides[1], strides[2]);
    });
  };
  AttentionArrays arrays;
  arrays.q = q, arrays.k = k, arrays.v = v, arrays.o = out[0], arrays.lse = lse;
  const bool takes_bias = has_mask && op.window == 0 && suits_dnn_with_mask(arrays, op.causal);
  if (takes_bias) arrays.bias = attention_bias(cuda, call, q, k, in[3]);
  const bool expressible = op.window == 0 && (!has_mask || arrays.bias.defined());
  if (!expressible || !attend_by_dnn(cuda, call, arrays, op.causal, op.scale, own))
    own();
  else if (has_mask)
    clear_hidden_rows(call, out[0], lse);
  call.finish();
}

}  // namespace ferrite
