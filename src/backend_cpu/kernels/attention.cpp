// Attention without a buffer of all scores: for each block of queries the keys pass by block by block, with a
// running maximum and sum per query (Milakov and Gimelshein 2018; Dao et al. 2022).
#include "ferrite/ops/attention.hpp"

#include <cmath>

#include "backend_cpu/kit/attention_scores.hpp"
#include "backend_cpu/simd/simd.hpp"
#include "ferrite/backend/cpu.hpp"

namespace ferrite {

using namespace cpu;

namespace {

/// The softmax of one query over the keys that have passed: weights are relative to e^top.
template <class T>
struct Running {
  T top = -std::numeric_limits<T>::infinity();
  T sum = 0;
};

/// Turns a row of scores into weights and returns by which factor earlier weights have become smaller.
template <class T>
[[gnu::flatten]] T weigh(Running<T>& running, T* row, std::int64_t n) {
  constexpr T none = -std::numeric_limits<T>::infinity();
  const T block_top = simd::max<T>(n, [&](auto at) { return at(row); });
  const T top = block_top > running.top ? block_top : running.top;
  const T shift = top == none ? T{0} : top;
  const T sum = simd::map_sum(row, n, [&](auto at) { return simd::exp(at(row) - shift); });
  const T factor = running.top == none ? T{0} : std::exp(running.top - top);
  running = {top, running.sum * factor + sum};
  return factor;
}

template <class T>
[[gnu::flatten]] void scale_row(T* row, std::int64_t n, T factor) {
  simd::map(row, n, [&](auto at) { return at(row) * factor; });
}

/// o [rows, E] and lse [rows] of the queries from `query` on; `scores` has room for one block.
template <class T>
void attend(const Scores<T>& scores, const Heads<T>& v, std::int64_t head, std::int64_t query,
            std::int64_t rows, std::int64_t width, T* block, T* o, T* lse) {
  Running<T> running[query_block];
  const std::int64_t first = scores.first_key(query), end = scores.end_key(query + rows - 1);
  for (std::int64_t key = first; key < end; key += key_block) {
    const std::int64_t columns = std::min(key_block, end - key);
    scores.compute(head, query, rows, key, columns, block);
    for (std::int64_t i = 0; i < rows; ++i) {
      const T factor = weigh(running[i], block + i * columns, columns);
      if (key > first && factor != T{1}) scale_row(o + i * width, width, factor);
    }
    gemm<T>(T{1}, Matrix<const T>(block, rows, columns), v.rows(scores.key_head(head), key, columns),
            Matrix<T>(o, rows, width), key > first);
  }
  for (std::int64_t i = 0; i < rows; ++i) {
    const bool sees_none = running[i].sum == T{0};
    lse[i] = sees_none ? -std::numeric_limits<T>::infinity() : running[i].top + std::log(running[i].sum);
    if (sees_none)
      std::fill_n(o + i * width, width, T{0});
    else
      scale_row(o + i * width, width, 1 / running[i].sum);
  }
}

}  // namespace

bool accepts(const Cpu&, const op::Attention&, MetaSpan in) { return accepts_attention(in, 3); }

void run(Cpu& cpu, const op::Attention& op, Ins in, Outs out) {
  const Shape& q = in[0].shape();
  const std::int64_t heads = q[0] * q[1], queries = q[2], width = in[2].shape()[3];
  Destination o(cpu, out[0], false), lse(cpu, out[1], false);
  visit_wide(in[0].dtype(), [&]<class T>() {
    const Scores<T> scores(cpu, op, in[0], in[1], in.size() > 3 ? &in[3] : nullptr);
    const Heads<T> v(cpu, in[2]);
    const std::int64_t blocks = (queries + query_block - 1) / query_block;
    parallel_for(heads * blocks, [&](std::int64_t index) {
      const std::int64_t head = index / blocks, query = index % blocks * query_block;
      const std::int64_t rows = std::min(query_block, queries - query), at = head * queries + query;
      const Scratch<T> block(query_block * key_block);
      attend(scores, v, head, query, rows, width, block.data(), o.array().data<T>() + at * width,
             lse.array().data<T>() + at);
    });
  });
  o.commit();
  lse.commit();
}

}  // namespace ferrite
