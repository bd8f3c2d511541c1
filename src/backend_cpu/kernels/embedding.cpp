// index_select and embedding, which copy what ids name, and the gradient of embedding, which adds it up
// again.
#include "ferrite/ops/embedding.hpp"

#include <fmt/format.h>

#include <vector>

#include "backend_cpu/kit/boxes.hpp"
#include "ferrite/cpu/rows.hpp"

namespace ferrite {

using namespace cpu;

namespace {

/// The ids in row-major order, counted from the start. The first one outside [-size, size) is a ValueError.
template <class Message>
std::vector<std::int64_t> checked_ids(Cpu& cpu, const Array& ids, std::int64_t size, Message&& message) {
  const Array values = dense(cpu, ids, DType::i64);
  const auto* first = values.data<const std::int64_t>();
  std::vector<std::int64_t> result(first, first + values.shape().numel());
  for (std::size_t i = 0; i < result.size(); ++i) {
    if (result[i] < -size || result[i] >= size) throw ValueError(message(result[i], i));
    if (result[i] < 0) result[i] += size;
  }
  return result;
}

std::vector<std::int64_t> checked_embedding_ids(Cpu& cpu, std::string_view name, const Array& ids,
                                                std::int64_t rows) {
  return checked_ids(cpu, ids, rows, [&](std::int64_t id, std::size_t position) {
    return fmt::format("[{}] id {} at position {} is out of range for a table of {} rows", name, id, position,
                       rows);
  });
}

/// The axes of a layout from `axis` on.
Layout inner_part(const Layout& layout, int axis) {
  Layout inner;
  for (int i = axis; i < layout.shape.rank(); ++i) {
    inner.shape.push_back(layout.shape[i]);
    inner.strides.push_back(layout.strides[i]);
  }
  return inner;
}

/// Where element `index` of the first `axes` axes, counted in row-major order, begins.
std::int64_t outer_offset(const Layout& layout, int axes, std::int64_t index) {
  std::int64_t offset = 0;
  for (int i = axes - 1; i >= 0; --i) {
    offset += index % layout.shape[i] * layout.strides[i];
    index /= layout.shape[i];
  }
  return offset;
}

/// out[o, k, ...] = x[o, ids[k], ...], where o stands for the axes before `axis`. Any layouts.
void select(const Array& x, int axis, const std::vector<std::int64_t>& ids, const Array& out) {
  if (out.shape().numel() == 0) return;
  const Layout from = inner_part(x.layout(), axis + 1), to = inner_part(out.layout(), axis + 1);
  const Layout* const both[] = {&from, &to};
  const LoopNest nest(both);
  Box box;
  box.rank = nest.rank;
  std::copy_n(nest.extent, nest.rank, box.extent);

  const auto size = static_cast<std::int64_t>(size_of(x.dtype()));
  const auto count = static_cast<std::int64_t>(ids.size());
  const std::int64_t outer = out.shape().numel() / (count * nest.numel());
  parallel_ranges(outer * count, chunk_size / nest.numel(), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t o = i / count, k = i % count;
      const std::int64_t source =
          outer_offset(x.layout(), axis, o) + ids[static_cast<std::size_t>(k)] * x.layout().strides[axis];
      const std::int64_t target = outer_offset(out.layout(), axis, o) + k * out.layout().strides[axis];
      copy_box(size_of(x.dtype()), box, x.data() + source * size, nest.stride[0], out.data() + target * size,
               nest.stride[1]);
    }
  });
}

/// For each row of the table the positions whose id it is, in order: a counting sort.
struct PositionsByRow {
  std::vector<std::int64_t> begin, position;

  PositionsByRow(const std::vector<std::int64_t>& ids, std::int64_t rows)
      : begin(static_cast<std::size_t>(rows) + 1), position(ids.size()) {
    for (const std::int64_t id : ids) ++begin[static_cast<std::size_t>(id) + 1];
    for (std::size_t r = 1; r < begin.size(); ++r) begin[r] += begin[r - 1];
    std::vector<std::int64_t> next(begin.begin(), begin.end() - 1);
    for (std::size_t i = 0; i < ids.size(); ++i)
      position[static_cast<std::size_t>(next[static_cast<std::size_t>(ids[i])]++)] =
          static_cast<std::int64_t>(i);
  }
};

}  // namespace

bool accepts(const Cpu&, const op::IndexSelect& op, MetaSpan in) {
  const Shape& shape = in[0].shape;
  std::int64_t run = 1;
  for (int i = normalize_axis(op.type_name, op.axis, shape.rank()) + 1; i < shape.rank(); ++i)
    run *= shape[i];
  return run >= 8;
}

void run(Cpu& cpu, const op::IndexSelect& op, Ins in, Outs out) {
  const int axis = normalize_axis(op.type_name, op.axis, in[0].shape().rank());
  const std::int64_t length = in[0].shape()[axis];
  const auto ids = checked_ids(cpu, in[1], length, [&](std::int64_t id, std::size_t position) {
    return fmt::format("[{}] index {} at position {} is out of range for axis {} of length {}", op.type_name,
                       id, position, axis, length);
  });
  select(in[0], axis, ids, out[0]);
}

void run(Cpu& cpu, const op::Embedding& op, Ins in, Outs out) {
  const auto ids = checked_embedding_ids(cpu, op.type_name, in[1], in[0].shape()[0]);
  Destination target(cpu, out[0], false);
  const Shape rows{static_cast<std::int64_t>(ids.size()), in[0].shape()[1]};
  select(in[0], 0, ids, target.array().with_layout(*target.array().layout().reshape(rows)));
  target.commit();
}

void run(Cpu& cpu, const op::EmbeddingBackward& op, Ins in, Outs out, Accumulate mask) {
  const auto ids = checked_embedding_ids(cpu, op.type_name, in[1], op.rows);
  if (out[0].shape().numel() == 0) return;  // rows without columns may be more than memory has places for
  const PositionsByRow positions(ids, op.rows);
  const Rows dy = rows_of(cpu, in[0]);
  Destination dweight(cpu, out[0], accumulates(mask, 0));
  // Tasks are blocks of rows and columns, so that one id that is everywhere still makes work for several
  // threads.
  constexpr std::int64_t columns = 256;
  const std::int64_t channels = dy.length, column_blocks = (channels + columns - 1) / columns;
  const std::int64_t rows = std::max<std::int64_t>(chunk_size / columns, 1);
  const std::int64_t row_blocks = (op.rows + rows - 1) / rows;
  visit_wide(out[0].dtype(), [&]<class W>() {
    parallel_for(row_blocks * column_blocks, [&](std::int64_t task) {
      const std::int64_t column = task % column_blocks * columns, n = std::min(columns, channels - column);
      const std::int64_t first = task / column_blocks * rows, last = std::min(op.rows, first + rows);
      Reader<W> read(dy.array, columns);
      Writer<W> write(dweight, columns);
      for (std::int64_t r = first; r < last; ++r) {
        const auto begin = static_cast<std::size_t>(positions.begin[static_cast<std::size_t>(r)]);
        const auto end = static_cast<std::size_t>(positions.begin[static_cast<std::size_t>(r) + 1]);
        if (begin == end && dweight.add()) continue;
        W* const total = write.row(r * channels + column);
        std::fill_n(total, n, W{0});
        for (std::size_t i = begin; i < end; ++i)
          add_block(dtype_of<W>, read(positions.position[i] * dy.stride + column, n), total, n);
        write.finish(n);
      }
    });
  });
  dweight.commit();
}

}  // namespace ferrite
