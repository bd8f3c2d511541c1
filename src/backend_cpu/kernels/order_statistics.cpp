// order_statistics: columns become arrays of ordered keys without NaN, a few columns at a time, and a radix
// select finds the ranks. Every result is an element, so the cut of the work cannot show.
#include "ferrite/ops/order_statistics.hpp"

#include <memory>
#include <vector>

#include "backend_cpu/kit/radix_select.hpp"
#include "ferrite/cpu/rows.hpp"

namespace ferrite {

using namespace cpu;

namespace {

template <class T>
struct Job {
  const T* x;
  std::int64_t rows, row_stride, column_stride;
  const double* levels;
  std::int64_t level_count;
  QuantileMethod method;
  T *lower, *upper;
  std::int64_t* count;
};

/// The ranks that the levels ask for, ascending and each once, and for each level where its two stand.
struct Ranks {
  std::vector<std::int64_t> wanted;
  std::vector<std::size_t> lower, upper;

  Ranks(const double* levels, std::int64_t level_count, QuantileMethod method, std::int64_t count) {
    std::vector<QuantilePosition> positions;
    for (std::int64_t i = 0; i < level_count; ++i) {
      positions.push_back(quantile_position(method, levels[i], count));
      wanted.insert(wanted.end(), {positions.back().lower, positions.back().upper});
    }
    std::sort(wanted.begin(), wanted.end());
    wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
    const auto place = [this](std::int64_t rank) {
      return static_cast<std::size_t>(std::lower_bound(wanted.begin(), wanted.end(), rank) - wanted.begin());
    };
    for (const QuantilePosition& p : positions) {
      lower.push_back(place(p.lower));
      upper.push_back(place(p.upper));
    }
  }
};

template <class T>
class ColumnStatistics {
 public:
  explicit ColumnStatistics(const Job<T>& job) : job_(job) {}

  void run(std::int64_t begin, std::int64_t end) {
    load(begin, end);
    for (std::int64_t c = begin; c < end; ++c) select(c, keys_.get() + (c - begin) * job_.rows);
  }

 private:
  using Key = decltype(ordered_key(T{}));

  /// Rows in tiles that stay in the cache while each column takes its part of them.
  void load(std::int64_t begin, std::int64_t end) {
    constexpr std::int64_t tile = 256;
    keys_ = std::make_unique_for_overwrite<Key[]>(static_cast<std::size_t>((end - begin) * job_.rows));
    for (std::int64_t c = begin; c < end; ++c) job_.count[c] = 0;
    for (std::int64_t row = 0; row < job_.rows; row += tile) {
      const std::int64_t stop = std::min(job_.rows, row + tile);
      for (std::int64_t c = begin; c < end; ++c) {
        const T* const column = job_.x + c * job_.column_stride;
        Key* const keys = keys_.get() + (c - begin) * job_.rows;
        std::int64_t kept = job_.count[c];
        for (std::int64_t r = row; r < stop; ++r) {
          const T value = column[r * job_.row_stride];
          keys[kept] = ordered_key(value);
          kept += value == value;
        }
        job_.count[c] = kept;
      }
    }
  }

  void select(std::int64_t c, Key* keys) {
    T* const lower = job_.lower + c * job_.level_count;
    T* const upper = job_.upper + c * job_.level_count;
    if (job_.count[c] == 0) {
      std::fill_n(lower, job_.level_count, std::numeric_limits<T>::quiet_NaN());
      std::fill_n(upper, job_.level_count, std::numeric_limits<T>::quiet_NaN());
      return;
    }
    const Ranks ranks(job_.levels, job_.level_count, job_.method, job_.count[c]);
    found_.resize(ranks.wanted.size());
    radix_.select({keys, static_cast<std::size_t>(job_.count[c])}, ranks.wanted, found_.data());
    for (std::size_t i = 0; i < ranks.lower.size(); ++i) {
      lower[i] = from_ordered_key<T>(found_[ranks.lower[i]]);
      upper[i] = from_ordered_key<T>(found_[ranks.upper[i]]);
    }
  }

  const Job<T>& job_;
  std::unique_ptr<Key[]> keys_;
  std::vector<Key> found_;
  RadixSelect<Key> radix_;
};

/// Columns that one thread takes at a time: a cache line of them if there are enough for all threads, and no
/// more keys than 256 MiB.
std::int64_t group_size(std::int64_t rows, std::int64_t columns, std::size_t element) {
  const auto line = static_cast<std::int64_t>(64 / element);
  const std::int64_t share = (columns + num_threads() - 1) / num_threads();
  const std::int64_t room = (std::int64_t{256} << 20) / (rows * static_cast<std::int64_t>(element));
  return std::max<std::int64_t>(1, std::min({line, share, room}));
}

}  // namespace

bool accepts(const Cpu&, const op::OrderStatistics&, MetaSpan in) {
  return (in[0].dtype == DType::f32 || in[0].dtype == DType::f64) && in[0].shape[0] < INT64_C(1) << 32;
}

void run(Cpu& cpu, const op::OrderStatistics& op, Ins in, Outs out) {
  const Array &x = in[0], levels = dense(cpu, in[1]);
  Destination lower(cpu, out[0], false), upper(cpu, out[1], false), count(cpu, out[2], false);
  const auto run_typed = [&]<class T>() {
    const Shape &shape = x.shape(), &stride = x.layout().strides;
    const Job<T> job{x.data<const T>(),
                     shape[0],
                     stride[0],
                     stride[1],
                     levels.data<const double>(),
                     levels.shape()[0],
                     op.method,
                     lower.array().data<T>(),
                     upper.array().data<T>(),
                     count.array().data<std::int64_t>()};
    parallel_ranges(shape[1], group_size(shape[0], shape[1], sizeof(T)),
                    [&](std::int64_t begin, std::int64_t end) { ColumnStatistics<T>(job).run(begin, end); });
  };
  if (x.dtype() == DType::f32)
    run_typed.operator()<float>();
  else
    run_typed.operator()<double>();
  lower.commit();
  upper.commit();
  count.commit();
}

}  // namespace ferrite
