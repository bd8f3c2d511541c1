// The end of every captured step: its random streams move on.
#include "backend_cuda/runtime/capture.hpp"

namespace ferrite::cuda {

static __global__ void advance_kernel(std::uint64_t* offsets, const std::uint64_t* strides, unsigned count) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) offsets[i] += strides[i];
}

void advance_offsets(DeviceContext& context, std::uint64_t* offsets, const std::uint64_t* strides,
                     std::size_t count) {
  constexpr unsigned threads = 256;
  const auto n = static_cast<unsigned>(count);
  advance_kernel<<<(n + threads - 1) / threads, threads, 0, context.stream()>>>(offsets, strides, n);
  check_launch("capture");
}

}  // namespace ferrite::cuda
