// The gradients of attention on tensor cores. Weights are computed again from the scores and the saved
// log-sum-exp: one kernel goes through the keys for dq, another through the queries for dk and dv, so that
// every sum has one owner and one order. That costs 7 products where adding up dq by atomics costs 5.
#pragma once

#include "backend_cuda/kernels/attention.cuh"

namespace ferrite::cuda::attention {

/// lse and delta (the sum of grad * o) are dense, one per query.
template <class T>
struct BackwardArrays {
  Heads<const T> grad, q, k, v;
  const float *lse, *delta;
  bool in_packs;  // all of these: see load_rows
};
/// A result of the backward pass.
template <class T>
struct Gradient {
  Heads<T> to;
  bool in_packs, add;
};

/// The weight that belongs to a score of a query whose scores have this log-sum-exp.
__device__ __forceinline__ float weight(float score, float lse) {
  return power_of_2((score - (lse == hidden ? 0.0f : lse)) * log2_of_e);
}

/// Shared memory of one group.
template <class T, class Blocking>
constexpr int query_bytes(const Problem& p) {
  return tile_bytes<T, Blocking::columns>(2 * Blocking::rows +
                                          2 * Blocking::other * buffers_for(p.keys, Blocking::other));
}

/// dq: queries stay, keys and values pass by.
template <class T, class Blocking>
__global__ void __launch_bounds__(Blocking::block)
    query_kernel(Problem p, BackwardArrays<T> in, Gradient<T> dq, std::int64_t tiles, std::int64_t total) {
  constexpr int columns = Blocking::columns, other = Blocking::other, n_tiles = other / 8,
                stride = row_stride<T, columns>, threads = Blocking::threads;
  wait_for_earlier_kernels();
  const Place<Blocking> at(p.heads, tiles, total, p.causal);
  T* const q_tile = at.template memory<T>(query_bytes<T, Blocking>(p));
  T* const grad_tile = q_tile + Blocking::rows * stride;
  T* const k_tiles = grad_tile + Blocking::rows * stride;
  T* const v_tiles = k_tiles + buffers_for(p.keys, other) * other * stride;
  const std::int64_t first = at.tile * Blocking::rows, key_head = at.h / p.group;
  const Range keys = p.keys_of(first, ::min(first + Blocking::rows, p.queries));
  const auto load_keys = [&](std::int64_t key, int buffer) {
    load_rows<other, columns, threads>(k_tiles + buffer * other * stride, in.k, in.k.at(at.b, key_head), key,
                                       p.keys, p.depth, in.in_packs, at.thread);
    load_rows<other, columns, threads>(v_tiles + buffer * other * stride, in.v, in.v.at(at.b, key_head), key,
                                       p.keys, p.width, in.in_packs, at.thread);
  };
  load_rows<Blocking::rows, columns, threads>(q_tile, in.q, in.q.at(at.b, at.h), first, p.queries, p.depth,
                                              in.in_packs, at.thread);
  load_rows<Blocking::rows, columns, threads>(grad_tile, in.grad, in.grad.at(at.b, at.h), first, p.queries,
                                              p.width, in.in_packs, at.thread);
  const std::int64_t start = keys.first / other * other;
  if (start < keys.last) load_keys(start, 0);
  ptx::commit_copies();

  const int own_row = at.warp * 16;
  LeftRows<T, columns, Blocking::keeps> q(q_tile + own_row * stride, at.lane),
      grad(grad_tile + own_row * stride, at.lane);
  float lse[2], delta[2];
  const std::int64_t row = first + own_row + at.lane / 4;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const std::int64_t query = row + half * 8, place = (at.b * p.heads + at.h) * p.queries + query;
    lse[half] = query < p.queries ? in.lse[place] : 0.0f;
    delta[half] = query < p.queries ? in.delta[place] : 0.0f;
  }
  Sums<columns / 8> sum = {};
  int buffer = 0;
  for (std::int64_t key = start; key < keys.last; key += other, buffer ^= 1) {
    ptx::wait_for_copies<0>();
    __syncthreads();  // the tiles have arrived, and nobody reads the other buffer any more
    if (key == start) q.keep(), grad.keep();
    if (key + other < keys.last) load_keys(key + other, buffer ^ 1);
    ptx::commit_copies();

    const T* const k_tile = k_tiles + buffer * other * stride;
    Sums<n_tiles> s, dp;
    multiply_rows<T, columns>(s, q, k_tile);
    multiply_rows<T, columns>(dp, grad, v_tiles + buffer * other * stride);
    const bool all = p.all_seen(first, first + Blocking::rows, key, key + other);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const Line line = p.line_of_query(at.b, at.h, row + half * 8);
#pragma unroll
      for (int n = 0; n < n_tiles; ++n)
#pragma unroll
        for (int i = 2 * half; i < 2 * half + 2; ++i) {
          const int column = static_cast<int>(key) + n * 8 + at.lane % 4 * 2 + i % 2;
          const float score = all ? s[n][i] * p.scale : p.score(s[n][i], line, column);
          s[n][i] = weight(score, lse[half]) * (dp[n][i] - delta[half]) * p.scale;
        }
    }
    multiply_through<T, columns>(sum, s, k_tile, at.lane);
  }
  ptx::wait_for_copies<0>();
  if (at.idle) return;
  const float one[2] = {1, 1};
  store_rows<columns>(sum, one, dq.to, dq.to.at(at.b, at.h), first + own_row, p.queries, p.depth, dq.in_packs,
                      dq.add, at.lane);
}

/// Which sums a pass over the queries makes: both do not fit into the registers for the widest heads.
enum class Pass : std::uint8_t { dk, dv, both };

/// The queries of every head of a group pass by, in tiles of their own.
template <class Blocking>
constexpr int query_buffers(const Problem& p) {
  return p.group > 1 ? 2 : buffers_for(p.queries, Blocking::other);
}
template <class T, class Blocking>
constexpr int key_bytes(const Problem& p) {
  const int buffers = query_buffers<Blocking>(p);
  return tile_bytes<T, Blocking::columns>(2 * Blocking::rows + 2 * Blocking::other * buffers) +
         2 * Blocking::other * buffers * static_cast<int>(sizeof(float));
}

/// dk and dv: keys and values stay; the queries of all heads that read them pass by.
template <class T, class Blocking, Pass pass>
__global__ void __launch_bounds__(Blocking::block)
    key_kernel(Problem p, BackwardArrays<T> in, Gradient<T> dk, Gradient<T> dv, std::int64_t tiles,
               std::int64_t total) {
  constexpr int columns = Blocking::columns, other = Blocking::other, n_tiles = other / 8,
                stride = row_stride<T, columns>, threads = Blocking::threads;
  constexpr bool wants_dk = pass != Pass::dv, wants_dv = pass != Pass::dk;
  wait_for_earlier_kernels();
  const Place<Blocking> at(p.heads / p.group, tiles, total, false);
  T* const k_tile = at.template memory<T>(key_bytes<T, Blocking>(p));
  T* const v_tile = k_tile + Blocking::rows * stride;
  const int buffers = query_buffers<Blocking>(p);
  T* const q_tiles = v_tile + Blocking::rows * stride;
  T* const grad_tiles = q_tiles + buffers * other * stride;
  float* const lse_rows = reinterpret_cast<float*>(grad_tiles + buffers * other * stride);
  float* const delta_rows = lse_rows + buffers * other;
  const std::int64_t first = at.tile * Blocking::rows;
  const Range queries = p.queries_of(first, ::min(first + Blocking::rows, p.keys));
  const std::int64_t start = queries.first / other * other;
  const std::int64_t steps = queries.last > start ? (queries.last - start + other - 1) / other : 0;
  const auto head_of = [&](std::int64_t step) { return at.h * p.group + step / steps; };
  const auto query_of = [&](std::int64_t step) { return start + step % steps * other; };
  const auto load_queries = [&](std::int64_t step, int buffer) {
    const std::int64_t h = head_of(step), query = query_of(step);
    load_rows<other, columns, threads>(q_tiles + buffer * other * stride, in.q, in.q.at(at.b, h), query,
                                       p.queries, p.depth, in.in_packs, at.thread);
    load_rows<other, columns, threads>(grad_tiles + buffer * other * stride, in.grad, in.grad.at(at.b, h),
                                       query, p.queries, p.width, in.in_packs, at.thread);
    for (int i = at.thread; i < other; i += threads) {
      const bool exists = query + i < p.queries;
      const std::int64_t place = (at.b * p.heads + h) * p.queries + query + i;
      lse_rows[buffer * other + i] = exists ? in.lse[place] : 0.0f;
      delta_rows[buffer * other + i] = exists ? in.delta[place] : 0.0f;
    }
  };
  load_rows<Blocking::rows, columns, threads>(k_tile, in.k, in.k.at(at.b, at.h), first, p.keys, p.depth,
                                              in.in_packs, at.thread);
  load_rows<Blocking::rows, columns, threads>(v_tile, in.v, in.v.at(at.b, at.h), first, p.keys, p.width,
                                              in.in_packs, at.thread);
  if (steps > 0) load_queries(0, 0);
  ptx::commit_copies();

  const int own_row = at.warp * 16;
  LeftRows<T, columns, Blocking::keeps> k(k_tile + own_row * stride, at.lane),
      v(v_tile + own_row * stride, at.lane);
  Sums<wants_dk ? columns / 8 : 2> dk_sum = {};
  Sums<wants_dv ? columns / 8 : 2> dv_sum = {};
  int buffer = 0;
  for (std::int64_t step = 0; step < steps * p.group; ++step, buffer ^= 1) {
    ptx::wait_for_copies<0>();
    __syncthreads();  // the tiles have arrived, and nobody reads the other buffer any more
    if (step == 0) k.keep(), v.keep();
    if (step + 1 < steps * p.group) load_queries(step + 1, buffer ^ 1);
    ptx::commit_copies();

    const T *const q_tile = q_tiles + buffer * other * stride, *const grad_tile =
                                                                   grad_tiles + buffer * other * stride;
    const float *const lse = lse_rows + buffer * other, *const delta = delta_rows + buffer * other;
    const std::int64_t h = head_of(step), query = query_of(step), row = first + own_row + at.lane / 4;
    Sums<n_tiles> s;
    multiply_rows<T, columns>(s, k, q_tile);
    const bool all = p.all_seen(query, query + other, first, first + Blocking::rows);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const Line line = p.line_of_key(at.b, h, row + half * 8);
#pragma unroll
      for (int n = 0; n < n_tiles; ++n)
#pragma unroll
        for (int i = 2 * half; i < 2 * half + 2; ++i) {
          const int column = n * 8 + at.lane % 4 * 2 + i % 2;
          const float score =
              all ? s[n][i] * p.scale : p.score(s[n][i], line, static_cast<int>(query) + column);
          s[n][i] = weight(score, lse[column]);
        }
    }
    if constexpr (wants_dv) multiply_through<T, columns>(dv_sum, s, grad_tile, at.lane);
    if constexpr (wants_dk) {
      Sums<n_tiles> dp;
      multiply_rows<T, columns>(dp, v, grad_tile);
#pragma unroll
      for (int n = 0; n < n_tiles; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i) s[n][i] *= (dp[n][i] - delta[n * 8 + at.lane % 4 * 2 + i % 2]) * p.scale;
      multiply_through<T, columns>(dk_sum, s, q_tile, at.lane);
    }
  }
  ptx::wait_for_copies<0>();
  if (at.idle) return;
  const float one[2] = {1, 1};
  if constexpr (wants_dk)
    store_rows<columns>(dk_sum, one, dk.to, dk.to.at(at.b, at.h), first + own_row, p.keys, p.depth,
                        dk.in_packs, dk.add, at.lane);
  if constexpr (wants_dv)
    store_rows<columns>(dv_sum, one, dv.to, dv.to.at(at.b, at.h), first + own_row, p.keys, p.width,
                        dv.in_packs, dv.add, at.lane);
}

template <class T>
void attend_backward(const Call& call, const Problem& p, const Array& grad, const Array& q, const Array& k,
                     const Array& v, const float* lse, const float* delta, const Array& dq, const Array& dk,
                     const Array& dv, Accumulate mask) {
  const BackwardArrays<T> arrays{
      Heads<const T>::of(grad),
      Heads<const T>::of(q),
      Heads<const T>::of(k),
      Heads<const T>::of(v),
      lse,
      delta,
      lies_in_packs(grad) && lies_in_packs(q) && lies_in_packs(k) && lies_in_packs(v)};
  const auto gradient = [&](const Array& x, std::size_t i) {
    return Gradient<T>{Heads<T>::of(x), lies_in_packs(x), accumulates(mask, i)};
  };
  const std::int64_t batch = q.shape()[0];
  const int columns = std::max(p.depth, p.width);
  const auto queries = [&]<class Blocking>() {
    const std::int64_t tiles = divide_up(p.queries, Blocking::rows);
    launch_groups(call, query_kernel<T, Blocking>, batch * p.heads * tiles, Blocking::groups, Blocking::block,
                  query_bytes<T, Blocking>(p), p, arrays, gradient(dq, 0), tiles);
  };
  const auto keys = [&]<class Blocking>() {
    const std::int64_t tiles = divide_up(p.keys, Blocking::rows);
    const auto pass = [&]<Pass which>() {
      launch_groups(call, key_kernel<T, Blocking, which>, batch * p.heads / p.group * tiles, Blocking::groups,
                    Blocking::block, key_bytes<T, Blocking>(p), p, arrays, gradient(dk, 1), gradient(dv, 2),
                    tiles);
    };
    if constexpr (Blocking::columns <= 128) {
      pass.template operator()<Pass::both>();
    } else {
      pass.template operator()<Pass::dk>();
      pass.template operator()<Pass::dv>();
    }
  };
  if constexpr (std::is_same_v<T, float>) {
    visit_blocking_f32<16>(columns, p.queries, queries);
    visit_blocking_f32<16>(columns, p.keys, keys);
  } else {
    visit_blocking<32, false, true, 16>(columns, p.queries, queries);
    visit_blocking<32, true, false, 16>(columns, p.keys, keys);
  }
}

}  // namespace ferrite::cuda::attention
