// Matmul for every dtype and layout. f32 and f64 go to gemm as they are, f16 and bf16 as f32, integers as
// i64.
#include "ferrite/ops/matmul.hpp"

#include "backend_cpu/product.hpp"
#include "backend_cpu/rows.hpp"
#include "ferrite/backend/cpu.hpp"

namespace ferrite {

using namespace cpu;

namespace {

/// Steps of the three operands along the batch axes.
struct BatchAxis {
  std::int64_t extent, a, b, c;
};

template <class T>
void matmul(const Array& lhs, const Array& rhs, const Array& out, bool add) {
  const int batch_axes = out.shape().rank() - 2;
  const auto batch_stride = [&](const Array& x, int axis) {
    const int own = axis - batch_axes + x.shape().rank() - 2;
    return own < 0 || x.shape()[own] == 1 ? 0 : x.layout().strides[own];
  };
  SmallVector<BatchAxis, max_rank> axes;
  std::int64_t batch = 1;
  for (int i = 0; i < batch_axes; ++i) {
    if (out.shape()[i] == 1) continue;
    batch *= out.shape()[i];
    axes.push_back({out.shape()[i], batch_stride(lhs, i), batch_stride(rhs, i), batch_stride(out, i)});
  }
  Product<T> first{matrix_of<const T>(lhs), matrix_of<const T>(rhs), matrix_of<T>(out)};
  // gemm writes rows; a result stored by columns is the transposed product.
  if (first.c.column_stride != 1 && first.c.row_stride == 1) {
    first = {first.b.transposed(), first.a.transposed(), first.c.transposed()};
    for (BatchAxis& axis : axes) std::swap(axis.a, axis.b);
  }
  const auto product_at = [&](std::int64_t index) {
    Product<T> p = first;
    for (std::size_t i = axes.size(); i-- > 0;) {
      const std::int64_t at = index % axes[i].extent;
      index /= axes[i].extent;
      p.a.data += at * axes[i].a;
      p.b.data += at * axes[i].b;
      p.c.data += at * axes[i].c;
    }
    return p;
  };
  multiply<T>(batch, product_at, add, [](auto&&...) {});
}

}  // namespace

void Cpu::run(const op::Matmul&, Ins in, Outs out, Accumulate mask) {
  const DType dtype = out[0].dtype();
  const auto converted = [&](const Array& x) { return x.dtype() == dtype ? x : dense(*this, x, dtype); };
  const Array lhs = converted(in[0]), rhs = converted(in[1]);
  visit_dtype(dtype, [&]<class T>() {
    if constexpr (!std::is_same_v<T, bool>) matmul<T>(lhs, rhs, out[0], accumulates(mask, 0));
  });
}

}  // namespace ferrite
