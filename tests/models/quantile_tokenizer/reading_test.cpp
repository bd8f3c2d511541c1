// Tables as people have them: other orders of columns, names that repeat, numbers with odd texts among them,
// numbers beyond the range, other delimiters.
#include <fmt/format.h>

#include <cmath>

#include "models/quantile_tokenizer/table_support.hpp"

namespace ferrite::testing {
namespace {

using namespace quantile_tokenizer;
using Reading = TableTest;

TEST_F(Reading, FindsTheColumnsOfAFitByName) {
  const auto fitted =
      fit("a,b,day\n1.5,x,2024-01-01\n2.5,y,2024-01-03\n", {}, {TokenizerConfig{}.with_bins(2)});
  const auto other =
      csv("day,more,b,a,and more\n2024-01-03,?,y,2.5,1\n2024-01-01,7,x,1.5,z\n", fitted.reading({}));
  EXPECT_EQ(other->names(), (std::vector<std::string>{"a", "b", "day"}));
  EXPECT_TRUE(other->notes().empty());
  fitted.check_source(*other);
  EXPECT_EQ(tokens(fitted, *other), (std::vector<int>{1, 1, 1, 0, 0, 0}));
  EXPECT_EQ(error<ValueError>([&] { csv("b,c\nx,1\n", fitted.reading({})); }),
            "[open_table] " + (folder / "t.csv").string() + ", columns b, c: there is no a, day");
}

TEST_F(Reading, ChoosesColumnsInTheOrderAskedFor) {
  TableConfig config;
  config.columns = {"c", "a"};
  config.drop = {"b"};
  const auto source = csv("a,b,c\n1,2,3\n4,5,6\n", config);
  const auto chunk = source->next();
  EXPECT_EQ(chunk->numbers, (std::vector<std::vector<double>>{{3, 6}, {1, 4}}));
  config.columns = {"a", "c", "a"};
  expect_part(error<ValueError>([&] { csv("a,b,c\n1,2,3\n", config); }), "column 'a': is asked for twice");
}

TEST_F(Reading, RenamesColumnsOfOneNameIfTold) {
  const std::string text = "a,b,a,a.1,a\n1,2,3,4,5\n";
  expect_part(csv_error(text), "t.csv:1:5, column \"a\": the name appears twice; --rename-duplicates");
  TableConfig config;
  config.rename_duplicates = true;
  EXPECT_EQ(csv(text, config)->names(), (std::vector<std::string>{"a", "b", "a.2", "a.1", "a.3"}));
}

TEST_F(Reading, TakesNumbersBeyondTheRangeForTheNearestDouble) {
  std::string text = "p\n";
  for (int i = 0; i < 60; ++i) text += std::to_string(i * 0.25 + 0.1) + "\n";
  const auto source = csv(text + "3.2e-331\n1e400\n-1e400\n1e-320\n");
  ASSERT_EQ(source->kinds()[0], FieldKind::number);
  const auto chunk = source->next();
  const std::vector<double> last(chunk->numbers[0].end() - 4, chunk->numbers[0].end());
  EXPECT_EQ(last, (std::vector<double>{0, HUGE_VAL, -HUGE_VAL, 1e-320}));
  const auto fitted = TableTokenizer::fit(*source, engine, {TokenizerConfig{}.with_bins(4)});
  const std::vector<int> all = tokens(fitted, *source);
  EXPECT_EQ(all[61], 3);  // infinities are the ends of the order
  EXPECT_EQ(all[62], 0);
  EXPECT_EQ(all[60], 0);
}

TEST_F(Reading, SaysWhichFewTextsMakeAColumnOfNumbersText) {
  std::string text = "x,code,day,word\n";
  for (int i = 0; i < 40; ++i)
    text += (i == 7    ? "?"
             : i == 9  ? " None "
             : i == 11 ? "NA"
                       : std::to_string(i * 0.5)) +
            ",K" + std::to_string(i) + "," + (i == 3 ? "unknown" : "2024-01-05") + "," +
            (i % 2 ? "yes" : "7") + "\n";
  const auto source = csv(text);
  ASSERT_EQ(source->notes().size(), 2u);
  expect_part(source->notes()[0],
              "column \"x\" is taken as text: of its first 39 fields 37 are numbers, the others are \"?\", "
              "\" None \". --missing '?,None'");
  expect_part(source->notes()[1], "column \"day\" is taken as text: of its first 40 fields 39 are dates");
  TableConfig told;
  told.missing = {"?", "None", "unknown"};
  const auto better = csv(text, told);
  EXPECT_TRUE(better->notes().empty());
  EXPECT_EQ(better->kinds(),
            (std::vector{FieldKind::number, FieldKind::text, FieldKind::date, FieldKind::text}));
  told = {};
  told.text = {"x"};
  told.drop = {"day"};
  EXPECT_TRUE(csv(text, told)->notes().empty());
  EXPECT_EQ(kept_in_memory(csv(text), 1 << 20)->notes().size(), 2u);
}

TEST_F(Reading, NamesTheOptionsWhereATextComesLate) {
  TableConfig config;
  config.inspected_rows = 2;
  const std::string message = csv_error("a\n1\n2\n?\n", config);
  expect_part(message, "t.csv:4:1, column \"a\", field \"?\": the column is one of numbers");
  expect_part(message, "(--missing)");
  expect_part(message, "(--text)");
}

TEST_F(Reading, SaysWhichFitKnowsFewOfItsTexts) {
  std::string text = "id,city\n";
  for (int i = 0; i < 40; ++i) text += "key" + std::to_string(i) + (i % 2 ? ",Oslo\n" : ",Lima\n");
  TableFitConfig how;
  how.most_categories = 10;
  const auto notes = fit(text, {}, how).notes();
  ASSERT_EQ(notes.size(), 1u);
  expect_part(notes[0], "column 'id': 30 of 40 rows hold none of its 10 most frequent texts");
}

TEST_F(Reading, SaysWhichFrequentValuesShareAToken) {
  std::string text = "two,three,spread\n";  // values of 95 % and 5 %, of a third each, all different
  for (int i = 0; i < 300; ++i)
    text += fmt::format("{},{},{}\n", i % 20 == 0 ? 1.5 : 0.5, i % 3 + 0.5, i + 0.5);
  TableFitConfig how;
  how.tokenizer.bins = 8;
  const auto closed = [&](Closed side) {
    how.tokenizer.closed = side;
    return fit(text, {}, how).notes();
  };
  const auto left = closed(Closed::left), right = closed(Closed::right);
  ASSERT_EQ(left.size(), 2u);
  expect_part(left[0], "column 'two': the values from 0.5 to 1.5 have one token, though some are frequent");
  expect_part(left[0], "--duplicates merge");
  expect_part(left[1], "column 'three': the values from 1.5 to 2.5 have one token");
  ASSERT_EQ(right.size(), 2u);
  expect_part(right[1], "column 'three': the values from 0.5 to 1.5 have one token");
  how.memory_limit = 0;  // in passes over the file
  EXPECT_EQ(closed(Closed::left), left);
  how.tokenizer.duplicates = DuplicateEdges::merge;
  EXPECT_TRUE(closed(Closed::left).empty());
}

TEST_F(Reading, SaysThatAFirstRowOfNumbersIsData) {
  const std::string text = "2019,2020\n1.5,2.5\n3.5,4.5\n";
  const auto guessed = csv(text);
  EXPECT_EQ(guessed->names(), (std::vector<std::string>{"c0", "c1"}));
  ASSERT_EQ(guessed->notes().size(), 1u);
  expect_part(guessed->notes()[0], "the first row, which begins with \"2019\", holds no text, so it is read");
  expect_part(guessed->notes()[0], "--header present");
  const auto path = write("part.csv", text);
  EXPECT_EQ(open_tables({path, path})->notes(), guessed->notes());
  EXPECT_TRUE(csv(text, fit(text).reading({}))->notes().empty()) << "the fit has c0 and c1";
  TableConfig told;
  told.header = CsvHeader::absent;
  EXPECT_TRUE(csv(text, told)->notes().empty());
  told.header = CsvHeader::present;
  const auto named = csv(text, told);
  EXPECT_EQ(named->names(), (std::vector<std::string>{"2019", "2020"}));
  EXPECT_TRUE(named->notes().empty());
}

TEST_F(Reading, EndingsMayBeCapitals) {
  for (const char* name : {"T.CSV", "t.Csv", "T.TXT"})
    EXPECT_EQ(open_table(write(name, "a,b\n1,2\n"))->names(), (std::vector<std::string>{"a", "b"})) << name;
  EXPECT_EQ(open_table(write("T.TSV", "a\tb\n1\t2\n"))->names(), (std::vector<std::string>{"a", "b"}));
  const std::string message = error<Error>([&] { open_table(write("T.PARQUET", "no such file")); });
  EXPECT_EQ(message.find("the name must end in"), std::string::npos) << message;
}

TEST_F(Reading, SuspectsAnotherDelimiter) {
  const auto semicolons = csv("a;b\n1;2\n3;4\n");
  ASSERT_EQ(semicolons->notes().size(), 1u);
  expect_part(semicolons->notes()[0], "one column, \"a;b\": if ';' separates columns, say --delimiter ';'");
  expect_part(csv("a\tb\n1\t2\n")->notes().at(0), "--delimiter '\\t'");
  TableConfig other;
  other.delimiter = ';';
  expect_part(csv("a,b\n1,2\n", other)->notes().at(0), "--delimiter ','");
  EXPECT_TRUE(csv("a;b\n1;2\n", other)->notes().empty());
  EXPECT_TRUE(csv("\"a;b\"\n\"1;2\"\n")->notes().empty());
  EXPECT_TRUE(csv("a;b\n1\n2\n")->notes().empty());
  // Decimal commas cut the rows otherwise than the header.
  expect_part(csv_error("a;b\n1,5;2\n"),
              "t.csv:2:3, field 2 of the row: 1 are needed, as in the first row; that "
              "holds ';': if it is the delimiter, say so (--delimiter ';')");
}

}  // namespace
}  // namespace ferrite::testing
