// Matmul on the GPU: sizes, layouts, batches and sinks that the conformance suite does not reach.
#include "backend_cuda/contraction_support.hpp"

namespace ferrite::testing {
namespace {

struct CudaMatmul : CudaContraction {
  void expect_product(const Gpu& a, const Gpu& b) {
    const double tolerance = is_floating(a.dtype()) ? tolerance_of(a.dtype(), a.size(-1)) : 0;
    const Truth want = matmul(truth(a), truth(b));
    expect_near(eval(op::Matmul{}, a, b), want, tolerance);
  }
};

TEST_F(CudaMatmul, SizesAroundTheTiles) {
  for (const DType dtype :
       {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i32, DType::i64, DType::u8}) {
    for (const Shape& s : {Shape{1, 1, 1},
                           {1, 70, 1},
                           {3, 5, 7},
                           {1, 300, 17},
                           {257, 1, 129},
                           {8, 600, 16},
                           {64, 64, 64},
                           {136, 72, 264},
                           {65, 200, 63},
                           {128, 33, 250}}) {
      SCOPED_TRACE(std::string(to_string(dtype)) + " " + to_string(s));
      expect_product(random({s[0], s[1]}, dtype), random({s[1], s[2]}, dtype));
    }
  }
}

TEST_F(CudaMatmul, EveryLayoutOfBothOperands) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::i32}) {
    for (const auto& [lhs_name, lhs] : layouts(*this, {3, 34, 40}, dtype)) {
      for (const auto& [rhs_name, rhs] : layouts(*this, {3, 40, 26}, dtype)) {
        SCOPED_TRACE(std::string(to_string(dtype)) + " " + lhs_name + " times " + rhs_name);
        expect_product(lhs, rhs);
      }
    }
  }
}

TEST_F(CudaMatmul, StridedVectors) {
  const Gpu wide = random({40, 6});
  const Gpu column = slice(wide, 1, 2, 3), row = transpose(column, 0, 1);
  expect_product(row, random({40, 24}));
  expect_product(random({24, 40}), column);
  expect_product(row, column);
  expect_product(column, row);
}

TEST_F(CudaMatmul, BatchesThatDoNotMerge) {
  expect_product(random({2, 1, 5, 4}), random({3, 4, 6}));
  expect_product(random({7, 1, 3, 1, 5, 4}), random({1, 8, 1, 2, 4, 3}));  // 42 and more loops
  expect_product(transpose(random({2, 5, 3, 4}), 1, 2), random({2, 3, 4, 6}));
  expect_product(random({4, 5, 6}), expand(random({1, 6, 3}), {4, 6, 3}));
  expect_product(flip(random({4, 5, 6}), {0}), random({4, 6, 3}));
  expect_product(random({70000, 2, 3}), random({70000, 3, 2}));
  expect_product(random({70000, 2, 3}, DType::i32), random({3, 2}, DType::i32));
}

TEST_F(CudaMatmul, OutputsOfEveryLayoutAreWrittenAndAddedTo) {
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i64}) {
    for (const auto& [name, out] : layouts(*this, {2, 33, 24}, dtype)) {
      if (name == "one row repeated") continue;
      for (const bool add : {false, true}) {
        SCOPED_TRACE(std::string(to_string(dtype)) + " " + name + (add ? " +=" : " ="));
        const Gpu a = random({2, 33, 72}, dtype), b = random({2, 72, 24}, dtype);
        Truth want = matmul(truth(a), truth(b));
        if (add) want = want + truth(out);
        run_into(*cuda, op::Matmul{}, {a, b}, {out}, add ? 1 : 0);
        expect_near(out, want, is_floating(dtype) ? 2 * tolerance_of(dtype, 72) : 0);
      }
    }
  }
}

TEST_F(CudaMatmul, NothingOutsideTheOutputIsWritten) {
  const Gpu board = full(*cuda, {40, 40}, 7);
  const Gpu out = slice(slice(board, 0, 3, 36), 1, 5, 30);
  run_into(*cuda, op::Matmul{}, {random({33, 50}), random({50, 25})}, {out});
  const auto values = board.to_vector<float>();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t r = i / 40, c = i % 40;
    if (r >= 3 && r < 36 && c >= 5 && c < 30) continue;
    ASSERT_EQ(values[i], 7) << r << ", " << c;
  }
}

TEST_F(CudaMatmul, EmptyInnerDimensionsGiveZerosOrLeaveTheSum) {
  for (const DType dtype : {DType::f32, DType::i32}) {
    const Gpu a = random({3, 0}, dtype), b = random({0, 4}, dtype), out = full(*cuda, {3, 4}, 2, dtype);
    run_into(*cuda, op::Matmul{}, {a, b}, {out}, 1);
    EXPECT_EQ(out.to_vector<double>(), std::vector<double>(12, 2));
    run_into(*cuda, op::Matmul{}, {a, b}, {out});
    EXPECT_EQ(out.to_vector<double>(), std::vector<double>(12, 0));
  }
}

TEST_F(CudaMatmul, Tf32IsAnOptInOfTheObject) {
  const Gpu a = random({300, 500}), b = random({500, 200});
  Cuda fast(0);
  fast.set_float32_products(Float32Products::tf32);
  const Truth want = matmul(truth(a), truth(b));
  const Gpu exact = matmul(a, b);
  const Gpu rounded = matmul(Gpu(fast, a.primitive()), Gpu(fast, b.primitive()));
  expect_near(exact, want, tolerance_of(DType::f32, 500));
  expect_near(rounded, want, tolerance_of(DType::f16, 500));
  EXPECT_NE(to_bytes(exact), to_bytes(rounded));
}

TEST_F(CudaMatmul, SameBitsEveryTime) {
  for (const DType dtype : floats) {
    const Gpu a = random({77, 3000}, dtype), b = random({3000, 65}, dtype);  // worth splitting
    const auto first = to_bytes(matmul(a, b));
    for (int i = 0; i < 5; ++i) EXPECT_EQ(to_bytes(matmul(clone(a), clone(b))), first);
  }
}

TEST_F(CudaMatmul, PartialSumsOfLongRowsStayWide) {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    const Gpu a = full(*cuda, {16, 16384}, 0.125, dtype), b = full(*cuda, {16384, 16}, 0.125, dtype);
    EXPECT_EQ(matmul(a, b).to_vector<float>(), std::vector<float>(256, 256.0f));
  }
}

TEST_F(CudaMatmul, MoreThan32BitsOfRows) {
  constexpr std::int64_t rows = 3'000'000'000;
  if (cuda_devices()[0].free_bytes < 16'000'000'000) GTEST_SKIP() << "needs 16 GB of free GPU memory";
  const Gpu a = full(*cuda, {rows, 1}, 3, DType::u8), b = full(*cuda, {1, 1}, 5, DType::u8);
  const Gpu y = eval(op::Matmul{}, a, b);
  EXPECT_EQ(slice(y, 0, rows - 100).to_vector<int>(), std::vector<int>(100, 15));
  EXPECT_EQ(slice(y, 0, 0, std::nullopt, 100'000'000).to_vector<int>(), std::vector<int>(30, 15));
}

}  // namespace
}  // namespace ferrite::testing
