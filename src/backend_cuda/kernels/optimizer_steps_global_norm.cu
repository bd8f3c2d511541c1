// The norm of many tensors together: a partial sum per piece, added up in order by one block.
#include "backend_cuda/kit/multi_tensor.cuh"
#include "ferrite/ops/optimizer_steps.hpp"

namespace ferrite {
namespace cuda {
namespace {

/// The sum over the block, in a fixed tree; valid in thread 0.
__device__ double block_sum(double x) {
  __shared__ double sums[piece_threads];
  sums[threadIdx.x] = x;
  for (int half = piece_threads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (static_cast<int>(threadIdx.x) < half) sums[threadIdx.x] += sums[threadIdx.x + half];
  }
  return sums[0];
}

/// Squares are summed in double: those of large f32 gradients would overflow, and the GPU has the time.
template <class T, class Table>
__global__ void __launch_bounds__(piece_threads)
    square_kernel(const __grid_constant__ Table table, double* partial) {
  constexpr int lanes = 16 / sizeof(T);
  const Piece piece = own_piece(table);
  const T* const x = static_cast<const T*>(table.data[0][piece.tensor]);
  const std::int64_t size = piece.end - piece.begin;
  const std::int64_t whole = is_aligned_to(x, lanes) ? piece.begin + size / lanes * lanes : piece.begin;
  double sum = 0;
  for (std::int64_t i = piece.begin + threadIdx.x * lanes; i < whole; i += piece_threads * lanes) {
    const auto pack = *reinterpret_cast<const Pack<T, lanes>*>(x + i);
    for (int j = 0; j < lanes; ++j) {
      const double value = convert_to<double>(pack.lane[j]);
      sum += value * value;
    }
  }
  for (std::int64_t i = whole + threadIdx.x; i < piece.end; i += piece_threads) {
    const double value = convert_to<double>(x[i]);
    sum += value * value;
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

template <class T>
__global__ void __launch_bounds__(piece_threads)
    norm_kernel(const double* partial, std::int64_t count, T* out) {
  double sum = 0;
  for (std::int64_t i = threadIdx.x; i < count; i += piece_threads) sum += partial[i];
  sum = block_sum(sum);
  if (threadIdx.x == 0) *out = convert_to<T>(::sqrt(sum));
}

}  // namespace
}  // namespace cuda

void run(Cuda& cuda, const op::GlobalNorm& op, Ins in, Outs out) {
  using namespace cuda;
  const Call call(cuda, op_name(op));
  std::int64_t pieces = 0;
  std::vector<Array> rows[8][1];  // by dtype
  for (std::size_t i = 0; i < in.size(); ++i) {
    rows[static_cast<int>(in[i].dtype())][0].push_back(dense(cuda, in[i]));
    pieces += divide_up(in[i].shape().numel(), piece_size);
  }
  const Scratch<double> partial(call, pieces + 1);
  std::int64_t done = 0;
  for (auto& list : rows) {
    if (list[0].empty()) continue;
    visit_floating(list[0][0].dtype(), [&]<class T>() {
      for_tables(list, [&]<class Table>(const Table& table, std::uint32_t blocks) {
        square_kernel<T><<<blocks, piece_threads, 0, call.stream()>>>(table, partial.data() + done);
        done += blocks;
      });
    });
  }
  if (out[0].dtype() == DType::f64)
    norm_kernel<<<1, piece_threads, 0, call.stream()>>>(partial.data(), pieces, out[0].data<double>());
  else
    norm_kernel<<<1, piece_threads, 0, call.stream()>>>(partial.data(), pieces, out[0].data<float>());
  call.finish();
}

}  // namespace ferrite
