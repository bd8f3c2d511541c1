// linear_cross_entropy: products and losses of some rows at a time, while their logits are in the cache.
#include "ferrite/ops/linear_cross_entropy.hpp"

#include <algorithm>

#include "ferrite/cpu/rows.hpp"
#include "ops/linear_cross_entropy_chunks.hpp"

namespace ferrite {

using namespace cpu;

void run(Cpu& cpu, const op::LinearCrossEntropy& op, Ins in, Outs out) {
  const DType wide = out[0].dtype();
  const auto number = [&](double value) {
    const Array array = cpu.allocate({{}, wide});
    op::run_one(cpu, op::Fill{{}, wide, value}, {}, array);
    return array;
  };
  const Array targets = dense(cpu, in[2], DType::i64);
  const std::int64_t rows = in[0].shape()[0], columns = in[1].shape()[0];
  const std::span<const std::int64_t> ids(targets.data<const std::int64_t>(), static_cast<std::size_t>(rows));
  op::check_targets(op.type_name, ids, op::classes_of(columns, op.classes), op.ignore_index);
  const auto ignored = std::count(ids.begin(), ids.end(), op.ignore_index);
  const double counted = op.mean ? static_cast<double>(rows - ignored) : 1;

  op::ChunkedLoss loss{dense(cpu, in[0], wide), dense(cpu, in[1], wide), cpu.allocate({{rows}, wide})};
  // Dense, as everything here: products of other layouts have other roundings.
  const auto place_for = [&](const Array& a) {
    return a.dtype() == wide && a.layout().is_contiguous() ? a : cpu.allocate({a.shape(), wide});
  };
  if (op.with_gradient) {
    loss.dx = place_for(out[1]);
    loss.dweight = place_for(out[2]);
  }
  const Array scale = number(1 / counted);
  const auto loss_rows = [&](std::int64_t first, Array logits, Array losses) {
    const Array some = targets.with_layout(targets.layout().slice(0, first, losses.shape()[0], 1));
    if (op.with_gradient) {
      const Array* operands[] = {&logits, &some, &scale};
      Array results[] = {losses, logits};
      run(cpu, op.gradient_of_rows(), Ins(operands, 3), Outs(results));
    } else {
      const Array* operands[] = {&logits, &some};
      Array results[] = {losses, cpu.allocate(losses.meta())};
      run(cpu, op.loss_of_rows(), Ins(operands, 2), Outs(results));
    }
  };
  // The chunks do not depend on the number of threads: neither does the order in which dweight is summed.
  // Fewer rows than these would spend their time on reading and writing dweight.
  constexpr std::int64_t most_bytes = 32 << 20, least_rows = 64;
  const std::int64_t row_bytes = columns * static_cast<std::int64_t>(size_of(wide));
  const std::int64_t chunk = op.rows_at_once(rows, row_bytes, std::max(most_bytes, least_rows * row_bytes));
  op::run_chunks(cpu, loss, chunk, loss_rows);
  op::add_up(cpu, loss.losses, op.mean ? number(counted) : Array(), out[0]);
  const auto commit = [&](const Array& from, const Array& to) {
    if (from.buffer() != to.buffer()) copy_into(cpu, from, to);
  };
  if (op.with_gradient) {
    commit(loss.dx, out[1]);
    commit(loss.dweight, out[2]);
  }
}

}  // namespace ferrite
