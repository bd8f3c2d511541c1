// bucketize: each column's range is divided into equal cells, which know where their edges begin. A value's
// cell comes from one multiplication; among the edges of one cell, few or one, it is a search without
// branches. The cell is a monotone function of the value, edges included, so the result is exact. f32 is
// searched in f32 edges that divide the floats as the f64 ones do.
#include "ferrite/ops/bucketize.hpp"

#include <vector>

#include "ferrite/cpu/rows.hpp"

namespace ferrite {

using namespace cpu;

namespace {

constexpr std::int64_t tile_rows = 512;
/// Four cells per edge, the last of which f32 must hold exactly; with more edges the op is composed.
constexpr std::int64_t most_edges = 1 << 20;

template <class T>
struct ColumnEdges {
  const T* edges;              // then NaN, a window's length of it
  const std::int32_t* starts;  // by cell: edges in the cells before
  T origin, scale;
  std::int32_t last_cell;
  std::int32_t window;  // 2^k - 1, no less than any cell has edges

  std::int32_t cell(T value) const {
    const T place = (value - origin) * scale;
    const T bounded = place > T{0} ? place : T{0};  // NaN becomes 0
    return static_cast<std::int32_t>(bounded < static_cast<T>(last_cell) ? bounded
                                                                         : static_cast<T>(last_cell));
  }
};

/// The edges of all columns, ready for the search.
template <class T>
class EdgeTable {
 public:
  EdgeTable(const Array& given, Closed closed) {
    const std::int64_t columns = given.shape()[0], count = given.shape()[1];
    std::int64_t cells = 1;
    while (cells < 4 * count) cells *= 2;
    stride_ = 3 * count + 1;  // a window has fewer than twice the edges
    edges_.assign(static_cast<std::size_t>(columns * stride_), std::numeric_limits<T>::quiet_NaN());
    starts_.assign(static_cast<std::size_t>(columns * cells), 0);
    for (std::int64_t c = 0; c < columns; ++c) {
      T* const edges = edges_.data() + c * stride_;
      std::int64_t used = 0;
      for (std::int64_t i = 0; i < count; ++i) {
        const double edge = given.data<const double>()[c * count + i];
        if (edge == edge) edges[used++] = narrow(edge, closed);
      }
      columns_.push_back(divided(edges, used, starts_.data() + c * cells, cells));
    }
  }
  const ColumnEdges<T>& operator[](std::int64_t column) const {
    return columns_[static_cast<std::size_t>(column)];
  }

 private:
  static T narrow(double edge, Closed closed) {
    if constexpr (sizeof(T) == 4)
      return narrow_edge(edge, closed);
    else
      return edge;
  }

  static ColumnEdges<T> divided(const T* edges, std::int64_t count, std::int32_t* starts,
                                std::int64_t cells) {
    const auto finite = [](T x) { return x - x == 0; };
    const T* const first = std::find_if(edges, edges + count, finite);
    const T* last = first;
    for (const T* e = first; e != edges + count && finite(*e); ++e) last = e;
    ColumnEdges<T> column{edges, starts, T{0}, T{0}, static_cast<std::int32_t>(cells - 1), 0};
    if (first != edges + count) {
      const T scale = static_cast<T>(cells - 1) / (*last - *first);
      column.origin = *first;
      column.scale = finite(scale) ? scale : T{0};  // one value, or the whole range of T
    }
    std::vector<std::int64_t> inside(static_cast<std::size_t>(cells), 0);
    for (std::int64_t i = 0; i < count; ++i) ++inside[static_cast<std::size_t>(column.cell(edges[i]))];
    const std::int64_t most = *std::max_element(inside.begin(), inside.end());
    while (column.window < most) column.window = 2 * column.window + 1;
    std::int64_t before = 0;
    for (std::int64_t k = 0; k < cells; ++k) {
      starts[k] = static_cast<std::int32_t>(before);
      before += inside[static_cast<std::size_t>(k)];
    }
    return column;
  }

  std::int64_t stride_;
  std::vector<T> edges_;
  std::vector<std::int32_t> starts_;
  std::vector<ColumnEdges<T>> columns_;
};

/// tokens[i] = the number of edges <= values[i] (< if closed on the right). All values take one step before
/// any takes the next: the steps of one value are a chain of loads, those of many fill the vector unit.
template <Closed closed, class T>
void search(const T* values, std::int64_t n, const ColumnEdges<T>& column, std::int32_t missing,
            std::int32_t* tokens) {
  const ColumnEdges<T> c = column;
  for_each_index(n, [=](std::int64_t i) { tokens[i] = c.starts[c.cell(values[i])]; });
  for (std::int32_t rest = c.window; rest > 0; rest /= 2) {
    const std::int32_t half = rest / 2;
    for_each_index(n, [=](std::int64_t i) {
      const T edge = c.edges[tokens[i] + half];
      tokens[i] += (closed == Closed::left ? edge <= values[i] : edge < values[i]) ? half + 1 : 0;
    });
  }
  for_each_index(n, [=](std::int64_t i) { tokens[i] = values[i] == values[i] ? tokens[i] : missing; });
}

template <class T, class Token>
void bucketize_rows(const op::Bucketize& op, const Array& x, const EdgeTable<T>& table, const Array& out) {
  const Shape &shape = x.shape(), &from = x.layout().strides, &to = out.layout().strides;
  const auto find = op.closed == Closed::left ? search<Closed::left, T> : search<Closed::right, T>;
  for_row_ranges(shape[0], shape[1], [&](std::int64_t begin, std::int64_t end) {
    alignas(64) T values[tile_rows];
    alignas(64) std::int32_t tokens[tile_rows];
    for (std::int64_t row = begin; row < end; row += tile_rows) {
      const std::int64_t n = std::min(tile_rows, end - row);
      for (std::int64_t c = 0; c < shape[1]; ++c) {
        const T* const source = x.data<const T>() + row * from[0] + c * from[1];
        for (std::int64_t i = 0; i < n; ++i) values[i] = source[i * from[0]];
        find(values, n, table[c], static_cast<std::int32_t>(op.missing), tokens);
        Token* const target = out.data<Token>() + row * to[0] + c * to[1];
        for (std::int64_t i = 0; i < n; ++i) target[i * to[0]] = static_cast<Token>(tokens[i]);
      }
    }
  });
}

}  // namespace

bool accepts(const Cpu&, const op::Bucketize&, MetaSpan in) {
  return (in[0].dtype == DType::f32 || in[0].dtype == DType::f64) && in[1].shape[1] <= most_edges;
}

void run(Cpu& cpu, const op::Bucketize& op, Ins in, Outs out) {
  const Array edges = dense(cpu, in[1]);
  const auto run_typed = [&]<class T>() {
    const EdgeTable<T> table(edges, op.closed);
    if (op.dtype == DType::u8)
      bucketize_rows<T, std::uint8_t>(op, in[0], table, out[0]);
    else if (op.dtype == DType::u16)
      bucketize_rows<T, std::uint16_t>(op, in[0], table, out[0]);
    else if (op.dtype == DType::i32)
      bucketize_rows<T, std::int32_t>(op, in[0], table, out[0]);
    else
      bucketize_rows<T, std::int64_t>(op, in[0], table, out[0]);
  };
  if (in[0].dtype() == DType::f32)
    run_typed.operator()<float>();
  else
    run_typed.operator()<double>();
}

}  // namespace ferrite
