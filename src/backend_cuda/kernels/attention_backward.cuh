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

/// The same of a product that no mask has touched, where `scale` and `lse` are times log2(e).
__device__ __forceinline__ float plain_weight(float product, float scale, float lse) {
  return power_of_2(fmaf(product, scale, -lse));
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
  constexpr int columns = Blocking::columns, other = Blocking::other, at_once = Blocking::at_once,
                n_tiles = at_once / 8, stride = row_stride<T, columns>, threads = Blocking::threads;
  wait_for_earlier_kernels();
  const Place<Blocking> at(p.heads, tiles, total, p.causal);
  T* const q_tile = at.template memory<T>(query_bytes<T, Blocking>(p));
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
      lse[part][half] = query < p.queries ? in.lse[place] : 0.0f;
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
                              (dp[part][n][i] - delta[part][half]);
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
  const float scale[2] = {p.scale, p.scale};
#pragma unroll
  for (int part = 0; part < parts; ++part)
    store_rows<columns>(sum[part], scale, dq.to, dq.to.at(at.b, at.h), first + own_row + part * 16, p.queries,
                        p.depth, dq.in_packs, dq.add, at.lane);
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
  constexpr int columns = Blocking::columns, other = Blocking::other, at_once = Blocking::at_once,
                n_tiles = at_once / 8, stride = row_stride<T, columns>, threads = Blocking::threads;
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
      lse_rows[buffer * other + i] = exists ? in.lse[place] : 0.0f;
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
      const T *const q_tile = q_tiles + (buffer * other + begin) * stride, *const grad_tile =
                                                                               grad_tiles +
                                                                               (buffer * other + begin) *
                                                                                   stride;
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
            for (int i = 0; i < 4; ++i) s[part][n][i] *= dp[part][n][i] - delta[n][i % 2];
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
  const float scale[2] = {p.scale, p.scale}, one[2] = {1, 1};
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

/// As ForwardBlockings.
template <class T>
struct QueryBlockings {
  template <int columns, int warps>
  using Few = Blocking<columns, warps, 16 * warps, true>;
  using For32 = Blocking<32, 4, 128, true, 2, 32>;
  using For64 = Blocking<64, 4, 64, false, 2, 16>;
  using For128 = Blocking<128, 4, 32, true>;
  using For256 = Blocking<256, 4, 16, false>;
};
template <class T>
struct KeyBlockings {
  template <int columns, int warps>
  using Few = Blocking<columns, warps, 16 * warps, true>;
  using For32 = Blocking<32, 4, 128, true, 2, 16>;
  using For64 = Blocking<64, 4, 64, false, 2, 16>;
  using For128 = Blocking<128, 4, 32, false>;
  using For256 = Blocking<256, 4, 16, false>;
};
template <>
struct QueryBlockings<float> : BlockingsF32<16> {};
template <>
struct KeyBlockings<float> : BlockingsF32<16> {};

/// In attention_short.cuh.
template <class T>
void attend_short_backward(const Call& call, const Problem& p, std::int64_t batch,
                           const BackwardArrays<T>& arrays, const Gradient<T>& dq, const Gradient<T>& dk,
                           const Gradient<T>& dv);

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
  if constexpr (!std::is_same_v<T, float>)
    if (is_short(p))
      return attend_short_backward(call, p, batch, arrays, gradient(dq, 0), gradient(dk, 1), gradient(dv, 2));
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
  visit_blocking<QueryBlockings<T>>(columns, p.queries, queries);
  visit_blocking<KeyBlockings<T>>(columns, p.keys, keys);
}

}  // namespace ferrite::cuda::attention
