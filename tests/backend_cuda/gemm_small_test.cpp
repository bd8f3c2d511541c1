// Every variant of the small products of our own, against Reference: edges of the tiles, transpositions,
// batches, sums added to. What lies between the columns of an operand is NaN, so that nothing of it may be
// read; what lies between those of the result must stay.
#include "backend_cuda/gemm/gemm_small.hpp"

#include <algorithm>

#include "backend_cuda/contraction_support.hpp"
#include "backend_cuda/runtime/device_context.hpp"
#include "ferrite/cuda/launch.hpp"
#include "ferrite/ops/cat.hpp"

namespace ferrite::testing {
namespace {

using cuda::GemmProblem;
using cuda::SmallGemm;

struct Size {
  std::int64_t m, n, k, batch;
};
struct Kind {
  const char* name;
  DType dtype;
  bool tf32;
};
constexpr Kind kinds[] = {{"f32", DType::f32, false},
                          {"tf32", DType::f32, true},
                          {"f16", DType::f16, false},
                          {"bf16", DType::bf16, false}};

/// Dense, with leading dimensions that are multiples of 16 bytes.
GemmProblem problem_of(const Size& size, const Kind& kind, bool transpose_a, bool transpose_b) {
  const auto lanes = static_cast<std::int64_t>(16 / size_of(kind.dtype));
  const auto padded = [&](std::int64_t x) { return (x / lanes + 1) * lanes; };
  GemmProblem p{};
  p.m = size.m;
  p.n = size.n;
  p.k = size.k;
  p.batch = size.batch;
  p.lda = padded(transpose_a ? size.k : size.m);
  p.ldb = padded(transpose_b ? size.n : size.k);
  p.ldd = padded(size.m);
  p.stride_a = p.lda * (transpose_a ? size.m : size.k);
  p.stride_b = p.ldb * (transpose_b ? size.k : size.n);
  p.stride_d = p.ldd * size.n;
  p.dtype = p.result = kind.dtype;
  p.tf32 = kind.tf32;
  p.transpose_a = transpose_a;
  p.transpose_b = transpose_b;
  p.align_a = p.align_b = p.align_d = 4;
  return p;
}

std::vector<SmallGemm> all_variants() {
  std::vector<SmallGemm> variants;
  for (std::uint8_t tile = 0; tile < cuda::small_gemm_tiles; ++tile)
    for (std::uint8_t parts = 1; parts <= cuda::most_small_gemm_parts; parts *= 2)
      variants.push_back({tile, parts});
  return variants;
}

struct CudaSmallGemm : CudaContraction {
  /// [batch, lines, ld] of which the first `width` of every line are numbers.
  Gpu padded(std::int64_t batch, std::int64_t lines, std::int64_t width, std::int64_t ld, DType dtype) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    return cat<Cuda>(
        {random({batch, lines, width}, dtype), full(*cuda, {batch, lines, ld - width}, nan, dtype)}, 2);
  }

  void set(const Gpu& view, double value) {
    run_into(*cuda, op::Fill{view.shape(), view.dtype(), value}, {}, {view});
  }

  void run(SmallGemm variant, const GemmProblem& p, const Gpu& a, const Gpu& b, const Gpu& d, bool add) {
    cuda::GemmArguments arguments{a.primitive().data<void>(), b.primitive().data<void>(),
                                  d.primitive().data<void>()};
    arguments.add = add;
    ASSERT_EQ(prepare_small_gemm(variant, p), cudaSuccess);
    ASSERT_EQ(launch_small_gemm(variant, p, arguments, cuda->context().stream()), cudaSuccess);
  }

  void expect_every_variant(const Size& size, const Kind& kind, bool transpose_a, bool transpose_b,
                            bool add) {
    const auto [m, n, k, batch] = size;
    const GemmProblem p = problem_of(size, kind, transpose_a, transpose_b);
    ASSERT_TRUE(accepts_small_gemm(p));
    const Gpu a = padded(batch, transpose_a ? m : k, transpose_a ? k : m, p.lda, p.dtype);
    const Gpu b = padded(batch, transpose_b ? k : n, transpose_b ? n : k, p.ldb, p.dtype);
    const Gpu before = random({batch, n, p.ldd}, p.dtype);
    // By rows, everything is its own transpose: D^T = B^T A^T.
    const Truth left = slice(truth(b), 2, 0, transpose_b ? n : k);
    const Truth right = slice(truth(a), 2, 0, transpose_a ? k : m);
    Truth want =
        matmul(transpose_b ? transpose(left, 1, 2) : left, transpose_a ? transpose(right, 1, 2) : right);
    if (add) want = want + slice(truth(before), 2, 0, m);
    const double tolerance = 2 * tolerance_of(kind.tf32 ? DType::f16 : kind.dtype, k);
    for (const SmallGemm variant : all_variants()) {
      SCOPED_TRACE(name_of(variant, p));
      const Gpu d = clone(before), again = clone(before);
      run(variant, p, a, b, d, add);
      run(variant, p, a, b, again, add);
      expect_near(slice(d, 2, 0, m), want, tolerance);
      EXPECT_EQ(to_bytes(d), to_bytes(again));
      EXPECT_EQ(to_bytes(slice(d, 2, m)), to_bytes(slice(before, 2, m))) << "between the columns";
    }
  }
};

TEST_F(CudaSmallGemm, EveryVariantAtEveryEdge) {
  int index = 0;
  for (const Kind& kind : kinds) {
    for (const Size& size : {Size{1, 1, 1, 1},
                             {3, 5, 7, 2},
                             {33, 31, 40, 3},
                             {64, 64, 64, 1},
                             {1, 200, 300, 1},
                             {257, 2, 129, 1},
                             {65, 130, 100, 2},
                             {130, 70, 520, 1}}) {
      for (const int transposed : {0, 1, 2, 3}) {
        const bool add = ++index % 2 == 0;
        SCOPED_TRACE(::testing::Message()
                     << kind.name << " " << size.m << "x" << size.n << "x" << size.k << " batch "
                     << size.batch << " transposed " << transposed << (add ? " +=" : " ="));
        expect_every_variant(size, kind, transposed & 1, transposed & 2, add);
        expect_every_variant(size, kind, transposed & 1, transposed & 2, !add);
        if (HasFailure()) return;
      }
    }
  }
}

TEST_F(CudaSmallGemm, InfinityAndNanGoWhereTheyBelong) {
  for (const Kind& kind : kinds) {
    const GemmProblem p = problem_of({40, 36, 70, 1}, kind, false, false);
    const double infinity = std::numeric_limits<double>::infinity();
    const Gpu a = full(*cuda, {1, 70, p.lda}, 1, kind.dtype), b = full(*cuda, {1, 36, p.ldb}, 1, kind.dtype);
    set(slice(slice(a, 1, 69, 70), 2, 3, 4), infinity);                                // op(A)[3, 69]
    set(slice(slice(b, 1, 5, 6), 2, 0, 1), std::numeric_limits<double>::quiet_NaN());  // op(B)[0, 5]
    for (const SmallGemm variant : all_variants()) {
      SCOPED_TRACE(std::string(kind.name) + " " + name_of(variant, p));
      const Gpu d = zeros(*cuda, {1, 36, p.ldd}, kind.dtype);
      run(variant, p, a, b, d, false);
      const auto values = d.to_vector<double>();
      for (std::int64_t n = 0; n < p.n; ++n) {
        for (std::int64_t m = 0; m < p.m; ++m) {
          const double value = values[static_cast<std::size_t>(n * p.ldd + m)];
          ASSERT_TRUE(n == 5 ? std::isnan(value) : value == (m == 3 ? infinity : 70)) << m << ", " << n;
        }
      }
    }
  }
}

// The rest needs no GPU.
TEST(SmallGemm, AcceptsWhatItsCopiesCanReach) {
  const GemmProblem good = problem_of({40, 36, 70, 3}, kinds[3], false, true);
  EXPECT_TRUE(accepts_small_gemm(good));
  const auto refuses = [&](auto&& change) {
    GemmProblem p = good;
    change(p);
    return !accepts_small_gemm(p);
  };
  EXPECT_TRUE(refuses([](GemmProblem& p) { p.lda += 4; }));
  EXPECT_TRUE(refuses([](GemmProblem& p) { p.ldb += 1; }));
  EXPECT_TRUE(refuses([](GemmProblem& p) { p.ldd += 2; }));
  EXPECT_TRUE(refuses([](GemmProblem& p) { p.stride_a += 4; }));
  EXPECT_TRUE(refuses([](GemmProblem& p) { p.align_b = 3; }));
  EXPECT_TRUE(refuses([](GemmProblem& p) { p.ldc = 64; }));
  EXPECT_TRUE(refuses([](GemmProblem& p) { p.dtype = DType::f64; }));
  EXPECT_TRUE(refuses([](GemmProblem& p) { p.epilogue = cuda::Epilogue::bias; }));
  EXPECT_TRUE(refuses([](GemmProblem& p) { p.m = std::int64_t{1} << 31; }));
  EXPECT_TRUE(refuses([](GemmProblem& p) { p.n = std::int64_t{1} << 22; }));
  EXPECT_TRUE(refuses([](GemmProblem& p) { p.batch = 70000; }));
  EXPECT_FALSE(refuses([](GemmProblem& p) { p.n = 1, p.ldd += 2; })) << "a single column has no next";
  EXPECT_FALSE(refuses([](GemmProblem& p) { p.batch = 1, p.stride_a += 1; }));
}

TEST(SmallGemm, CandidatesFillTheGpuAndDifferInName) {
  for (const Kind& kind : kinds) {
    for (const std::int64_t n : {1, 16, 256, 512, 1024}) {
      const GemmProblem p = problem_of({n, n, n, 1}, kind, false, false);
      std::vector<std::string> names;
      bool fills = false;
      for (const SmallGemm variant : small_gemm_candidates(p)) {
        const std::int64_t side = variant.tile == 0 ? 32 : 64;
        fills |= (n + side - 1) / side * ((n + side - 1) / side) * variant.parts >= 64;
        names.push_back(name_of(variant, p));
      }
      // Before Hopper, blocks cannot share a sum. In f32 a sum of more than 256 products is not exact enough.
      if (!cuda::runs_hopper_code() && p.dtype == DType::f32 && !p.tf32 && n > 256) {
        EXPECT_TRUE(names.empty());
        continue;
      }
      ASSERT_FALSE(names.empty());
      EXPECT_LE(names.size(), 10u);
      EXPECT_TRUE(fills || n < 256) << kind.name << " " << n;
      std::sort(names.begin(), names.end());
      EXPECT_EQ(std::unique(names.begin(), names.end()), names.end());
    }
  }
  const GemmProblem p = problem_of({64, 64, 64, 1}, kinds[0], false, false);
  EXPECT_EQ(name_of({1, 4}, p), "own/64x64x16/k4");
}

}  // namespace
}  // namespace ferrite::testing
