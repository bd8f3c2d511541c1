// Attention without a buffer of all scores: for a few queries the keys pass by block by block, with a running
// maximum and sum per query (Milakov and Gimelshein 2018; Dao et al. 2022). Queries are the columns of all
// tiles: scores come out of the first product in the order in which the second reads them, and a softmax goes
// along the lanes of vectors.
#include "ferrite/ops/attention.hpp"

#include <cmath>
#include <numbers>

#include "backend_cpu/gemm/gemm_panels.hpp"
#include "backend_cpu/kit/attention_scores.hpp"
#include "backend_cpu/simd/simd.hpp"
#include "ferrite/backend/cpu.hpp"
#include "ferrite/core/integers.hpp"
#include "ferrite/core/thread_pool.hpp"

namespace ferrite {

using namespace cpu;

namespace {

/// Keys that pass by at a time: their scores stay in the first-level cache.
constexpr std::int64_t passing_keys = 168 / panel_rows * panel_rows;
/// Queries that share the packing of keys and values, which then costs them little: more where there are
/// heads enough to keep all threads busy. Panels of queries begin at the same places either way, so that the
/// number of threads changes no bits.
constexpr std::int64_t few_queries = 192, many_queries = 3 * few_queries;
static_assert(few_queries % panel_columns<float> == 0 && few_queries % panel_columns<double> == 0);
std::int64_t most_queries(std::int64_t heads) {
  return heads < 4 * num_threads() ? few_queries : many_queries;
}
/// Products of a query and a key, in numbers, that are worth a task.
constexpr std::int64_t worth_a_task = 1 << 18;

constexpr std::int64_t padded(std::int64_t rows) { return round_up(rows, panel_rows); }

/// The softmax of a panel of queries over the keys that have passed: weights are relative to e^top.
template <class T>
struct Running {
  using V = simd::Vec<T>;
  V top[panel_vectors], sum[panel_vectors];

  Running() {
    for (V& v : top) v = V{} - std::numeric_limits<T>::infinity();
    for (V& v : sum) v = V{};
  }

  /// Turns n scores of every query into weights, which as powers of 2 are cheaper. Returns in `factor` by
  /// what earlier ones have become smaller. Scores may be as low as a mask's -FLT_MAX: only what is left of
  /// them after the subtraction is multiplied.
  [[gnu::flatten]] void weigh(T* scores, std::int64_t n, V (&factor)[panel_vectors]) {
    constexpr std::int64_t columns = panel_columns<T>, lanes = simd::lanes<T>;
    constexpr T log2_e = std::numbers::log2e_v<T>;
    const V none = V{} - std::numeric_limits<T>::infinity();
    V shift[panel_vectors], added[2][panel_vectors] = {};
    for (int v = 0; v < panel_vectors; ++v) shift[v] = top[v];
    for (std::int64_t j = 0; j < n; ++j)
      for (int v = 0; v < panel_vectors; ++v)
        shift[v] = simd::larger(shift[v], load_vector(scores + j * columns + v * lanes));
    for (int v = 0; v < panel_vectors; ++v) {
      const V before = top[v];
      top[v] = shift[v];
      shift[v] = top[v] == none ? V{} : top[v];
      factor[v] = simd::exp2((before - shift[v]) * log2_e);
    }
    const auto weigh_row = [&](std::int64_t j, V(&sums)[panel_vectors]) {
      for (int v = 0; v < panel_vectors; ++v) {
        T* const at = scores + j * columns + v * lanes;
        const V weight = simd::exp2((load_vector(at) - shift[v]) * log2_e);
        std::memcpy(at, &weight, sizeof weight);
        sums[v] += weight;
      }
    };
    std::int64_t j = 0;
    for (; j + 2 <= n; j += 2) {
      weigh_row(j, added[0]);
      weigh_row(j + 1, added[1]);
    }
    if (j < n) weigh_row(j, added[0]);
    for (int v = 0; v < panel_vectors; ++v) sum[v] = sum[v] * factor[v] + (added[0][v] + added[1][v]);
  }
};

/// The memory of one task, and its work.
template <class T>
class HeadAttention {
 public:
  HeadAttention(const Scores<T>& scores, const Heads<T>& v, std::int64_t depth, std::int64_t width,
                std::int64_t keys)
      : scores_(scores),
        v_(v),
        depth_(depth),
        width_(width),
        keys_(padded(keys)),
        memory_(keys_ * (depth + padded(width)) + columns * (depth + passing_keys + padded(width))) {
    T* next = memory_.data();
    const auto take = [&](std::int64_t count) { return std::exchange(next, next + count); };
    key_panels_ = take(keys_ * depth);
    value_panels_ = take(keys_ * padded(width));
    query_panel_ = take(columns * depth);
    block_ = take(columns * passing_keys);
    sums_ = take(columns * padded(width));
  }

  /// o [count, width], whose rows are o_stride apart, and lse [count] of the queries from `query` on.
  void run(std::int64_t head, std::int64_t query, std::int64_t count, T* o, std::int64_t o_stride, T* lse) {
    head_ = head;
    first_ = scores_.first_key(query) / panel_rows * panel_rows;
    pack(scores_.end_key(query + count - 1));
    const auto queries = [&](std::int64_t i) { return std::clamp<std::int64_t>(count - i, 0, columns); };
    for (std::int64_t i = 0; i < count; i += columns) {
      fetch_rows(scores_.q().rows(head, query + i + columns, queries(i + columns)));
      attend(query + i, queries(i), o + i * o_stride, o_stride, lse + i);
    }
  }

 private:
  static constexpr std::int64_t columns = panel_columns<T>;

  /// The keys [first_, end) by rows, and their values by columns.
  void pack(std::int64_t end) {
    const std::int64_t shared = scores_.key_head(head_), count = std::max<std::int64_t>(end - first_, 0);
    const Matrix<const T> keys = scores_.k().rows(shared, first_, count),
                          values = v_.rows(shared, first_, count);
    for (std::int64_t key = 0; key < count; key += panel_rows) {
      const auto panel = [&](const Matrix<const T>& x, std::int64_t row) {
        return x.block(row, 0, std::clamp<std::int64_t>(count - row, 0, panel_rows), x.columns);
      };
      fetch_rows(panel(keys, key + panel_rows));
      fetch_rows(panel(values, key + panel_rows));
      pack_panel<panel_rows>(panel(keys, key), key_panels_ + key * depth_);
      const Matrix<const T> columns_of_values = panel(values, key).transposed();
      for (std::int64_t e = 0; e < width_; e += panel_rows)
        pack_panel<panel_rows>(columns_of_values.block(e, 0, std::min<std::int64_t>(panel_rows, width_ - e),
                                                       columns_of_values.columns),
                               value_panels_ + e * keys_ + key * panel_rows);
    }
  }

  void attend(std::int64_t query, std::int64_t count, T* o, std::int64_t o_stride, T* lse) {
    pack_panel<static_cast<int>(columns)>(scores_.q().rows(head_, query, count), query_panel_);
    Running<T> running;
    const std::int64_t first = scores_.first_key(query) / panel_rows * panel_rows,
                       end = scores_.end_key(query + count - 1);
    const std::int64_t blocks = divide_up(std::max<std::int64_t>(end - first, 1), passing_keys);
    const std::int64_t step = padded(divide_up(end - first, blocks));
    for (std::int64_t key = first; key < end; key += step) {
      const std::int64_t n = std::min(step, end - key);
      for (std::int64_t j = 0; j < n; j += panel_rows)
        multiply_panels<T>(depth_, scores_.scale(), key_panels_ + (key - first_ + j) * depth_, query_panel_,
                           Matrix<T>(block_ + j * columns, panel_rows, columns), false);
      scores_.hide(head_, query, key, Matrix<T>(block_, count, n, 1, columns));
      simd::Vec<T> factor[panel_vectors];
      running.weigh(block_, n, factor);
      if (key > first) scale(factor);
      for (std::int64_t e = 0; e < width_; e += panel_rows)
        multiply_panels<T>(n, 1, value_panels_ + e * keys_ + (key - first_) * panel_rows, block_,
                           Matrix<T>(sums_ + e * columns, rows_of_tile(width_ - e), columns), key > first);
    }
    simd::Vec<T> inverse[panel_vectors];
    for (int v = 0; v < panel_vectors; ++v) inverse[v] = T{1} / running.sum[v];
    scale(inverse);
    unpack_rows<static_cast<int>(columns)>(sums_, count, width_, o, o_stride);
    T top[columns], sum[columns];
    std::memcpy(top, running.top, sizeof top);
    std::memcpy(sum, running.sum, sizeof sum);
    for (std::int64_t i = 0; i < count; ++i) {
      const bool sees_none = sum[i] == T{0};
      lse[i] = sees_none ? -std::numeric_limits<T>::infinity() : top[i] + std::log(sum[i]);
      if (sees_none) std::fill_n(o + i * o_stride, width_, T{0});
    }
  }

  [[gnu::flatten]] void scale(const simd::Vec<T> (&factor)[panel_vectors]) {
    for (std::int64_t e = 0; e < width_; ++e)
      for (int v = 0; v < panel_vectors; ++v) {
        T* const at = sums_ + e * columns + v * simd::lanes<T>;
        const simd::Vec<T> scaled = load_vector(at) * factor[v];
        std::memcpy(at, &scaled, sizeof scaled);
      }
  }

  const Scores<T>& scores_;
  const Heads<T>& v_;
  const std::int64_t depth_, width_, keys_;
  Scratch<T> memory_;
  T *key_panels_, *value_panels_;    // [keys / rows][depth][rows], [width / rows][keys][rows]
  T *query_panel_, *block_, *sums_;  // [depth][columns], [passing keys][columns], [width][columns]
  std::int64_t head_ = 0, first_ = 0;
};

}  // namespace

bool accepts(const Cpu&, const op::Attention&, MetaSpan in) { return accepts_attention(in, 3); }

void run(Cpu& cpu, const op::Attention& op, Ins in, Outs out) {
  const Shape &q = in[0].shape(), &k = in[1].shape();
  const std::int64_t heads = q[0] * q[1], queries = q[2], width = in[2].shape()[3];
  Destination lse(cpu, out[1], false);
  visit_wide(in[0].dtype(), [&]<class T>() {
    HeadsOut<T> o(cpu, out[0]);
    const Scores<T> scores(cpu, op, in[0], in[1], in.size() > 3 ? &in[3] : nullptr);
    const Heads<T> v(cpu, in[2]);
    const std::int64_t most = most_queries(heads), parts = divide_up(queries, most);
    const std::int64_t work =
        std::max<std::int64_t>(1, queries / std::max<std::int64_t>(parts, 1) * k[2] * q[3]);
    parallel_ranges(heads * parts, divide_up(worth_a_task, work), [&](std::int64_t begin, std::int64_t end) {
      HeadAttention<T> attention(scores, v, q[3], width, k[2]);
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t head = i / parts, query = i % parts * most;
        attention.run(head, query, std::min(most, queries - query), o.row(head, query), o.row_stride(),
                      lse.array().data<T>() + head * queries + query);
      }
    });
    o.commit();
  });
  lse.commit();
}

}  // namespace ferrite
