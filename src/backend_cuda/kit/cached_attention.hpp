// What the kernels of cached_attention take; they are instantiated in kernels/cached_attention_*.cu.
#pragma once

#include "ferrite/cuda/call.hpp"
#include "ferrite/ops/cached_attention.hpp"

namespace ferrite::cuda::cached_attention {

/// [N, heads, rows, columns]: columns are dense, everything begins at multiples of 16 bytes.
template <class T>
struct Heads {
  T* data;
  std::int64_t batch, head, row;

  explicit Heads(const Array& x)
      : data(x.data<std::remove_const_t<T>>()),
        batch(x.layout().strides[0]),
        head(x.layout().strides[1]),
        row(x.layout().strides[2]) {}
#ifdef __CUDACC__
  __device__ __forceinline__ T* at(std::int64_t n, std::int64_t h) const {
    return data + n * batch + h * head;
  }
#endif
};

/// Q and C: the device types of the queries and of the cache.
template <class Q, class C>
struct Args {
  Heads<const Q> q, k, v;
  Heads<C> keys, values;
  Heads<Q> o;
  const std::int32_t* read;
  std::int64_t texts, groups;
  int queries, rows;  // of a text; of all heads of a group together
  int depth, capacity;
  int window;  // positions that a query sees at most
  float scale;
};

/// Q and C are equal, or Q is float.
template <class Q, class C>
void launch(const Call& call, const Args<Q, C>& args);

}  // namespace ferrite::cuda::cached_attention
