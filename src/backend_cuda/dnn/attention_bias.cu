#include "backend_cuda/dnn/attention_bias.hpp"
#include "backend_cuda/kit/attention_problem.cuh"

namespace ferrite::cuda {
namespace {

using attention::Heads;

// The softmax of rows that hold infinities alone is not a number, so keys are hidden by finite ones: what
// the mask says by -inf lies below every finite mask, and a row of nothing else is known by its lse. Their
// multiples by log2(e) are still finite.
constexpr float lowest_mask = -1e30f, hidden_mask = -2e30f, hidden_lse = -1.5e30f;

constexpr std::int64_t most_bytes = std::int64_t{2} << 30;
constexpr int bias_threads = 256, bias_warp = 32;

__device__ float bias_of(bool keeps) { return keeps ? 0.0f : hidden_mask; }
__device__ float bias_of(__nv_bfloat16 mask) {
  const float value = __bfloat162float(mask);
  if (value >= lowest_mask || ::isnan(value)) return value;
  return value == attention::hidden ? hidden_mask : lowest_mask;
}

/// Element (b, h, t, s) of the mask to element ((b H + h) T + t) pitch + s.
template <class T>
__global__ void __launch_bounds__(bias_threads)
    bias_kernel(Heads<const T> mask, std::int64_t heads, std::int64_t queries, std::int64_t keys,
                std::int64_t pitch, std::int64_t count, __nv_bfloat16* bias) {
  const std::int64_t i = std::int64_t{blockIdx.x} * bias_threads + threadIdx.x;
  if (i >= count) return;
  const std::int64_t s = i % pitch, row = i / pitch, t = row % queries, head = row / queries;
  const T* const from = mask.at(head / heads, head % heads) + t * mask.row;
  bias[i] = __float2bfloat16(s < keys ? bias_of(from[s * mask.column]) : 0.0f);
}

/// 32 rows a warp: it looks at all their sums at once, and clears the few that are hidden together.
__global__ void __launch_bounds__(bias_threads)
    clear_kernel(std::int64_t heads, std::int64_t queries, std::int64_t rows, int width,
                 Heads<std::uint16_t> o, float* lse) {
  const int lane = threadIdx.x % bias_warp;
  const std::int64_t first = (std::int64_t{blockIdx.x} * bias_threads + threadIdx.x) / bias_warp * bias_warp;
  const std::int64_t mine = first + lane;
  const bool hides = mine < rows && lse[mine] < hidden_lse;
  if (hides) lse[mine] = attention::hidden;
  unsigned hidden_rows = __ballot_sync(0xffffffffu, hides);
  for (; hidden_rows != 0; hidden_rows &= hidden_rows - 1) {
    const std::int64_t row = first + __ffs(static_cast<int>(hidden_rows)) - 1, head = row / queries;
    std::uint16_t* const to = o.at(head / heads, head % heads) + row % queries * o.row;
    for (int c = lane; c < width; c += bias_warp) to[c * o.column] = 0;
  }
}

__global__ void __launch_bounds__(bias_threads)
    flip_kernel(std::int64_t rows, const float* __restrict__ lse, float* __restrict__ flipped) {
  const std::int64_t i = std::int64_t{blockIdx.x} * bias_threads + threadIdx.x;
  if (i < rows) flipped[i] = lse[i] == attention::hidden ? -attention::hidden : lse[i];
}

unsigned blocks_of(std::int64_t count) { return static_cast<unsigned>(divide_up(count, bias_threads)); }

}  // namespace

Array attention_bias(Cuda& cuda, const Call& call, const Array& q, const Array& k, const Array& mask) {
  const std::int64_t queries = q.shape()[2], keys = k.shape()[2];
  if (q.dtype() != DType::bf16 || (mask.dtype() != DType::bool_ && mask.dtype() != q.dtype())) return {};
  const Layout full = mask.layout().expand({q.shape()[0], q.shape()[1], queries, keys});
  const auto extent = [&](int axis) { return full.strides[axis] == 0 ? 1 : full.shape[axis]; };
  const std::int64_t batch = extent(0), heads = extent(1), pitch = divide_up(keys, 8) * 8;
  const std::int64_t count = batch * heads * queries * pitch;
  if (count * 2 > most_bytes) return {};
  const Array bias = cuda.allocate({{batch, heads, queries, pitch}, DType::bf16});
  const auto fill = [&]<class T>() {
    const Heads<const T> from{mask.data<T>(), full.strides[0], full.strides[1], full.strides[2],
                              full.strides[3]};
    bias_kernel<T><<<blocks_of(count), bias_threads, 0, call.stream()>>>(from, heads, queries, keys, pitch,
                                                                         count, bias.data<__nv_bfloat16>());
  };
  if (mask.dtype() == DType::bool_)
    fill.operator()<bool>();
  else
    fill.operator()<__nv_bfloat16>();
  return bias.with_layout(bias.layout().slice(3, 0, keys, 1));
}

void clear_hidden_rows(const Call& call, const Array& o, const Array& lse) {
  const std::int64_t rows = lse.shape().numel();
  clear_kernel<<<blocks_of(rows), bias_threads, 0, call.stream()>>>(
      o.shape()[1], o.shape()[2], rows, static_cast<int>(o.shape()[3]), Heads<std::uint16_t>::of(o),
      lse.data<float>());
}

Array lse_without_hidden_rows(Cuda& cuda, const Call& call, const Array& lse) {
  const std::int64_t rows = lse.shape().numel();
  const Array flipped = cuda.allocate(lse.meta());
  flip_kernel<<<blocks_of(rows), bias_threads, 0, call.stream()>>>(rows, lse.data<float>(),
                                                                   flipped.data<float>());
  return flipped;
}

}  // namespace ferrite::cuda
