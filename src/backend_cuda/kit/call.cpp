#include "ferrite/cuda/call.hpp"

#include "backend_cuda/runtime/device_context.hpp"
#include "ferrite/ops/copy.hpp"

namespace ferrite::cuda {

Call::Call(const Cuda& cuda, std::string_view op)
    : context_(cuda.context()),
      stream_(context_.stream()),
      op_(op),
      outer_op_(OpScope::exchange(op)),
      previous_device_(make_current(context_.index())) {}

Call::~Call() {
  make_current_again(previous_device_);
  OpScope::exchange(outer_op_);
}

const cudaDeviceProp& Call::properties() const { return context_.properties(); }

std::shared_ptr<Buffer> Call::allocate(std::size_t bytes) const { return context_.allocate(bytes); }

void copy_into(Cuda& cuda, const Array& from, const Array& to, bool add) {
  const Array* in[] = {&from};
  Array out = to;
  run(cuda, op::Copy{to.dtype()}, Ins(in, 1), Outs(&out, 1), add ? Accumulate::first : Accumulate::none);
}

Array dense(Cuda& cuda, const Array& x, DType dtype) {
  if (x.dtype() == dtype && x.layout().is_contiguous()) return x;
  const Array copy = cuda.allocate({x.shape(), dtype});
  copy_into(cuda, x, copy);
  return copy;
}

Array axis_last(const Array& x, int axis) {
  Shape order;
  for (int i = 0; i < x.shape().rank(); ++i)
    if (i != axis) order.push_back(i);
  order.push_back(axis);
  return x.with_layout(x.layout().permute(order));
}

Destination::Destination(Cuda& cuda, const Array& out, bool add)
    : cuda_(cuda), out_(out), dense_(out), add_(add), temporary_(!out.layout().is_contiguous()) {
  if (temporary_) dense_ = cuda.allocate(out.meta());
}

void Destination::commit() {
  if (temporary_) copy_into(cuda_, dense_, out_, add_);
}

}  // namespace ferrite::cuda
