// bucketize: a binary search without branches in edges padded to 2^k - 1, for a tile of rows and one column
// at a time. f32 is searched in f32 edges that divide the floats as the f64 ones do.
#include "ferrite/ops/bucketize.hpp"

#include <vector>

#include "backend_cpu/rows.hpp"

namespace ferrite {

using namespace cpu;

namespace {

/// Every column's edges as T, NaN up to the next 2^k - 1.
template <class T>
struct EdgeTable {
  std::int64_t width = 0;  // 2^k - 1
  std::vector<T> edges;

  EdgeTable(const Array& given, Closed closed) {
    const std::int64_t columns = given.shape()[0], count = given.shape()[1];
    while (width < count) width = 2 * width + 1;
    edges.assign(static_cast<std::size_t>(columns * width), std::numeric_limits<T>::quiet_NaN());
    for (std::int64_t c = 0; c < columns; ++c)
      for (std::int64_t i = 0; i < count; ++i) {
        const double edge = given.data<const double>()[c * count + i];
        T& target = edges[static_cast<std::size_t>(c * width + i)];
        if constexpr (sizeof(T) == 4)
          target = narrow_edge(edge, closed);
        else
          target = edge;
      }
  }
  const T* of(std::int64_t column) const { return edges.data() + column * width; }
};

constexpr std::int64_t tile_rows = 256;

/// tokens[i] = how many edges values[i] lies behind. All values take one step of the search before any takes
/// the next: the steps of one are a chain of loads, those of many fill the vector unit.
template <Closed closed, class T>
void search(const T* values, std::int64_t n, const T* edges, std::int64_t width, std::int32_t missing,
            std::int32_t* tokens) {
  std::fill_n(tokens, n, 0);
  for (auto rest = static_cast<std::int32_t>(width); rest > 0; rest /= 2) {
    const std::int32_t half = rest / 2;
    for_each_index(n, [=](std::int64_t i) {
      const T edge = edges[tokens[i] + half];
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
        find(values, n, table.of(c), table.width, static_cast<std::int32_t>(op.missing), tokens);
        Token* const target = out.data<Token>() + row * to[0] + c * to[1];
        for (std::int64_t i = 0; i < n; ++i) target[i * to[0]] = static_cast<Token>(tokens[i]);
      }
    }
  });
}

}  // namespace

bool Cpu::accepts(const op::Bucketize&, MetaSpan in) const {
  return in[0].dtype == DType::f32 || in[0].dtype == DType::f64;
}

void Cpu::run(const op::Bucketize& op, Ins in, Outs out) {
  const Array edges = dense(*this, in[1]);
  const auto run_typed = [&]<class T>() {
    const EdgeTable<T> table(edges, op.closed);
    if (op.dtype == DType::u8)
      bucketize_rows<T, std::uint8_t>(op, in[0], table, out[0]);
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
