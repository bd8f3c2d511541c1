// Tables that cannot be learned from are refused with the column's name and what to do; others lose what is
// of no use, and say so.
#include <chrono>
#include <numeric>

#include "ferrite/core/rng.hpp"
#include "pfn_tables.hpp"

namespace ferrite::testing {
namespace {

using pfn::EncoderConfig;
using pfn::Table;
using pfn::TableEncoder;
using pfn::Task;

std::string fit_error(const std::string& text, const EncoderConfig& config = {}) {
  const Table table = csv_table(text);
  return value_error([&] { TableEncoder::fit(table, "y", config); });
}

TEST(BadTargets, AreRefusedByName) {
  expect_part(fit_error("a,b\n1,2\n2,3\n"), "target 'y': there is no such column; choose one of 'a', 'b'");
  expect_part(fit_error("a,y\n1,\n2,NA\n"), "target 'y', 2 rows: all are missing; choose another target");
  expect_part(fit_error("a,y\n1,5\n2,5\n"), "target 'y' is '5' in every row: there is nothing to learn");
  expect_part(fit_error("a,y\n1,u\n2,u\n"), "target 'y' is 'u' in every row");
  expect_part(fit_error("a,y\n1,5\n"),
              "target 'y': one row has a target and at least two are needed; add rows");
  expect_part(fit_error("a,y\n1,u\n2,v\n3,w\n"), "target 'y': every row has a class of its own");
  expect_part(fit_error("a,y\n1,u\n2,v\n3,u\n", EncoderConfig{}.with_task(Task::regression)),
              "target 'y', such as 'u': regression needs numbers");
  // What a few texts have spoilt is said where it matters.
  const std::string spoilt = "a,y\n1,1.5\n2,2.5\n3,?\n4,4.5\n";
  expect_part(fit_error(spoilt, EncoderConfig{}.with_task(Task::regression)), "such as '?'");
  expect_part(fit_error(spoilt), "every row has a class of its own");
  expect_part(fit_error(spoilt), "3 of its 4 values are numbers, the others are '?'; --missing '?'");
  expect_part(fit_error("a,y\n1,1.5\n2,2.5\n3,?\n4,2.5\n", EncoderConfig{}.with_most_classes(2)),
              "3 of its 4 values are numbers, the others are '?'");
  const auto notices = [](const std::string& text) {
    return TableEncoder::fit(csv_table(text), "y").notices();
  };
  EXPECT_FALSE(
      has_notice(notices("d,y\n01/02/2024,a\n02/02/2024,b\n13/02/2024,a\n01/02/2024,b\n"), "taken as text"));
  const std::string never = "01/02/2024,a\n13/02/2024,b\n14/02/2024,a\n01/02/2024,b\n";
  EXPECT_NOTICE(notices("d,y\n" + never + "\"n/a, really\",a\n\"n/a, really\",b\n"),
                "the others are 'n/a, really'; --missing '\"n/a, really\"'");
  expect_part(fit_error("a,y\n1,1\n2,2\n3,3\n4,1\n",
                        EncoderConfig{}.with_task(Task::classification).with_most_classes(2)),
              "target 'y', 3 classes: at most 2 are possible");
  expect_part(fit_error("y\n1\n2\n"), "no column is left to predict it from: the table has no other");
  expect_part(fit_error("a,y\n1,1\n2,2\n", EncoderConfig{}.with_drop({"a"})), "all others are dropped");
  expect_part(fit_error("a,y\n1,inf\n2,\n"), "target 'y', 2 rows: all are missing or infinite");
  expect_part(fit_error("a,b,y\n1,,1\n1,,2\n"), "all others are constant, empty or names of rows");
  EXPECT_EQ(fit_error("a,y\n1,1.5\n2,2.5\n3,3.5\n"),
            "(no error of this kind)");  // numbers are unique per row: regression
}

TEST(BadTargets, IntegersThatNumberTheRowsArePredictedWithANotice) {
  const std::string part = "the target 'y' has another integer in every row";
  const auto fitted = [](const std::string& text, const EncoderConfig& config = {}) {
    return TableEncoder::fit(csv_table(text), "y", config);
  };
  const std::string unique = "a,y\n1,10\n2,11\n3,12\n3,\n";  // of the rows that have a target
  EXPECT_EQ(fitted(unique).task(), Task::regression);
  EXPECT_NOTICE(fitted(unique).notices(), part);
  EXPECT_NOTICE(fitted(unique).notices(), "ask for regression if they are amounts");
  // Whoever asks is not told, and neither reals nor integers that repeat number rows.
  EXPECT_FALSE(has_notice(fitted(unique, EncoderConfig{}.with_task(Task::regression)).notices(), part));
  EXPECT_FALSE(has_notice(fitted("a,y\n1,1.5\n2,2\n3,3\n").notices(), part));
  EXPECT_FALSE(has_notice(fitted("a,y\n1,7\n2,8\n3,8\n").notices(), part));
  expect_part(fit_error(unique, EncoderConfig{}.with_task(Task::classification)),
              "every row has a class of its own");
}

TEST(BadTargets, RowsWithoutOneAreLeftOut) {
  const Table table = csv_table("a,c,y\n1,u,2.5\n2,v,\n3,u,3.5\n4,w,inf\n5,u,1\n");
  const TableEncoder encoder = TableEncoder::fit(table, "y");
  EXPECT_NOTICE(encoder.notices(), "1 of 5 rows have no target 'y' and are left out of training");
  EXPECT_NOTICE(encoder.notices(), "1 of 5 rows have an infinite target 'y' and are left out of training");
  EXPECT_NOTICE(encoder.notices(), "column 'c' is constant");  // in the rows that are left
  const auto train = encoder.transform_train(table);
  EXPECT_EQ(train.targets, (std::vector<double>{2.5, 3.5, 1}));
  EXPECT_EQ(cells(train, "a"), (std::vector<float>{1, 3, 5}));
  EXPECT_EQ(encoder.transform(table).rows, 5);
  EXPECT_THROW(encoder.transform(table).check_targets("test"), ValueError);
  EXPECT_NO_THROW(train.check_targets("test"));
}

TEST(BadTargets, WhatIsNoNumberIsToldOfRowsToPredict) {
  const TableEncoder encoder = TableEncoder::fit(csv_table("a,y\n1,2.5\n2,4\n3,3.5\n"), "y");
  const auto rows = encoder.transform(csv_table("a,y\n1,2.5\n2,much\n3,\n4,inf\n"));
  EXPECT_NOTICE(rows.notices, "target 'y': 2 rows have no finite number");
}

TEST(BadTargets, DatesAreClassesByTheirTexts) {
  const Table train = csv_table("a,y\n1,2024-01-31\n2,2024-02-01\n3,2024-01-31\n4,2024-02-01\n");
  const auto config = EncoderConfig{}.with_task(Task::classification);
  const TableEncoder encoder = TableEncoder::fit(train, "y", config);
  EXPECT_EQ(encoder.class_names(), (std::vector<std::string>{"2024-01-31", "2024-02-01"}));
  EXPECT_EQ(encoder.transform(train).classes, (std::vector<std::int32_t>{0, 1, 0, 1}));
  // Texts to learn from, dates to predict.
  const Table mixed = csv_table("a,y\n1,2024-01-31\n2,never\n3,2024-01-31\n4,never\n");
  EXPECT_EQ(TableEncoder::fit(mixed, "y").transform(train).classes,
            (std::vector<std::int32_t>{0, -1, 0, -1}));
}

TEST(BadColumns, InfinitiesAreMissing) {
  const Table table = csv_table("a,b,y\n1,inf,0\ninf,-inf,1\n-inf,inf,0\n2,inf,1\n");
  const TableEncoder encoder = TableEncoder::fit(table, "y");
  EXPECT_EQ(cells(encoder.transform(table), "a"), (std::vector<float>{1, -99, -99, 2}));
  EXPECT_NOTICE(encoder.notices(), "columns 'a', 'b' have infinities: they are taken as missing");
  EXPECT_NOTICE(encoder.notices(), "column 'b' has no values: dropped");
}

TEST(BadColumns, FreeTextKeepsItsMostFrequentCategories) {
  std::vector<std::string> words;
  std::vector<double> target;
  for (int i = 0; i < 300; ++i) {
    words.push_back(i % 3 == 0 ? "often" : i % 3 == 1 && i < 30 ? "at times" : "rare " + std::to_string(i));
    target.push_back(i % 2);
  }
  Table table;
  table.add_texts("words", words).add_numbers("y", target);
  const TableEncoder encoder = TableEncoder::fit(table, "y");
  EXPECT_NOTICE(encoder.notices(), "column 'words' has more than 100 categories");
  EXPECT_EQ(encoder.features()[0].categories, 3);
  const std::vector<float> codes = cells(encoder.transform(table), "words");
  EXPECT_EQ((std::vector<float>(codes.begin(), codes.begin() + 3)), (std::vector<float>{1, 0, 2}));
  Table other;
  const std::vector<std::string> unseen{"unseen"};
  other.add_texts("words", unseen);
  EXPECT_EQ(cells(encoder.transform(other), "words"), (std::vector<float>{2}));  // one of the others
}

/// Ten thousand columns of which four tell something about the target.
Table wide_table(Task task) {
  constexpr std::int64_t rows = 200, columns = 10'000;
  Table table;
  std::vector<double> target(rows);
  for (std::int64_t r = 0; r < rows; ++r)
    target[static_cast<std::size_t>(r)] =
        task == Task::regression ? normal_at<double>({3, 1}, static_cast<std::uint64_t>(r)) : r % 3;
  for (std::int64_t c = 0; c < columns; ++c) {
    std::vector<double> values(rows);
    for (std::size_t r = 0; r < values.size(); ++r) {
      values[r] = normal_at<double>({7, static_cast<std::uint64_t>(c)}, r);
      if (c % 2500 == 1000) values[r] += 2 * target[r];
    }
    table.add_numbers("c" + std::to_string(c), std::move(values));
  }
  table.add_numbers("y", target);
  return table;
}

TEST(BadColumns, OfTenThousandTheBestAreKept) {
  for (const Task task : {Task::classification, Task::regression}) {
    const Table table = wide_table(task);
    const auto start = std::chrono::steady_clock::now();
    const TableEncoder encoder = TableEncoder::fit(table, "y", EncoderConfig{}.with_task(task));
    const auto encoded = encoder.transform(table);
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    EXPECT_LT(time.count(), 20) << "seconds";  // it takes about one, and more under a sanitizer
    EXPECT_EQ(encoded.columns(), 500);
    for (const char* name : {"c1000", "c3500", "c6000", "c8500"})
      EXPECT_EQ(cells(encoded, name).size(), 200u) << name;
    EXPECT_TRUE(encoded.notices.empty()) << encoded.notices.front();  // known columns are no strangers
    EXPECT_NOTICE(encoder.notices(), "of 10000 columns, the 500 that tell most about 'y' are used");
    EXPECT_NOTICE(encoder.notices(), task == Task::classification ? "mutual information" : "variance");
  }
}

TEST(BadColumns, ColumnsAreChosenBeyondChanceAndInTheirOrder) {
  // A category with a row or two each seems to tell everything; the correction knows better.
  Table table;
  std::vector<std::string> names;
  std::vector<double> noise, signal, target;
  for (int i = 0; i < 120; ++i) {
    names.push_back("n" + std::to_string(i % 80));
    noise.push_back(uniform_at<double>({1, 1}, static_cast<std::uint64_t>(i)));
    target.push_back(uniform_at<double>({1, 2}, static_cast<std::uint64_t>(i)) < 0.5);
    signal.push_back(target.back() + 2 * uniform_at<double>({1, 3}, static_cast<std::uint64_t>(i)));
  }
  table.add_texts("names", names).add_numbers("noise", noise).add_numbers("signal", signal);
  table.add_numbers("y", target);
  const TableEncoder encoder = TableEncoder::fit(table, "y", EncoderConfig{}.with_most_columns(1));
  EXPECT_EQ(encoder.features()[0].name, "signal");
}

/// A column of any kind, with odd numbers and missing cells.
pfn::RawColumn odd_column(const std::string& name, std::int64_t rows, RandomKey key) {
  const auto draw = [&](std::uint64_t i, std::int64_t below) { return integer_at(key, i, 0, below); };
  const double odd[] = {0, -0.0, 1, 1e300, -1e300, 5e-324, INFINITY, -INFINITY, NAN, 3, 1e17, 2};
  const char* const words[] = {"", "a", "b", "\xc3\xa9", "01/02/2024", "2024-01-01", "7", " ", "A"};
  const std::int64_t kind = draw(0, 4), choices = draw(1, 9) + 1;
  pfn::RawColumn column{name, kind == 1 ? pfn::FieldKind::date_time : pfn::FieldKind::number, {}, {}};
  std::vector<std::string> texts;
  for (std::int64_t r = 0; r < rows; ++r) {
    const auto i = static_cast<std::uint64_t>(r) + 2;
    column.numbers.push_back(kind == 2 ? static_cast<double>(draw(i, choices)) : odd[draw(i, choices + 3)]);
    texts.emplace_back(words[draw(i, choices)]);
  }
  if (kind != 3) return column;
  return *Table().add_texts(name, texts).find(name);
}

TEST(BadColumns, AnyTableIsRefusedOrGivesNumbers) {
  int fitted = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const std::int64_t rows = integer_at({seed, 0}, 0, 1, 12);
    Table table, other;
    for (std::uint64_t c = 0; c < 4; ++c) {
      const std::string name = c == 3 ? "y" : "c" + std::to_string(c);
      table.add(odd_column(name, rows, {seed, c + 1}));
      other.add(odd_column(name, 9, {seed, c + 9}));  // kinds may be others
    }
    try {
      const TableEncoder encoder = TableEncoder::fit(table, "y");
      ++fitted;
      const auto train = encoder.transform_train(table);
      train.check_targets("test");
      for (const auto& encoded : {train, TableEncoder::from_json(encoder.to_json()).transform(other)})
        for (std::size_t i = 0; i < encoded.x.size(); ++i) {
          const pfn::Feature& feature = encoded.features[i % encoded.features.size()];
          const float x = encoded.x[i];
          EXPECT_FALSE(std::isinf(x)) << "seed " << seed;
          if (feature.is_category && !std::isnan(x)) {
            EXPECT_TRUE(x >= 0 && x < static_cast<float>(feature.categories)) << "seed " << seed;
          }
        }
    } catch (const ValueError& e) {
      EXPECT_TRUE(std::string(e.what()).find("'y'") != std::string::npos) << e.what();
    }
  }
  EXPECT_GT(fitted, 100);
}

/// The message of a file that is refused, by the reader or by the fit.
std::string file_error(const std::string& text, const pfn::TableConfig& config = {}) {
  try {
    TableEncoder::fit(csv_table(text, config), "y");
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

TEST(BadFiles, SayWhatTheyAreAndWhatToDo) {
  const auto binary = [](const std::string& start) { return start + std::string(8, '\0') + "\xff,\n"; };
  expect_part(file_error(binary("PK\x03\x04")),
              "t.csv: is an Excel file or a zip archive, no CSV file; save");
  expect_part(file_error(binary("\x89PNG\r\n")), "t.csv: is binary, no CSV file; save the table as CSV");
  expect_part(file_error(binary("\x1f\x8b")), "gunzip");
  expect_part(file_error(binary(std::string("\xff\xfe") + "a")),
              "is text in UTF-16, no CSV file; convert it: ");
  for (const char* page : {"<!DOCTYPE html>\n<p>a, b\n", "\xef\xbb\xbf\n <HTML lang=\"en\">\n"})
    expect_part(file_error(page), "is a web page, no CSV file; download the table itself");
  expect_part(file_error("a,y\ncaf\xe9,1\n"), "must be UTF-8; if it is text, convert it: iconv");
  expect_part(file_error("a,y\n1,2\n3\n"),
              "row of 1 fields: 2 are needed, as in the first row; texts with ',' in them must be quoted");
}

TEST(BadFiles, AnotherDelimiterIsSuspectedAndCanBeNamed) {
  expect_part(file_error("a;y\n1;2.5\n2;3.5\n"),
              "choose one of 'a;y'; ';' seems to separate columns: read the file with --delimiter ';'");
  expect_part(file_error("a\ty\n1\t2.5\n2\t3.5\n"), "read the file with --delimiter '\\t'");
  expect_part(file_error("a;y\n1,5;2,5\n"),
              "that holds ';': if it is the delimiter, say so (--delimiter ';')");
  EXPECT_EQ(file_error("a,b\n1,2\n").find("seems to separate"), std::string::npos);
  pfn::TableConfig config;
  config.delimiter = ';';
  EXPECT_EQ(file_error("a;y\n1;2.5\n2;3.5\n", config), "no error");
  const TableEncoder encoder = TableEncoder::fit(csv_table("a,y\n1,2.5\n2,3.5\n"), "y");
  expect_part(value_error([&] { encoder.transform(csv_table("a;b\n1;2\n")); }), "--delimiter ';'");
}

TEST(BadFiles, WhatIsNoTableIsRefusedByTheReader) {
  EXPECT_THROW(csv_table(""), ParseError);
  EXPECT_THROW(csv_table("a,b\n1,2\n3\n"), ParseError);
  EXPECT_THROW(csv_table("a,b\n"), ParseError);
  EXPECT_THROW(pfn::read_table("nowhere.csv"), IoError);
  EXPECT_THROW(pfn::read_table("table.docx"), ValueError);
}

}  // namespace
}  // namespace ferrite::testing
