// Fits of tables: what they keep, what they hold in memory, which of them are possible.
#include <limits>

#include "ferrite/io/npy.hpp"
#include "ferrite/io/safetensors.hpp"
#include "models/quantile_tokenizer/table_support.hpp"

namespace ferrite::testing {
namespace {

using namespace quantile_tokenizer;
using TableFit = TableTest;

ColumnFit column(const char* name) {
  ColumnFit c;
  c.name = name;
  return c;
}

/// Chunks of a number and a text; knows which of them somebody holds.
class WatchedSource final : public TableSource {
 public:
  explicit WatchedSource(bool with_text) : with_text_(with_text) {
    names_ = {"n", "t"};
    kinds_ = {FieldKind::number, with_text ? FieldKind::text : FieldKind::number};
  }
  std::shared_ptr<const TableChunk> next() override {
    if (made_.size() == 5) return nullptr;
    auto chunk = std::make_shared<TableChunk>();
    chunk->first_row = static_cast<std::int64_t>(2 * made_.size());
    chunk->rows = 2;
    chunk->numbers = {{0.5, 1.5}, {}};
    chunk->texts = {{}, {{0, 1}, {std::string(1000, 'a'), std::string(1000, 'b')}}};
    if (!with_text_) chunk->numbers[1] = chunk->numbers[0];
    made_.push_back(chunk);
    most_held_ = std::max(most_held_, held());
    return chunk;
  }
  void rewind() override {
    made_.clear();
    ++rewinds_;
  }
  double progress() const override { return static_cast<double>(made_.size()) / 5; }
  std::ptrdiff_t held() const {
    return std::count_if(made_.begin(), made_.end(), [](const auto& chunk) { return !chunk.expired(); });
  }
  std::ptrdiff_t most_held() const { return most_held_; }
  int rewinds() const { return rewinds_; }

 private:
  bool with_text_;
  std::vector<std::weak_ptr<const TableChunk>> made_;
  std::ptrdiff_t most_held_ = 0;
  int rewinds_ = 0;
};

TEST_F(TableFit, KeepsNoTextsThatAreCounted) {
  WatchedSource numbers(false), mixed(true);
  TableTokenizer::fit(numbers, engine);
  EXPECT_EQ(numbers.most_held(), 5);  // shared, not copied
  TableTokenizer::fit(mixed, engine);
  EXPECT_LE(mixed.most_held(), 2);
}

TEST_F(TableFit, CountsTextsAgainstTheLimitOfWhatIsKept) {
  for (const std::int64_t limit : {5000, 50000}) {  // texts take 10 kB
    auto watched = std::make_unique<WatchedSource>(true);
    const WatchedSource& seen = *watched;
    const auto source = kept_in_memory(std::move(watched), limit);
    for (int pass = 0; pass < 3; ++pass) {
      source->rewind();
      while (source->next()) continue;
    }
    EXPECT_EQ(seen.rewinds(), limit == 5000 ? 3 : 1);
  }
}

TEST_F(TableFit, InvertsByMeanOnlyWithStatistics) {
  const std::string text = "a\n1.5\n2.5\n";
  EXPECT_THROW(fit(text).inverse(0, 0, 0, BinValue::mean), ValueError);
  const auto fitted = fit(text, {}, {TokenizerConfig{}.with_bins(2).with_statistics(true)});
  EXPECT_EQ(fitted.inverse(0, 0, 0, BinValue::mean), "1.5");
}

TEST_F(TableFit, HasTheSameFingerprintWhateverTheOrderOfSums) {
  const auto with_means = [&](std::vector<double> means, std::vector<double> edges) {
    ColumnFit c = column("a");
    c.count = 3;
    c.least = 0;
    c.greatest = 1;
    c.edges = std::move(edges);
    c.bin_counts = {1, 2};
    c.bin_means = std::move(means);
    return TableTokenizer(QuantileTokenizer(TokenizerConfig{}, {c})).fingerprint();
  };
  EXPECT_EQ(with_means({0, 0.9}, {0.5}), with_means({0, 0.9000000001}, {0.5}));
  EXPECT_NE(with_means({0, 0.9}, {0.5}), with_means({0, 0.9}, {0.6}));
}

TEST_F(TableFit, IsMadeOfPartsThatFitEachOther) {
  const QuantileTokenizer two(TokenizerConfig{}, {column("a"), column("b")});
  const QuantileTokenizer none(TokenizerConfig{}, {});
  const auto numeric = [](const char* name, std::size_t place) {
    return TableColumn{name, ColumnKind::numeric, place};
  };
  const auto category = [&](ColumnKind kind, CategoryFit fit) {
    return TableTokenizer({{"c", kind, 0}}, none, {std::move(fit)});
  };
  EXPECT_NO_THROW(TableTokenizer({numeric("b", 1), numeric("a", 0)}, two, {}));
  EXPECT_THROW(TableTokenizer({}, none, {}), ValueError);
  EXPECT_THROW(TableTokenizer{none}, ValueError);
  EXPECT_THROW(TableTokenizer({numeric("a", 0)}, two, {}), ValueError);
  EXPECT_THROW(TableTokenizer({numeric("a", 0), numeric("a", 0)}, two, {}), ValueError);
  EXPECT_THROW(TableTokenizer({numeric("a", 1), numeric("b", 0)}, two, {}), ValueError);
  EXPECT_NO_THROW(category(ColumnKind::integer_category, {{"1", "2"}, {5, 5}, {1, 2}}));
  EXPECT_THROW(category(ColumnKind::integer_category, {{"1", "2"}, {5, 5}, {1}}), ValueError);
  EXPECT_THROW(category(ColumnKind::integer_category, {{"1", "2"}, {5, 5}, {2, 1}}), ValueError);
  EXPECT_THROW(category(ColumnKind::integer_category, {{"1"}, {5}, {NAN}}), ValueError);
  EXPECT_THROW(category(ColumnKind::text_category, {{"1"}, {5}, {1}}), ValueError);
  EXPECT_THROW(category(ColumnKind::text_category, {{"1"}, {-5}, {}}), ValueError);
  EXPECT_THROW(category(ColumnKind::text_category, {{"1", "1"}, {5, 5}, {}}), ValueError);
}

TEST_F(TableFit, FitIsSavedWithItsCategories) {
  const auto fitted = fit(mixed_rows(200));
  fitted.save(folder / "fit.safetensors");
  const auto loaded = TableTokenizer::load(folder / "fit.safetensors");
  EXPECT_EQ(loaded.fingerprint(), fitted.fingerprint());
  EXPECT_EQ(loaded.report(), fitted.report());
  SafeTensors file = read_safetensors(folder / "fit.safetensors");
  file.metadata["table"] =
      R"({"columns":[{"name":"number","kind":"numeric","place":0},{"name":"a","kind":"date","place":9},{"name":"b","kind":"numeric","place":2}],"categories":[]})";
  write_safetensors(folder / "bad.safetensors", file);
  expect_part(error<ParseError>([&] { TableTokenizer::load(folder / "bad.safetensors"); }), "not there");
  file.metadata["table"] = R"({"columns":[{"name":"a","kind":"other","place":0}],"categories":[]})";
  write_safetensors(folder / "bad.safetensors", file);
  expect_part(error<ParseError>([&] { TableTokenizer::load(folder / "bad.safetensors"); }),
              "'other' is not known");
}

TEST_F(TableFit, ShowsNamesWithoutControlCharacters) {
  const auto fitted = fit("a\x1b[31m,b\xc2\x9b\n1.5,x\x07\n2.5,\xc3\xa9\n");
  const std::string report = fitted.report();
  expect_part(report, "a\\x1b[31m");
  expect_part(report, "b\\x9b");
  expect_part(report, "x\\x07 to \xc3\xa9");
  EXPECT_EQ(report.find('\x1b'), std::string::npos);
  EXPECT_EQ(fitted.numeric().report().find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace ferrite::testing
