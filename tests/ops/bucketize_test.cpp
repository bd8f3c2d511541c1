#include "ferrite/ops/bucketize.hpp"

#include "ops/fused_support.hpp"

namespace ferrite::testing {
namespace {

/// One edge after another, in f64.
Lists by_counting(const op::Bucketize& op, const Lists& in, std::int64_t columns) {
  const auto edges = static_cast<std::int64_t>(in[1].size()) / columns;
  Values tokens;
  for (std::size_t i = 0; i < in[0].size(); ++i) {
    const double x = in[0][i];
    double token = 0;
    for (std::int64_t e = 0; e < edges; ++e) {
      const double edge = in[1][i % at(columns) * at(edges) + at(e)];
      token += op.closed == Closed::left ? edge <= x : edge < x;
    }
    tokens.push_back(x == x ? token : static_cast<double>(op.missing));
  }
  return {tokens};
}

Array edges_of(std::int64_t columns, std::int64_t count, std::uint64_t seed) {
  Values edges;
  for (std::int64_t c = 0; c < columns; ++c) {
    Values row = values_of(uniform({count}, DType::f64, seed + static_cast<std::uint64_t>(c)));
    std::sort(row.begin(), row.end());
    for (std::int64_t i = count - c % (count + 1); i < count; ++i) row[at(i)] = NAN;  // fewer and fewer
    edges.insert(edges.end(), row.begin(), row.end());
  }
  return array_of({columns, count}, DType::f64, edges);
}

void expect_exact(const Array& x, const Array& edges, std::int64_t missing) {
  for (const Closed closed : {Closed::left, Closed::right})
    for (const DType dtype : {DType::u8, DType::i32, DType::i64}) {
      const op::Bucketize op{closed, missing, dtype};
      check(op, {x, edges}, [&](const Lists& in) { return by_counting(op, in, x.shape()[1]); }, {0, 1});
    }
}

TEST(CpuBucketize, CountsTheEdgesBelow) {
  for (const DType dtype : {DType::f32, DType::f64})
    for (const Shape& shape : {Shape{1, 1}, Shape{0, 3}, Shape{7, 3}, Shape{300, 20}, Shape{5000, 2}})
      for (const std::int64_t count : {0, 1, 2, 99, 253})
        expect_exact(uniform(shape, dtype, 8), edges_of(shape[1], count, 4), 254);
}

TEST(CpuBucketize, DividesTheFloatsAsTheF64EdgesDo) {
  // Edges within half an ulp of floats, on them, beyond their range and below their smallest.
  Values edges, xs;
  for (const double v : {-1e300, -1.5, -0x1p-149, -1e-320, -0.0, 0.0, 1e-320, 0x1p-149, 0.1, 1.0, 1 + 0x1p-40,
                         1 + 0x1p-23 - 0x1p-50, 3.4e38, 1e300}) {
    edges.push_back(v);
    const float nearest = static_cast<float>(v);
    for (const float x : {nearest, std::nextafter(nearest, -INFINITY), std::nextafter(nearest, INFINITY)})
      xs.push_back(static_cast<double>(x));
  }
  for (const double v : {-infinity, infinity, static_cast<double>(NAN), -0.0, 0.0}) xs.push_back(v);
  std::sort(edges.begin(), edges.end());
  const auto n = static_cast<std::int64_t>(xs.size()), e = static_cast<std::int64_t>(edges.size());
  for (const DType dtype : {DType::f32, DType::f64})
    expect_exact(array_of({n, 1}, dtype, xs), array_of({1, e}, DType::f64, edges), 200);
}

TEST(CpuBucketize, TakesTiedAndInfiniteEdges) {
  const Values edges{-infinity, -infinity, 0, 0, 0, 2, infinity, infinity};
  const Values xs{-infinity, -1, -0.0, 0, 1, 2, 3, infinity, NAN};
  for (const DType dtype : {DType::f32, DType::f64})
    expect_exact(array_of({9, 1}, dtype, xs), array_of({1, 8}, DType::f64, edges), 99);
}

TEST(CpuBucketize, LeavesMoreEdgesThanItsCellsHoldToTheComposedOp) {
  const Cpu b;
  const auto accepts = [&](std::int64_t edges) {
    const Meta in[] = {{{5, 3}, DType::f32}, {{3, edges}, DType::f64}};
    return ferrite::accepts(b, op::Bucketize{}, in);
  };
  EXPECT_TRUE(accepts(1 << 20));
  EXPECT_FALSE(accepts((1 << 20) + 1));
}

TEST(Bucketize, SaysWhatIsWrong) {
  const auto infer = [](op::Bucketize op, const Meta& x, const Meta& edges) {
    const Meta in[] = {x, edges};
    return op.infer(in);
  };
  const Meta x{{5, 3}, DType::f32}, edges{{3, 7}, DType::f64};
  EXPECT_THROW(infer({}, x, {{2, 7}, DType::f64}), ShapeError);
  EXPECT_THROW(infer({}, x, {{3, 7}, DType::f32}), DTypeError);
  EXPECT_THROW(infer({}, {{5, 3}, DType::i32}, edges), DTypeError);
  EXPECT_THROW(infer({Closed::left, 0, DType::f32}, x, edges), DTypeError);
  EXPECT_THROW(infer({Closed::left, 256, DType::u8}, x, edges), ValueError);
  EXPECT_THROW(infer({Closed::left, 0, DType::u8}, x, {{3, 256}, DType::f64}), ValueError);
}

}  // namespace
}  // namespace ferrite::testing
