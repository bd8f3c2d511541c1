// The gradient of attention's queries.
#pragma once

#include "backend_cuda/kernels/attention_gradient.cuh"

namespace ferrite::cuda::attention {

/// Shared memory of one group.
template <class T, class Blocking>
constexpr int query_bytes(std::int64_t keys) {
  return tile_bytes<T, Blocking::columns>(2 * Blocking::rows +
                                          2 * Blocking::other * buffers_for(keys, Blocking::other));
}

/// dq: queries stay, keys and values pass by.
template <class T, class Blocking>
__global__ void __launch_bounds__(Blocking::block)
    query_kernel(Problem p, BackwardArrays<T> in, Gradient<T> dq, std::int64_t tiles, std::int64_t total) {
  constexpr int columns = Blocking::columns, other = Blocking::other, at_once = Blocking::at_once,
                n_tiles = at_once / 8, stride = row_stride<T, columns>, threads = Blocking::threads;
  wait_for_earlier_kernels();
  const Place<Blocking> at(p.heads, tiles, total, p.causal);
  T* const q_tile = at.template memory<T>(query_bytes<T, Blocking>(p.keys));
  T* const grad_tile = q_tile + Blocking::rows * stride;
  T* const k_tiles = grad_tile + Blocking::rows * stride;
  T* const v_tiles = k_tiles + buffers_for(p.keys, other) * other * stride;
  const std::int64_t first = at.tile * Blocking::rows, key_head = at.h / p.group;
  const Range keys = p.keys_of(first, ::min(first + Blocking::rows, p.queries)),
              plain_keys = p.keys_of_all(first, first + Blocking::rows);
  const RowLoader<other, columns, threads, T> k(in.k, in.k.at(at.b, key_head), p.keys, p.depth, in.in_packs,
                                                at.thread),
      v(in.v, in.v.at(at.b, key_head), p.keys, p.width, in.in_packs, at.thread);
  const auto load_keys = [&](std::int64_t key, int buffer) {
    k.load(k_tiles + buffer * other * stride, key);
    v.load(v_tiles + buffer * other * stride, key);
  };
  load_rows<Blocking::rows, columns, threads>(q_tile, in.q, in.q.at(at.b, at.h), first, p.queries, p.depth,
                                              in.in_packs, at.thread);
  load_rows<Blocking::rows, columns, threads>(grad_tile, in.grad, in.grad.at(at.b, at.h), first, p.queries,
                                              p.width, in.in_packs, at.thread);
  const std::int64_t start = keys.first / other * other;
  if (start < keys.last) load_keys(start, 0);
  ptx::commit_copies();

  constexpr int parts = Blocking::parts;
  const int own_row = at.warp * Blocking::own;
  LeftRows<T, columns, Blocking::keeps, parts> q(q_tile + own_row * stride, at.lane),
      grad(grad_tile + own_row * stride, at.lane);
  float lse[parts][2], delta[parts][2];
  const std::int64_t row = first + own_row + at.lane / 4;
#pragma unroll
  for (int part = 0; part < parts; ++part)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const std::int64_t query = row + part * 16 + half * 8,
                         place = (at.b * p.heads + at.h) * p.queries + query;
      lse[part][half] = query < p.queries ? finite_lse(in.lse[place]) : 0.0f;
      delta[part][half] = query < p.queries ? in.delta[place] : 0.0f;
    }
  Sums<columns / 8> sum[parts] = {};
  int buffer = 0;
  for (std::int64_t key = start; key < keys.last; key += other, buffer ^= 1) {
    ptx::wait_for_copies<0>();
    __syncthreads();  // the tiles have arrived, and nobody reads the other buffer any more
    if (key == start) q.keep(), grad.keep();
    if (key + other < keys.last) load_keys(key + other, buffer ^ 1);
    ptx::commit_copies();

    const bool plain = plain_keys.holds(key, key + other);
    const T* const k_tile = k_tiles + buffer * other * stride;
    const T* const v_tile = v_tiles + buffer * other * stride;
    const auto step = [&](auto is_plain, int begin) {
      Sums<n_tiles> s[parts], dp[parts];
      multiply_rows<T, columns>(s, q, k_tile + begin * stride);
      multiply_rows<T, columns>(dp, grad, v_tile + begin * stride);
#pragma unroll
      for (int part = 0; part < parts; ++part)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const float lse_here = lse[part][half];
          const Line line = is_plain ? Line{} : p.line_of_query(at.b, at.h, row + part * 16 + half * 8);
#pragma unroll
          for (int n = 0; n < n_tiles; ++n)
#pragma unroll
            for (int i = 2 * half; i < 2 * half + 2; ++i) {
              const int column = static_cast<int>(key) + begin + n * 8 + at.lane % 4 * 2 + i % 2;
              const float product = s[part][n][i];
              s[part][n][i] = (is_plain ? plain_weight(product, p.scale * log2_of_e, lse_here * log2_of_e)
                                        : weight(p.score(product, line, column), lse_here)) *
                              (dp[part][n][i] - delta[part][half]) * early_scale<T>(p);
            }
        }
      multiply_through<T, columns>(sum, s, k_tile + begin * stride, at.lane);
    };
    if (plain) {
#pragma unroll
      for (int begin = 0; begin < other; begin += at_once) step(std::true_type{}, begin);
    } else {
#pragma unroll 1  // it is much code
      for (int begin = 0; begin < other && key + begin < keys.last; begin += at_once)
        step(std::false_type{}, begin);
    }
  }
  ptx::wait_for_copies<0>();
  if (at.idle) return;
  const float scale[2] = {late_scale<T>(p), late_scale<T>(p)};
#pragma unroll
  for (int part = 0; part < parts; ++part)
    store_rows<columns>(sum[part], scale, dq.to, dq.to.at(at.b, at.h), first + own_row + part * 16, p.queries,
                        p.depth, dq.in_packs, dq.add, at.lane);
}

}  // namespace ferrite::cuda::attention
