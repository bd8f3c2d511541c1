// mean, var, logsumexp and norm in one op: the reduced axes become rows, and every row is reduced while it is
// in the cache. Long rows are cut into segments, so that one row alone keeps all threads busy.
#include "ferrite/ops/statistic.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "backend_cpu/simd/simd.hpp"
#include "ferrite/cpu/rows.hpp"

namespace ferrite {

using namespace cpu;

namespace {

using op::StatisticFn;

/// A row, reduced in segments of chunk_size elements.
template <class W>
struct Row {
  const Array& array;
  std::int64_t offset, length;
  Reader<W>& reader;  // for a row of one segment

  /// combine(f(x, n) of every segment); just f of a row that is one segment.
  template <class F, class Combine>
  double reduce(F&& f, Combine&& combine) const {
    if (length <= chunk_size) return f(reader(offset, length), length);
    std::vector<double> parts(static_cast<std::size_t>((length - 1) / chunk_size + 1));
    parallel_ranges(length, chunk_size, [&](std::int64_t begin, std::int64_t end) {
      Reader<W> own(array, chunk_size);
      parts[static_cast<std::size_t>(begin / chunk_size)] = f(own(offset + begin, end - begin), end - begin);
    });
    return combine(parts);
  }
  template <class F>
  double sum(F&& f) const {
    return reduce(
        f, [](const std::vector<double>& parts) { return std::accumulate(parts.begin(), parts.end(), 0.0); });
  }
};

template <class W>
[[gnu::flatten]] W segment_sum(const W* x, std::int64_t n) {
  return simd::sum<W>(n, [&](auto at) { return at(x); });
}
template <class W>
[[gnu::flatten]] W segment_squares(const W* x, W centre, std::int64_t n) {
  return simd::sum<W>(n, [&](auto at) { return (at(x) - centre) * (at(x) - centre); });
}
template <class W>
[[gnu::flatten]] W segment_magnitudes(const W* x, std::int64_t n) {
  return simd::sum<W>(n, [&](auto at) { return simd::magnitude(at(x)); });
}
/// The largest magnitude, 0 of nothing; NaN if there is one.
template <class W>
[[gnu::flatten]] W segment_largest(const W* x, std::int64_t n) {
  if (simd::has_nan<W>(n, [&](auto at) { return at(x); })) return std::numeric_limits<W>::quiet_NaN();
  return std::max(W{0}, simd::max<W>(n, [&](auto at) { return simd::magnitude(at(x)); }));
}
template <class W>
[[gnu::flatten]] W segment_logsumexp(const W* x, std::int64_t n) {
  return simd::logsumexp<W>(n, [&](auto at) { return at(x); });
}

double largest(const std::vector<double>& parts) {
  return segment_largest(parts.data(), static_cast<std::int64_t>(parts.size()));
}
double log_of_sum(const std::vector<double>& parts) {
  return segment_logsumexp(parts.data(), static_cast<std::int64_t>(parts.size()));
}

template <class W>
double statistic_of(const op::Statistic& op, const Row<W>& row) {
  const auto count = static_cast<double>(row.length);
  switch (op.fn) {
    case StatisticFn::mean:
      return row.sum(segment_sum<W>) / count;
    case StatisticFn::var: {
      const W centre = static_cast<W>(row.sum(segment_sum<W>) / count);
      return row.sum([&](const W* x, std::int64_t n) { return segment_squares(x, centre, n); }) /
             (count - op.parameter);
    }
    case StatisticFn::logsumexp:
      return row.reduce(segment_logsumexp<W>, log_of_sum);
    default:
      if (std::isinf(op.parameter)) return row.reduce(segment_largest<W>, largest);
      if (op.parameter == 1) return row.sum(segment_magnitudes<W>);
      return std::sqrt(row.sum([](const W* x, std::int64_t n) { return segment_squares(x, W{0}, n); }));
  }
}

/// Whether f32 was too narrow on the way to this result: sums and squares of the largest floats leave its
/// range where their mean or norm does not, and squares of the smallest become 0.
bool left_range(const op::Statistic& op, float value) {
  if (op.fn == StatisticFn::logsumexp || std::isinf(op.parameter)) return false;
  constexpr float smallest_square = 1e-30f, smallest_norm = 1e-15f;
  const bool is_norm = op.fn == StatisticFn::norm && op.parameter == 2;
  return !std::isfinite(value) || (op.fn == StatisticFn::var && value < smallest_square) ||
         (is_norm && value < smallest_norm);
}

/// The same in f64.
double wide_statistic_of(const op::Statistic& op, const Row<float>& row) {
  const auto count = static_cast<double>(row.length);
  const auto total = [&](auto&& term) {
    return row.sum([&](const float* x, std::int64_t n) {
      return std::accumulate(x, x + n, 0.0, [&](double sum, float value) { return sum + term(value); });
    });
  };
  switch (op.fn) {
    case StatisticFn::mean:
      return total([](double x) { return x; }) / count;
    case StatisticFn::var: {
      const double centre = total([](double x) { return x; }) / count;
      return total([&](double x) { return (x - centre) * (x - centre); }) / (count - op.parameter);
    }
    default:
      return op.parameter == 1 ? total([](double x) { return std::abs(x); })
                               : std::sqrt(total([](double x) { return x * x; }));
  }
}

/// The kept axes first, then the reduced ones.
Array reduced_axes_last(const Array& x, const Shape& axes) {
  Shape order;
  for (int i = 0; i < x.shape().rank(); ++i)
    if (std::find(axes.begin(), axes.end(), i) == axes.end()) order.push_back(i);
  for (const std::int64_t axis : axes) order.push_back(axis);
  return x.with_layout(x.layout().permute(order));
}

/// x in rows of `length` elements, by a copy where there is no other way.
Rows rows_of_length(Cpu& cpu, const Array& x, std::int64_t count, std::int64_t length) {
  const auto view = x.layout().reshape({count, length});
  return rows_of(
      cpu, view ? x.with_layout(*view) : dense(cpu, x).with_layout(Layout::contiguous({count, length})));
}

/// The mean over other axes than the last ones, where adding whole rows beats a transposed copy. False, with
/// nothing written, where a sum leaves the range.
template <class W>
bool mean_by_sum(Cpu& cpu, const op::Statistic& op, const Array& x, std::int64_t count, const Array& out) {
  const Array wide = dense(cpu, x, dtype_of<W>);
  Array total = cpu.allocate({out.shape(), dtype_of<W>});
  const Array* in[] = {&wide};
  run(cpu, op::Reduce{op::ReduceFn::sum, op.axes, op.keepdim}, Ins(in, 1), Outs(&total, 1));
  W* const values = total.data<W>();
  for (std::int64_t i = 0; i < out.shape().numel(); ++i) {
    if (!std::isfinite(values[i])) return false;
    values[i] /= static_cast<W>(count);
  }
  copy_into(cpu, total, out);
  return true;
}

}  // namespace

void run(Cpu& cpu, const op::Statistic& op, Ins in, Outs out) {
  const std::int64_t results = out[0].shape().numel();
  if (results == 0) return;
  const Shape axes = normalize_axes(op.name(), op.axes, in[0].shape().rank());
  const std::int64_t length = op::reduced_count(in[0].shape(), axes);
  const bool in_order = axes.rank() == 0 || axes[0] == in[0].shape().rank() - axes.rank();
  visit_wide(out[0].dtype(), [&]<class W>() {
    if (!in_order && op.fn == StatisticFn::mean && mean_by_sum<W>(cpu, op, in[0], length, out[0])) return;
    const Rows rows = rows_of_length(cpu, reduced_axes_last(in[0], axes), results, length);
    Destination y(cpu, out[0], false);
    for_row_ranges(results, length, [&](std::int64_t begin, std::int64_t end) {
      Reader<W> reader(rows.array, std::min(length, chunk_size));
      Writer<W> write(y, end - begin);
      W* const values = write.row(begin);
      for (std::int64_t r = begin; r < end; ++r) {
        const Row<W> row{rows.array, r * rows.stride, length, reader};
        double value = statistic_of(op, row);
        if constexpr (std::is_same_v<W, float>) {
          if (left_range(op, static_cast<float>(value))) value = wide_statistic_of(op, row);
        }
        values[r - begin] = static_cast<W>(value);
      }
      write.finish(end - begin);
    });
    y.commit();
  });
}

}  // namespace ferrite
