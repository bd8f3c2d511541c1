// The gradients of attention: by cuDNN where it takes the case (and, of short ones, is faster), else by
// ferrite's own kernels (attention_backward.cuh).
#include "backend_cuda/dnn/attention_bias.hpp"
#include "backend_cuda/dnn/attention_plans.hpp"
#include "backend_cuda/kit/attention.hpp"
#include "ferrite/ops/attention.hpp"

namespace ferrite {

using namespace cuda;
using namespace cuda::attention;

namespace {

constexpr int threads = 256;

/// delta = sum(grad * o) of each query, by 8 lanes each.
template <class T>
__global__ void __launch_bounds__(threads)
    delta_kernel(std::int64_t heads, std::int64_t queries, std::int64_t rows, int width, Heads<const T> grad,
                 Heads<const T> o, float* delta) {
  constexpr int lanes = 8;
  const int lane = threadIdx.x % lanes;
  const std::int64_t row = std::int64_t{blockIdx.x} * (threads / lanes) + threadIdx.x / lanes;
  float sum = 0;
  if (row < rows) {
    const std::int64_t head = row / queries, query = row % queries, b = head / heads, h = head % heads;
    const T *const left = grad.at(b, h) + query * grad.row, *const right = o.at(b, h) + query * o.row;
    for (int c = lane; c < width; c += lanes)
      sum += convert_to<float>(left[c * grad.column]) * convert_to<float>(right[c * o.column]);
  }
#pragma unroll
  for (int step = lanes / 2; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
  if (row < rows && lane == 0) delta[row] = sum;
}

}  // namespace

bool accepts(const Cuda& cuda, const op::AttentionBackward&, MetaSpan in) {
  for (std::size_t i = 0; i < 5; ++i)
    if (in[i].dtype != in[1].dtype) return false;
  return in[5].dtype == DType::f32 &&
         takes(cuda, in[1], in[2], in[3], in.size() > 6 ? &in[6] : nullptr, Direction::backward);
}

void run(Cuda& cuda, const op::AttentionBackward& op, Ins in, Outs out, Accumulate mask) {
  const Array &grad = in[0], &q = in[1], &k = in[2], &v = in[3], &o = in[4];
  const std::int64_t batch = q.shape()[0];
  const Call call(cuda, op_name(op));
  const bool has_mask = in.size() > 6;
  const Problem p = problem_of(q, k, v, has_mask ? &in[6] : nullptr, op.causal, op.window, op.scale);
  const std::int64_t rows = batch * p.heads * p.queries;
  const Array lse = dense(cuda, in[5]);
  const auto own = [&](const Array& dq, const Array& dk, const Array& dv, Accumulate adds) {
    const bool needs_delta = !is_short(q.dtype(), batch, p);
    const Scratch<float> delta(call, needs_delta ? rows : 0);
    visit_type(q.dtype(), [&]<class T>() {
      if (needs_delta && rows > 0)
        delta_kernel<T><<<static_cast<unsigned>(divide_up(rows, threads / 8)), threads, 0, call.stream()>>>(
            p.heads, p.queries, rows, p.width, Heads<const T>::of(grad), Heads<const T>::of(o), delta.data());
      attend_backward<T>(call, p, grad, q, k, v, o, lse.data<float>(), delta.data(), dq, dk, dv, adds);
    });
  };
  // cuDNN does not add to its results.
  if (op.window == 0 && rows > 0 && p.keys > 0) {
    AttentionArrays arrays{q, k, v, o, lse, grad, out[0], out[1], out[2], {}};
    bool suits =
        has_mask ? suits_dnn_with_mask(arrays, op.causal, op.scale) : suits_dnn(arrays, op.causal, op.scale);
    if (suits && has_mask) {
      arrays.bias = attention_bias(cuda, call, q, k, in[6]);
      suits = arrays.bias.defined();
      if (suits) arrays.lse = lse_without_hidden_rows(cuda, call, lse);
    }
    if (suits) {
      Array* const results[] = {&arrays.dq, &arrays.dk, &arrays.dv};
      for (std::size_t i = 0; i < 3; ++i)
        if (accumulates(mask, i)) *results[i] = cuda.allocate(out[i].meta());
      const auto same = [&] { own(arrays.dq, arrays.dk, arrays.dv, Accumulate::none); };
      if (attend_by_dnn(cuda, call, arrays, op.causal, op.scale, same)) {
        for (std::size_t i = 0; i < 3; ++i)
          if (accumulates(mask, i)) copy_into(cuda, *results[i], out[i], true);
        call.finish();
        return;
      }
    }
  }
  own(out[0], out[1], out[2], mask);
  call.finish();
}

}  // namespace ferrite
