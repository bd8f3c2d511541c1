// Missing values: the same ones in every kind of file, kept by the fit, never mixed up with categories.
#include <cmath>

#include "ferrite/io/npy.hpp"
#include "models/quantile_tokenizer/table_support.hpp"

namespace ferrite::testing {
namespace {

using namespace quantile_tokenizer;
using MissingFields = TableTest;

TEST_F(MissingFields, OfCategoriesHaveATokenOfTheirOwn) {
  std::string text = "x,city,grade\n";
  for (int i = 0; i < 40; ++i)
    text += std::to_string(i * 0.5) + (i % 2 ? ",Oslo," : ",Lima,") + std::to_string(i % 3) + "\n";
  text += ",,\n";
  const auto config = TokenizerConfig{}.with_bins(2).with_missing(MissingPolicy::last_bin);
  const auto fitted = fit(text, {}, {config});
  ASSERT_EQ(fitted.categories().size(), 2u);
  const auto source = csv("x,city,grade\n,,\n,Oslo,1\n0,Rome,9\n", fitted.reading({}));
  // Bins 0 and 1; cities 0 and 1; grades 0 to 2: so 3 is missing and 4 unknown, among categories.
  EXPECT_EQ(tokens(fitted, *source), (std::vector<int>{1, 3, 3, 1, 1, 1, 0, 4, 4}));
  EXPECT_EQ(fitted.inverse(1, 1, 0, BinValue::midpoint), "Oslo");
  EXPECT_EQ(fitted.inverse(3, 1, 0, BinValue::midpoint), "");
  EXPECT_THROW(fitted.inverse(3, 0, 0, BinValue::midpoint), ValueError);  // numbers have no such token
  expect_part(fitted.report(), "1 (3 in categories) is missing, 4 unknown");
}

TEST_F(MissingFields, StayMissingForWhoReadsWithTheFit) {
  TableConfig marked;
  marked.missing = {"?", " -999 "};
  const auto fitted = fit("a,b\n1.5,x\n?,?\n-999,y\n2.5,x\n", marked);
  EXPECT_EQ(fitted.numeric().columns()[0].missing, 2);
  fitted.save(folder / "fit.safetensors");
  const auto loaded = TableTokenizer::load(folder / "fit.safetensors");
  EXPECT_EQ(loaded.missing(), (std::vector<std::string>{"-999", "?"}));
  const auto source = csv("a,b\n?,?\n-999.0,x\n", loaded.reading({}));
  const int missing = static_cast<int>(loaded.missing_token());
  EXPECT_EQ(tokens(loaded, *source), (std::vector<int>{missing, missing, missing, 0}));
}

TEST_F(MissingFields, OfArraysAreFoundByValue) {
  const std::vector<float> values{1, -99.9f, 3, -999};
  write_npy(folder / "f32.npy", HostTensor::from(std::span<const float>(values), {4, 1}));
  const std::vector<std::int32_t> integers{-99, -999, 3, -999};
  write_npy(folder / "i32.npy", HostTensor::from(std::span<const std::int32_t>(integers), {4, 1}));
  TableConfig marked;
  marked.missing = {"-99.9", "-999", "?"};
  for (const char* name : {"f32.npy", "i32.npy"}) {
    const auto chunk = open_table(folder / name, marked)->next();
    for (const std::size_t i : {1, 3}) EXPECT_TRUE(std::isnan(chunk->numbers[0][i])) << name;
    for (const std::size_t i : {0, 2}) EXPECT_FALSE(std::isnan(chunk->numbers[0][i])) << name;
  }
}

}  // namespace
}  // namespace ferrite::testing
