// The gradients of attention on tensor cores. Weights are computed again from the scores and the saved
// log-sum-exp: one kernel goes through the keys for dq, another through the queries for dk and dv, so that
// every sum has one owner and one order. That costs 7 products where adding up dq by atomics costs 5.
#pragma once

#include "backend_cuda/kernels/attention_key_gradient.cuh"
#include "backend_cuda/kernels/attention_query_gradient.cuh"

namespace ferrite::cuda::attention {

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
                     const Array& v, const Array& o, const float* lse, const float* delta, const Array& dq,
                     const Array& dk, const Array& dv, Accumulate mask) {
  BackwardArrays<T> arrays{Heads<const T>::of(grad),
                           Heads<const T>::of(q),
                           Heads<const T>::of(k),
                           Heads<const T>::of(v),
                           Heads<const T>::of(o),
                           lse,
                           delta,
                           lies_in_packs(grad) && lies_in_packs(q) && lies_in_packs(k) && lies_in_packs(v)};
  const auto gradient = [&](const Array& x, std::size_t i) {
    return Gradient<T>{Heads<T>::of(x), lies_in_packs(x), accumulates(mask, i)};
  };
  const std::int64_t batch = q.shape()[0];
  if constexpr (!std::is_same_v<T, float>)
    if (is_short(q.dtype(), batch, p)) {
      arrays.in_packs = arrays.in_packs && lies_in_packs(o);
      return attend_short_backward(call, p, batch, arrays, gradient(dq, 0), gradient(dk, 1), gradient(dv, 2));
    }
  const int columns = std::max(p.depth, p.width);
  const auto queries = [&]<class Blocking>() {
    static_assert(fits_into_shared<T>(Blocking::groups * query_bytes<T, Blocking>(many), Blocking::columns,
                                      Blocking::rows, Direction::backward));
    const std::int64_t tiles = divide_up(p.queries, Blocking::rows);
    launch_groups(call, query_kernel<T, Blocking>, batch * p.heads * tiles, Blocking::groups, Blocking::block,
                  query_bytes<T, Blocking>(p.keys), p, arrays, gradient(dq, 0), tiles);
  };
  const auto keys = [&]<class Blocking>() {
    static_assert(fits_into_shared<T>(Blocking::groups * key_bytes<T, Blocking>(1, many), Blocking::columns,
                                      Blocking::rows, Direction::backward));
    const std::int64_t tiles = divide_up(p.keys, Blocking::rows);
    const auto pass = [&]<Pass which>() {
      launch_groups(call, key_kernel<T, Blocking, which>, batch * p.heads / p.group * tiles, Blocking::groups,
                    Blocking::block, key_bytes<T, Blocking>(p.group, p.queries), p, arrays, gradient(dk, 1),
                    gradient(dv, 2), tiles);
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
