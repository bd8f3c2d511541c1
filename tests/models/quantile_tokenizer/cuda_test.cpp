// QuantileTokenizer on the GPU against Cpu: the same fits and the same tokens.
#include <gtest/gtest.h>

#include "ferrite/backend/cuda_device.hpp"
#include "ferrite/models/quantile_tokenizer/quantile_tokenizer.hpp"
#include "models/quantile_tokenizer/nasty_columns.hpp"

namespace ferrite::testing {
namespace {

using namespace quantile_tokenizer;

struct CudaTokenizer : ::testing::Test {
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << cuda_unavailable_reason();
    gpu = std::make_unique<Cuda>(0);
  }

  void expect_same(const Tensor<Cpu>& x, const TokenizerConfig& config) {
    const auto [want, want_tokens] = QuantileTokenizer::fit_transform(x, config);
    const auto [got, got_tokens] = QuantileTokenizer::fit_transform(to(*gpu, x), config);
    EXPECT_TRUE(to_bytes(got_tokens) == to_bytes(want_tokens));
    for (std::size_t c = 0; c < want.columns().size(); ++c) {
      SCOPED_TRACE("column " + std::to_string(c) + " of " + to_string(x.meta()));
      const ColumnFit &a = got.columns()[c], &b = want.columns()[c];
      EXPECT_EQ(a.edges, b.edges);
      EXPECT_EQ(a.count, b.count);
      EXPECT_EQ(a.missing, b.missing);
      EXPECT_EQ(a.bin_counts, b.bin_counts);
      if (b.count > 0) {
        EXPECT_EQ(a.least, b.least);
        EXPECT_EQ(a.greatest, b.greatest);
      }
    }
    EXPECT_TRUE(to_bytes(want.inverse(got_tokens)) == to_bytes(want.inverse(want_tokens)));
  }

  Cpu cpu;
  std::unique_ptr<Cuda> gpu;
};

TEST_F(CudaTokenizer, FitsAndTokensAreThoseOfCpu) {
  for (const std::int64_t rows : {1, 30, 3000, 20'000})
    for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::i32}) {
      const auto x = matrix(cpu, nasty(rows, 13), nasty_columns, dtype);
      for (const int bins : {4, 100, 300}) expect_same(x, TokenizerConfig{}.with_bins(bins));
      expect_same(x, TokenizerConfig::like_sklearn(20));
      expect_same(x, TokenizerConfig::like_pandas(20));
      expect_same(x, TokenizerConfig::like_auto_tabular(100));
    }
}

TEST_F(CudaTokenizer, StatisticsAreThoseOfCpu) {
  const auto x = matrix(cpu, nasty(5000, 3), nasty_columns, DType::f64);
  for (const Closed closed : {Closed::left, Closed::right})
    expect_same(x, TokenizerConfig{}.with_bins(16).with_closed(closed).with_statistics(true));
}

TEST_F(CudaTokenizer, ColumnsMayLieDense) {
  const auto x = matrix(cpu, nasty(10'000, 5), nasty_columns, DType::f32);
  const auto turned = transpose(to(*gpu, contiguous(transpose(x, 0, 1))), 0, 1);
  const auto want = QuantileTokenizer::fit_transform(x).second;
  EXPECT_TRUE(to_bytes(QuantileTokenizer::fit_transform(turned).second) == to_bytes(want));
}

}  // namespace
}  // namespace ferrite::testing
