// Attention and its gradients of the Cpu backend against loops in double.
#include "ferrite/ops/attention.hpp"

#include <limits>
#include <optional>

#include "ops/contraction_support.hpp"

namespace ferrite::testing {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

struct AttentionExtents {
  std::int64_t batch, heads, queries, keys, depth, width;
  std::int64_t sharing = 1;  // heads of queries for each of keys and values
};

struct Inputs {
  Array q, k, v, grad;
  std::optional<Array> mask;
};

Inputs inputs(const AttentionExtents& e, DType dtype, Storage storage = Storage::contiguous) {
  return {random({e.batch, e.heads, e.queries, e.depth}, dtype, storage, 1),
          random({e.batch, e.heads / e.sharing, e.keys, e.depth}, dtype, storage, 2),
          random({e.batch, e.heads / e.sharing, e.keys, e.width}, dtype, storage, 3),
          random({e.batch, e.heads, e.queries, e.width}, dtype, storage, 4),
          {}};
}

struct Results {
  Values o, lse, dq, dk, dv;
};

Results naive(const op::Attention& op, const Inputs& in) {
  const Shape &s = in.q.shape(), &t = in.v.shape();
  const std::int64_t heads = s[0] * s[1], queries = s[2], depth = s[3], keys = t[2], width = t[3];
  const std::int64_t sharing = s[1] / t[1];
  const Values q = values_of(in.q), k = values_of(in.k), v = values_of(in.v), grad = values_of(in.grad);
  Values mask;
  if (in.mask) mask = values_of(in.mask->with_layout(in.mask->layout().expand({s[0], s[1], queries, keys})));
  Results r{
      Values(grad.size(), 0.0), {}, Values(q.size(), 0.0), Values(k.size(), 0.0), Values(v.size(), 0.0)};
  for (std::int64_t head = 0; head < heads; ++head) {
    const std::int64_t h = head / sharing;  // of keys and values
    for (std::int64_t i = 0; i < queries; ++i) {
      const std::int64_t row = head * queries + i, place = i + keys - queries;
      Values p(at(keys), -infinity);
      double top = -infinity, sum = 0;
      for (std::int64_t j = 0; j < keys; ++j) {
        if (op.causal && j > place) continue;
        if (op.window > 0 && std::abs(place - j) >= op.window) continue;
        double score = 0;
        for (std::int64_t d = 0; d < depth; ++d)
          score += q[at(row * depth + d)] * k[at((h * keys + j) * depth + d)];
        score *= op.scale;
        if (in.mask && in.mask->dtype() == DType::bool_)
          score = mask[at(row * keys + j)] != 0 ? score : -infinity;
        else if (in.mask)
          score += mask[at(row * keys + j)];
        p[at(j)] = score;
        top = std::max(top, score);
      }
      if (top == -infinity) {
        r.lse.push_back(-infinity);
        continue;
      }
      for (double& x : p) sum += std::exp(x - top);
      for (double& x : p) x = std::exp(x - top) / sum;
      r.lse.push_back(top + std::log(sum));
      double delta = 0;
      for (std::int64_t e = 0; e < width; ++e) {
        double& o = r.o[at(row * width + e)];
        for (std::int64_t j = 0; j < keys; ++j) o += p[at(j)] * v[at((h * keys + j) * width + e)];
        delta += o * grad[at(row * width + e)];
      }
      for (std::int64_t j = 0; j < keys; ++j) {
        double dp = 0;
        for (std::int64_t e = 0; e < width; ++e) {
          dp += grad[at(row * width + e)] * v[at((h * keys + j) * width + e)];
          r.dv[at((h * keys + j) * width + e)] += p[at(j)] * grad[at(row * width + e)];
        }
        const double ds = p[at(j)] * (dp - delta) * op.scale;
        for (std::int64_t d = 0; d < depth; ++d) {
          r.dq[at(row * depth + d)] += ds * k[at((h * keys + j) * depth + d)];
          r.dk[at((h * keys + j) * depth + d)] += ds * q[at(row * depth + d)];
        }
      }
    }
  }
  return r;
}

std::vector<Array> forward(const op::Attention& op, const Inputs& in) {
  return in.mask ? run(op, {in.q, in.k, in.v, *in.mask}) : run(op, {in.q, in.k, in.v});
}

std::vector<Array> backward(const op::Attention& op, const Inputs& in, const std::vector<Array>& out) {
  const op::AttentionBackward grad{op.causal, op.scale, op.window};
  return in.mask ? run(grad, {in.grad, in.q, in.k, in.v, out[0], out[1], *in.mask})
                 : run(grad, {in.grad, in.q, in.k, in.v, out[0], out[1]});
}

void expect_attention(const op::Attention& op, const Inputs& in) {
  SCOPED_TRACE(to_string(in.q.meta()) + " " + to_string(in.k.meta()) + " " + to_string(in.v.meta()) +
               (op.causal ? " causal" : "") + " window " + std::to_string(op.window) +
               (in.mask ? " mask " + to_string(in.mask->meta()) : ""));
  const Results want = naive(op, in);
  const std::int64_t sharing = in.q.shape()[1] / in.k.shape()[1];
  const double tolerance =
      sum_tolerance(in.q.dtype(), in.q.shape()[3] + in.k.shape()[2] + sharing * in.q.shape()[2]);
  const std::vector<Array> out = forward(op, in), gradients = backward(op, in, out);
  expect_close(out[0], want.o, tolerance);
  expect_close(out[1], want.lse, tolerance);
  expect_close(gradients[0], want.dq, tolerance);
  expect_close(gradients[1], want.dk, tolerance);
  expect_close(gradients[2], want.dv, tolerance);
}

const std::vector<AttentionExtents>& extents() {
  static const std::vector<AttentionExtents> all = {
      {1, 1, 1, 1, 1, 1},       {2, 3, 5, 7, 4, 6},       {1, 2, 64, 128, 16, 16},
      {1, 1, 65, 129, 8, 12},   {2, 1, 200, 70, 24, 9},   {1, 1, 70, 300, 17, 33},
      {3, 7, 33, 33, 5, 5},     {1, 1, 150, 400, 64, 64}, {1, 2, 1, 260, 8, 8},
      {1, 2, 90, 1, 8, 8},      {2, 4, 70, 150, 8, 6, 2}, {1, 6, 130, 130, 8, 8, 6},
      {1, 20, 33, 40, 4, 4, 1}, {2, 12, 9, 300, 8, 8, 3}, {1, 64, 577, 20, 4, 4},
      {1, 4, 400, 420, 2, 2},  // in other parts for one thread than for two
  };
  return all;
}

TEST(CpuAttention, AgreesWithTheLoopsForwardAndBackward) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    for (const AttentionExtents& e : extents()) {
      expect_attention({false, 0.4}, inputs(e, dtype));
      expect_attention({true, 0.4}, inputs(e, dtype));
    }
  }
}

TEST(CpuAttention, WindowsHideWhatIsFartherAway) {
  constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
  for (const AttentionExtents& e : extents()) {
    for (const std::int64_t window :
         {std::int64_t{1}, std::int64_t{5}, std::int64_t{64}, std::int64_t{130}, largest}) {
      expect_attention({false, 0.4, window}, inputs(e, DType::f64));
      expect_attention({true, 0.4, window}, inputs(e, DType::f32));
    }
    Inputs masked = inputs(e, DType::f32);
    masked.mask = random({e.queries, e.keys}, DType::bool_);
    expect_attention({true, 0.4, 7}, masked);
  }
}

TEST(CpuAttention, HeadsOfKeysMustDivideThoseOfQueries) {
  const Meta q{{1, 4, 3, 2}, DType::f32}, k{{1, 3, 3, 2}, DType::f32}, none{{1, 0, 3, 2}, DType::f32};
  EXPECT_THROW(op::Attention{}.infer(Metas{q, k, k}), ShapeError);
  EXPECT_THROW(op::Attention{}.infer(Metas{k, q, q}), ShapeError);
  EXPECT_THROW(op::Attention{}.infer(Metas{q, none, none}), ShapeError);
  EXPECT_THROW((op::Attention{false, 1, -1}.infer(Metas{q, q, q})), ValueError);
}

TEST(CpuAttention, TakesBoolAndFloatingMasksOfAnyBroadcastShape) {
  for (const AttentionExtents& e : extents()) {
    for (const DType dtype : {DType::bool_, DType::f32}) {
      for (const Shape& shape : {Shape{e.batch, e.heads, e.queries, e.keys},
                                 {e.batch, 1, 1, e.keys},
                                 {e.queries, 1},
                                 {e.heads, e.queries, e.keys},
                                 {1, e.keys}}) {
        Inputs in = inputs(e, DType::f32);
        for (const Storage storage : {Storage::contiguous, Storage::transposed, Storage::spaced}) {
          in.mask = random(shape, dtype, storage, 5);
          expect_attention({false, 0.5}, in);
        }
        expect_attention({true, 0.5}, in);
      }
    }
  }
}

TEST(CpuAttention, GivesZeroToQueriesThatSeeNoKey) {
  // With fewer keys than queries the first queries see none, some of them in a block of their own.
  const Inputs in = inputs({1, 2, 200, 60, 8, 8}, DType::f32);
  expect_attention({true, 1}, in);
  const std::vector<Array> out = forward({true, 1}, in);
  EXPECT_EQ(values_of(out[0])[0], 0.0);
  EXPECT_EQ(values_of(out[1])[0], -infinity);
  for (const DType dtype : {DType::bool_, DType::f32}) {
    Inputs masked = inputs({2, 1, 5, 150, 4, 4}, DType::f32);
    masked.mask = random({5, 150}, dtype);
    Values mask = values_of(*masked.mask);
    for (std::size_t j = 0; j < 150; ++j) {
      mask[j] = dtype == DType::bool_ ? 0 : -infinity;                     // the first query sees none
      if (j < 140) mask[300 + j] = dtype == DType::bool_ ? 0 : -infinity;  // the third only the last keys
    }
    assign(*masked.mask, mask);
    expect_attention({false, 1}, masked);
    EXPECT_EQ(values_of(forward({false, 1}, masked)[1])[0], -infinity);
  }
}

TEST(CpuAttention, TheLowestNumbersInAMaskHideKeysToo) {
  constexpr std::int64_t heads = 2, queries = 3, keys = 400, width = 8;
  for (const double low : {-1e9, -1e10, -3e10, double{std::numeric_limits<float>::lowest()}}) {
    Inputs in = inputs({1, heads, queries, keys, width, width}, DType::f32), hidden = in;
    in.mask = random({queries, keys}, DType::f32);
    hidden.mask = random({queries, keys}, DType::f32);
    Values lowest(at(queries * keys), 0.0), infinite = lowest;
    for (std::int64_t j = 0; j < keys; ++j) lowest[at(j)] = low;  // the first query sees all alike
    for (std::int64_t j = 0; j < 300; ++j) {                      // the second the last keys
      lowest[at(keys + j)] = low;
      infinite[at(keys + j)] = -infinity;
    }
    assign(*in.mask, lowest);
    assign(*hidden.mask, infinite);
    const Values o = values_of(forward({false, 1}, in)[0]), want = values_of(forward({false, 1}, hidden)[0]);
    const Values v = values_of(in.v);
    for (std::int64_t head = 0; head < heads; ++head)
      for (std::int64_t e = 0; e < width; ++e) {
        double mean = 0;
        for (std::int64_t j = 0; j < keys; ++j) mean += v[at((head * keys + j) * width + e)] / keys;
        EXPECT_NEAR(o[at(head * queries * width + e)], mean, 1e-5) << low;
        for (std::int64_t row = head * queries + 1; row < (head + 1) * queries; ++row)
          EXPECT_NEAR(o[at(row * width + e)], want[at(row * width + e)], 1e-6) << low;
      }
  }
}

TEST(CpuAttention, StaysExactForLargeScores) {
  Inputs in = inputs({1, 1, 70, 200, 8, 8}, DType::f32);
  const Results want = naive({false, 300.0}, in);
  const std::vector<Array> out = forward({false, 300.0}, in);
  expect_close(out[0], want.o, 2e-3);  // scores near 500 have an error of 1e-4, and so have the weights
  expect_close(out[1], want.lse, 1e-6);
}

TEST(CpuAttention, TakesEveryStorage) {
  for (const Storage storage : all_storages) {
    expect_attention({true, 0.3}, inputs({2, 2, 66, 70, 5, 6}, DType::f32, storage));
    expect_attention({false, 0.3}, inputs({2, 2, 66, 70, 5, 6}, DType::f64, storage));
  }
}

TEST(CpuAttention, TakesHeadsThatLieBetweenTheRows) {
  // As a projection gives them: [B, T, H, D] seen as [B, H, T, D]; and keys shared by all heads.
  Inputs in = inputs({2, 3, 70, 80, 8, 8}, DType::f32);
  const Array q = random({2, 70, 3, 8}, DType::f32, Storage::contiguous, 7);
  in.q = q.with_layout(q.layout().permute({0, 2, 1, 3}));
  const Array k = random({2, 1, 80, 8}, DType::f32, Storage::contiguous, 8);
  in.k = k.with_layout(k.layout().expand({2, 3, 80, 8}));
  const Array grad = random({1, 1, 1, 1}, DType::f32, Storage::contiguous, 9);
  in.grad = grad.with_layout(grad.layout().expand({2, 3, 70, 8}));
  expect_attention({true, 0.3}, in);
}

TEST(CpuAttention, WritesHeadsThatLieBetweenTheRows) {
  // Few heads and many, which share the packing of keys among different numbers of queries.
  for (const AttentionExtents& e :
       {AttentionExtents{2, 3, 200, 40, 8, 6}, AttentionExtents{1, 64, 577, 20, 4, 5}}) {
    const Inputs in = inputs(e, DType::f32);
    const op::Attention op{false, 0.3};
    const Results want = naive(op, in);
    const Array o = allocate({e.batch, e.queries, e.heads, e.width}, DType::f32, Storage::contiguous);
    std::vector<Array> out = {o.with_layout(o.layout().permute({0, 2, 1, 3})),
                              allocate({e.batch, e.heads, e.queries}, DType::f32, Storage::contiguous)};
    run_kernel_into(op, {in.q, in.k, in.v}, out);
    expect_close(out[0], want.o, 1e-5);
    expect_close(out[1], want.lse, 1e-5);
  }
}

TEST(CpuAttention, WritesAndAccumulatesGradientsIntoEveryLayout) {
  const Inputs in = inputs({2, 2, 70, 150, 6, 5}, DType::f32);
  const op::Attention op{true, 0.3};
  const Results want = naive(op, in);
  for (const Storage storage : all_storages) {
    std::vector<Array> out = {allocate(in.grad.shape(), DType::f32, storage),
                              allocate({2, 2, 70}, DType::f32, storage)};
    run_kernel_into(op, {in.q, in.k, in.v}, out);
    expect_close(out[0], want.o, 1e-5);
    expect_close(out[1], want.lse, 1e-5);
    for (std::uint32_t mask = 0; mask < 8; ++mask) {
      std::vector<Array> gradients = {random(in.q.shape(), DType::f32, storage, 7),
                                      random(in.k.shape(), DType::f32, storage, 8),
                                      random(in.v.shape(), DType::f32, storage, 9)};
      Values sums[] = {want.dq, want.dk, want.dv};
      for (std::size_t i = 0; i < 3; ++i) {
        const Values before = values_of(gradients[i]);
        for (std::size_t j = 0; (mask >> i & 1) != 0 && j < before.size(); ++j) sums[i][j] += before[j];
      }
      run_kernel_into(op::AttentionBackward{op.causal, op.scale}, {in.grad, in.q, in.k, in.v, out[0], out[1]},
                      gradients, mask);
      for (std::size_t i = 0; i < 3; ++i) expect_close(gradients[i], sums[i], 1e-5);
    }
  }
}

TEST(CpuAttention, TakesEmptyExtents) {
  for (const AttentionExtents& e : {AttentionExtents{0, 2, 3, 4, 5, 6},
                                    {1, 2, 0, 4, 5, 6},
                                    {1, 2, 3, 0, 5, 6},
                                    {1, 2, 3, 4, 0, 6},
                                    {1, 2, 3, 4, 5, 0}}) {
    expect_attention({false, 1}, inputs(e, DType::f32));
    expect_attention({true, 1}, inputs(e, DType::f32));
  }
}

TEST(CpuAttention, NeedsNoMemoryForAllScores) {
  const Inputs in = inputs({1, 1, 2000, 2000, 8, 8}, DType::f32);
  const std::size_t all_scores = 2000 * 2000 * sizeof(float);
  host_allocator().reset_peak();
  const std::size_t before = host_allocator().stats().in_use;
  backward({false, 1}, in, forward({false, 1}, in));
  EXPECT_LT(host_allocator().stats().peak - before, all_scores / 4);
}

TEST(CpuAttention, LeavesOtherDtypesToTheComposition) {
  const auto metas = [](DType dtype, std::optional<DType> mask) {
    std::vector<Meta> m(3, Meta{{1, 1, 2, 2}, dtype});
    if (mask) m.push_back({{2, 2}, *mask});
    return m;
  };
  EXPECT_FALSE(accepts(Cpu{}, op::Attention{}, metas(DType::f16, {})));
  EXPECT_FALSE(accepts(Cpu{}, op::Attention{}, metas(DType::f32, DType::f64)));
  EXPECT_TRUE(accepts(Cpu{}, op::Attention{}, metas(DType::f32, {})));
  EXPECT_TRUE(accepts(Cpu{}, op::Attention{}, metas(DType::f64, DType::bool_)));
}

TEST(CpuAttention, GivesTheSameBitsForAnyNumberOfThreads) {
  for (const AttentionExtents& e : extents()) {
    for (const bool causal : {false, true}) {
      expect_same_bits_for_any_thread_count([&] {
        const Inputs in = inputs(e, DType::f32);
        std::vector<Array> out = forward({causal, 0.4}, in);
        for (Array& g : backward({causal, 0.4}, in, out)) out.push_back(g);
        return out;
      });
    }
  }
}

}  // namespace
}  // namespace ferrite::testing
