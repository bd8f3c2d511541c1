// Linear: bias, residual and activation are applied to each tile of the product while it is in the cache.
#include "ferrite/ops/linear.hpp"

#include "backend_cpu/gemm/products.hpp"
#include "backend_cpu/kit/activation_rows.hpp"
#include "ferrite/backend/cpu.hpp"
#include "ferrite/cpu/rows.hpp"

namespace ferrite {

using namespace cpu;

namespace {

/// The product goes to `pre`, its activation to `y`; both are dense and may be the same. So is the residual.
template <class T>
void linear(Products products, const Array& x, const Array& weight, const T* bias, const T* residual,
            Activation activation, const Array& pre, T* y) {
  const Matrix<T> result = matrix_of<T>(pre);
  const RowFunction<T> activate = row_function<T>(activation);
  const auto finish = [&](const Matrix<T>& tile, std::int64_t row, std::int64_t column) {
    for (std::int64_t i = 0; i < tile.rows; ++i) {
      T* sums = &tile(i, 0);
      if (bias) for_each_index(tile.columns, [=](std::int64_t j) { sums[j] += bias[column + j]; });
      if (residual) {
        const T* more = residual + (row + i) * result.columns + column;
        for_each_index(tile.columns, [=](std::int64_t j) { sums[j] += more[j]; });
      }
      if (activate) activate(sums, y + (row + i) * result.columns + column, tile.columns);
    }
  };
  multiply<T>(products, T{1}, matrix_of<const T>(x), matrix_of<const T>(weight).transposed(), result, false,
              bias || residual || activate ? TileFunction<T>(finish) : TileFunction<T>());
}

}  // namespace

bool accepts(const Cpu&, const op::Linear&, MetaSpan in) { return all_f32_or_f64(in); }

void run(Cpu& cpu, const op::Linear& op, Ins in, Outs out) {
  visit_wide(out[0].dtype(), [&]<class T>() {
    Metas metas;
    for (std::size_t i = 0; i < in.size(); ++i) metas.push_back(in[i].meta());
    const auto optional = [&](std::size_t i) { return i < in.size() ? dense(cpu, in[i]) : Array(); };
    const auto data_of = [](const Array& a) { return a.defined() ? a.data<const T>() : nullptr; };
    const Array bias = optional(op.bias_input(metas)), residual = optional(op.residual_input(metas));
    Destination y(cpu, out[0], false), pre(cpu, out.back(), false);
    linear<T>(cpu.products(), in[0], in[1], data_of(bias), data_of(residual), op.activation,
              out.size() > 1 ? pre.array() : y.array(), y.array().data<T>());
    y.commit();
    if (out.size() > 1) pre.commit();
  });
}

}  // namespace ferrite
