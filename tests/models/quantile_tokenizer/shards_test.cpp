// Shards: the tokens in order, resumed after an interruption, never mixed.
#include "ferrite/models/quantile_tokenizer/shards.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <limits>
#include <sstream>

#include "ferrite/io/npy.hpp"
#include "ferrite/io/npz.hpp"
#include "scratch_folder.hpp"

namespace ferrite::testing {
namespace {

using namespace quantile_tokenizer;

struct Shards : ::testing::Test {
  ScratchFolder folder;
  Cpu b;
  TableEngineOn<Cpu> engine{b};
  Rng rng{8};
  Tensor<Cpu> x = randn(b, {1000, 3}, rng);

  std::unique_ptr<TableSource> source() {
    if (!std::filesystem::exists(folder / "x.npy")) write_npy(folder / "x.npy", to_host(x));
    TableConfig config;
    config.chunk_bytes = 24 * 77;  // chunks of 77 rows
    return open_table(folder / "x.npy", config);
  }
  TableTokenizer fitted(int bins) {
    return TableTokenizer(QuantileTokenizer::fit(x, TokenizerConfig{}.with_bins(bins)));
  }
  static std::string bytes(const std::filesystem::path& path) {
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
  }
};

TEST_F(Shards, HoldTheTokensInOrderAndInEveryWidth) {
  for (const int bins : {20, 500, 5000}) {
    const auto tokenizer = fitted(bins);
    const auto out = folder / ("bins" + std::to_string(bins));
    const ShardResult result = write_shards(out, *source(), tokenizer, engine, {300});
    EXPECT_EQ(result.rows, 1000);
    EXPECT_EQ(result.shards, 4);
    std::vector<int> all;
    for (const auto& file : shard_files(out)) {
      const HostTensor shard = read_npy(file);
      EXPECT_EQ(shard.dtype(), bins == 20 ? DType::u8 : DType::u16);
      for (const int t : from_host(b, shard).to_vector<int>()) all.push_back(t);
    }
    EXPECT_EQ(all, tokenizer.numeric().transform(x).to_vector<int>());
    EXPECT_LT(bytes(out / "tokens-00000.npy").size(), 300u * 3 * (bins == 20 ? 1 : 2) + 129);
  }
}

TEST_F(Shards, AreResumedWhereTheRunStopped) {
  const auto tokenizer = fitted(50);
  const auto out = folder / "tokens";
  write_shards(out, *source(), tokenizer, engine, {300});
  std::vector<std::string> want;
  for (const auto& file : shard_files(out)) want.push_back(bytes(file));
  for (const int first_lost : {0, 1, 3, 4}) {
    std::filesystem::remove(out / "index.json");
    for (int i = first_lost; i < 4; ++i)
      std::filesystem::remove(out / ("tokens-0000" + std::to_string(i) + ".npy"));
    EXPECT_THROW(shard_files(out), IoError);  // not finished
    EXPECT_EQ(write_shards(out, *source(), tokenizer, engine, {300}).kept, first_lost);
    const auto files = shard_files(out);
    ASSERT_EQ(files.size(), want.size());
    for (std::size_t i = 0; i < want.size(); ++i) EXPECT_EQ(bytes(files[i]), want[i]) << i;
  }
}

TEST_F(Shards, ThatWereCutAreMadeAgain) {
  const auto tokenizer = fitted(50);
  const auto out = folder / "tokens";
  write_shards(out, *source(), tokenizer, engine, {300});
  std::vector<std::string> want;
  for (const auto& file : shard_files(out)) want.push_back(bytes(file));
  for (const std::size_t cut : {0, 2, 3}) {
    for (const std::size_t left : {std::size_t{0}, std::size_t{60}, want[cut].size() - 1}) {
      std::filesystem::resize_file(shard_files(out)[cut], left);
      EXPECT_EQ(write_shards(out, *source(), tokenizer, engine, {300}).kept, static_cast<std::int64_t>(cut));
      for (std::size_t i = 0; i < want.size(); ++i) EXPECT_EQ(bytes(shard_files(out)[i]), want[i]) << i;
    }
  }
  std::filesystem::copy_file(shard_files(out)[3], shard_files(out)[1],
                             std::filesystem::copy_options::overwrite_existing);  // only the last is short
  EXPECT_EQ(write_shards(out, *source(), tokenizer, engine, {300}).kept, 1);
  EXPECT_EQ(bytes(shard_files(out)[1]), want[1]);
  EXPECT_EQ(write_shards(out, *source(), tokenizer, engine, {300, true}).kept, 0) << "overwritten";
}

TEST_F(Shards, OfAnySizeAreListed) {
  const auto tokenizer = fitted(50);
  for (const std::int64_t rows : {std::int64_t{1000}, std::numeric_limits<std::int64_t>::max()}) {
    const auto out = folder / std::to_string(rows);
    EXPECT_EQ(write_shards(out, *source(), tokenizer, engine, {rows}).shards, 1);
    ASSERT_EQ(shard_files(out).size(), 1u);
    EXPECT_EQ(read_npy(shard_files(out)[0]).shape(), (Shape{1000, 3}));
    EXPECT_EQ(write_shards(out, *source(), tokenizer, engine, {rows}).kept, 1);
  }
}

TEST_F(Shards, OfDifferentRunsDoNotMix) {
  const auto out = folder / "tokens";
  write_shards(out, *source(), fitted(50), engine, {300});
  EXPECT_THROW(write_shards(out, *source(), fitted(40), engine, {300}), ValueError);
  EXPECT_THROW(write_shards(out, *source(), fitted(50), engine, {200}), ValueError);
  EXPECT_NO_THROW(write_shards(out, *source(), fitted(50), engine, {300}));
  EXPECT_EQ(write_shards(out, *source(), fitted(40), engine, {500, true}).kept, 0);
  EXPECT_EQ(shard_files(out).size(), 2u);
  EXPECT_FALSE(std::filesystem::exists(out / "tokens-00002.npy"));
  EXPECT_THROW(write_shards(out, *source(), fitted(40), engine, {0}), ValueError);
  write_shards(folder / "again", *source(), fitted(40), engine, {500});
  std::ofstream(folder / "again" / "index.json") << "{\"shards\": [\"../x.npy\"]}";
  EXPECT_THROW(shard_files(folder / "again"), ParseError);
}

TEST_F(Shards, AreGivenOnlyForTheirFit) {
  const auto out = folder / "tokens";
  write_shards(out, *source(), fitted(50), engine, {300});
  EXPECT_EQ(shard_files(out, fitted(50)), shard_files(out));
  const auto message = [&](const TableTokenizer& tokenizer) -> std::string {
    try {
      shard_files(out, tokenizer);
    } catch (const ValueError& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_NE(message(fitted(40)).find("tokens are of another fit of the same columns; give the fit"),
            std::string::npos)
      << message(fitted(40));
  const auto renamed = TableTokenizer(
      QuantileTokenizer::fit(x, TokenizerConfig{}.with_bins(50), std::vector<std::string>{"a", "b", "c"}));
  EXPECT_NE(message(renamed).find(R"(and those of the fit ["a","b","c"]; give)"), std::string::npos)
      << message(renamed);
  std::ofstream(out / "plan.json") << "{}";
  EXPECT_THROW(shard_files(out, fitted(50)), ParseError);
  std::filesystem::remove(out / "plan.json");
  EXPECT_THROW(shard_files(out, fitted(50)), IoError);
}

TEST_F(Shards, OfATableThatIsReadOtherwiseDoNotMix) {
  const auto tokenizer = TableTokenizer(QuantileTokenizer::fit(slice(x, 1, 0, 1)));
  const auto column = to_host(contiguous(slice(x, 1, 0, 1)));
  const auto other = to_host(contiguous(slice(x, 1, 1, 2)));
  write_npz(folder / "x.npz", {{"first", column}, {"other", other}});
  write_npy(folder / "a.npy", column);
  write_npy(folder / "b.npy", other);
  std::filesystem::last_write_time(folder / "b.npy", std::filesystem::last_write_time(folder / "a.npy"));
  const auto write = [&](const TableConfig& config) {
    return write_shards(folder / "of_x", *open_table(folder / "x.npz", config), tokenizer, engine);
  };
  TableConfig first, second, marked;
  first.array = "first";
  second.array = "other";
  marked.array = "first";
  marked.missing = {"0"};
  write(first);
  EXPECT_EQ(write(first).kept, 1);
  EXPECT_THROW(write(second), ValueError);
  EXPECT_THROW(write(marked), ValueError);
  write_shards(folder / "tokens", *open_table(folder / "a.npy"), tokenizer, engine);
  EXPECT_THROW(write_shards(folder / "tokens", *open_table(folder / "b.npy"), tokenizer, engine), ValueError);
}

TEST_F(Shards, AreAllThatOverwritingRemoves) {
  const auto out = folder / "tokens";
  write_shards(out, *source(), fitted(50), engine, {300});
  const char* others[] = {"tokens-of-mine.npy", "tokens-00001.txt", "tokens-1.npy"};
  for (const char* name : others) std::ofstream(out / name) << "mine";
  write_shards(out, *source(), fitted(40), engine, {500, true});
  EXPECT_FALSE(std::filesystem::exists(out / "tokens-00002.npy"));
  for (const char* name : others) EXPECT_EQ(bytes(out / name), "mine");
  std::ofstream(folder / "file") << "no folder";
  EXPECT_THROW(write_shards(folder / "file", *source(), fitted(40), engine), IoError);
  EXPECT_THROW(write_shards(folder / "file" / "in", *source(), fitted(40), engine), IoError);
  EXPECT_THROW(shard_files(folder / std::string(300, 'x')), IoError);
}

TEST_F(Shards, AreLeftWholeWhereTheTableTurnsOutBad) {
  std::string text = "a\n";
  for (int i = 0; i < 500; ++i) text += std::to_string(i % 100 * 0.5) + "\n";
  std::ofstream(folder / "good.csv") << text;
  std::ofstream(folder / "bad.csv") << text + "oops\n";
  TableConfig config;
  config.chunk_bytes = 200;
  config.inspected_rows = 10;
  const auto good = open_table(folder / "good.csv", config), bad = open_table(folder / "bad.csv", config);
  const auto tokenizer = TableTokenizer::fit(*good, engine);
  EXPECT_THROW(write_shards(folder / "tokens", *bad, tokenizer, engine, {100}), ParseError);
  EXPECT_FALSE(std::filesystem::exists(folder / "tokens" / "index.json"));
  for (const auto& entry : std::filesystem::directory_iterator(folder / "tokens")) {
    if (entry.path().extension() != ".npy") continue;
    EXPECT_EQ(read_npy(entry.path()).shape(), (Shape{100, 1}));
  }
}

}  // namespace
}  // namespace ferrite::testing
