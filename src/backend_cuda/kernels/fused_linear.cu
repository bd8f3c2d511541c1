// fused_linear: which calls the kernel takes, and its operands.
#include "backend_cuda/kit/fused_linear.hpp"

#include <algorithm>

#include "backend_cuda/kit/linear_parts.cuh"
#include "backend_cuda/kit/shared_memory.hpp"

namespace ferrite {

using namespace cuda;

namespace {

constexpr std::int64_t most_extent = std::int64_t{1} << 30;  // what the kernel counts in 32 bits
constexpr std::int64_t most_bytes = 128 << 10;               // of rows in shared memory

}  // namespace

bool accepts(const Cuda& cuda, const op::FusedLinear& op, MetaSpan in) {
  const DType x = in[0].dtype, w = in[1].dtype;
  if (x == DType::f64 || w == DType::f64 || (x != w && x != DType::f32 && !op.quantized)) return false;
  const std::int64_t rows = in[0].shape[0], inner = in[0].shape[1], columns = in[1].shape[0];
  const auto lanes = static_cast<std::int64_t>(16 / size_of(w));
  if (rows < 1 || columns < 1 || columns > most_extent || inner < lanes || inner % lanes != 0) return false;
  if (op.quantized) return rows == 1 && inner <= fused_linear::most_inner_of_row(1);
  const auto shared =
      static_cast<std::int64_t>(std::min<std::size_t>(most_shared_memory(cuda), std::size_t{1} << 30));
  return rows <= fused_linear::most_rows &&
         rows * inner * static_cast<std::int64_t>(sizeof(float)) <= std::min(most_bytes, shared - (8 << 10));
}

void run(Cuda& cuda, const op::FusedLinear& op, Ins in, Outs out) {
  const Call call(cuda, op_name(op));
  const Array x = in_packs(cuda, in[0]);
  Array weight = in[1];
  const Shape& strides = weight.layout().strides;
  const auto lanes = static_cast<std::int64_t>(16 / size_of(weight.dtype()));
  const bool is_plain = strides[1] == 1 && strides[0] >= weight.shape()[1] && strides[0] % lanes == 0 &&
                        is_aligned(weight.data(), 16);
  if (!is_plain) weight = in_packs(cuda, weight);
  const Array scale = op.quantized ? dense(cuda, in[2], DType::f32) : Array();
  const auto operand = [&](bool is_there, std::size_t i) {
    return is_there ? in_packs(cuda, in[i]) : Array();
  };
  const Array norm_weight = operand(op.norm != RowNorm::none, op.norm_input()),
              norm_bias = operand(op.norm == RowNorm::layer, op.norm_input() + 1),
              bias = operand(op.bias, op.bias_input()), residual = operand(op.residual, op.residual_input());
  Destination y(cuda, out[0], false);
  const auto launch = [&]<class X, class W>() {
    const auto data = [](const Array& a) { return a.defined() ? a.data<X>() : nullptr; };
    fused_linear::launch(
        call, fused_linear::Args<X, W>{
                  x.data<X>(), weight.data<W>(), op.quantized ? scale.data<float>() : nullptr,
                  data(norm_weight), data(norm_bias), data(bias), data(residual), y.array().data<X>(),
                  weight.layout().strides[0], static_cast<int>(x.shape()[0]), static_cast<int>(x.shape()[1]),
                  static_cast<int>(weight.shape()[0]), op.norm, op.activation, static_cast<float>(op.eps)});
  };
  visit_floating(x.dtype(), [&]<class X>() {
    if constexpr (!std::is_same_v<X, double>) {
      if (op.quantized) return launch.template operator()<X, std::int8_t>();
      visit_floating(weight.dtype(), [&]<class W>() {
        if constexpr (!std::is_same_v<W, double> && (std::is_same_v<X, W> || std::is_same_v<X, float>))
          launch.template operator()<X, W>();
      });
    }
  });
  y.commit();
  call.finish();
}

}  // namespace ferrite
