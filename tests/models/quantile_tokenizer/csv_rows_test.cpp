// Rows of CSV files by the short way and by the scanner: the same fields, and the same errors, wherever they
// are.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <random>

#include "ferrite/io/csv_scanner.hpp"
#include "models/quantile_tokenizer/table_support.hpp"

namespace ferrite::testing {
namespace {

using namespace quantile_tokenizer;

using CsvRows = TableTest;

std::string digits(std::mt19937& random, std::size_t most) {
  std::string text;
  for (std::size_t i = random() % (most + 1); i > 0; --i) text += static_cast<char>('0' + random() % 10);
  return text;
}

std::string number_field(std::mt19937& random) {
  const std::string sign = random() % 2 ? "-" : "",
                    plain = sign + "1" + digits(random, 4) + "." + digits(random, 9);
  switch (random() % 12) {
    case 0:
      return sign + "7" + digits(random, 18);
    case 1:
      return sign + "0." + digits(random, 22) + "3";
    case 2:
      return plain + "e" + std::to_string(static_cast<int>(random() % 800) - 400);
    case 3:
      return " +" + digits(random, 3) + "5\t";
    case 4:
      return '"' + plain + '"';
    case 5:
      return sign + "inf";
    case 6:
      return std::vector<std::string>{"", "NA", " null ", "nan", "-999", "-999.0"}[random() % 6];
    default:
      return plain;
  }
}

std::string text_field(std::mt19937& random) {
  switch (random() % 8) {
    case 0:
      return "\"Lima, Peru\"";
    case 1:
      return "\"say \"\"hi\"\"\"";
    case 2:
      return "\"two\nlines\"";
    case 3:
      return "\"\"";
    case 4:
      return "\"Malm\xC3\xB6\"";
    case 5:
      return "N/A";
    default:
      return "key" + digits(random, 2);
  }
}

TEST_F(CsvRows, OfAnyMixtureHaveTheFieldsThatTheScannerFinds) {
  std::mt19937 random(3);
  std::string text = "a,left out,b,c,d\n";
  for (int i = 0; i < 3000; ++i) {
    const bool quiet = random() % 2;  // only what is plain
    for (int f = 0; f < 5; ++f) {
      const bool is_text = f == 1 || f == 3;
      text += quiet ? (is_text ? "x" + digits(random, 1) : "0." + digits(random, 8) + "5")
                    : (is_text ? text_field(random) : number_field(random));
      if (f < 4) text += ',';
    }
    text += random() % 4 ? "\n" : random() % 3 ? "\r\n" : "\n\r\n\n";
  }
  TableConfig config;
  config.drop = {"left out"};
  config.missing = {"-999"};
  for (const std::int64_t bytes : {1, 5000, 1 << 20}) {
    config.chunk_bytes = bytes;
    const auto source = csv(text, config);
    ASSERT_EQ(source->kinds(),
              (std::vector{FieldKind::number, FieldKind::number, FieldKind::text, FieldKind::number}));
    CsvScanner scanner("t.csv");
    scanner.feed(text);
    scanner.finish();
    CsvRow row;
    scanner.next_row(row);
    std::int64_t rows = 0;
    while (const auto chunk = source->next()) {
      EXPECT_EQ(chunk->first_row, rows);
      std::vector<bool> used(chunk->texts[2].distinct.size());
      for (std::size_t r = 0; r < static_cast<std::size_t>(chunk->rows); ++r, ++rows) {
        ASSERT_TRUE(scanner.next_row(row));
        for (const std::size_t c : {0u, 1u, 3u}) {
          const std::string field = row[c + 1 - (c == 0)].text();
          const double got = chunk->numbers[c][r];
          char* end = nullptr;
          const double want = std::strtod(field.c_str(), &end);
          if (end == field.c_str() || std::isnan(want) || want == -999)
            EXPECT_TRUE(std::isnan(got)) << field;
          else
            EXPECT_EQ(std::bit_cast<std::uint64_t>(got), std::bit_cast<std::uint64_t>(want)) << field;
        }
        const std::int32_t code = chunk->texts[2].codes[r];
        const std::string field = row[3].text();
        EXPECT_EQ(code < 0, field.empty() || field == "N/A");
        if (code < 0) continue;
        EXPECT_EQ(chunk->texts[2].distinct[static_cast<std::size_t>(code)], field);
        used[static_cast<std::size_t>(code)] = true;
      }
      EXPECT_EQ(std::count(used.begin(), used.end(), false), 0);  // no text without a row
    }
    EXPECT_FALSE(scanner.next_row(row));
    EXPECT_EQ(rows, 3000);
  }
}

TEST_F(CsvRows, ThatAreWrongAreNamedByTheirLineBehindRowsOfAnyKind) {
  TableConfig config;
  config.drop = {"c"};
  config.inspected_rows = 2;
  const std::string before = "a,b,c\n1,x,0\n2,\"two\nlines\",0\n\n3,y,0\r\n4.5,\"z\",0\n";  // 7 lines
  const std::pair<const char*, const char*> cases[] = {
      {"5,x\n", "t.csv:8:1, row of 2 fields: 3 are needed"},
      {"5,x,0,0\n", "t.csv:8:7"},
      {"five,x,0\n", "t.csv:8:1, column \"a\", field \"five\""},
      {"5,x,\xff\n", "t.csv:8:5"},
      {"5,x\"y,0\n", "t.csv:8:4, \"\\\"\": a field with a quote in it must be quoted itself"},
      {"5,\"x\"y,0\n", "t.csv:8:6, \"y\": a delimiter or line end must follow the closing quote"},
      {"5,x\ry,0\n", "t.csv:8:4"},
      {"5,\"x,0\n", "t.csv:8:3"},
      {"5,x,0\n6,\"a\nb\",0\n1e9.9,x,0\n", "t.csv:11:1, column \"a\", field \"1e9.9\""},
  };
  for (const std::int64_t bytes : {1, 1 << 20}) {
    config.chunk_bytes = bytes;
    for (const auto& [text, message] : cases)
      expect_part(csv_error(before + text + "9,x,0\n", config), message);
  }
}

}  // namespace
}  // namespace ferrite::testing
