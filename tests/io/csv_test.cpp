// CSV: the scanner whole and in chunks, tables of numbers, tensors, and every kind of bad file.
#include "ferrite/io/csv.hpp"

#include <chrono>
#include <cmath>
#include <limits>
#include <random>

#include "io_test.hpp"

namespace ferrite {
namespace {

using testing::expect_error;
using testing::ScratchFolder;
using testing::slurp;
using testing::spill;

using Rows = std::vector<std::vector<std::string>>;

Rows take_rows(CsvScanner& scanner) {
  Rows rows;
  for (CsvRow row; scanner.next_row(row);) {
    auto& texts = rows.emplace_back();
    for (const CsvField& field : row) texts.push_back(field.text());
  }
  return rows;
}

Rows scan(std::string_view text, std::size_t chunk = 1 << 20, char delimiter = ',') {
  CsvScanner scanner("t.csv", delimiter);
  Rows rows;
  for (std::size_t at = 0; at < text.size(); at += chunk) {
    const std::string piece(text.substr(at, chunk));
    scanner.feed(piece);
    for (auto& row : take_rows(scanner)) rows.push_back(row);
    // piece dies here, but the scanner may look at it until the next feed.
    scanner.feed("");
  }
  scanner.finish();
  for (auto& row : take_rows(scanner)) rows.push_back(row);
  return rows;
}

void expect_rejected(std::string_view text, std::initializer_list<std::string_view> parts,
                     const CsvConfig& config = {}) {
  expect_error<ParseError>([&] { read_csv(text, "t.csv", config); }, parts);
  expect_error<ParseError>([&] { read_csv(text, "t.csv", config); }, {"[read_csv] t.csv:"});
}

TEST(CsvScanner, FollowsRfc4180) {
  EXPECT_EQ(scan("a,b\nc,d\n"), (Rows{{"a", "b"}, {"c", "d"}}));
  EXPECT_EQ(scan("a,b\r\nc,d"), (Rows{{"a", "b"}, {"c", "d"}}));
  EXPECT_EQ(scan("\"a,\"\"b\"\"\n\",\"\"\n"), (Rows{{"a,\"b\"\n", ""}}));
  EXPECT_EQ(scan("a,\n,b\n,\n"), (Rows{{"a", ""}, {"", "b"}, {"", ""}}));
  EXPECT_EQ(scan("a;b,c\n", 100, ';'), (Rows{{"a", "b,c"}}));
  EXPECT_EQ(scan("\xEF\xBB\xBFna\xC3\xAFve\n"), (Rows{{"na\xC3\xAFve"}}));
  EXPECT_EQ(scan("\n\na\n\r\n\nb\n\n"), (Rows{{"a"}, {"b"}}));
  EXPECT_EQ(scan(""), Rows{});
  EXPECT_EQ(scan("\xEF\xBB\xBF\r\n"), Rows{});
}

TEST(CsvScanner, ChunksOfAnySizeGiveTheSameRows) {
  const std::string text =
      "\xEF\xBB\xBFname,\"quoted \"\"x\"\"\"\r\n1,\"two\r\nlines\"\n\n\xE2\x82\xAC,\"\"\r\nlast,";
  const Rows whole = scan(text);
  ASSERT_EQ(whole.size(), 4u);
  for (std::size_t chunk = 1; chunk <= text.size(); ++chunk) EXPECT_EQ(scan(text, chunk), whole) << chunk;
}

TEST(CsvScanner, ALongRowInShortChunksTakesLinearTime) {
  const std::string text = "\"" + std::string(1'000'000, 'x') + "\"\n";
  EXPECT_EQ(scan(text, 16)[0][0].size(), 1'000'000u);
}

TEST(CsvScanner, AHostileRowCostsNoMoreThanAFewTimesItsText) {
  const std::string fields(CsvScanner::max_fields * 16, ',');
  for (const std::string first : {"", "a,b\n"}) {
    const std::string text = first + fields;
    CsvScanner scanner("t.csv");
    scanner.feed(text);
    scanner.finish();
    CsvRow row;
    const std::string found = first.empty() ? "t.csv:1:262145, field 262145" : "t.csv:2:3, field 3";
    expect_error<ParseError>(
        [&] {
          while (scanner.next_row(row)) continue;
        },
        {found});
    EXPECT_LE(row.capacity() * sizeof(CsvField), 3 * text.size());
  }
}

TEST(CsvScanner, TellsWhereFieldsStart) {
  CsvScanner scanner("t.csv");
  scanner.feed("\"a\nb\",c\n  d,\"e\"\n");
  CsvRow row;
  ASSERT_TRUE(scanner.next_row(row));
  EXPECT_EQ(row[1].line, 2);
  EXPECT_EQ(row[1].column, 4);
  ASSERT_TRUE(scanner.next_row(row));
  EXPECT_EQ(row[1].line, 3);
  EXPECT_EQ(row[1].column, 5);
  EXPECT_TRUE(row[1].quoted);
  EXPECT_FALSE(row[0].quoted);
}

TEST(CsvScanner, RefusesDelimitersThatCannotWork) {
  for (const char bad : {'"', '\n', '\r', '5', 'e', '-', '.', '\0', '\xC3'}) {
    expect_error<ValueError>([&] { CsvScanner("t.csv", bad); }, {"[CsvScanner] delimiter"});
  }
  EXPECT_NO_THROW(CsvScanner("t.csv", '\t'));
}

TEST(Csv, ReadsNumbersUnderAHeader) {
  const CsvTable table = read_csv("x,\"y, z\"\n1,-2.5e3\n +4 ,\t.5\n\"7\",inf\n", "t.csv");
  EXPECT_EQ(table.columns, (std::vector<std::string>{"x", "y, z"}));
  EXPECT_EQ(table.rows(), 3);
  EXPECT_EQ(table.column("x"), (std::vector<double>{1, 4, 7}));
  EXPECT_EQ(table.column("y, z"), (std::vector<double>{-2500, 0.5, std::numeric_limits<double>::infinity()}));
}

TEST(Csv, ReadsEveryDecimalAsTheNearestDouble) {
  std::mt19937 random(7);
  std::string text = "x\n";
  std::vector<double> expected;
  for (int i = 0; i < 20'000; ++i) {
    std::string number = random() % 2 ? "-" : "";
    const std::size_t digits = 1 + random() % 18, point = random() % (digits + 4);
    for (std::size_t k = 0; k < digits; ++k) {
      if (k == point) number += '.';
      number += static_cast<char>('0' + random() % 10);
    }
    text += number + "\n";
    expected.push_back(std::strtod(number.c_str(), nullptr));
  }
  EXPECT_EQ(read_csv(text, "t").column("x"), expected);
  EXPECT_TRUE(std::signbit(read_csv("-0.0\n", "t").values[0][0]));
}

TEST(Csv, NumbersBeyondTheRangeAreTheNearestDouble) {
  const std::string zeros(400, '0');
  std::string text = "x\n";
  std::vector<double> expected;
  for (const std::string& number :
       {std::string("1e400"), std::string("-1e400"), std::string("3.2e-331"), std::string("-3.2e-331"),
        std::string("3e-324"), std::string("2e-324"), std::string("1.7976931348623159e308"),
        std::string("1e99999999999999999999"), std::string("1e-99999999999999999999"), std::string("0e999"),
        "1" + zeros, "0." + zeros + "1", "0." + zeros + "1e800", "1" + zeros + "e-900"}) {
    text += number + "\n";
    expected.push_back(std::strtod(number.c_str(), nullptr));
  }
  const auto values = read_csv(text, "t").column("x");
  EXPECT_EQ(values, expected);
  EXPECT_TRUE(std::isinf(values[0]));
  EXPECT_TRUE(std::signbit(values[3]) && values[3] == 0);
}

TEST(Csv, SuspectsAnotherDelimiter) {
  expect_rejected("a;b\n1;2\n", {"t.csv:2:1, column \"a;b\"", "if ';' is the delimiter", "with_delimiter"});
  expect_rejected("a\tb\n1\t2\n", {"if '\\t' is the delimiter"});
  expect_rejected("a;b\n1,5;2,5\n", {"t.csv:2:3, field 2 of the row", "that holds ';'", "--delimiter ';'"});
  EXPECT_EQ(read_csv("a;b\n1;2\n", "t", CsvConfig{}.with_delimiter(';')).columns.size(), 2u);
}

TEST(Csv, FindsOutWhetherThereIsAHeader) {
  EXPECT_EQ(read_csv("1,2\n3,4\n", "t").columns, (std::vector<std::string>{"c0", "c1"}));
  EXPECT_EQ(read_csv("1,b\n3,4\n", "t").columns, (std::vector<std::string>{"1", "b"}));
  const auto present = CsvConfig{}.with_header(CsvHeader::present);
  EXPECT_EQ(read_csv("1,2\n3,4\n", "t", present).columns, (std::vector<std::string>{"1", "2"}));
  const auto absent = CsvConfig{}.with_header(CsvHeader::absent);
  expect_rejected("a\n1\n", {"t.csv:1:1", "column \"c0\", field \"a\"", "a number"}, absent);
}

TEST(Csv, ReadsOnlyTheColumnsAskedFor) {
  const std::string text = "name\tx\ty\nann\t1\t2\nbob\t3\t4\n";
  const auto config = CsvConfig{}.with_delimiter('\t').with_columns({"y", "x"});
  const CsvTable table = read_csv(text, "t.csv", config);
  EXPECT_EQ(table.columns, (std::vector<std::string>{"y", "x"}));
  EXPECT_EQ(table.values, (std::vector<std::vector<double>>{{2, 4}, {1, 3}}));
  expect_rejected(text, {"t.csv:1:1", "columns name, x, y", "\"z\" is asked for"},
                  config.with_columns({"z"}));
}

TEST(Csv, MissingValuesAreErrorsOrNaN) {
  const std::string text = "x\nNA\nnan\n N/A \nnull\n\"\"\n";
  const CsvTable table = read_csv(text, "t", CsvConfig{}.with_missing(CsvMissing::as_nan));
  ASSERT_EQ(table.rows(), 5);
  for (const double value : table.column("x")) EXPECT_TRUE(std::isnan(value));
  expect_rejected("x,y\n1,2\n3,\n", {"t.csv:3:3", "column \"y\", field \"\"", "CsvMissing::as_nan"});
  expect_rejected("x\n1\nNaN\n", {"t.csv:3:1", "field \"NaN\"", "CsvMissing::as_nan"});
}

TEST(Csv, RejectsFieldsThatAreNoNumbers) {
  expect_rejected("x,y\n1,2\n3,four\n", {"t.csv:3:3, column \"y\", field \"four\"", "a number"});
  for (const char* bad : {"1x", "0x10", "1e", "--1", "+-1", "1,5", "1e9.9", "nan(1)", "-", ".", "1 2"}) {
    const std::string text = std::string("x\n\"") + bad + "\"\n";
    expect_rejected(text, {"t.csv:2:1", "column \"x\"", bad});
  }
}

TEST(Csv, RejectsBrokenRows) {
  expect_rejected("x,y\n1,2\n3\n", {"t.csv:3:1, row of 1 fields", "2 are needed"});
  expect_rejected("x,y\n1,2,3\n", {"t.csv:2:5, field 3 of the row", "2 are needed"});
  expect_rejected("x,y\n1,\"2\n3,4\n", {"t.csv:2:3", "the quote is never closed"});
  expect_rejected("x,y\n1,\"2\"3\n", {"t.csv:2:6, \"3\"", "must follow the closing quote"});
  expect_rejected("x,y\n1,2\"3\n", {"t.csv:2:4", "must be quoted itself"});
  expect_rejected("x,y\r1,2\n", {"t.csv:1:4, \"\\x0d\"", "needs a line feed"});
  expect_rejected("x\n1\r", {"t.csv:2:2", "needs a line feed"});
  expect_rejected("x,y\n1,\xff\n", {"t.csv:2:3, \"\\xff\"", "UTF-8"});
  expect_rejected("\"a\nb\xC3\"\n1\n", {"t.csv:2:2, \"\\xc3\"", "UTF-8"});
  expect_rejected("x,x\n1,2\n", {"t.csv:1:3, column \"x\"", "appears twice"});
}

TEST(Csv, RejectsFilesWithoutData) {
  for (const char* empty : {"", "\n\n", "\xEF\xBB\xBF"}) expect_rejected(empty, {"t.csv:1:1, no rows"});
  expect_rejected("x,y\n", {"t.csv:1:1, only a header", "one row of data"});
  expect_rejected("1\n", {"only a header"}, CsvConfig{}.with_header(CsvHeader::present));
}

TEST(Csv, MakesTensorsOfEveryDType) {
  const CsvTable table = read_csv("x,y\n0,1\n1,0\n1,1\n", "t");
  for (const DType dtype : all_dtypes) {
    const HostTensor tensor = table.to_tensor(dtype);
    EXPECT_EQ(tensor.dtype(), dtype);
    EXPECT_EQ(tensor.shape(), (Shape{3, 2}));
    visit_any_dtype(dtype, [&]<class T>() {
      EXPECT_EQ(convert<double>(tensor.as<T>()[1]), 1);
      EXPECT_EQ(convert<double>(tensor.as<T>()[3]), 0);
      EXPECT_EQ(convert<double>(tensor.as<T>()[4]), 1);
    });
  }
  const std::string names[] = {"y"};
  EXPECT_EQ(table.to_tensor(names, DType::f32).shape(), (Shape{3, 1}));
  EXPECT_EQ(table.column_tensor("y", DType::i64).shape(), Shape{3});
  EXPECT_EQ(table.column_tensor("y", DType::i64).as<std::int64_t>()[0], 1);
  expect_error<ValueError>([&] { table.column("z"); }, {"[CsvTable::column] \"z\"", "x, y"});
}

TEST(Csv, TheWidestTableTakesLinearTime) {
  std::string text(2 * CsvScanner::max_fields, ',');
  for (std::size_t i = 0; i < text.size(); i += 2) text[i] = '7';
  text.back() = '\n';
  const auto start = std::chrono::steady_clock::now();
  const CsvTable table = read_csv(text, "t.csv");
  EXPECT_EQ(table.to_tensor(DType::u8).as<std::uint8_t>().back(), 7);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));  // quadratic: minutes
}

TEST(Csv, IntegerTensorsNeedWholeNumbersInRange) {
  const auto convert_one = [](const char* value, DType dtype) {
    return read_csv(std::string("x\n") + value + "\n", "t", CsvConfig{}.with_missing(CsvMissing::as_nan))
        .column_tensor("x", dtype);
  };
  EXPECT_EQ(convert_one("2147483647", DType::i32).as<std::int32_t>()[0], 2147483647);
  EXPECT_EQ(convert_one("-9223372036854775808", DType::i64).as<std::int64_t>()[0], INT64_MIN);
  EXPECT_EQ(convert_one("255", DType::u8).as<std::uint8_t>()[0], 255);
  expect_error<ValueError>([&] { convert_one("1.5", DType::i64); },
                           {"column \"x\", row 0, value 1.5", "i64"});
  expect_error<ValueError>([&] { convert_one("2147483648", DType::i32); }, {"i32 cannot hold"});
  expect_error<ValueError>([&] { convert_one("9223372036854775808", DType::i64); }, {"i64 cannot hold"});
  expect_error<ValueError>([&] { convert_one("256", DType::u8); }, {"u8 cannot hold"});
  expect_error<ValueError>([&] { convert_one("-1", DType::u8); }, {"u8 cannot hold"});
  expect_error<ValueError>([&] { convert_one("2", DType::bool_); }, {"bool cannot hold"});
  expect_error<ValueError>([&] { convert_one("NA", DType::i64); }, {"value nan"});
}

TEST(Csv, RoundTripsDoublesExactly) {
  const ScratchFolder folder;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CsvTable table{{"a", "b,\"\n\u20ac", ""}, {{0.1, 1e300, -0.0}, {1.0 / 3, 5e-324, INFINITY}, {1, 2, -nan}}};
  for (const char delimiter : {',', ';', '\t'}) {
    const auto config = CsvConfig{}.with_delimiter(delimiter).with_missing(CsvMissing::as_nan);
    write_csv(folder / "file", table, config);
    const CsvTable read = read_csv(folder / "file", config);
    EXPECT_EQ(read.columns, table.columns);
    EXPECT_EQ(read.values[0], table.values[0]);
    EXPECT_TRUE(std::signbit(read.values[0][2]));
    EXPECT_EQ(read.values[1], table.values[1]);
    EXPECT_TRUE(std::isnan(read.values[2][2]));
  }
}

TEST(Csv, WritesPlainText) {
  const ScratchFolder folder;
  const CsvTable table{{"a", ""}, {{1, 0.5}, {-2, 1e100}}};
  write_csv(folder / "file", table);
  EXPECT_EQ(slurp(folder / "file"), "a,\"\"\n1,-2\n0.5,1e+100\n");
  write_csv(folder / "file", table, CsvConfig{}.with_header(CsvHeader::absent).with_delimiter('|'));
  EXPECT_EQ(slurp(folder / "file"), "1|-2\n0.5|1e+100\n");
}

TEST(Csv, RefusesToWriteTablesThatCouldNotBeRead) {
  const ScratchFolder folder;
  for (const CsvTable& bad :
       {CsvTable{}, CsvTable{{"a"}, {{}}}, CsvTable{{"a"}, {{1}, {2}}}, CsvTable{{"a", "b"}, {{1}, {}}}}) {
    expect_error<ValueError>([&] { write_csv(folder / "file", bad); }, {"[write_csv]", "equal length"});
  }
  const CsvTable good{{"a"}, {{1}}};
  expect_error<ValueError>([&] { write_csv(folder / "f", good, CsvConfig{}.with_delimiter('"')); },
                           {"delimiter"});
  EXPECT_EQ(folder.file_count(), 0u);
}

TEST(Csv, NamesTheFileInErrors) {
  const ScratchFolder folder;
  spill(folder / "broken.csv", "x\ny\n");
  expect_error<ParseError>([&] { read_csv(folder / "broken.csv"); },
                           {(folder / "broken.csv").string() + ":2:1"});
  expect_error<IoError>([&] { read_csv(folder / "none.csv"); }, {"none.csv", "No such file"});
}

}  // namespace
}  // namespace ferrite
