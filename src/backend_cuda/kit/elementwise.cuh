// The elementwise kernels: dense, rows and strided (see elementwise.hpp), for any set of functions.
//
// A set of functions is a type with
//
//   evaluate<fn>(double parameter, In... x)    one element
//   Result<In...>                              what it gives; truth values go to bool outputs as they are
//   takes_storage                              optional: operands may have dtypes for storage
//
// made into Only<Set, fn> or OneOf<Set, first, last>, which choose the function at compile time or once per
// thread, outside the loops: a uniform branch does not slow down memory-bound kernels.
#pragma once

#include <cstring>
#include <utility>

#include "backend_cuda/kit/elementwise.hpp"
#include "ferrite/cuda/device.cuh"
#include "ferrite/ops/standard_math.hpp"

namespace ferrite::cuda {

/// One function, known to the compiler.
template <class Set, auto fn>
struct Only : Set {
  template <class Body>
  __device__ __forceinline__ static void choose(std::uint8_t, Body&& body) {
    body.template operator()<fn>();
  }
};

/// The functions first to last, chosen at run time.
template <class Set, auto first, auto last>
struct OneOf : Set {
  using Fn = decltype(first);
  template <class Body>
  __device__ __forceinline__ static void choose(std::uint8_t fn, Body&& body) {
    choose(fn, body, std::make_index_sequence<static_cast<int>(last) - static_cast<int>(first) + 1>{});
  }

 private:
  template <class Body, std::size_t... i>
  __device__ __forceinline__ static void choose(std::uint8_t fn, Body& body, std::index_sequence<i...>) {
    static_cast<void>(((fn == static_cast<std::uint8_t>(first) + i
                            ? (body.template operator()<static_cast<Fn>(static_cast<int>(first) + i)>(), true)
                            : false) ||
                       ...));
  }
};

/// The type in which elements are computed: float for the 16-bit types, std::int64_t for integers and bool.
template <class T>
using ComputeType = std::conditional_t<std::is_integral_v<T>, std::int64_t, Compute<T>>;

/// Bools are read as bytes: memory from outside may hold values other than 0 and 1.
template <class T>
using Stored = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;
template <class T>
__device__ __forceinline__ T value_of(Stored<T> x) {
  if constexpr (std::is_same_v<T, bool>)
    return x != 0;
  else
    return x;
}

template <class T>
__device__ __forceinline__ T value_in(const ElementwiseArgs& args) {
  T value;
  memcpy(&value, &args.value, sizeof(T));
  return value;
}

/// The places of this thread's items in each operand; 0 is the output.
template <int operands, int items>
struct Places {
  std::int32_t at[operands][items];
  bool valid[items];
};

/// Several packs of one operand, all loaded before any is used, so that many bytes are in flight at once.
template <class T, int lanes, int items>
struct Batch {
  Pack<Stored<T>, lanes> item[items];
};

template <class T, int lanes, int operands, int items>
__device__ __forceinline__ Batch<T, lanes, items> load(const ElementwiseArgs& args, int k,
                                                       const Places<operands, items>& places) {
  Batch<T, lanes, items> x;
  const auto* data = static_cast<const Pack<Stored<T>, lanes>*>(args.in[k]);
  const bool has_packs = data && !args.single[k];
#pragma unroll
  for (int u = 0; u < items; ++u)
    if (has_packs && places.valid[u]) x.item[u] = data[places.at[k + 1][u]];
  return x;
}

/// Fills packs with the one element they stand for. Separate from `load`, so that it delays no load.
template <class T, int lanes, int operands, int items>
__device__ __forceinline__ void spread(Batch<T, lanes, items>& x, const ElementwiseArgs& args, int k,
                                       const Places<operands, items>& places) {
  const auto* data = static_cast<const Stored<T>*>(args.in[k]);
  if (data && !args.single[k]) return;
#pragma unroll
  for (int u = 0; u < items; ++u) {
    const Stored<T> element = data ? data[places.at[k + 1][u]] : value_in<Stored<T>>(args);
#pragma unroll
    for (int j = 0; j < lanes; ++j) x.item[u].lane[j] = element;
  }
}

/// Computes the items and writes them, or adds them, rounded once.
template <class Functions, class Out, int lanes, int operands, int items, std::size_t... k, class... In>
__device__ __forceinline__ void combine(const ElementwiseArgs& args, const Places<operands, items>& places,
                                        std::index_sequence<k...>, Batch<In, lanes, items>... x) {
  (spread(x, args, k, places), ...);
  constexpr bool gives_bool = std::is_same_v<Out, bool>;
  using Result = std::conditional_t<gives_bool, bool, typename Functions::template Result<In...>>;
  Result y[items][lanes];
  Functions::choose(
      args.fn, [&]<auto fn>() {
#pragma unroll
        for (int u = 0; u < items; ++u) {
          if (!places.valid[u]) continue;
#pragma unroll
          for (int j = 0; j < lanes; ++j)
            y[u][j] = convert_to<Result>(
                Functions::template evaluate<fn>(args.parameter, value_of<In>(x.item[u].lane[j])...));
        }
      });
  auto* out = static_cast<Pack<Stored<Out>, lanes>*>(args.out);
  const auto& at = places.at[0];
  if constexpr (!gives_bool) {
    if (args.add) {
      using Wide = ComputeType<Out>;
      Pack<Out, lanes> old[items];
#pragma unroll
      for (int u = 0; u < items; ++u)
        if (places.valid[u]) old[u] = out[at[u]];
#pragma unroll
      for (int u = 0; u < items; ++u) {
#pragma unroll
        for (int j = 0; j < lanes; ++j)
          old[u].lane[j] = convert_to<Out>(
              formulas::Standard<Wide>{}.add(convert_to<Wide>(y[u][j]), convert_to<Wide>(old[u].lane[j])));
        if (places.valid[u]) out[at[u]] = old[u];
      }
      return;
    }
  }
#pragma unroll
  for (int u = 0; u < items; ++u) {
    Pack<Stored<Out>, lanes> pack;
#pragma unroll
    for (int j = 0; j < lanes; ++j) pack.lane[j] = convert_to<Out>(y[u][j]);
    if (places.valid[u]) out[at[u]] = pack;
  }
}

template <class Functions, class Out, class... In, int lanes, int operands, int items, std::size_t... k>
__device__ __forceinline__ void run_packs(const ElementwiseArgs& args, const Places<operands, items>& places,
                                          std::integral_constant<int, lanes>,
                                          std::index_sequence<k...> indices) {
  combine<Functions, Out>(args, places, indices, load<In, lanes>(args, k, places)...);
}

template <class Out, class... In>
constexpr int lanes_of() {
  std::size_t widest = sizeof(Out);
  ((widest = sizeof(In) > widest ? sizeof(In) : widest), ...);
  return pack_lanes_for(widest);
}

template <class Functions, class Out, class... In>
__global__ void __launch_bounds__(block_threads, 4)
    dense_kernel(const __grid_constant__ ElementwiseArgs args) {
  wait_for_earlier_kernels();
  constexpr int lanes = lanes_of<Out, In...>(), operands = 1 + sizeof...(In);
  constexpr std::index_sequence_for<In...> indices;
  const std::uint32_t packs = args.count / lanes, index = blockIdx.x * block_threads + threadIdx.x;
  Places<operands, 1> places;
  places.valid[0] = index < packs;
#pragma unroll
  for (int k = 0; k < operands; ++k)
    places.at[k][0] = k > 0 && args.single[k - 1] ? 0 : static_cast<std::int32_t>(index);
  run_packs<Functions, Out, In...>(args, places, std::integral_constant<int, lanes>{}, indices);
  // The rest of the last pack, one element per thread.
  if (blockIdx.x == gridDim.x - 1 && threadIdx.x < args.count % lanes) {
    Places<operands, 1> rest;
    rest.valid[0] = true;
#pragma unroll
    for (int k = 0; k < operands; ++k)
      rest.at[k][0] =
          k > 0 && args.single[k - 1] ? 0 : static_cast<std::int32_t>(packs * lanes + threadIdx.x);
    run_packs<Functions, Out, In...>(args, rest, std::integral_constant<int, 1>{}, indices);
  }
}

__device__ __forceinline__ std::uint32_t divide(std::uint32_t n, const Divisor& by) {
  return (__umulhi(n, by.multiplier) + n) >> by.shift;
}

/// By division through the extents. Items beyond the end get the place of the last.
template <int operands, int items>
__device__ __forceinline__ Places<operands, items> places_in(const GridArgs& args) {
  Places<operands, items> places;
  std::uint32_t rest[items];
#pragma unroll
  for (int u = 0; u < items; ++u) {
    const std::uint32_t index = (blockIdx.x * items + u) * block_threads + threadIdx.x;
    places.valid[u] = index < args.common.count;
    rest[u] = places.valid[u] ? index : args.common.count - 1;
#pragma unroll
    for (int k = 0; k < operands; ++k) places.at[k][u] = 0;
  }
  for (int axis = args.rank - 1; axis >= 0; --axis) {
    const Divisor extent = args.extent[axis];
#pragma unroll
    for (int u = 0; u < items; ++u) {
      const std::uint32_t next = axis > 0 ? divide(rest[u], extent) : 0;
      const auto steps = static_cast<std::int32_t>(rest[u] - next * extent.divisor);
#pragma unroll
      for (int k = 0; k < operands; ++k) places.at[k][u] += steps * args.stride[k][axis];
      rest[u] = next;
    }
  }
  return places;
}

template <class Functions, class Out, class... In>
__global__ void __launch_bounds__(block_threads, 4) row_kernel(const __grid_constant__ GridArgs args) {
  wait_for_earlier_kernels();
  constexpr int lanes = lanes_of<Out, In...>(), operands = 1 + sizeof...(In);
  const auto places = places_in<operands, packs_per_thread(lanes)>(args);
  run_packs<Functions, Out, In...>(args.common, places, std::integral_constant<int, lanes>{},
                                   std::index_sequence_for<In...>{});
}

template <class Functions>
inline constexpr bool moves_storage = requires {
  Functions::takes_storage;
};

/// Dtypes for storage cost kernels that do not move them nothing.
template <bool storage, class F>
__device__ __forceinline__ void with_type(DType dtype, F&& f) {
  if constexpr (storage)
    visit_any_device_type(dtype, f);
  else
    visit_device_type(dtype, f);
}

/// Elements of any dtype as C.
template <class C, bool storage>
struct Elements {
  C x[strided_items];

  Elements() = default;
  __device__ __forceinline__ Elements(const void* data, DType dtype,
                                      const std::int32_t (&at)[strided_items]) {
    with_type<storage>(dtype, [&]<class T>() {
#pragma unroll
      for (int u = 0; u < strided_items; ++u)
        x[u] = convert_to<C>(value_of<T>(static_cast<const Stored<T>*>(data)[at[u]]));
    });
  }
  /// Input k.
  __device__ __forceinline__ Elements(const GridArgs& args, int k, const std::int32_t (&at)[strided_items]) {
    if (args.common.in[k]) {
      *this = Elements(args.common.in[k], args.dtype[k + 1], at);
    } else {
#pragma unroll
      for (int u = 0; u < strided_items; ++u) x[u] = value_in<C>(args.common);
    }
  }
};

template <class Functions, class C, class... X>
__device__ __forceinline__ auto evaluate_strided(const ElementwiseArgs& args, const X&... in) {
  Elements<C, moves_storage<Functions>> y;
  Functions::choose(
      args.fn, [&]<auto fn>() {
#pragma unroll
        for (int u = 0; u < strided_items; ++u)
          y.x[u] = convert_to<C>(Functions::template evaluate<fn>(args.parameter, in.x[u]...));
      });
  return y;
}

template <class Functions, class C, std::size_t... k>
__device__ __forceinline__ void run_strided(const GridArgs& args, std::index_sequence<k...>) {
  const auto places = places_in<1 + sizeof...(k), strided_items>(args);
  constexpr bool storage = moves_storage<Functions>;
  auto y = evaluate_strided<Functions, C>(args.common, Elements<C, storage>(args, k, places.at[k + 1])...);
  if (args.common.add) {
    const Elements<C, storage> old(args.common.out, args.dtype[0], places.at[0]);
#pragma unroll
    for (int u = 0; u < strided_items; ++u) y.x[u] = formulas::Standard<C>{}.add(y.x[u], old.x[u]);
  }
  with_type<storage>(args.dtype[0], [&]<class T>() {
#pragma unroll
    for (int u = 0; u < strided_items; ++u)
      if (places.valid[u]) static_cast<Stored<T>*>(args.common.out)[places.at[0][u]] = convert_to<T>(y.x[u]);
  });
}

/// Operands of any dtype, computed in C.
template <class Functions, class C, int inputs>
__global__ void __launch_bounds__(block_threads, 4) strided_kernel(const __grid_constant__ GridArgs args) {
  wait_for_earlier_kernels();
  run_strided<Functions, C>(args, std::make_index_sequence<inputs>{});
}

}  // namespace ferrite::cuda
