// conv2d 3x3 with its gradients, max_pool2d 2x2 and batch_norm.
#include "ferrite/ops/batch_norm.hpp"
#include "ferrite/ops/conv2d.hpp"
#include "suite.hpp"

namespace ferrite::bench {
namespace {

void add_conv(Suite& suite, std::string_view label, DType dtype, const Shape& image, std::int64_t outputs,
              Reach reach, Float32Products products) {
  op::ConvGeometry geometry;
  geometry.padding = {1, 1};
  const Shape kernel{outputs, image[1], 3, 3}, result{image[0], outputs, image[2], image[3]};
  const auto pair = [=](const Shape& first, const Shape& second) {
    return [=](auto& b, Rng& rng) {
      return std::vector{randn(b, first, rng, 0, 1, dtype), randn(b, second, rng, 0, 1, dtype)};
    };
  };
  const std::string size = extents(image) + "_to_" + std::to_string(outputs);
  suite.add_op(row_name("conv2d", label, size), op::Conv2d{geometry}, pair(image, kernel), reach, products);
  suite.add_op(row_name("conv2d_input_grad", label, size), op::Conv2dInputGrad{geometry, image},
               pair(result, kernel), reach, products);
  suite.add_op(row_name("conv2d_weight_grad", label, size), op::Conv2dWeightGrad{geometry, kernel},
               pair(result, image), reach, products);
}

void add_pool(Suite& suite, DType dtype, const Shape& image, Reach reach) {
  const auto draw = [=](auto& b, const Shape& shape, Rng& rng) { return randn(b, shape, rng, 0, 1, dtype); };
  const op::MaxPool2d pool;
  const Shape result{image[0], image[1], image[2] / 2, image[3] / 2};
  suite.add_op(
      row_name("max_pool2d", to_string(dtype), extents(image)), pool,
      [=](auto& b, Rng& rng) { return std::vector{draw(b, image, rng)}; }, reach);
  suite.add_op(
      row_name("max_pool2d_backward", to_string(dtype), extents(image)), op::MaxPool2dBackward{image},
      [=](auto& b, Rng& rng) {
        return std::vector{draw(b, result, rng), eval_all(pool, draw(b, image, rng))[1]};
      },
      reach);
}

/// Weights are f32, as cuDNN and PyTorch's mixed precision want them.
void add_batch_norm(Suite& suite, DType dtype, const Shape& image, Reach reach) {
  const auto draw = [=](auto& b, Rng& rng) { return randn(b, image, rng, 0, 1, dtype); };
  const auto channels = [=](auto& b, Rng& rng) { return randn(b, {image[1]}, rng); };
  suite.add_op(
      row_name("batch_norm", to_string(dtype), extents(image)), op::BatchNorm{},
      [=](auto& b, Rng& rng) {
        return std::vector{draw(b, rng), channels(b, rng), channels(b, rng)};
      },
      reach);
  suite.add_op(
      row_name("batch_norm_backward", to_string(dtype), extents(image)), op::BatchNormBackward{},
      [=](auto& b, Rng& rng) {
        const auto x = draw(b, rng), weight = channels(b, rng);
        const auto y = eval_all(op::BatchNorm{}, x, weight, weight);
        return std::vector{draw(b, rng), x, weight, y[1], y[2]};
      },
      reach);
}

}  // namespace

void add_convolution(Suite& suite) {
  constexpr auto exact = Float32Products::exact, tf32 = Float32Products::tf32;
  const Shape large{32, 64, 128, 128}, small{1, 32, 64, 64}, middle{32, 64, 32, 32};
  add_conv(suite, "f32", DType::f32, large, 128, Reach::cpu, exact);
  add_conv(suite, "tf32", DType::f32, large, 128, Reach::cuda, tf32);
  add_conv(suite, "bf16", DType::bf16, large, 128, Reach::cuda, exact);
  add_conv(suite, "f32", DType::f32, small, 32, Reach::naive, exact);
  add_conv(suite, "tf32", DType::f32, small, 32, Reach::cuda, tf32);
  add_conv(suite, "bf16", DType::bf16, small, 32, Reach::cuda, exact);
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const bool wide = dtype == DType::f32;
    add_pool(suite, dtype, large, wide ? Reach::cpu : Reach::cuda);
    add_pool(suite, dtype, small, wide ? Reach::naive : Reach::cuda);
    add_batch_norm(suite, dtype, middle, wide ? Reach::naive : Reach::cuda);
    add_batch_norm(suite, dtype, large, wide ? Reach::cpu : Reach::cuda);
  }
}

}  // namespace ferrite::bench
