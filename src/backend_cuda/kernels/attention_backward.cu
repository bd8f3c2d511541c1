// The gradients of attention. Weights are computed again from the scores and the saved log-sum-exp, tile by
// tile: one kernel goes through the keys for dq, another through the queries for dk and dv, so that every sum
// has one owner and one order. The kernels here are those of f32; 16 bits are attended by cuDNN or by
// attention_backward_16bit.cuh.
#include "backend_cuda/dnn/attention_bias.hpp"
#include "backend_cuda/dnn/attention_plans.hpp"
#include "backend_cuda/kit/attention.cuh"
#include "ferrite/ops/attention.hpp"

namespace ferrite {

using namespace cuda;
using namespace cuda::attention;

namespace {

/// What both kernels read. lse and delta are dense, one per query.
struct Inputs {
  Heads<const float> grad, q, k, v;
  const float *lse, *delta;
};

/// delta = sum(grad * o) of each query, by 8 lanes each.
template <class T>
__global__ void __launch_bounds__(threads)
    delta_kernel(std::int64_t heads, std::int64_t queries, std::int64_t rows, int width, Heads<const T> grad,
                 Heads<const T> o, float* delta) {
  constexpr int lanes = 8;
  const int lane = threadIdx.x % lanes;
  const std::int64_t row = std::int64_t{blockIdx.x} * (threads / lanes) + threadIdx.x / lanes;
  float sum = 0;
  if (row < rows) {
    const std::int64_t head = row / queries, query = row % queries, b = head / heads, h = head % heads;
    const T *const left = grad.at(b, h) + query * grad.row, *const right = o.at(b, h) + query * o.row;
    for (int c = lane; c < width; c += lanes)
      sum += convert_to<float>(left[c * grad.column]) * convert_to<float>(right[c * o.column]);
  }
#pragma unroll
  for (int step = lanes / 2; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
  if (row < rows && lane == 0) delta[row] = sum;
}

/// The weight that belongs to a score.
__device__ __forceinline__ float weight(float score, float lse) {
  return expf(score - (::isfinite(lse) ? lse : 0.0f));
}

/// lse and delta of the queries of a tile; 0 beyond the last.
__device__ void load_statistics(float* lse, float* delta, const Inputs& in, const Problem& p,
                                std::int64_t head, std::int64_t first) {
  if (threadIdx.x >= tile) return;
  const std::int64_t query = first + threadIdx.x, at = head * p.queries + query;
  lse[threadIdx.x] = query < p.queries ? in.lse[at] : 0.0f;
  delta[threadIdx.x] = query < p.queries ? in.delta[at] : 0.0f;
}

template <int most>
__global__ void __launch_bounds__(threads) query_kernel_f32(Problem p, Inputs in, Heads<float> dq, bool add) {
  extern __shared__ __align__(16) float memory[];
  float *const q = memory, *const grad = q + tile_floats(most), *const k = grad + tile_floats(most),
               *const v = k + tile_floats(most), *const dscores = v + tile_floats(most),
               *const lse = dscores + square_floats, *const delta = lse + tile;
  const int x = threadIdx.x % side, y = threadIdx.x / side;
  const std::int64_t blocks = divide_up(p.queries, tile), head = blockIdx.x / blocks;
  const std::int64_t first = (blocks - 1 - blockIdx.x % blocks) * tile;  // the longest causal rows first
  const std::int64_t b = head / p.heads, h = head % p.heads, key_head = h / p.group;
  const int depth = (p.depth + 3) / 4 * 4, width = (p.width + 3) / 4 * 4;

  load_tile<most>(q, in.q, in.q.at(b, h), first, p.queries, p.depth);
  load_tile<most>(grad, in.grad, in.grad.at(b, h), first, p.queries, p.width);
  load_statistics(lse, delta, in, p, head, first);
  Columns<most> sum = {};
  const Range keys = p.keys_of(first, ::min(first + tile, p.queries));
  for (std::int64_t key = keys.first / tile * tile; key < keys.last; key += tile) {
    __syncthreads();
    load_tile<most>(k, in.k, in.k.at(b, key_head), key, p.keys, p.depth);
    load_tile<most>(v, in.v, in.v.at(b, key_head), key, p.keys, p.width);
    __syncthreads();
    float s[per_thread][per_thread], dp[per_thread][per_thread];
    multiply_rows<most>(q, k, depth, x, y, s);
    multiply_rows<most>(grad, v, width, x, y, dp);
#pragma unroll
    for (int i = 0; i < per_thread; ++i) {
      const int row = y + i * side;
      const Line line = p.line_of_query(b, h, first + row);
#pragma unroll
      for (int j = 0; j < per_thread; ++j) {
        const int column = x + j * side;
        const float weighed = weight(p.score(s[i][j], line, static_cast<int>(key) + column), lse[row]);
        dscores[row * square_stride + column] = weighed * (dp[i][j] - delta[row]);
      }
    }
    __syncthreads();
    accumulate<most>(dscores, k, x, y, sum);
  }
  const float scale[per_thread] = {p.scale, p.scale, p.scale, p.scale};
  store_rows<most>(sum, scale, dq, dq.at(b, h), first, p.queries, p.depth, x, y, add);
}

/// As above with keys as rows and queries as columns of the tiles, those of all heads that read the keys.
template <int most>
__global__ void __launch_bounds__(threads)
    key_kernel_f32(Problem p, Inputs in, Heads<float> dk, Heads<float> dv, bool add_dk, bool add_dv) {
  extern __shared__ __align__(16) float memory[];
  float *const k = memory, *const v = k + tile_floats(most), *const q = v + tile_floats(most),
               *const grad = q + tile_floats(most), *const weights = grad + tile_floats(most),
               *const dscores = weights + square_floats, *const lse = dscores + square_floats,
               *const delta = lse + tile;
  const int x = threadIdx.x % side, y = threadIdx.x / side;
  const std::int64_t blocks = divide_up(p.keys, tile), head = blockIdx.x / blocks;
  const std::int64_t first = blockIdx.x % blocks * tile, key_heads = p.heads / p.group;
  const std::int64_t b = head / key_heads, key_head = head % key_heads;
  const int depth = (p.depth + 3) / 4 * 4, width = (p.width + 3) / 4 * 4;

  load_tile<most>(k, in.k, in.k.at(b, key_head), first, p.keys, p.depth);
  load_tile<most>(v, in.v, in.v.at(b, key_head), first, p.keys, p.width);
  Columns<most> dk_sum = {}, dv_sum = {};
  const Range queries = p.queries_of(first, ::min(first + tile, p.keys));
  const std::int64_t start = queries.first / tile * tile;
  const std::int64_t steps = queries.last > start ? divide_up(queries.last - start, tile) : 0;
  for (std::int64_t step = 0; step < steps * p.group; ++step) {
    const std::int64_t h = key_head * p.group + step / steps, query = start + step % steps * tile;
    __syncthreads();
    load_tile<most>(q, in.q, in.q.at(b, h), query, p.queries, p.depth);
    load_tile<most>(grad, in.grad, in.grad.at(b, h), query, p.queries, p.width);
    load_statistics(lse, delta, in, p, b * p.heads + h, query);
    __syncthreads();
    float s[per_thread][per_thread], dp[per_thread][per_thread];
    multiply_rows<most>(k, q, depth, x, y, s);
    multiply_rows<most>(v, grad, width, x, y, dp);
#pragma unroll
    for (int i = 0; i < per_thread; ++i) {
      const int row = y + i * side;
      const Line line = p.line_of_key(b, h, first + row);
#pragma unroll
      for (int j = 0; j < per_thread; ++j) {
        const int column = x + j * side;
        const float weighed = weight(p.score(s[i][j], line, static_cast<int>(query) + column), lse[column]);
        weights[row * square_stride + column] = weighed;
        dscores[row * square_stride + column] = weighed * (dp[i][j] - delta[column]);
      }
    }
    __syncthreads();
    accumulate<most>(weights, grad, x, y, dv_sum);
    accumulate<most>(dscores, q, x, y, dk_sum);
  }
  const float one[per_thread] = {1, 1, 1, 1}, scale[per_thread] = {p.scale, p.scale, p.scale, p.scale};
  store_rows<most>(dk_sum, scale, dk, dk.at(b, key_head), first, p.keys, p.depth, x, y, add_dk);
  store_rows<most>(dv_sum, one, dv, dv.at(b, key_head), first, p.keys, p.width, x, y, add_dv);
}

}  // namespace

constexpr int query_floats(int most) { return 4 * tile_floats(most) + square_floats + 2 * tile; }
constexpr int key_floats(int most) { return query_floats(most) + square_floats; }

bool accepts(const Cuda& cuda, const op::AttentionBackward&, MetaSpan in) {
  for (std::size_t i = 0; i < 5; ++i)
    if (in[i].dtype != in[1].dtype) return false;
  return in[5].dtype == DType::f32 &&
         takes(cuda, in[1], in[2], in[3], in.size() > 6 ? &in[6] : nullptr, key_floats);
}

void run(Cuda& cuda, const op::AttentionBackward& op, Ins in, Outs out, Accumulate mask) {
  const Array &grad = in[0], &q = in[1], &k = in[2], &v = in[3], &o = in[4];
  const std::int64_t batch = q.shape()[0];
  const Call call(cuda, op_name(op));
  const bool has_mask = in.size() > 6;
  const Problem p = problem_of(q, k, v, has_mask ? &in[6] : nullptr, op.causal, op.window, op.scale);
  const std::int64_t rows = batch * p.heads * p.queries;
  const Array lse = dense(cuda, in[5]);
  const auto own = [&](const Array& dq, const Array& dk, const Array& dv, Accumulate adds) {
    const Scratch<float> delta(call, rows);
    visit_floating(q.dtype(), [&]<class T>() {
      if (rows == 0) return;
      delta_kernel<T><<<static_cast<unsigned>(divide_up(rows, threads / 8)), threads, 0, call.stream()>>>(
          p.heads, p.queries, rows, p.width, Heads<const T>::of(grad), Heads<const T>::of(o), delta.data());
    });
    const float* const sums = lse.data<float>();
    if (q.dtype() == DType::bf16)
      return attend_backward<__nv_bfloat16>(call, p, grad, q, k, v, sums, delta.data(), dq, dk, dv, adds);
    if (q.dtype() == DType::f16)
      return attend_backward<__half>(call, p, grad, q, k, v, sums, delta.data(), dq, dk, dv, adds);
    const auto heads_of = [](const Array& x) { return Heads<const float>::of(x); };
    const Inputs inputs{heads_of(grad), heads_of(q), heads_of(k), heads_of(v), sums, delta.data()};
    visit_columns(std::max(p.depth, p.width), [&]<int most>() {
      if (rows > 0)
        launch(call, query_kernel_f32<most>, batch * p.heads * divide_up(p.queries, tile), query_floats(most),
               p, inputs, Heads<float>::of(dq), accumulates(adds, 0));
      const std::int64_t key_blocks = batch * k.shape()[1] * divide_up(p.keys, tile);
      if (key_blocks > 0)
        launch(call, key_kernel_f32<most>, key_blocks, key_floats(most), p, inputs, Heads<float>::of(dk),
               Heads<float>::of(dv), accumulates(adds, 1), accumulates(adds, 2));
    });
  };
  // cuDNN does not add to its results.
  if (op.window == 0 && rows > 0 && p.keys > 0) {
    AttentionArrays arrays{q, k, v, o, lse, grad, out[0], out[1], out[2], {}};
    bool suits = has_mask ? suits_dnn_with_mask(arrays, op.causal) : suits_dnn(arrays, op.causal);
    if (suits && has_mask) {
      arrays.bias = attention_bias(cuda, call, q, k, in[6]);
      suits = arrays.bias.defined();
      if (suits) arrays.lse = lse_without_hidden_rows(cuda, call, lse);
    }
    if (suits) {
      Array* const results[] = {&arrays.dq, &arrays.dk, &arrays.dv};
      for (std::size_t i = 0; i < 3; ++i)
        if (accumulates(mask, i)) *results[i] = cuda.allocate(out[i].meta());
      const auto same = [&] { own(arrays.dq, arrays.dk, arrays.dv, Accumulate::none); };
      if (attend_by_dnn(cuda, call, arrays, op.causal, op.scale, same)) {
        for (std::size_t i = 0; i < 3; ++i)
          if (accumulates(mask, i)) copy_into(cuda, *results[i], out[i], true);
        call.finish();
        return;
      }
    }
  }
  own(out[0], out[1], out[2], mask);
  call.finish();
}

}  // namespace ferrite
