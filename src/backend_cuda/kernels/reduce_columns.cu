// Sums over the rows of a dense matrix of 16-bit elements: gradients of biases.
#include "backend_cuda/kit/column_sums.cuh"
#include "backend_cuda/kit/reduction.hpp"

namespace ferrite::cuda {

namespace {

template <class T>
struct GivenElements {
  using Loaded = Pack<T, column_sums::lanes>;
  const T* data;

  __device__ Loaded load(std::int64_t at) const { return load_pack<column_sums::lanes>(data + at); }
  __device__ void take(const Loaded& in, std::int64_t, float (&sums)[column_sums::lanes]) const {
#pragma unroll
    for (int v = 0; v < column_sums::lanes; ++v) sums[v] += convert_to<float>(in.lane[v]);
  }
};

/// Smaller matrices are summed as fast by the kernel of all reductions, in one launch.
constexpr std::int64_t fewest_elements = 1 << 20;

}  // namespace

bool sum_matrix_columns(const Call& call, const Array& x, const Array& out, bool add) {
  if (!is_floating(x.dtype()) || size_of(x.dtype()) != 2 || x.shape().rank() != 2) return false;
  const std::int64_t rows = x.shape()[0], columns = x.shape()[1];
  if (columns % column_sums::lanes != 0 || rows * columns < fewest_elements || columns > rows) return false;
  if (!x.layout().is_contiguous() || !is_aligned(x.data(), 16) || !out.layout().is_contiguous()) return false;
  visit_floating(x.dtype(), [&]<class T>() {
    if constexpr (is_16_bit<T>) sum_columns(call, GivenElements<T>{x.data<T>()}, rows, columns, out, add);
  });
  return true;
}

}  // namespace ferrite::cuda
