// linear_cross_entropy: three products and one kernel over the logits for some rows at a time.
#include "ferrite/ops/linear_cross_entropy.hpp"

#include "backend_cuda/kit/cross_entropy.hpp"
#include "ferrite/tensor/tensor_data.hpp"
#include "ops/linear_cross_entropy_chunks.hpp"

namespace ferrite {

using namespace cuda;

void run(Cuda& cuda, const op::LinearCrossEntropy& op, Ins in, Outs out) {
  const Call call(cuda, op_name(op));
  const DType dtype = promote(in[0].dtype(), in[1].dtype()), wide = out[0].dtype();
  const auto converted = [&](const Array& a) { return a.dtype() == dtype ? a : dense(cuda, a, dtype); };
  const std::int64_t rows = in[0].shape()[0], columns = in[1].shape()[0];
  const Array& targets = in[2];

  // Divided by the number of rows, gradients of f16 logits would underflow; their sums in f32 do not.
  const bool divides_sums = dtype == DType::f16 && op.mean;
  CountedTargets counted;
  if (op.mean) counted = count_targets(call, cuda, targets, op.ignore_index, wide);
  const Array scale = divides_sums || !op.mean ? full(cuda, {}, 1, wide).primitive() : counted.reciprocal;

  op::ChunkedLoss loss{converted(in[0]), converted(in[1]), cuda.allocate({{rows}, wide})};
  if (op.with_gradient) {
    const bool is_narrower = size_of(out[1].dtype()) < size_of(dtype);
    loss.dx = is_narrower ? cuda.allocate({out[1].shape(), dtype}) : out[1];
    loss.dweight = out[2];
  }
  constexpr std::int64_t most_bytes = std::int64_t{4} << 30;
  const std::int64_t row_bytes = columns * static_cast<std::int64_t>(size_of(dtype));
  const auto loss_rows = [&](std::int64_t first, const Array& logits, const Array& losses) {
    const Layout some = targets.layout().slice(0, first, losses.shape()[0], 1);
    LossRows part{.logits = logits, .targets = targets.with_layout(some), .loss = losses, .first = first};
    if (op.with_gradient) {
      part.scale = scale;
      part.gradient = logits;
      run_rows(call, cuda, op.gradient_of_rows(), part);
    } else {
      part.lse = cuda.allocate(losses.meta());
      run_rows(call, cuda, op.loss_of_rows(), part);
    }
  };
  op::run_chunks(cuda, loss, op.rows_at_once(rows, row_bytes, most_bytes), loss_rows);
  op::add_up(cuda, loss.losses, counted.count, out[0]);
  if (op.with_gradient && divides_sums) {
    const Tensor<Cuda> factor =
        reciprocal(maximum(Tensor<Cuda>(cuda, counted.count), 1));  // without any row the sums are 0, not NaN
    for (const Array* sums : {&loss.dx, &loss.dweight})
      op::run_one(cuda, op::Binary{op::BinaryFn::mul}, {sums, &factor.primitive()}, *sums);
  }
  if (op.with_gradient && loss.dx.buffer() != out[1].buffer()) copy_into(cuda, loss.dx, out[1]);
  call.finish();
}

}  // namespace ferrite
