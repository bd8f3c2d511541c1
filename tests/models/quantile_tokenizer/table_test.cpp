// Tables from files: what columns are taken for, what is refused, and that the cut into chunks never shows.
#include "ferrite/models/quantile_tokenizer/table.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "ferrite/io/npy.hpp"
#include "ferrite/io/npz.hpp"
#include "ferrite/io/safetensors.hpp"
#include "models/quantile_tokenizer/table_support.hpp"

namespace ferrite::testing {
namespace {

using namespace quantile_tokenizer;

using Table = TableTest;

TEST_F(Table, TakesColumnsForWhatTheyAre) {
  const auto fitted = fit(mixed_rows(200), {}, {TokenizerConfig{}.with_bins(8)});
  ASSERT_EQ(fitted.columns().size(), 6u);
  const ColumnKind kinds[] = {ColumnKind::numeric,   ColumnKind::integer_category, ColumnKind::text_category,
                              ColumnKind::date_time, ColumnKind::text_category,    ColumnKind::numeric};
  for (std::size_t c = 0; c < 6; ++c) EXPECT_EQ(fitted.columns()[c].kind, kinds[c]) << c;
  EXPECT_EQ(fitted.columns()[2].name, "city, state");
  const CategoryFit& city = fitted.categories()[fitted.columns()[2].place];
  EXPECT_EQ(city.names, (std::vector<std::string>{"Lima, Peru", "Oslo", "say \"hi\"", "two\nlines"}));
  EXPECT_EQ(city.missing, 40);
  const CategoryFit& grade = fitted.categories()[fitted.columns()[1].place];
  EXPECT_EQ(grade.names, (std::vector<std::string>{"0", "1", "2", "3"}));
  EXPECT_EQ(fitted.numeric().columns()[0].missing, 12);
  EXPECT_EQ(fitted.numeric().columns()[2].count, 0);  // only missing values
  for (const char* part : {"constant", "empty", "date_time", "2024-01-07T10:00:00 to 2024-01-11T10:00:00"})
    expect_part(fitted.report(), part);
}

TEST_F(Table, GivesTheSameTokensHoweverTheFileIsCut) {
  const std::string text = mixed_rows(500);
  const TableFitConfig how{TokenizerConfig{}.with_bins(8)};
  const auto whole = fit(text, {}, how);
  const auto source = csv(text, whole.reading({}));
  const std::vector<int> want = tokens(whole, *source);
  ASSERT_EQ(want.size(), 3000u);
  for (const std::int64_t bytes : {1, 300, 4000, 20000}) {
    TableConfig config;
    config.chunk_bytes = bytes;
    EXPECT_EQ(fit(text, config, how).fingerprint(), whole.fingerprint()) << bytes;
    const auto cut = csv(text, whole.reading(config));
    EXPECT_EQ(tokens(whole, *cut), want) << bytes;
  }
}

TEST_F(Table, LargerThanTheMemoryLimitHasExactlyTheSameFit) {
  std::string text = "a,b,c,d,e\n";
  for (int i = 0; i < 6000; ++i) {
    const auto at = static_cast<std::uint64_t>(i);
    const double u = uniform_at<double>({1, 1}, at), v = uniform_at<double>({1, 2}, at);
    text += std::to_string(u) + "," + (v < 0.7 ? "0" : std::to_string(u)) + "," +
            (v < 0.2   ? "inf"
             : v < 0.4 ? "-inf"
                       : std::to_string(std::exp(30 * u))) +
            "," + (v < 0.5 ? "" : std::to_string(static_cast<int>(u * 1000))) + ",7.5\n";
  }
  TableConfig small;
  small.chunk_bytes = 16 * 1024;
  for (const QuantileMethod method :
       {QuantileMethod::linear, QuantileMethod::inverted_cdf, QuantileMethod::averaged_inverted_cdf}) {
    TableFitConfig how{TokenizerConfig{}.with_bins(20).with_method(method).with_statistics(true)};
    how.integer_categories = 0;
    const auto in_memory = fit(text, {}, how);
    how.memory_limit = 0;
    const auto streamed = fit(text, small, how);
    for (std::size_t c = 0; c < 5; ++c) {
      const ColumnFit &got = streamed.numeric().columns()[c], &want = in_memory.numeric().columns()[c];
      EXPECT_EQ(got.edges, want.edges) << "column " << c;
      EXPECT_EQ(got.count, want.count);
      EXPECT_EQ(got.missing, want.missing);
      EXPECT_EQ(got.least, want.least);
      EXPECT_EQ(got.greatest, want.greatest);
      EXPECT_EQ(got.bin_counts, want.bin_counts);
      ASSERT_EQ(got.bin_means.size(), want.bin_means.size());
      for (std::size_t i = 0; i < got.bin_means.size(); ++i)
        EXPECT_TRUE(got.bin_means[i] == want.bin_means[i] || std::isnan(want.bin_means[i])) << i;
    }
  }
}

TEST_F(Table, NamesLineAndColumnOfWhatIsWrong) {
  expect_part(csv_error("a,b\n1,2\n3\n4,5\n"), "t.csv:3:1, row of 1 fields: 2 are needed");
  expect_part(csv_error("a,b\n1,2\n3,4,5\n"), "t.csv:3:5");
  expect_part(csv_error("a,b\n"), "only a header: at least one row of data is needed");
  expect_part(csv_error(""), "no rows");
  expect_part(csv_error("a,a\n1,2\n"), "column \"a\": the name appears twice; --rename-duplicates");
  expect_part(csv_error("a,b\n1,\"2\n"), "the quote is never closed");
  expect_part(csv_error("a,b\n1,x\xff\n"), "must be UTF-8");
  TableConfig config;
  config.inspected_rows = 2;
  expect_part(csv_error("a,b\n1,2\n3,4\n5,six\n", config),
              "t.csv:4:3, column \"b\", field \"six\": the column is one of numbers");
  config.chunk_bytes = 1;  // the first error of the file, not that of the first thread
  expect_part(csv_error("a,b\n1,2\n3,4\n5,six\n7,8\nx,9\n", config), "t.csv:4:3");
  config = {};
  config.drop = {"c"};
  expect_part(error<ValueError>([&] { csv("a,b\n1,2\n", config); }), "t.csv, columns a, b: there is no c");
  expect_part(error<ValueError>([&] { open_table(folder / "t.xls"); }), "the name must end in .csv");
  EXPECT_NE(error<IoError>([&] { open_table(folder / "none.csv"); }), "(no error of this kind)");
}

TEST_F(Table, ReadsHugeFieldsAndOwnMarkersOfMissingValues) {
  const std::string huge(300'000, 'x');
  TableConfig config;
  config.missing = {"?", "-999"};
  config.chunk_bytes = 1000;
  const auto source = csv("a,b\n1,\"" + huge + "\"\n?,y\n-999,\n", config);
  EXPECT_EQ(source->kinds(), (std::vector<FieldKind>{FieldKind::number, FieldKind::text}));
  std::int64_t missing = 0, rows = 0;
  while (const auto chunk = source->next()) {
    rows += chunk->rows;
    for (const double v : chunk->numbers[0]) missing += std::isnan(v);
    for (const std::int32_t code : chunk->texts[1].codes) missing += code < 0;
  }
  EXPECT_EQ(rows, 3);
  EXPECT_EQ(missing, 3);
}

TEST_F(Table, RefusesColumnsWithTooManyTexts) {
  std::string text = "id\n";
  for (int i = 0; i < 50; ++i) text += "key" + std::to_string(i) + "\n";
  TableFitConfig how;
  how.most_texts = 40;
  expect_part(error<ValueError>([&] { fit(text, {}, how); }), "column 'id', rows up to 50: has more than 40");
}

TEST_F(Table, KnowsUnknownCategoriesFromMissingOnes) {
  std::string text = "city,grade\n";
  for (int i = 0; i < 30; ++i) text += "Oslo,1\nLima,2\n";
  text += "Rome,1\n";
  TableFitConfig how{TokenizerConfig{}.with_bins(4)};
  how.most_categories = 2;
  const auto fitted = fit(text, {}, how);
  EXPECT_EQ(fitted.categories()[0].dropped, 1);
  const auto other = csv("city,grade\nLima,2\nRome,3\n,\nParis,1\n", fitted.reading({}));
  EXPECT_EQ(tokens(fitted, *other), (std::vector<int>{0, 1, 5, 5, 4, 4, 5, 0}));
  EXPECT_EQ(fitted.inverse(1, 0, 0, BinValue::midpoint), "Oslo");
  EXPECT_EQ(fitted.inverse(4, 0, 0, BinValue::midpoint), "");
  expect_part(error<ValueError>([&] { fitted.inverse(3, 0, 12, BinValue::midpoint); }),
              "row 12, column 0 'city', token 3: has tokens 0 to 1");
}

TEST_F(Table, OfOtherColumnsIsRefusedByAFit) {
  const auto fitted = fit("a,b\n1.5,x\n2.5,y\n");
  const auto check = [&](const std::string& text) {
    return error<ValueError>([&] { fitted.check_source(*csv(text)); });
  };
  expect_part(check("b,a\nx,1\n"), "columns b, a: the fit has a, b; open the table with reading()");
  expect_part(check("a\n1\n"), "columns a: the fit has a, b");
  expect_part(check("a,b\n1,2\n"), "column 'b' of numbers: the fit has it as text_category");
  // With the kinds of the fit, the bad field itself is named.
  expect_part(error<ParseError>([&] { csv("a,b\nten,x\n", fitted.reading({}))->next(); }),
              "t.csv:2:1, column \"a\"");
}

TEST_F(Table, OfAnArrayHasTheTokensOfItsTensor) {
  Rng rng(2);
  const auto x = randn(b, {300, 4}, rng);
  const auto config = TokenizerConfig{}.with_bins(300);
  const auto [direct, want] = QuantileTokenizer::fit_transform(x, config);
  const HostTensor rows = to_host(x), columns = to_host(contiguous(transpose(x, 0, 1)));
  write_npy(folder / "rows.npy", rows);
  write_npy(folder / "columns.npy", columns);
  write_npz(folder / "matrix.npz", {{"x", rows}, {"other", columns}});
  NamedTensors vectors;
  for (std::int64_t c = 0; c < 4; ++c)
    vectors.emplace("v" + std::to_string(c), to_host(contiguous(select(x, 1, c))));
  write_safetensors(folder / "vectors.safetensors", {{}, vectors});
  TableConfig first;
  first.layout = TableLayout::columns;
  TableConfig named;
  named.array = "x";
  named.chunk_bytes = 1000;
  for (const auto& [name, capitals] : {std::pair{"rows.npy", "ROWS.NPY"},
                                       {"matrix.npz", "MATRIX.NPZ"},
                                       {"vectors.safetensors", "VECTORS.SafeTensors"}})
    std::filesystem::copy_file(folder / name, folder / capitals);
  const std::pair<const char*, TableConfig> forms[] = {
      {"rows.npy", {}}, {"columns.npy", first}, {"matrix.npz", named},      {"vectors.safetensors", {}},
      {"ROWS.NPY", {}}, {"MATRIX.NPZ", named},  {"VECTORS.SafeTensors", {}}};
  for (const auto& [name, reading] : forms) {
    const auto source = open_table(folder / name, reading);
    const auto fitted = TableTokenizer::fit(*source, engine, {config});
    for (std::size_t c = 0; c < 4; ++c)
      EXPECT_EQ(fitted.numeric().columns()[c].edges, direct.columns()[c].edges) << name;
    EXPECT_EQ(tokens(fitted, *source), want.to_vector<int>()) << name;
  }
  expect_part(error<ParseError>([&] { open_table(folder / "matrix.npz"); }), "needs vectors of one length");
  named.array = "y";
  expect_part(error<ValueError>([&] { open_table(folder / "matrix.npz", named); }), "holds no array 'y'");
}

TEST_F(Table, KeptInMemoryIsReadOnceIfItFits) {
  const std::string text = mixed_rows(300);
  TableConfig config;
  config.chunk_bytes = 2000;
  for (const std::int64_t limit : {0, 1 << 20}) {
    const auto source = kept_in_memory(csv(text, config), limit);
    const auto fitted = TableTokenizer::fit(*source, engine, {TokenizerConfig{}.with_bins(8)});
    if (limit > 0) std::filesystem::resize_file(folder / "t.csv", 0);  // nobody looks at it again
    const auto got = tokens(fitted, *source);
    EXPECT_EQ(got.size(), 1800u);
    EXPECT_EQ(tokens(fitted, *source), got);
  }
}

}  // namespace
}  // namespace ferrite::testing
