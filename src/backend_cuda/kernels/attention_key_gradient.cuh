// The gradients of attention's keys and values.
#pragma once

#include "backend_cuda/kernels/attention_gradient.cuh"

namespace ferrite::cuda::attention {

/// Which sums a pass over the queries makes: both do not fit into the registers for the widest heads.
enum class Pass : std::uint8_t { dk, dv, both };

/// The queries of every head of a group pass by, in tiles of their own.
template <class Blocking>
constexpr int query_buffers(std::int64_t group, std::int64_t queries) {
  return group > 1 ? 2 : buffers_for(queries, Blocking::other);
}
template <class T, class Blocking>
constexpr int key_bytes(std::int64_t group, std::int64_t queries) {
  const int buffers = query_buffers<Blocking>(group, queries);
  return tile_bytes<T, Blocking::columns>(2 * Blocking::rows + 2 * Blocking::other * buffers) +
         2 * Blocking::other * buffers * static_cast<int>(sizeof(float));
}

/// dk and dv: keys and values stay; the queries of all heads that read them pass by.
template <class T, class Blocking, Pass pass>
__global__ void __launch_bounds__(Blocking::block)
    key_kernel(Problem p, BackwardArrays<T> in, Gradient<T> dk, Gradient<T> dv, std::int64_t tiles,
               std::int64_t total) {
  constexpr int columns = Blocking::columns, other = Blocking::other, at_once = Blocking::at_once,
                n_tiles = at_once / 8, stride = row_stride<T, columns>, threads = Blocking::threads;
  constexpr bool wants_dk = pass != Pass::dv, wants_dv = pass != Pass::dk;
  wait_for_earlier_kernels();
  const Place<Blocking> at(p.heads / p.group, tiles, total, false);
  T* const k_tile = at.template memory<T>(key_bytes<T, Blocking>(p.group, p.queries));
  T* const v_tile = k_tile + Blocking::rows * stride;
  const int buffers = query_buffers<Blocking>(p.group, p.queries);
  T* const q_tiles = v_tile + Blocking::rows * stride;
  T* const grad_tiles = q_tiles + buffers * other * stride;
  float* const lse_rows = reinterpret_cast<float*>(grad_tiles + buffers * other * stride);
  float* const delta_rows = lse_rows + buffers * other;
  const std::int64_t first = at.tile * Blocking::rows;
  const Range queries = p.queries_of(first, ::min(first + Blocking::rows, p.keys)),
              plain_queries = p.queries_of_all(first, first + Blocking::rows);
  const std::int64_t start = queries.first / other * other;
  const auto load_queries = [&](std::int64_t h, std::int64_t query, int buffer) {
    load_rows<other, columns, threads>(q_tiles + buffer * other * stride, in.q, in.q.at(at.b, h), query,
                                       p.queries, p.depth, in.in_packs, at.thread);
    load_rows<other, columns, threads>(grad_tiles + buffer * other * stride, in.grad, in.grad.at(at.b, h),
                                       query, p.queries, p.width, in.in_packs, at.thread);
    for (int i = at.thread; i < other; i += threads) {
      const bool exists = query + i < p.queries;
      const std::int64_t place = (at.b * p.heads + h) * p.queries + query + i;
      lse_rows[buffer * other + i] = exists ? finite_lse(in.lse[place]) : 0.0f;
      delta_rows[buffer * other + i] = exists ? in.delta[place] : 0.0f;
    }
  };
  load_rows<Blocking::rows, columns, threads>(k_tile, in.k, in.k.at(at.b, at.h), first, p.keys, p.depth,
                                              in.in_packs, at.thread);
  load_rows<Blocking::rows, columns, threads>(v_tile, in.v, in.v.at(at.b, at.h), first, p.keys, p.width,
                                              in.in_packs, at.thread);
  const std::int64_t last_head = start < queries.last ? (at.h + 1) * p.group : 0;
  std::int64_t h = at.h * p.group, query = start;
  if (h < last_head) load_queries(h, query, 0);
  ptx::commit_copies();

  constexpr int parts = Blocking::parts;
  const int own_row = at.warp * Blocking::own;
  LeftRows<T, columns, Blocking::keeps, parts> k(k_tile + own_row * stride, at.lane),
      v(v_tile + own_row * stride, at.lane);
  Sums<wants_dk ? columns / 8 : 2> dk_sum[parts] = {};
  Sums<wants_dv ? columns / 8 : 2> dv_sum[parts] = {};
  int buffer = 0;
  for (bool is_first = true; h < last_head; is_first = false, buffer ^= 1) {
    ptx::wait_for_copies<0>();
    __syncthreads();  // the tiles have arrived, and nobody reads the other buffer any more
    if (is_first) k.keep(), v.keep();
    const bool is_last_of_head = query + other >= queries.last;
    const std::int64_t next_head = h + is_last_of_head, next_query = is_last_of_head ? start : query + other;
    if (next_head < last_head) load_queries(next_head, next_query, buffer ^ 1);
    ptx::commit_copies();

    const bool plain = plain_queries.holds(query, query + other);
    const auto step = [&](auto is_plain, int begin) {
      const T* const q_tile = q_tiles + (buffer * other + begin) * stride;
      const T* const grad_tile = grad_tiles + (buffer * other + begin) * stride;
      float lse[n_tiles][2], delta[n_tiles][2];
#pragma unroll
      for (int n = 0; n < n_tiles; ++n) {
        const int column = buffer * other + begin + n * 8 + at.lane % 4 * 2;
        load_pair(lse[n], lse_rows + column);
        load_pair(delta[n], delta_rows + column);
      }
      Sums<n_tiles> s[parts];
      multiply_rows<T, columns>(s, k, q_tile);
#pragma unroll
      for (int part = 0; part < parts; ++part)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const Line line =
              is_plain ? Line{}
                       : p.line_of_key(at.b, h, first + own_row + part * 16 + at.lane / 4 + half * 8);
#pragma unroll
          for (int n = 0; n < n_tiles; ++n)
#pragma unroll
            for (int e = 0; e < 2; ++e) {
              const int column = static_cast<int>(query) + begin + n * 8 + at.lane % 4 * 2 + e;
              float& score = s[part][n][2 * half + e];
              score = is_plain ? plain_weight(score, p.scale * log2_of_e, lse[n][e] * log2_of_e)
                               : weight(p.score(score, line, column), lse[n][e]);
            }
        }
      if constexpr (wants_dv) multiply_through<T, columns>(dv_sum, s, grad_tile, at.lane);
      if constexpr (wants_dk) {
        Sums<n_tiles> dp[parts];
        multiply_rows<T, columns>(dp, v, grad_tile);
#pragma unroll
        for (int part = 0; part < parts; ++part)
#pragma unroll
          for (int n = 0; n < n_tiles; ++n)
#pragma unroll
            for (int i = 0; i < 4; ++i)
              s[part][n][i] *= (dp[part][n][i] - delta[n][i % 2]) * early_scale<T>(p);
        multiply_through<T, columns>(dk_sum, s, q_tile, at.lane);
      }
    };
    if (plain) {
#pragma unroll
      for (int begin = 0; begin < other; begin += at_once) step(std::true_type{}, begin);
    } else {
#pragma unroll 1  // it is much code
      for (int begin = 0; begin < other && query + begin < queries.last; begin += at_once)
        step(std::false_type{}, begin);
    }
    h = next_head, query = next_query;
  }
  ptx::wait_for_copies<0>();
  if (at.idle) return;
  const float scale[2] = {late_scale<T>(p), late_scale<T>(p)}, one[2] = {1, 1};
#pragma unroll
  for (int part = 0; part < parts; ++part) {
    const std::int64_t row = first + own_row + part * 16;
    if constexpr (wants_dk)
      store_rows<columns>(dk_sum[part], scale, dk.to, dk.to.at(at.b, at.h), row, p.keys, p.depth, dk.in_packs,
                          dk.add, at.lane);
    if constexpr (wants_dv)
      store_rows<columns>(dv_sum[part], one, dv.to, dv.to.at(at.b, at.h), row, p.keys, p.width, dv.in_packs,
                          dv.add, at.lane);
  }
}

}  // namespace ferrite::cuda::attention
