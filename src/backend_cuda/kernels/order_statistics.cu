// order_statistics: what order_statistics.cuh and segment_select.cuh do to dense columns, for any layout.
#include <algorithm>
#include <bit>

#include "backend_cuda/kit/persistent.hpp"
#include "backend_cuda/kit/segment_select.cuh"

namespace ferrite {
namespace cuda {
namespace {

/// Columns that are looked at together: no more than these, and than have their copies and candidates in
/// this many bytes each, unless eight columns take more.
constexpr std::int64_t most_columns = 1024;
/// Kernels count rows in 32 bits, a block's threads at a time.
constexpr std::int64_t most_sorted_rows = (std::int64_t{1} << 32) - plan_threads;
constexpr std::int64_t group_bytes = std::int64_t{1} << 30;

template <class T>
void select_in_columns(const Call& call, const OrderArgs<T>& args, std::int64_t columns) {
  using Key = KeyOf<T>;
  const auto shared = [](int threads, std::int64_t bytes) { return BlockSize{threads, bytes}; };
  const auto once = [&](auto kernel, std::int64_t keys) {  // a block for each column
    const BlockSize block = shared(plan_threads, keys * sizeof(Key));
    static_cast<void>(blocks_at_once(call, kernel, block));
    launch(call, kernel, grid_of(1, columns), block, args);
  };
  if (args.rows <= sample_size) {
    const auto rows = static_cast<std::uint64_t>(args.rows);
    return once(short_columns_kernel<T>, static_cast<std::int64_t>(std::bit_ceil(rows)));
  }
  const std::int64_t tiles = divide_up(args.rows, column_threads * values_at_once);
  const auto over_rows = [&](auto kernel, std::int64_t bytes) {
    const BlockSize block = shared(column_threads, bytes);
    const std::int64_t share = std::max<std::int64_t>(1, blocks_at_once(call, kernel, block) / columns);
    launch(call, kernel, grid_of(std::min(tiles, share), columns), block, args);
  };
  once(sample_kernel<T>, sample_size);
  over_rows(count_kernel<T>, open_buckets * sizeof(Key) + bucket_count * sizeof(std::uint32_t));
  once(plan_kernel<T>, 0);
  if (args.level_count == 0) return;
  const auto most_segments = static_cast<std::uint64_t>(2 * args.level_count);
  over_rows(collect_kernel<T>, 2 * sizeof(Key) << std::bit_width(most_segments));
  launch(call, select_kernel<T>, grid_of(2 * args.level_count, columns), shared(select_threads, 0), args);
}

template <class T>
void order_statistics(Cuda& cuda, const Call& call, const op::OrderStatistics& op, const Array& x,
                      const Array& levels, const Array& lower, const Array& upper, const Array& count) {
  using Key = KeyOf<T>;
  const std::int64_t rows = x.shape()[0], columns = x.shape()[1], level_count = levels.shape()[0];
  const bool is_dense = x.layout().strides[0] == 1;
  // A segment has 1.5 / 4096 of the rows on average; there is room for more than twice as much.
  const std::int64_t room = std::min(rows, rows / 1024 * (level_count + 32) + open_buckets);
  const std::int64_t column_bytes = (is_dense ? room : rows) * std::int64_t{sizeof(T)};
  const std::int64_t group =
      std::min({columns, most_columns, std::max<std::int64_t>(8, group_bytes / column_bytes)});
  const bool is_short = rows <= sample_size;
  const Scratch<ColumnPlan<Key>> plans(call, is_short ? 0 : group);
  const Scratch<Wanted<Key>> wanted(call, is_short ? 0 : group * 2 * level_count);
  const Scratch<Key> candidates(call, is_short ? 0 : group * room);
  for (std::int64_t first = 0; first < columns; first += group) {
    const std::int64_t width = std::min(group, columns - first);
    Array turned = x.with_layout(x.layout().slice(1, first, width, 1).permute({1, 0}));
    if (!is_dense) turned = dense(cuda, turned);
    const OrderArgs<T> args{turned.data<const T>(),
                            is_dense ? x.layout().strides[1] : rows,
                            rows,
                            levels.data<const double>(),
                            level_count,
                            op.method,
                            plans.data(),
                            wanted.data(),
                            candidates.data(),
                            room,
                            lower.data<T>() + first * level_count,
                            upper.data<T>() + first * level_count,
                            count.data<std::int64_t>() + first};
    select_in_columns(call, args, width);
  }
}

}  // namespace
}  // namespace cuda

using namespace cuda;

bool accepts(const Cuda&, const op::OrderStatistics&, MetaSpan in) {
  return (in[0].dtype == DType::f32 || in[0].dtype == DType::f64) && in[0].shape[0] < most_sorted_rows &&
         in[1].shape[0] <= most_levels;
}

void run(Cuda& cuda, const op::OrderStatistics& op, Ins in, Outs out) {
  if (in[0].shape()[1] == 0) return;
  const Call call(cuda, op.type_name);
  const Array levels = dense(cuda, in[1]);
  Destination lower(cuda, out[0], false), upper(cuda, out[1], false), count(cuda, out[2], false);
  const auto run_typed = [&]<class T>() {
    cuda::order_statistics<T>(cuda, call, op, in[0], levels, lower.array(), upper.array(), count.array());
  };
  if (in[0].dtype() == DType::f64)
    run_typed.operator()<double>();
  else
    run_typed.operator()<float>();
  lower.commit();
  upper.commit();
  count.commit();
  call.finish();
}

}  // namespace ferrite
