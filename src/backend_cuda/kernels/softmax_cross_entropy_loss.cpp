// cross_entropy_loss: how many targets count, the losses of rows with their gradient, and their mean. Small
// networks feel every launch.
#include "backend_cuda/kit/cross_entropy.hpp"
#include "ferrite/tensor/tensor_data.hpp"
#include "ops/cross_entropy_sum.hpp"

namespace ferrite {
namespace cuda {

CountedTargets count_targets(const Call& call, Cuda& cuda, const Array& targets, std::int64_t ignore_index,
                             DType dtype) {
  constexpr std::int64_t most_for_one_block = 1 << 16;
  if (targets.shape()[0] > most_for_one_block) {
    const Tensor<Cuda> count = cast(sum(Tensor<Cuda>(cuda, targets) != ignore_index), dtype);
    return {count.primitive(), reciprocal(count).primitive()};
  }
  CountedTargets counted{cuda.allocate({{}, dtype}), cuda.allocate({{}, dtype})};
  count_in_one_block(call, targets, ignore_index, counted);
  return counted;
}

}  // namespace cuda

using namespace cuda;

void run(Cuda& cuda, const op::CrossEntropyLoss& op, Ins in, Outs out) {
  const Call call(cuda, op_name(op));
  const DType wide = out[0].dtype();
  const Shape rows{in[0].shape()[0]};
  const bool is_empty = rows[0] == 0;
  CountedTargets counted;
  if (op.mean) counted = count_targets(call, cuda, in[1], op.ignore_index, wide);
  LossRows parts{.logits = in[0], .targets = in[1], .loss = cuda.allocate({rows, wide})};
  if (op.with_gradient) {
    parts.scale = op.mean ? counted.reciprocal : full(cuda, {}, 1, wide).primitive();
    parts.gradient = out[1];
    if (!is_empty) run_rows(call, cuda, op.gradient_of_rows(), parts);
  } else {
    parts.lse = cuda.allocate({rows, wide});
    if (!is_empty) run_rows(call, cuda, op.loss_of_rows(), parts);
  }
  op::add_up(cuda, parts.loss, counted.count, out[0]);
  call.finish();
}

}  // namespace ferrite
