// Several files as one table: the fit and the tokens of all rows in one file, and errors that name the file.
#include "ferrite/io/npy.hpp"
#include "ferrite/models/quantile_tokenizer/shards.hpp"
#include "table_support.hpp"

namespace ferrite::testing {
namespace {

using namespace quantile_tokenizer;
using Paths = std::vector<std::filesystem::path>;

TableConfig inspecting(std::int64_t rows) {
  TableConfig config;
  config.inspected_rows = rows;
  return config;
}

struct JoinedTables : TableTest {
  /// Files with a header and these rows each.
  Paths files(const std::string& header, const std::vector<std::string>& rows) {
    Paths paths;
    for (const std::string& part : rows)
      paths.push_back(write("part-" + std::to_string(paths.size()) + ".csv", header + part));
    return paths;
  }
  /// The fit of the files, which must equal that of all rows in one file, and so must the tokens.
  TableTokenizer expect_equal(const std::string& header, const std::vector<std::string>& rows,
                              const TableConfig& config = {}, const TableFitConfig& how = {}) {
    std::string all = header;
    for (const std::string& part : rows) all += part;
    const auto one = open_table(write("all.csv", all), config);
    const auto joined = open_tables(files(header, rows), config);
    EXPECT_EQ(joined->names(), one->names());
    EXPECT_EQ(joined->kinds(), one->kinds());
    EXPECT_EQ(joined->notes(), one->notes());
    const auto wanted = TableTokenizer::fit(*one, engine, how);
    auto got = TableTokenizer::fit(*joined, engine, how);
    EXPECT_EQ(got.fingerprint(), wanted.fingerprint());
    EXPECT_EQ(got.report(), wanted.report());
    EXPECT_EQ(tokens(got, *joined), tokens(wanted, *one));
    EXPECT_EQ(joined->progress(), 1);
    return got;
  }
  std::string refused(const Paths& paths, const TableConfig& config = {}) {
    return error<ValueError>([&] { open_tables(paths, config); });
  }
};

/// The rows of mixed_rows() in three parts, cut at line ends outside quotes.
std::pair<std::string, std::vector<std::string>> mixed_parts() {
  const std::string text = mixed_rows(600);
  const std::size_t header = text.find('\n') + 1;
  std::vector<std::string> parts(3);
  std::size_t begin = header, row = 0;
  bool quoted = false;
  for (std::size_t i = header; i < text.size(); ++i) {
    quoted ^= text[i] == '"';
    if (text[i] != '\n' || quoted) continue;
    parts[row < 50 ? 0 : row < 51 ? 1 : 2] += text.substr(begin, i + 1 - begin);
    begin = i + 1;
    ++row;
  }
  return {text.substr(0, header), parts};
}

TEST_F(JoinedTables, FitAsOneFile) {
  const auto [header, parts] = mixed_parts();
  expect_equal(header, parts);
  expect_equal(header, parts, inspecting(10));
  TableConfig told;
  told.drop = {"grade"};
  told.text = {"number"};
  expect_equal(header, parts, told);
  TableFitConfig streamed;
  streamed.tokenizer.bins = 16;
  streamed.memory_limit = 2000;  // read twice and more
  TableConfig small;
  small.chunk_bytes = 1000;
  expect_equal(header, parts, small, streamed);
}

TEST_F(JoinedTables, KindsComeFromTheFirstRowsOfAllFiles) {
  const std::string header = "a,b,c,d\n";
  const auto fitted = expect_equal(header, {"1,,2024-01-01,1\n2,NA,2024-01-02,2\n",
                                            "x,2024-01-01,2024-01-03 10:00,3\n", "3,2024-02-01,,?\n"});
  EXPECT_EQ(fitted.columns()[0].kind, ColumnKind::text_category);  // numbers only, in the first file
  EXPECT_EQ(fitted.columns()[1].kind, ColumnKind::date);           // nothing there
  EXPECT_EQ(fitted.columns()[2].kind, ColumnKind::date_time);
  EXPECT_EQ(fitted.columns()[3].kind, ColumnKind::text_category);
  const auto late = open_tables(files(header, {"1,1,1,1\n2,2,2,2\n", "3,3,3,3\n4,x,4,4\n"}), inspecting(3));
  expect_part(error<ParseError>([&] {
                while (late->next()) continue;
              }),
              "part-1.csv:3:3");
}

TEST_F(JoinedTables, ColumnsAreFoundByName) {
  const auto one = csv("a,b\n1,x\n2,y\n3,z\n4,x\n");
  const Paths paths{write("1.csv", "a,b\n1,x\n2,y\n"), write("2.csv", "b,a\nz,3\nx,4\n")};
  const auto joined = open_tables(paths);
  const auto wanted = TableTokenizer::fit(*one, engine), got = TableTokenizer::fit(*joined, engine);
  EXPECT_EQ(got.fingerprint(), wanted.fingerprint());
  EXPECT_EQ(tokens(got, *joined), tokens(wanted, *one));
}

TEST_F(JoinedTables, SayWhichFileDiffers) {
  const auto first = write("1.csv", "a,b\n1,2\n"), second = write("2.csv", "a,c\n1,2\n");
  const std::string differ = refused({first, second});
  expect_part(differ, "2.csv: its columns are not those of");
  expect_part(differ, "1.csv, it has no b, it has c besides");
  expect_part(differ, "--drop");
  expect_part(refused({first, write("3.csv", "a,b,c\n1,2,3\n")}), "3.csv");
  expect_part(refused({first, write("4.csv", "b\n1\n")}), "it has no a;");
  expect_part(refused({first, write("5.csv", "3,4\n")}), "--header present or absent says so");
  expect_part(refused({}), "no files: give at least one");
  expect_part(error<ParseError>([&] {
                open_tables({first, write("6.csv", "a,b\n")});
              }),
              "6.csv:1:1, only a header");
  expect_part(error<IoError>([&] { open_tables({first, folder / "no.csv"}); }), "no.csv");
  // Only what is read has to agree.
  TableConfig one_column;
  one_column.columns = {"a"};
  EXPECT_NO_THROW(open_tables({first, second}, one_column));
}

TEST_F(JoinedTables, ArraysJoinToo) {
  std::vector<double> values(300);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = uniform_at<double>({1, 2}, i);
  const std::span<const double> all(values);
  write_npy(folder / "all.npy", HostTensor::from(all, {100, 3}));
  write_npy(folder / "1.npy", HostTensor::from(all.first(90), {30, 3}));
  write_npy(folder / "2.npy", HostTensor::from(all.subspan(90), {70, 3}));
  const auto one = open_table(folder / "all.npy"), joined = open_tables({folder / "1.npy", folder / "2.npy"});
  const auto wanted = TableTokenizer::fit(*one, engine), got = TableTokenizer::fit(*joined, engine);
  EXPECT_EQ(got.fingerprint(), wanted.fingerprint());
  EXPECT_EQ(tokens(got, *joined), tokens(wanted, *one));

  TableConfig bare;
  bare.header = CsvHeader::absent;
  EXPECT_NO_THROW(open_tables({folder / "1.npy", write("3.csv", "1,2,3\n")}, bare));
  expect_part(refused({write("4.csv", "1,x,3\n"), folder / "1.npy"}, bare),
              "1.npy, column 'c1' of numbers: in ");
}

TEST_F(JoinedTables, RowsAreCountedOn) {
  const auto joined = open_tables(files("a\n", {"1\n2\n3\n", "4\n5\n"}));
  for (int pass = 0; pass < 2; ++pass) {
    EXPECT_EQ(joined->next()->first_row, 0);
    EXPECT_EQ(joined->next()->first_row, 3);
    EXPECT_EQ(joined->next(), nullptr);
    joined->rewind();
  }
  const auto fitted = TableTokenizer::fit(*joined, engine);
  ShardConfig two_rows;
  two_rows.rows = 2;
  const ShardResult done = write_shards(folder / "tokens", *joined, fitted, engine, two_rows);
  EXPECT_EQ(done.rows, 5);
  EXPECT_EQ(done.shards, 3);
}

TEST_F(JoinedTables, AFileThatChangesIsNoticed) {
  const auto paths = files("a\n", {"1\n2\n", "3\n"});
  const auto joined = open_tables(paths);
  joined->next();
  write("part-1.csv", "a\n3\n4\n");
  expect_part(error<IoError>([&] { joined->next(); }), "part-1.csv: changed while the tables were read");
}

}  // namespace
}  // namespace ferrite::testing
