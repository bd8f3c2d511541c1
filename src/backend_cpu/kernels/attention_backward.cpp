// The gradients of attention. Weights are computed again from the scores and the saved log-sum-exp, one block
// at a time, so that nothing of the size of all scores is ever stored.
#include <cmath>

#include "backend_cpu/kit/attention_scores.hpp"
#include "backend_cpu/simd/simd.hpp"
#include "ferrite/backend/cpu.hpp"
#include "ferrite/ops/attention.hpp"

namespace ferrite {

using namespace cpu;

namespace {

template <class T>
[[gnu::flatten]] T dot(const T* x, const T* y, std::int64_t n) {
  return simd::sum<T>(n, [&](auto at) { return at(x) * at(y); });
}

/// Scores become weights p, and dp becomes the gradient of the scores p (dp - delta).
template <class T>
[[gnu::flatten]] void differentiate_row(T* scores, T* dp, std::int64_t n, T lse, T delta) {
  const T shift = std::isfinite(lse) ? lse : T{0};
  simd::map(scores, n, [&](auto at) { return simd::exp(at(scores) - shift); });
  simd::map(dp, n, [&](auto at) { return at(scores) * (at(dp) - delta); });
}

template <class T>
struct Problem {
  Scores<T> scores;
  Heads<T> v, grad, o;
  const T* lse;  // [heads, queries]
  std::int64_t queries, keys, depth, width;
  T scale;

  /// Adds what the keys [begin, end) contribute to the gradients of one head of q and of those that it reads.
  void differentiate(std::int64_t head, std::int64_t begin, std::int64_t end, const T* delta, T* dq, T* dk,
                     T* dv) const {
    const std::int64_t key_head = scores.key_head(head);
    const Scratch<T> blocks(2 * query_block * key_block);
    T *p = blocks.data(), *ds = p + query_block * key_block;
    for (std::int64_t key = begin; key < end; key += key_block) {
      const std::int64_t first = scores.first_query(key) / query_block * query_block;
      const std::int64_t last = scores.end_query(std::min(key + key_block, end) - 1);
      for (std::int64_t query = first; query < last; query += query_block) {
        const std::int64_t rows = std::min(query_block, queries - query), at = head * queries + query;
        const std::int64_t columns = std::min({key_block, end - key, scores.end_key(query + rows - 1) - key});
        const Matrix<const T> q_rows = scores.q().rows(head, query, rows);
        const Matrix<const T> k_rows = scores.k().rows(key_head, key, columns);
        const Matrix<const T> v_rows = v.rows(key_head, key, columns),
                              grad_rows = grad.rows(head, query, rows);
        scores.compute(head, query, rows, key, columns, p);
        const Matrix<T> weights(p, rows, columns), dscores(ds, rows, columns);
        gemm<T>(T{1}, grad_rows, v_rows.transposed(), dscores, false);
        for (std::int64_t i = 0; i < rows; ++i)
          differentiate_row(p + i * columns, ds + i * columns, columns, lse[at + i], delta[at + i]);
        gemm<T>(T{1}, weights.transposed(), grad_rows, Matrix<T>(dv + key * width, columns, width), true);
        gemm<T>(scale, dscores.transposed(), q_rows, Matrix<T>(dk + key * depth, columns, depth), true);
        gemm<T>(scale, dscores, k_rows, Matrix<T>(dq + query * depth, rows, depth), true);
      }
    }
  }
};

/// A dense output.
template <class T>
struct Gradient {
  T* data;
  bool add;

  explicit Gradient(const Destination& out) : data(out.array().data<T>()), add(out.add()) {}
  /// Elements [begin, end) are added to from now on.
  void prepare(std::int64_t begin, std::int64_t end) const {
    if (!add && begin < end) std::fill(data + begin, data + end, T{0});
  }
};

template <class T>
void backward(const Problem<T>& p, std::int64_t heads, std::int64_t key_heads, Gradient<T> dq, Gradient<T> dk,
              Gradient<T> dv) {
  // sum(dp * p) of each query, which is also the product of its output and its gradient.
  const Scratch<T> delta(heads * p.queries);
  parallel_for(heads, [&](std::int64_t head) {
    for (std::int64_t t = 0; t < p.queries; ++t)
      delta.data()[head * p.queries + t] =
          dot(p.grad.rows(head, t, 1).data, p.o.rows(head, t, 1).data, p.width);
  });
  // One task has all heads of q that share a head of k and v, so that no other adds to their gradients. Few
  // heads are cut further by keys; each segment then has its own sum for dq.
  constexpr std::int64_t wanted_chunks = 16;
  const std::int64_t blocks = (p.keys + key_block - 1) / key_block, size = p.queries * p.depth;
  const std::int64_t sharing = p.scores.sharing(),
                     wanted = wanted_chunks / std::max<std::int64_t>(key_heads, 1);
  const std::int64_t segments = std::clamp<std::int64_t>(wanted, 1, std::max<std::int64_t>(blocks, 1));
  const Scratch<T> sums((segments - 1) * heads * size);
  parallel_for(key_heads * segments, [&](std::int64_t index) {
    const std::int64_t key_head = index / segments, segment = index % segments;
    const std::int64_t begin = segment * blocks / segments * key_block;
    const std::int64_t end = std::min(p.keys, (segment + 1) * blocks / segments * key_block);
    dk.prepare((key_head * p.keys + begin) * p.depth, (key_head * p.keys + end) * p.depth);
    dv.prepare((key_head * p.keys + begin) * p.width, (key_head * p.keys + end) * p.width);
    for (std::int64_t head = key_head * sharing; head < (key_head + 1) * sharing; ++head) {
      T* sum =
          segment == 0 ? dq.data + head * size : sums.data() + (head * (segments - 1) + segment - 1) * size;
      if (segment == 0)
        dq.prepare(head * size, (head + 1) * size);
      else
        std::fill_n(sum, size, T{0});
      p.differentiate(head, begin, end, delta.data(), sum, dk.data + key_head * p.keys * p.depth,
                      dv.data + key_head * p.keys * p.width);
    }
  });
  if (segments == 1) return;
  parallel_for(heads, [&](std::int64_t head) {
    for (std::int64_t segment = 1; segment < segments; ++segment) {
      const T* sum = sums.data() + (head * (segments - 1) + segment - 1) * size;
      for (std::int64_t i = 0; i < size; ++i) dq.data[head * size + i] += sum[i];
    }
  });
}

}  // namespace

bool accepts(const Cpu&, const op::AttentionBackward&, MetaSpan in) { return accepts_attention(in, 6); }

void run(Cpu& cpu, const op::AttentionBackward& op, Ins in, Outs out, Accumulate mask) {
  const Shape &q = in[1].shape(), &v = in[3].shape();
  Destination gradients[] = {{cpu, out[0], accumulates(mask, 0)},
                             {cpu, out[1], accumulates(mask, 1)},
                             {cpu, out[2], accumulates(mask, 2)}};
  const Array lse = dense(cpu, in[5]);
  visit_wide(lse.dtype(), [&]<class T>() {
    const Problem<T> problem{Scores<T>(cpu, op, in[1], in[2], in.size() > 6 ? &in[6] : nullptr),
                             Heads<T>(cpu, in[3]),
                             Heads<T>(cpu, in[0]),
                             Heads<T>(cpu, in[4]),
                             lse.data<T>(),
                             q[2],
                             v[2],
                             q[3],
                             v[3],
                             static_cast<T>(op.scale)};
    backward(problem, q[0] * q[1], v[0] * v[1], Gradient<T>(gradients[0]), Gradient<T>(gradients[1]),
             Gradient<T>(gradients[2]));
  });
  for (Destination& d : gradients) d.commit();
}

}  // namespace ferrite
