// Matmul for every dtype and layout: one gemm for each element of the batch.
#include "ferrite/ops/matmul.hpp"

#include <functional>

#include "backend_cpu/gemm/products.hpp"
#include "ferrite/backend/cpu.hpp"
#include "ferrite/core/thread_pool.hpp"
#include "ferrite/cpu/rows.hpp"

namespace ferrite {

using namespace cpu;

namespace {

/// Steps of the three operands along the batch axes.
struct BatchAxis {
  std::int64_t extent, a, b, c;
};

template <class T>
void matmul(Products products, const Array& lhs, const Array& rhs, const Array& out, bool add) {
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
  const auto product = [&](std::int64_t index) {
    Product<T> p{matrix_of<const T>(lhs), matrix_of<const T>(rhs), matrix_of<T>(out)};
    for (std::size_t i = axes.size(); i-- > 0;) {
      const std::int64_t at = index % axes[i].extent;
      index /= axes[i].extent;
      p.a.data += at * axes[i].a;
      p.b.data += at * axes[i].b;
      p.c.data += at * axes[i].c;
    }
    // gemm writes rows best; a result stored by columns is the transposed product.
    if (p.c.column_stride != 1 && p.c.row_stride == 1)
      return Product<T>{p.b.transposed(), p.a.transposed(), p.c.transposed()};
    return p;
  };
  multiply_batch<T>(products, batch, std::cref(product), add);  // no copy of it
}

}  // namespace

void run(Cpu& cpu, const op::Matmul&, Ins in, Outs out, Accumulate mask) {
  const DType dtype = out[0].dtype();
  const auto converted = [&](const Array& x) { return x.dtype() == dtype ? x : dense(cpu, x, dtype); };
  const Array lhs = converted(in[0]), rhs = converted(in[1]);
  visit_dtype(dtype, [&]<class T>() {
    if constexpr (!std::is_same_v<T, bool>) matmul<T>(cpu.products(), lhs, rhs, out[0], accumulates(mask, 0));
  });
}

}  // namespace ferrite
