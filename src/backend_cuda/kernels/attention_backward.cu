// The gradients of attention. Weights are computed again from the scores and the saved log-sum-exp, tile by
// tile: one kernel goes through the keys for dq, another through the queries for dk and dv, so that every sum
// has one owner and one order.
#include "backend_cuda/dnn/attention_plans.hpp"
#include "backend_cuda/kit/attention.cuh"
#include "ferrite/ops/attention.hpp"

namespace ferrite {

using namespace cuda;
using namespace cuda::attention;

namespace {

/// What both kernels read. lse and delta are dense, one per query.
template <class T>
struct Inputs {
  Heads<const T> grad, q, k, v;
  const float *lse, *delta;
};

/// delta = sum(grad * o) of each query, one warp each.
template <class T>
__global__ void __launch_bounds__(threads)
    delta_kernel(std::int64_t heads, std::int64_t queries, std::int64_t rows, int width, Heads<const T> grad,
                 Heads<const T> o, float* delta) {
  const int lane = threadIdx.x % 32;
  const std::int64_t row = std::int64_t{blockIdx.x} * (threads / 32) + threadIdx.x / 32;
  if (row >= rows) return;
  const std::int64_t head = row / queries, query = row % queries, b = head / heads, h = head % heads;
  const T *const left = grad.at(b, h) + query * grad.row, *const right = o.at(b, h) + query * o.row;
  float sum = 0;
  for (int c = lane; c < width; c += 32)
    sum += convert_to<float>(left[c * grad.column]) * convert_to<float>(right[c * o.column]);
#pragma unroll
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
  if (lane == 0) delta[row] = sum;
}

/// The weight that belongs to a score.
__device__ __forceinline__ float weight(float score, float lse) {
  return expf(score - (::isfinite(lse) ? lse : 0.0f));
}

/// lse and delta of the queries of a tile; 0 beyond the last.
template <class T>
__device__ void load_rows(float* lse, float* delta, const Inputs<T>& in, const Problem& p, std::int64_t head,
                          std::int64_t first) {
  if (threadIdx.x >= tile) return;
  const std::int64_t query = first + threadIdx.x, at = head * p.queries + query;
  lse[threadIdx.x] = query < p.queries ? in.lse[at] : 0.0f;
  delta[threadIdx.x] = query < p.queries ? in.delta[at] : 0.0f;
}

template <class T, int most>
__global__ void __launch_bounds__(threads) query_kernel(Problem p, Inputs<T> in, Heads<T> dq, bool add) {
  extern __shared__ __align__(16) float memory[];
  float *const q = memory, *const grad = q + tile_floats(most), *const k = grad + tile_floats(most),
               *const v = k + tile_floats(most), *const dscores = v + tile_floats(most),
               *const lse = dscores + square_floats, *const delta = lse + tile;
  const int x = threadIdx.x % side, y = threadIdx.x / side;
  const std::int64_t blocks = divide_up(p.queries, tile), head = blockIdx.x / blocks;
  const std::int64_t first = (blocks - 1 - blockIdx.x % blocks) * tile;  // the longest causal rows first
  const std::int64_t b = head / p.heads, h = head % p.heads;
  const int depth = (p.depth + 3) / 4 * 4, width = (p.width + 3) / 4 * 4;

  load_tile<most>(q, in.q, in.q.at(b, h), first, p.queries, p.depth);
  load_tile<most>(grad, in.grad, in.grad.at(b, h), first, p.queries, p.width);
  load_rows(lse, delta, in, p, head, first);
  Columns<most> sum = {};
  const std::int64_t last = first + tile < p.queries ? first + tile : p.queries;
  const std::int64_t keys = p.keys_seen(last - 1);
  for (std::int64_t key = 0; key < keys; key += tile) {
    __syncthreads();
    load_tile<most>(k, in.k, in.k.at(b, h), key, p.keys, p.depth);
    load_tile<most>(v, in.v, in.v.at(b, h), key, p.keys, p.width);
    __syncthreads();
    float s[per_thread][per_thread], dp[per_thread][per_thread];
    multiply_rows<most>(q, k, depth, x, y, s);
    multiply_rows<most>(grad, v, width, x, y, dp);
#pragma unroll
    for (int i = 0; i < per_thread; ++i) {
      const int row = y + i * side;
#pragma unroll
      for (int j = 0; j < per_thread; ++j) {
        const int column = x + j * side;
        const float weighed = weight(p.score(s[i][j], b, h, first + row, key + column), lse[row]);
        dscores[row * square_stride + column] = weighed * (dp[i][j] - delta[row]);
      }
    }
    __syncthreads();
    accumulate<most>(dscores, k, x, y, sum);
  }
  const float scale[per_thread] = {p.scale, p.scale, p.scale, p.scale};
  store_rows<most>(sum, scale, dq, dq.at(b, h), first, p.queries, p.depth, x, y, add);
}

/// As above with keys as rows and queries as columns of the tiles.
template <class T, int most>
__global__ void __launch_bounds__(threads)
    key_kernel(Problem p, Inputs<T> in, Heads<T> dk, Heads<T> dv, bool add_dk, bool add_dv) {
  extern __shared__ __align__(16) float memory[];
  float *const k = memory, *const v = k + tile_floats(most), *const q = v + tile_floats(most),
               *const grad = q + tile_floats(most), *const weights = grad + tile_floats(most),
               *const dscores = weights + square_floats, *const lse = dscores + square_floats,
               *const delta = lse + tile;
  const int x = threadIdx.x % side, y = threadIdx.x / side;
  const std::int64_t blocks = divide_up(p.keys, tile), head = blockIdx.x / blocks;
  const std::int64_t first = blockIdx.x % blocks * tile;
  const std::int64_t b = head / p.heads, h = head % p.heads;
  const int depth = (p.depth + 3) / 4 * 4, width = (p.width + 3) / 4 * 4;

  load_tile<most>(k, in.k, in.k.at(b, h), first, p.keys, p.depth);
  load_tile<most>(v, in.v, in.v.at(b, h), first, p.keys, p.width);
  Columns<most> dk_sum = {}, dv_sum = {};
  const std::int64_t sees_first = first + p.queries - p.keys;  // the first query that sees this tile
  std::int64_t query = p.causal && sees_first > 0 ? sees_first / tile * tile : 0;
  for (; query < p.queries; query += tile) {
    __syncthreads();
    load_tile<most>(q, in.q, in.q.at(b, h), query, p.queries, p.depth);
    load_tile<most>(grad, in.grad, in.grad.at(b, h), query, p.queries, p.width);
    load_rows(lse, delta, in, p, head, query);
    __syncthreads();
    float s[per_thread][per_thread], dp[per_thread][per_thread];
    multiply_rows<most>(k, q, depth, x, y, s);
    multiply_rows<most>(v, grad, width, x, y, dp);
#pragma unroll
    for (int i = 0; i < per_thread; ++i) {
      const int row = y + i * side;
#pragma unroll
      for (int j = 0; j < per_thread; ++j) {
        const int column = x + j * side;
        const float weighed = weight(p.score(s[i][j], b, h, query + column, first + row), lse[column]);
        weights[row * square_stride + column] = weighed;
        dscores[row * square_stride + column] = weighed * (dp[i][j] - delta[column]);
      }
    }
    __syncthreads();
    accumulate<most>(weights, grad, x, y, dv_sum);
    accumulate<most>(dscores, q, x, y, dk_sum);
  }
  const float one[per_thread] = {1, 1, 1, 1}, scale[per_thread] = {p.scale, p.scale, p.scale, p.scale};
  store_rows<most>(dk_sum, scale, dk, dk.at(b, h), first, p.keys, p.depth, x, y, add_dk);
  store_rows<most>(dv_sum, one, dv, dv.at(b, h), first, p.keys, p.width, x, y, add_dv);
}

}  // namespace

constexpr int query_floats(int most) { return 4 * tile_floats(most) + square_floats + 2 * tile; }
constexpr int key_floats(int most) { return query_floats(most) + square_floats; }

bool accepts(const Cuda& cuda, const op::AttentionBackward& op, MetaSpan in) {
  if (op.window > 0 || in[1].shape[1] != in[2].shape[1]) return false;
  for (std::size_t i = 0; i < 5; ++i)
    if (in[i].dtype != in[1].dtype) return false;
  return in[5].dtype == DType::f32 && takes(cuda, in[1], in[3], in.size() > 6 ? &in[6] : nullptr, key_floats);
}

void run(Cuda& cuda, const op::AttentionBackward& op, Ins in, Outs out, Accumulate mask) {
  const Array &grad = in[0], &q = in[1], &k = in[2], &v = in[3], &o = in[4];
  const std::int64_t heads = q.shape()[0] * q.shape()[1];
  const Call call(cuda, op_name(op));
  const bool has_mask = in.size() > 6;
  const Problem p = problem_of(q, k, v, has_mask ? &in[6] : nullptr, op.causal, op.scale);
  const std::int64_t rows = heads * p.queries;
  const Array lse = dense(cuda, in[5]);
  const auto own = [&](const Array& dq, const Array& dk, const Array& dv, Accumulate adds) {
    const Scratch<float> delta(call, rows);
    visit(q.dtype(), std::max(p.depth, p.width), [&]<class T, int most>() {
      const Inputs<T> inputs{grad, q, k, v, lse.data<float>(), delta.data()};
      if (rows > 0) {
        const auto blocks = static_cast<unsigned>(divide_up(rows, threads / 32));
        delta_kernel<T><<<blocks, threads, 0, call.stream()>>>(p.heads, p.queries, rows, p.width, inputs.grad,
                                                               Heads<const T>(o), delta.data());
        launch(call, query_kernel<T, most>, heads * divide_up(p.queries, tile), query_floats(most), p, inputs,
               Heads<T>(dq), accumulates(adds, 0));
      }
      if (heads * p.keys > 0)
        launch(call, key_kernel<T, most>, heads * divide_up(p.keys, tile), key_floats(most), p, inputs,
               Heads<T>(dk), Heads<T>(dv), accumulates(adds, 1), accumulates(adds, 2));
    });
  };
  // cuDNN does not add to its results.
  const auto place = [&](std::size_t i) {
    return accumulates(mask, i) ? cuda.allocate(out[i].meta()) : out[i];
  };
  if (!has_mask && rows > 0 && p.keys > 0 && size_of(q.dtype()) == 2) {
    const AttentionArrays arrays{q, k, v, o, lse, grad, place(0), place(1), place(2)};
    const auto same = [&] { own(arrays.dq, arrays.dk, arrays.dv, Accumulate::none); };
    if (attend_by_dnn(cuda, call, arrays, op.causal, op.scale, same)) {
      const Array* results[] = {&arrays.dq, &arrays.dk, &arrays.dv};
      for (std::size_t i = 0; i < 3; ++i)
        if (accumulates(mask, i)) copy_into(cuda, *results[i], out[i], true);
      call.finish();
      return;
    }
  }
  own(out[0], out[1], out[2], mask);
  call.finish();
}

}  // namespace ferrite
