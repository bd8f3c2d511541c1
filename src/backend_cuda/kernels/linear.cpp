// Linear: bias, residual and gelu run in the epilogue of the product if cuBLASLt has them, otherwise after
// it. Its relu is not used: it turns NaN into 0, and would hide an earlier error.
#include "ferrite/ops/linear.hpp"

#include <algorithm>
#include <functional>

#include "backend_cuda/gemm/gemm.hpp"
#include "ferrite/backend/cuda.hpp"
#include "ferrite/tensor/tensor_data.hpp"

namespace ferrite {

using namespace cuda;

namespace {

bool is_aligned(const Array& x) { return reinterpret_cast<std::uintptr_t>(x.data()) % 16 == 0; }

/// cuBLASLt's gelu stores its argument in columns of a multiple of 8, and its tanh may be the approximate one
/// of the hardware (2^-11): good enough for 16-bit results, not for f32.
bool has_gelu(DType dtype, const Array& y, const Array& pre) {
  return size_of(dtype) == 2 && y.shape()[1] % 8 == 0 && is_aligned(pre) && is_aligned(y);
}

/// Its columns side by side, as a residual needs them, and its rows apart: x itself, or a dense copy.
Array rows_of(Cuda& cuda, const Array& x) {
  const Shape &shape = x.shape(), &strides = x.layout().strides;
  return strides[1] == 1 && strides[0] >= shape[1] ? x : dense(cuda, x);
}

}  // namespace

bool accepts(const Cuda&, const op::Linear&, MetaSpan in) {
  return is_floating(in[0].dtype) &&
         std::all_of(in.begin(), in.end(), [&](const Meta& m) { return m.dtype == in[0].dtype; });
}

void run(Cuda& cuda, const op::Linear& op, Ins in, Outs out) {
  if (out[0].shape().numel() == 0) return;
  const Call call(cuda, op_name(op));
  const DType dtype = out[0].dtype();
  const auto plain = [&](const Array& x) {
    const Shape &shape = x.shape(), &strides = x.layout().strides;
    return is_plain(shape[0], shape[1], {x.data<void>(), strides[0], strides[1]}) ? x : dense(cuda, x);
  };
  const Array x = plain(in[0]), weight = plain(in[1]);
  Destination y(cuda, out[0], false), kept(cuda, out.back(), false);
  Array result = y.array(), pre = out.size() > 1 ? kept.array() : result;
  const Metas metas = detail::metas_of(in);
  const std::size_t bias_input = op.bias_input(metas), residual_input = op.residual_input(metas);
  Array bias = bias_input < in.size() ? dense(cuda, in[bias_input]) : Array();
  if (bias.defined() && !is_aligned(bias)) {
    const Array copy = cuda.allocate(bias.meta());
    copy_into(cuda, bias, copy);
    bias = copy;
  }
  const Array residual = residual_input < in.size() ? rows_of(cuda, in[residual_input]) : Array();

  const auto run_one = [&](const auto& step, std::initializer_list<const Array*> operands, Array& to) {
    run(cuda, step, Ins(operands.begin(), operands.size()), Outs(&to, 1));
  };
  const std::function<void()> add_residual = [&] {
    run_one(op::Binary{op::BinaryFn::add}, {&result, &residual}, result);
  };
  const auto multiply = [&](const Array& to, Epilogue epilogue, bool with_bias, bool with_residual = false) {
    const Shape &xs = x.layout().strides, &ws = weight.layout().strides;
    const Product p{dtype,
                    dtype,
                    x.shape()[0],
                    weight.shape()[0],
                    x.shape()[1],
                    {x.data<void>(), xs[0], xs[1]},
                    {weight.data<void>(), ws[1], ws[0]},
                    {to.data<void>(), to.shape()[1], 1}};
    const bool gelu = epilogue == Epilogue::gelu || epilogue == Epilogue::gelu_bias;
    Finish finish{epilogue, with_bias ? bias.data<void>() : nullptr, gelu ? pre.data<void>() : nullptr};
    if (with_residual) {
      finish.residual = residual.data<void>();
      finish.residual_stride =
          std::max(residual.layout().strides[0], residual.shape()[1]);  // of one row: any
      if (dtype != DType::f16) finish.add_residual = &add_residual;
    }
    if (library_product(call, p, cuda.float32_products(), finish)) return true;
    if (epilogue != Epilogue::none || with_residual) return false;
    plain_product(call, p);
    return true;
  };
  const auto everything = [&] {
    const bool biased = bias.defined();
    switch (op.activation) {
      case Activation::none:
        return multiply(result, biased ? Epilogue::bias : Epilogue::none, biased, residual.defined());
      case Activation::gelu:
        return has_gelu(dtype, result, pre) &&
               multiply(result, biased ? Epilogue::gelu_bias : Epilogue::gelu, biased);
      default:
        return false;
    }
  };

  const bool has_inner = x.shape()[1] > 0;
  if (!has_inner || !everything()) {
    if (!has_inner) run(cuda, op::Fill{pre.shape(), dtype, 0}, Ins(nullptr, 0), Outs(&pre, 1));
    const bool bias_done = has_inner && bias.defined() && multiply(pre, Epilogue::bias, true);
    // In 16 bits a product that is rounded before the bias is added may leave the range; in f16, which is
    // small, also one before the residual.
    const bool leaves_range =
        (bias.defined() && !bias_done && size_of(dtype) == 2) || (residual.defined() && dtype == DType::f16);
    if (has_inner && leaves_range) {
      const auto values = detail::evaluate_composed(cuda, op, in);
      for (std::size_t i = 0; i < out.size(); ++i) copy_into(cuda, values[i], out[i]);
      return call.finish();
    }
    if (has_inner && !bias_done) multiply(pre, Epilogue::none, false);
    if (bias.defined() && !bias_done) {
      const Array rows = bias.with_layout(bias.layout().expand(pre.shape()));
      run_one(op::Binary{op::BinaryFn::add}, {&pre, &rows}, pre);
    }
    if (residual.defined()) add_residual();
    if (op.activation != Activation::none) run_one(op::activation_op(op.activation), {&pre}, result);
  }
  y.commit();
  if (out.size() > 1) kept.commit();
  call.finish();
}

}  // namespace ferrite
