// bucketize: the tables of a group of columns are in shared memory, and each thread searches the values of
// one pack at once. Dense rows are read along the columns and need nothing else. Dense columns are read along
// the rows, and their tokens are transposed in shared memory.
#include <algorithm>

#include "backend_cuda/kit/edge_cells.cuh"
#include "backend_cuda/kit/packs.cuh"
#include "backend_cuda/kit/persistent.hpp"

namespace ferrite {
namespace cuda {
namespace {

template <class T, class Token>
struct BucketizeArgs {
  const T* x;
  Token* out;  // [rows, columns], dense
  EdgeTable<T> table;
  std::int64_t rows;
  std::int64_t stride;          // of x: from row to row, or from column to column
  std::int32_t columns, group;  // group: columns of a block
  Token missing;
  bool aligned;  // out, to 16 bytes
};

extern __shared__ __align__(16) std::byte shared_memory[];

/// The tables of the columns of this block.
template <class T, bool in_shared>
struct GroupTable {
  const T* edges;
  const std::uint16_t* starts;
  const Cells<T>* columns;
  std::int32_t edge_count, cells, size, window = 0;

  /// Waits for all threads of the block.
  __device__ __forceinline__ GroupTable(const EdgeTable<T>& table, std::int32_t first, std::int32_t count)
      : edges(table.edges + std::int64_t{first} * (table.count + 1)),
        starts(table.starts + std::int64_t{first} * table.cells),
        columns(table.columns + first),
        edge_count(table.count),
        cells(table.cells),
        size(count) {
    for (int c = 0; c < count; ++c) window = ::max(window, columns[c].window);
    if constexpr (in_shared) {
      const auto own_edges = reinterpret_cast<T*>(shared_memory);
      const auto own_starts = reinterpret_cast<std::uint16_t*>(own_edges + count * (edge_count + 1));
      for (int i = threadIdx.x; i < count * (edge_count + 1); i += blockDim.x) own_edges[i] = edges[i];
      for (int i = threadIdx.x; i < count * cells; i += blockDim.x) own_starts[i] = starts[i];
      edges = own_edges;
      starts = own_starts;
      __syncthreads();
    }
  }
};

/// A thread's data for one column.
template <class T>
struct Column {
  Cells<T> cells;
  std::int32_t number;  // in the group
};

/// tokens[i] = the number of edges of columns[i] that are <= values[i]; one column may serve all values. All
/// values take one step of the search before any takes the next, so that their loads overlap.
template <class T, int lanes, bool in_shared, int count, class Token>
__device__ __forceinline__ Pack<Token, lanes> search(const GroupTable<T, in_shared>& group,
                                                     const Pack<T, lanes>& values,
                                                     const Column<T> (&columns)[count], Token missing) {
  const T last = static_cast<T>(group.cells - 1);
  std::int32_t at[lanes];
#pragma unroll
  for (int i = 0; i < lanes; ++i) {
    const Column<T>& column = columns[i % count];
    at[i] = group.starts[column.number * group.cells + column.cells.cell(values.lane[i], last)];
  }
  for (std::int32_t rest = group.window; rest > 0; rest /= 2) {
    const std::int32_t half = rest / 2;
#pragma unroll
    for (int i = 0; i < lanes; ++i) {
      const std::int32_t probe = ::min(at[i] + half, group.edge_count);
      const T edge = group.edges[columns[i % count].number * (group.edge_count + 1) + probe];
      at[i] += edge <= values.lane[i] ? half + 1 : 0;
    }
  }
  Pack<Token, lanes> tokens;
#pragma unroll
  for (int i = 0; i < lanes; ++i)
    tokens.lane[i] = values.lane[i] == values.lane[i] ? static_cast<Token>(at[i]) : missing;
  return tokens;
}

/// For dense rows of x. A thread keeps its columns: it advances by a whole number of rows of the group. Packs
/// stay within the rows of a group, or continue in the next row if the group has all columns.
template <class T, class Token, int lanes, bool in_shared>
__global__ void __launch_bounds__(block_threads)
    rows_kernel(const __grid_constant__ BucketizeArgs<T, Token> args) {
  constexpr int batch = 2;
  const std::int32_t first = static_cast<std::int32_t>(blockIdx.y) * args.group;
  const std::int32_t width = ::min(args.group, args.columns - first);
  const GroupTable<T, in_shared> table(args.table, first, width);
  const std::int32_t thread = static_cast<std::int32_t>(blockIdx.x) * block_threads + threadIdx.x;
  const std::int32_t threads = static_cast<std::int32_t>(gridDim.x) * block_threads / width * width;
  if (thread >= threads) return;
  const std::int64_t start = std::int64_t{thread} * lanes, total = args.rows * width;
  Column<T> columns[lanes];
#pragma unroll
  for (int v = 0; v < lanes; ++v) {
    const auto column = static_cast<std::int32_t>((start + v) % width);
    columns[v] = {table.columns[column], column};
  }
  const std::int64_t rows_a_turn = std::int64_t{threads} * lanes / width;
  const T* x = args.x + start / width * args.stride + first + start % width;
  Token* out = args.out + start / width * args.columns + first + start % width;
  const std::int64_t x_step = rows_a_turn * args.stride, out_step = rows_a_turn * args.columns;
  const std::int64_t step = std::int64_t{threads} * lanes;
  std::int64_t i = start;
  for (; i + (batch - 1) * step + lanes <= total; i += batch * step) {
    Pack<T, lanes> values[batch];
#pragma unroll
    for (int b = 0; b < batch; ++b) values[b] = load_pack<lanes>(x + b * x_step);
#pragma unroll
    for (int b = 0; b < batch; ++b)
      store_pack<lanes>(out + b * out_step, search(table, values[b], columns, args.missing));
    x += batch * x_step;
    out += batch * out_step;
  }
  for (; i < total; i += step, x += x_step, out += out_step) {
    Pack<T, lanes> values;  // the last may be cut
#pragma unroll
    for (int v = 0; v < lanes; ++v) values.lane[v] = i + v < total ? x[v] : T{0};
    const Pack<Token, lanes> tokens = search(table, values, columns, args.missing);
#pragma unroll
    for (int v = 0; v < lanes; ++v)
      if (i + v < total) out[v] = tokens.lane[v];
  }
}

template <class Token>
inline constexpr int tile_rows = 512 / static_cast<int>(sizeof(Token));
constexpr std::int32_t most_tile_columns = 64;

/// Columns of x dense: tiles of tile_rows rows and the columns of the group.
template <class T, class Token, int lanes>
__global__ void __launch_bounds__(block_threads)
    columns_kernel(const __grid_constant__ BucketizeArgs<T, Token> args) {
  constexpr int packs = tile_rows<Token> / lanes;
  const std::int32_t first = static_cast<std::int32_t>(blockIdx.y) * args.group;
  const std::int32_t width = ::min(args.group, args.columns - first);
  const GroupTable<T, true> table(args.table, first, width);
  const auto tile = reinterpret_cast<Token*>(shared_memory + divide_up(args.table.bytes() * width, 16) * 16);
  for (std::int64_t row = std::int64_t{blockIdx.x} * tile_rows<Token>; row < args.rows;
       row += std::int64_t{gridDim.x} * tile_rows<Token>) {
    const auto height = static_cast<int>(::min(args.rows - row, std::int64_t{tile_rows<Token>}));
    for (int p = threadIdx.x; p < width * packs; p += block_threads) {
      const int c = p / packs, r = p % packs * lanes;
      if (r >= height) continue;
      const T* const x = args.x + (first + c) * args.stride + row + r;
      Pack<T, lanes> values;
      if (r + lanes <= height) {
        values = load_pack<lanes>(x);
      } else {
#pragma unroll
        for (int v = 0; v < lanes; ++v) values.lane[v] = r + v < height ? x[v] : T{0};
      }
      const Column<T> column[] = {{table.columns[c], c}};
      const auto tokens = search(table, values, column, args.missing);
#pragma unroll
      for (int v = 0; v < lanes; ++v)
        if (r + v < height) tile[(r + v) * width + c] = tokens.lane[v];
    }
    __syncthreads();
    constexpr int word = 16 / static_cast<int>(sizeof(Token));
    Token* const out = args.out + row * args.columns + first;
    if (args.aligned && width == args.columns && height == tile_rows<Token>) {
      for (int i = static_cast<int>(threadIdx.x) * word; i < height * width; i += block_threads * word)
        store_pack<word>(out + i, load_pack<word>(tile + i));
    } else {
      for (int i = threadIdx.x; i < height * width; i += block_threads)
        out[std::int64_t{i / width} * args.columns + i % width] = tile[i];
    }
    __syncthreads();
  }
}

/// Bytes of shared memory for the tables of a block, so that several blocks fit.
constexpr std::int64_t table_room = 64 << 10;

template <class T, class Token>
void launch_groups(const Call& call, void (*kernel)(BucketizeArgs<T, Token>), std::int64_t shared_bytes,
                   std::int64_t most_blocks, const BucketizeArgs<T, Token>& args) {
  const BlockSize block{block_threads, shared_bytes};
  const std::int64_t groups = divide_up(args.columns, args.group);
  const std::int64_t share = std::max<std::int64_t>(1, blocks_at_once(call, kernel, block) / groups);
  launch(call, kernel, grid_of(std::min(most_blocks, share), groups), block, args);
}

template <class T, class Token>
void bucketize_columns(const Call& call, BucketizeArgs<T, Token> args) {
  args.group = static_cast<std::int32_t>(
      std::min<std::int64_t>({table_room / args.table.bytes(), args.columns, most_tile_columns}));
  const bool packed = is_aligned(args.x, 16) && args.stride % pack_lanes<T> == 0;
  launch_groups(
      call, packed ? columns_kernel<T, Token, pack_lanes<T>> : columns_kernel<T, Token, 1>,
      divide_up(args.table.bytes() * args.group, 16) * 16 + tile_rows<Token> * sizeof(Token) * args.group,
      divide_up(args.rows, tile_rows<Token>), args);
}

template <class T, class Token>
void bucketize_rows(const Call& call, BucketizeArgs<T, Token> args) {
  constexpr int lanes = pack_lanes<T>;
  const std::int64_t room = table_room / args.table.bytes();
  const bool in_shared = room > 0;
  args.group = static_cast<std::int32_t>(
      std::min<std::int64_t>({in_shared ? room : block_threads, args.columns, block_threads}));
  const bool whole = args.group == args.columns;
  if (!whole && args.group > lanes) args.group = args.group / lanes * lanes;
  const bool packed = in_shared && is_aligned(args.x, 16) && args.aligned &&
                      (whole || (args.columns % lanes == 0 && args.group % lanes == 0));
  const auto kernel = !in_shared ? rows_kernel<T, Token, 1, false>
                      : packed   ? rows_kernel<T, Token, lanes, true>
                                 : rows_kernel<T, Token, 1, true>;
  launch_groups(call, kernel, in_shared ? args.table.bytes() * args.group : 0,
                divide_up(args.rows * args.group, block_threads * (packed ? lanes : 1)), args);
}

template <class T, class Token>
void bucketize_typed(const Call& call, const op::Bucketize& op, const Array& x, bool by_columns,
                     const Array& edges, const Array& out) {
  const auto columns = static_cast<std::int32_t>(x.shape()[1]);
  EdgeTable<T> table(edges.shape()[1]);
  const Scratch<T> table_edges(call, std::int64_t{columns} * (table.count + 1));
  const Scratch<std::uint16_t> starts(call, std::int64_t{columns} * table.cells);
  const Scratch<Cells<T>> cells(call, columns);
  table.edges = table_edges.data();
  table.starts = starts.data();
  table.columns = cells.data();
  launch(call, edge_table_kernel<T>, columns, EdgeTableArgs<T>{edges.data<const double>(), table, op.closed});
  const BucketizeArgs<T, Token> args{x.data<const T>(),
                                     out.data<Token>(),
                                     table,
                                     x.shape()[0],
                                     x.layout().strides[by_columns ? 1 : 0],
                                     columns,
                                     0,
                                     static_cast<Token>(op.missing),
                                     is_aligned(out.data(), 16)};
  if (by_columns)
    bucketize_columns(call, args);
  else
    bucketize_rows(call, args);
}

}  // namespace
}  // namespace cuda

using namespace cuda;

bool accepts(const Cuda&, const op::Bucketize&, MetaSpan in) {
  return in[1].shape[1] <= most_edges && in[0].shape[1] < 1 << 16;
}

void run(Cuda& cuda, const op::Bucketize& op, Ins in, Outs out) {
  if (in[0].shape().numel() == 0) return;
  const Call call(cuda, op.type_name);
  const DType dtype = in[0].dtype() == DType::f64 ? DType::f64 : DType::f32;
  const Array edges = dense(cuda, in[1]);
  // Columns are read in place only if their tables fit into shared memory; the tables of rows need not fit.
  const bool by_columns = in[0].dtype() == dtype && in[0].layout().strides[0] == 1 && in[0].shape()[1] > 1 &&
                          EdgeTable<double>(edges.shape()[1]).bytes() <= table_room;
  const Array x = by_columns ? in[0] : dense(cuda, in[0], dtype);
  Destination tokens(cuda, out[0], false);
  const bool wide = op.dtype == DType::i64;
  const Array target = wide ? cuda.allocate({x.shape(), DType::i32}) : tokens.array();
  const auto run_typed = [&]<class T>() {
    if (op.dtype == DType::u8)
      bucketize_typed<T, std::uint8_t>(call, op, x, by_columns, edges, target);
    else if (op.dtype == DType::u16)
      bucketize_typed<T, std::uint16_t>(call, op, x, by_columns, edges, target);
    else
      bucketize_typed<T, std::int32_t>(call, op, x, by_columns, edges, target);
  };
  if (dtype == DType::f64)
    run_typed.operator()<double>();
  else
    run_typed.operator()<float>();
  if (wide) copy_into(cuda, target, tokens.array());
  tokens.commit();
  call.finish();
}

}  // namespace ferrite
