// The kernel of linear_cross_entropy, made of the kernels of a backend, some rows at a time.
#pragma once

#include <algorithm>

#include "ferrite/ops/fill.hpp"
#include "ferrite/ops/linear_cross_entropy.hpp"
#include "ferrite/ops/matmul.hpp"
#include "ops/cross_entropy_sum.hpp"

namespace ferrite::op {

/// What the chunks read and write. x and weight have the dtype of the logits.
struct ChunkedLoss {
  Array x, weight;
  Array losses;                 // [N]
  Array dx = {}, dweight = {};  // undefined without a gradient; of the dtype of the logits, or wider
};

/// The losses of all rows and, if there is to be one, the gradient. loss_rows(first, logits, losses) computes
/// those of some rows, from row `first` on, and writes the gradient over the logits.
template <class B, class LossRows>
void run_chunks(B& b, const ChunkedLoss& loss, std::int64_t chunk, LossRows&& loss_rows) {
  const std::int64_t rows = loss.x.shape()[0];
  const bool with_gradient = loss.dx.defined();
  const auto part = [](const Array& a, std::int64_t begin, std::int64_t count) {
    return a.with_layout(a.layout().slice(0, begin, count, 1));
  };
  const auto transposed = [](const Array& a) { return a.with_layout(a.layout().permute({1, 0})); };
  const auto multiply = [&](const Array& lhs, const Array& rhs, Array to, bool add = false) {
    const Array* in[] = {&lhs, &rhs};
    run(b, Matmul{to.dtype()}, Ins(in, 2), Outs(&to, 1), add ? Accumulate::first : Accumulate::none);
  };
  const Array weight_columns = transposed(loss.weight);
  const Array room = b.allocate({{std::min(chunk, rows), loss.weight.shape()[0]}, loss.x.dtype()});
  for (std::int64_t begin = 0; begin < rows; begin += chunk) {
    const std::int64_t count = std::min(chunk, rows - begin);
    const Array x = part(loss.x, begin, count), logits = part(room, 0, count);
    multiply(x, weight_columns, logits);
    loss_rows(begin, logits, part(loss.losses, begin, count));
    if (!with_gradient) continue;
    multiply(logits, loss.weight, part(loss.dx, begin, count));
    multiply(transposed(logits), x, loss.dweight, begin > 0);
  }
  if (rows == 0 && with_gradient)
    run_one(b, Fill{loss.dweight.shape(), loss.dweight.dtype(), 0}, {}, loss.dweight);
}

}  // namespace ferrite::op
