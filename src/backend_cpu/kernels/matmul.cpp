// Matmul for every dtype and layout: one gemm for each element of the batch.
#include "ferrite/ops/matmul.hpp"

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
  const auto multiply_one = [&](std::int64_t index, Products by) {
    Matrix<const T> a = matrix_of<const T>(lhs), b = matrix_of<const T>(rhs);
    Matrix<T> c = matrix_of<T>(out);
    for (std::size_t i = axes.size(); i-- > 0;) {
      const std::int64_t at = index % axes[i].extent;
      index /= axes[i].extent;
      a.data += at * axes[i].a;
      b.data += at * axes[i].b;
      c.data += at * axes[i].c;
    }
    // gemm writes rows best; a result stored by columns is the transposed product.
    if (c.column_stride != 1 && c.row_stride == 1)
      multiply<T>(by, 1, b.transposed(), a.transposed(), c.transposed(), add);
    else
      multiply<T>(by, 1, a, b, c, add);
  };
  // Threads share a batch if it has one product for each of them, or products too small to be shared; small
  // ones come several at a time.
  constexpr std::int64_t small = 1 << 18;
  const Matrix<const T> a = matrix_of<const T>(lhs);
  const std::int64_t work = std::max<std::int64_t>(a.rows * a.columns * out.shape().back(), 1);
  if (batch > 1 && (batch >= num_threads() || work < small)) {
    parallel_ranges(batch, small / work, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t index = begin; index < end; ++index) multiply_one(index, Products::reproducible);
    });
  } else {
    for (std::int64_t index = 0; index < batch; ++index) multiply_one(index, products);
  }
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
