// conv2d and its gradients by cuDNN. What cuDNN has no engine for is composed of primitives.
#include "ferrite/ops/conv2d.hpp"

#include <algorithm>

#include "backend_cuda/dnn/conv_plans.hpp"
#include "backend_cuda/runtime/libraries.hpp"
#include "ferrite/backend/cuda.hpp"
#include "ferrite/tensor/tensor_data.hpp"

namespace ferrite {

using namespace cuda;

namespace {

bool is_one_floating_dtype(MetaSpan in) {
  return is_floating(in[0].dtype) &&
         std::all_of(in.begin(), in.end(), [&](const Meta& m) { return m.dtype == in[0].dtype; });
}

/// Dense in this layout, and aligned as the plans expect.
bool lies(const Array& x, ImageLayout layout) {
  const Layout& given = x.layout();
  const Layout ordered = layout == ImageLayout::nchw ? given : given.permute({0, 2, 3, 1});
  return ordered.is_contiguous() && reinterpret_cast<std::uintptr_t>(x.data()) % 16 == 0;
}

Array allocate_as(Cuda& cuda, const Array& x, ImageLayout layout) {
  if (layout == ImageLayout::nchw) return cuda.allocate(x.meta());
  const Shape& s = x.shape();
  const Array last = cuda.allocate({{s[0], s[2], s[3], s[1]}, x.dtype()});
  return last.with_layout(last.layout().permute({0, 3, 1, 2}));
}

Array laid_out(Cuda& cuda, const Array& x, ImageLayout layout) {
  if (lies(x, layout)) return x;
  const Array copy = allocate_as(cuda, x, layout);
  copy_into(cuda, x, copy);
  return copy;
}

/// [O], dense and aligned.
Array laid_out_bias(Cuda& cuda, const Array& bias) {
  if (bias.layout().is_contiguous() && reinterpret_cast<std::uintptr_t>(bias.data()) % 16 == 0) return bias;
  const Array copy = cuda.allocate(bias.meta());
  copy_into(cuda, bias, copy);
  return copy;
}

/// x, weight and y of a convolution, one of which is to be computed from the others.
struct Convolution {
  ConvKind kind;
  const op::ConvGeometry& geometry;
  Array x, w, y;
  Array bias{};  // dense, or undefined: added before the result is rounded

  Array& result() { return kind == ConvKind::forward ? y : kind == ConvKind::input_gradient ? x : w; }
};

ConvProblem problem_of(const Convolution& c, Float32Products products) {
  ConvProblem p{};
  std::copy_n(c.x.shape().begin(), 4, p.x);
  std::copy_n(c.w.shape().begin(), 4, p.w);
  std::copy_n(c.y.shape().begin(), 4, p.y);
  std::copy_n(c.geometry.stride.begin(), 2, p.stride);
  std::copy_n(c.geometry.padding.begin(), 2, p.padding);
  std::copy_n(c.geometry.dilation.begin(), 2, p.dilation);
  p.kind = c.kind;
  p.dtype = c.y.dtype();
  p.weights = c.w.dtype();
  p.tf32 = p.dtype == DType::f32 && products == Float32Products::tf32;
  p.biased = c.bias.defined();
  return p;
}

/// False where cuDNN has no plan.
bool convolve(Cuda& cuda, const Call& call, Convolution c, bool add) {
  const Array out = c.result();
  const bool direct = !add && lies(out, ImageLayout::nchw);
  if (!direct) c.result() = cuda.allocate(out.meta());
  Libraries& libraries = Libraries::of(call.context());
  const auto run = [&](const ConvPlan& plan) {
    const ImageLayout layout = layout_of(plan);
    Convolution laid = c;
    for (Array* part : {&laid.x, &laid.w, &laid.y})
      if (part != &laid.result()) *part = laid_out(cuda, *part, layout);
    if (!lies(laid.result(), layout)) laid.result() = allocate_as(cuda, laid.result(), layout);
    execute(libraries, call, plan, laid.x, laid.w, laid.y, laid.bias);
    if (laid.result().buffer() != c.result().buffer()) copy_into(cuda, laid.result(), c.result());
  };
  const auto plan =
      libraries.convolutions().get(libraries, call, problem_of(c, cuda.float32_products()), run);
  if (!plan) {
    if (out.dtype() == c.y.dtype()) return false;
    // No engine keeps these sums wide: they are rounded to 16 bits.
    c.result() = cuda.allocate({out.shape(), c.y.dtype()});
    if (!convolve(cuda, call, c, false)) return false;
    copy_into(cuda, c.result(), out, add);
    return true;
  }
  run(*plan);
  if (!direct) copy_into(cuda, c.result(), out, add);
  return true;
}

/// cuDNN counts elements in 32 bits: larger tensors go a part of the images at a time.
bool convolve_parts(Cuda& cuda, const Call& call, const Convolution& c, bool add) {
  constexpr std::int64_t most = std::int64_t{1} << 31;
  const std::int64_t images = c.x.shape()[0];
  const std::int64_t image = std::max(c.x.shape().numel(), c.y.shape().numel()) / images;
  const std::int64_t part = std::clamp<std::int64_t>((most - 1) / image, 1, images);
  for (std::int64_t begin = 0; begin < images; begin += part) {
    const auto some = [&](const Array& a) {
      return part == images ? a
                            : a.with_layout(a.layout().slice(0, begin, std::min(part, images - begin), 1));
    };
    const bool adds = add || (begin > 0 && c.kind == ConvKind::weight_gradient);
    if (convolve(cuda, call, {c.kind, c.geometry, some(c.x), c.w, some(c.y), c.bias}, adds)) continue;
    if (begin == 0) return false;
    throw BackendError(
        "[conv2d] cuDNN took the first images of a batch but not the last: use smaller batches");
  }
  return true;
}

template <class Op>
void compute(Cuda& cuda, const Op& op, Ins in, const Array& out, Convolution c, bool add) {
  const Call call(cuda, op_name(op));
  for (const Array* part : {&c.x, &c.w, &c.y}) {
    if (part->shape().numel() > 0) continue;  // a sum of nothing
    Array target = out;
    if (!add) run(cuda, op::Fill{out.shape(), out.dtype(), 0}, Ins(nullptr, 0), Outs(&target, 1));
    return;
  }
  if (!convolve_parts(cuda, call, c, add)) {
    const auto value = detail::evaluate_composed(cuda, op, Ins(in.data(), c.bias.defined() ? 3 : 2));
    copy_into(cuda, value[0], out, add);
  }
  call.finish();
}

}  // namespace

bool accepts(const Cuda&, const op::Conv2d&, MetaSpan in) { return is_one_floating_dtype(in); }
bool accepts(const Cuda&, const op::Conv2dInputGrad&, MetaSpan in) { return is_one_floating_dtype(in); }
bool accepts(const Cuda&, const op::Conv2dWeightGrad& op, MetaSpan in) {
  if (!is_one_floating_dtype(in)) return false;
  const std::size_t operands = size_of(in[0].dtype), result = op.at_least ? size_of(*op.at_least) : operands;
  return result <= operands || (operands == 2 && result == 4);
}

void run(Cuda& cuda, const op::Conv2d& op, Ins in, Outs out) {
  if (out[0].shape().numel() == 0) return;
  // In 16 bits a sum that is rounded before the bias is added may leave the range; f32 and f64 have the room.
  const bool has_terms = in[0].shape().numel() > 0 && in[1].shape().numel() > 0;
  const bool fuses = in.size() > 2 && size_of(out[0].dtype()) == 2 && has_terms;
  const Array fused = fuses ? laid_out_bias(cuda, in[2]) : Array();
  compute(cuda, op, in, out[0], {ConvKind::forward, op.geometry, in[0], in[1], out[0], fused}, false);
  if (in.size() < 3 || fuses) return;
  const Layout& bias = in[2].layout();
  const Array channels = in[2].with_layout({out[0].shape(), {0, bias.strides[0], 0, 0}, bias.offset});
  const Array* operands[] = {&out[0], &channels};
  run(cuda, op::Binary{op::BinaryFn::add}, Ins(operands, 2), out);
}

void run(Cuda& cuda, const op::Conv2dInputGrad& op, Ins in, Outs out, Accumulate mask) {
  if (out[0].shape().numel() == 0) return;
  compute(cuda, op, in, out[0], {ConvKind::input_gradient, op.geometry, out[0], in[1], in[0]},
          accumulates(mask, 0));
}

void run(Cuda& cuda, const op::Conv2dWeightGrad& op, Ins in, Outs out, Accumulate mask) {
  if (out[0].shape().numel() == 0) return;
  compute(cuda, op, in, out[0], {ConvKind::weight_gradient, op.geometry, in[1], out[0], in[0]},
          accumulates(mask, 0));
}

}  // namespace ferrite
