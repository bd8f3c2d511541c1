// Matmul: operands that cuBLASLt can express go there unchanged, others are made dense first. Batch axes are
// merged into one if possible; otherwise this code loops over them.
#include "ferrite/ops/matmul.hpp"

#include <algorithm>
#include <optional>

#include "backend_cuda/gemm/gemm.hpp"
#include "ferrite/ops/fill.hpp"

namespace ferrite {

using namespace cuda;

namespace {

/// The last two axes.
MatrixView view_of(const Array& x) {
  const Shape& strides = x.layout().strides;
  const int last = strides.rank() - 1;
  return {x.data<void>(), strides[last - 1], strides[last]};
}

bool is_plain(const Array& x) {
  const Shape& shape = x.shape();
  const int last = shape.rank() - 1;
  for (int i = 0; i < last - 1; ++i)
    if (shape[i] > 1 && x.layout().strides[i] < 0) return false;
  return cuda::is_plain(shape[last - 1], shape[last], view_of(x));
}

Product product_of(const Array& lhs, const Array& rhs, const Array& out, bool add) {
  const Shape& shape = out.shape();
  const int batch_axes = shape.rank() - 2;
  Product p{lhs.dtype(),  out.dtype(),  shape[batch_axes], shape.back(), lhs.shape().back(),
            view_of(lhs), view_of(rhs), view_of(out),      add};
  const auto stride = [&](const Array& x, int axis) {
    const int own = axis - batch_axes + x.shape().rank() - 2;
    return own < 0 || x.shape()[own] == 1 ? 0 : x.layout().strides[own];
  };
  for (int i = 0; i < batch_axes; ++i) {
    if (shape[i] == 1) continue;
    const BatchAxis axis{shape[i], stride(lhs, i), stride(rhs, i), stride(out, i)};
    BatchAxis* const outer = p.batch_axes > 0 ? &p.batch[p.batch_axes - 1] : nullptr;
    if (outer && outer->lhs == axis.lhs * axis.extent && outer->rhs == axis.rhs * axis.extent &&
        outer->out == axis.out * axis.extent)
      *outer = {outer->extent * axis.extent, axis.lhs, axis.rhs, axis.out};
    else
      p.batch[p.batch_axes++] = axis;
  }
  return p;
}

/// How many calls of the library a product takes: it has one batch axis, we take the longest.
std::int64_t loops_of(const Product& p) {
  std::int64_t all = 1, longest = 1;
  for (int i = 0; i < p.batch_axes; ++i) {
    all *= p.batch[i].extent;
    longest = std::max(longest, p.batch[i].extent);
  }
  return all / longest;
}

void multiply(const Call& call, const Product& p, Float32Products products) {
  const auto longer = [](const BatchAxis& a, const BatchAxis& b) { return a.extent < b.extent; };
  const auto batch = static_cast<int>(std::max_element(p.batch, p.batch + p.batch_axes, longer) - p.batch);
  const auto advance = [](MatrixView& view, DType dtype, std::int64_t elements) {
    view.data = static_cast<std::byte*>(view.data) + elements * static_cast<std::int64_t>(size_of(dtype));
  };
  const std::int64_t loops = loops_of(p);
  for (std::int64_t loop = 0; loop < loops; ++loop) {
    Product q = p;
    q.batch_axes = p.batch_axes > 0 ? 1 : 0;
    std::int64_t rest = loop;
    for (int axis = p.batch_axes - 1; axis >= 0; --axis) {
      if (axis == batch) continue;
      const BatchAxis& a = p.batch[axis];
      const std::int64_t at = rest % a.extent;
      rest /= a.extent;
      advance(q.lhs, p.dtype, at * a.lhs);
      advance(q.rhs, p.dtype, at * a.rhs);
      advance(q.out, p.result, at * a.out);
    }
    constexpr std::int64_t most = 65535;  // batches are an axis of the grid, which ends there
    const std::int64_t count = q.batch_axes > 0 ? p.batch[batch].extent : 1;
    for (std::int64_t begin = 0; begin < count; begin += most) {
      q.batch[0] = p.batch[q.batch_axes > 0 ? batch : 0];
      q.batch[0].extent = std::min(most, count - begin);
      if (!library_product(call, q, products)) plain_product(call, q);
      advance(q.lhs, p.dtype, most * q.batch[0].lhs);
      advance(q.rhs, p.dtype, most * q.batch[0].rhs);
      advance(q.out, p.result, most * q.batch[0].out);
    }
  }
}

/// x repeated along the batch axes of `shape`, dense.
Array dense_batch(Cuda& cuda, const Array& x, const Shape& shape) {
  const int rank = shape.rank(), own = x.shape().rank();
  Shape full = shape;
  for (int i = 1; i <= 2; ++i) full[rank - i] = x.shape()[own - i];
  return dense(cuda, x.with_layout(x.layout().expand(full)));
}

}  // namespace

void run(Cuda& cuda, const op::Matmul& op, Ins in, Outs out, Accumulate mask) {
  const Array& y = out[0];
  const bool add = accumulates(mask, 0);
  if (y.shape().numel() == 0) return;
  const Call call(cuda, op_name(op));
  if (in[0].shape().back() == 0) {
    if (!add) run(cuda, op::Fill{y.shape(), y.dtype(), 0}, Ins(nullptr, 0), out);
    return;
  }
  // Tensor cores multiply 16 bits and sum in f32, which may be the result as it is.
  const bool widens = y.dtype() == DType::f32 && in[0].dtype() == in[1].dtype() &&
                      size_of(in[0].dtype()) == 2 && is_floating(in[0].dtype());
  const DType operands = widens ? in[0].dtype() : y.dtype();
  const auto converted = [&](const Array& x) { return x.dtype() == operands ? x : dense(cuda, x, operands); };
  Array lhs = converted(in[0]), rhs = converted(in[1]);
  if (!is_floating(y.dtype())) {
    plain_product(call, product_of(lhs, rhs, y, add));
    return call.finish();
  }
  if (!is_plain(lhs)) lhs = dense(cuda, lhs);
  if (!is_plain(rhs)) rhs = dense(cuda, rhs);
  std::optional<Destination> temporary;
  if (!is_plain(y)) temporary.emplace(cuda, y, add);
  const auto product = [&] {
    return product_of(lhs, rhs, temporary ? temporary->array() : y, temporary ? temporary->add() : add);
  };
  Product p = product();
  constexpr std::int64_t most_loops = 16;  // beyond, repeating the shared operand is cheaper than launches
  if (loops_of(p) > most_loops) {
    lhs = dense_batch(cuda, lhs, y.shape());
    rhs = dense_batch(cuda, rhs, y.shape());
    p = product();
  }
  multiply(call, p, cuda.float32_products());
  if (temporary) temporary->commit();
  call.finish();
}

}  // namespace ferrite
