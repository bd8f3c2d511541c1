// Tables as they come become numbers: kinds of columns, other tables by name, files of a fit.
#include "ferrite/models/pfn/table_encoder.hpp"

#include "pfn_tables.hpp"

namespace ferrite::testing {
namespace {

using pfn::EncoderConfig;
using pfn::Table;
using pfn::TableEncoder;
using pfn::Task;
using Floats = std::vector<float>;

constexpr float missing = -99;

const char* const mixed =
    "age,city,member,joined,same,id,y\n"
    "31,Oslo,true,2024-01-30,k,a1,no\n"
    ",Lima,false,2024-02-02,k,a2,yes\n"
    "47,Oslo,true,,k,a3,no\n"
    "18,,false,2024-01-31,k,a4,yes\n";

TEST(TableEncoder, KeepsWhatMeansMissing) {
  pfn::TableConfig reading;
  reading.missing = {"None", "-1"};
  const Table table = csv_table("a,y\n1,u\n-1,v\nnone,u\n", reading);
  const std::vector<std::string> markers = {"-1", "none"}, nothing;
  EXPECT_EQ(table.missing(), markers);
  EXPECT_EQ(table.take(std::vector<std::int64_t>{0, 1}).missing(), markers);
  const TableEncoder encoder = TableEncoder::fit(table, "y");
  EXPECT_EQ(encoder.missing(), markers);
  std::string text = encoder.to_json();
  EXPECT_EQ(TableEncoder::from_json(text).missing(), markers);
  // A file of before they were kept.
  const std::string kept = "\"missing\":[\"-1\",\"none\"],";
  ASSERT_NE(text.find(kept), text.npos) << text;
  text.erase(text.find(kept), kept.size());
  EXPECT_EQ(TableEncoder::from_json(text).missing(), nothing);
}

TEST(TableEncoder, TakesEveryKindOfColumn) {
  const Table table = csv_table(mixed);
  const TableEncoder encoder = TableEncoder::fit(table, "y");
  EXPECT_EQ(encoder.task(), Task::classification);
  EXPECT_EQ(encoder.class_names(), (std::vector<std::string>{"no", "yes"}));
  const auto encoded = encoder.transform_train(table);
  EXPECT_EQ(encoded.rows, 4);
  EXPECT_EQ(encoded.classes, (std::vector<std::int32_t>{0, 1, 0, 1}));
  EXPECT_EQ(cells(encoded, "age"), (Floats{31, missing, 47, 18}));
  EXPECT_EQ(cells(encoded, "city"), (Floats{1, 0, 1, missing}));
  EXPECT_EQ(cells(encoded, "member"), (Floats{1, 0, 1, 0}));
  EXPECT_EQ(cells(encoded, "joined"), (Floats{0, 3, missing, 1}));
  EXPECT_EQ(cells(encoded, "joined (month)"), (Floats{1, 2, missing, 1}));
  EXPECT_EQ(cells(encoded, "joined (weekday)"), (Floats{1, 4, missing, 2}));  // Tuesday, Friday, Wednesday
  EXPECT_TRUE(cells(encoded, "joined (hour)").empty());
  EXPECT_EQ(encoded.columns(), 6);
  EXPECT_EQ(encoded.is_category(), (std::vector<std::uint8_t>{0, 1, 1, 0, 0, 0}));
  EXPECT_EQ(encoded.features[1].categories, 2);
  EXPECT_NOTICE(encoder.notices(), "column 'same' is constant: dropped");
  EXPECT_NOTICE(encoder.notices(), "column 'id' has another value in every row: dropped");
}

TEST(TableEncoder, FindsColumnsOfOtherTablesByName) {
  const TableEncoder encoder =
      TableEncoder::fit(csv_table(mixed), "y", EncoderConfig{}.with_date_parts(false));
  const auto encoded =
      encoder.transform(csv_table("y,weight,joined,city,age,member\n"
                                  "maybe,80,2024-03-01,Rome,old,true\n"
                                  "yes,81,soon,Lima,5,true\n"
                                  ",82,2023-12-31,Oslo,inf,false\n"));
  EXPECT_EQ(cells(encoded, "age"), (Floats{missing, 5, missing}));
  EXPECT_EQ(cells(encoded, "city"), (Floats{missing, 0, 1}));
  EXPECT_EQ(cells(encoded, "joined"), (Floats{31, missing, -30}));
  EXPECT_EQ(cells(encoded, "member"), (Floats{1, 1, 0}));
  EXPECT_EQ(encoded.classes, (std::vector<std::int32_t>{-1, 1, -1}));
  EXPECT_NOTICE(encoded.notices, "column 'weight' is not in the train table: ignored");
  EXPECT_NOTICE(encoded.notices, "column 'city': 1 cells have categories that no train row has");
  EXPECT_NOTICE(encoded.notices, "column 'age': 1 cells are not numbers");
  EXPECT_NOTICE(encoded.notices, "column 'joined': 1 cells are not dates");
  EXPECT_NOTICE(encoded.notices, "column 'age': 1 cells are infinite");
  EXPECT_NOTICE(encoded.notices, "target 'y': 1 rows have classes that no train row has");

  const std::string error =
      value_error([&] { encoder.transform(csv_table("city,joined\nOslo,2024-01-01\n")); });
  expect_part(error, "columns 'age', 'member': the train table has them and this one does not");
  EXPECT_FALSE(
      encoder.transform(csv_table("age,city,member,joined\n1,Oslo,true,2024-01-01\n")).has_targets());
}

TEST(TableEncoder, CategoriesOfDigitsAreFoundByValue) {
  const Table train = csv_table("zip,y\n0123,a\n77,b\nx,a\n0123,b\n77,b\nx,a\n");
  const TableEncoder encoder = TableEncoder::fit(train, "y");
  EXPECT_EQ(cells(encoder.transform(csv_table("zip\n77\n0123\n5\n")), "zip"), (Floats{1, 0, missing}));
  EXPECT_EQ(cells(encoder.transform(csv_table("zip\n77.0\n123\n?\n")), "zip"), (Floats{1, 0, missing}));
}

TEST(TableEncoder, CategoriesAreFoundWhateverTheirColumnIsReadAs) {
  const std::string known = "d,k,y\n2024-01-01 10:00,1,a\n2024-01-02 11:30,2,b\nnever,2,a\n";
  const Table train = csv_table(known + "2024-01-01 10:00,1,b\n2024-01-02 11:30,1,a\nnever,1,b\n");
  const TableEncoder encoder = TableEncoder::fit(train, "y", EncoderConfig{}.with_categories({"k"}));
  const auto dates = encoder.transform(csv_table("d,k\n2024-01-02 11:30,1.0\n2024-01-01T10:00,?\n"));
  EXPECT_EQ(cells(dates, "d"), (Floats{1, 0}));
  EXPECT_EQ(cells(dates, "k"), (Floats{0, missing}));
  // Different integers may be one double.
  const Table ids = csv_table("i,y\n9007199254740992,a\nx,b\n9007199254740992,a\nx,b\n");
  const auto others = TableEncoder::fit(ids, "y").transform(csv_table("i\n9007199254740993\nx\n"));
  EXPECT_EQ(cells(others, "i"), (Floats{missing, 1}));
}

TEST(TableEncoder, ColumnsThatDifferInEveryRow) {
  // Whether a cell is there at all may tell something.
  const Table sparse = csv_table("s,y\nu,a\n,b\nv,a\n,b\n,b\n,b\n");
  EXPECT_EQ(cells(TableEncoder::fit(sparse, "y").transform(sparse), "s"),
            (Floats{0, missing, 1, missing, missing, missing}));
  const Table table = csv_table("n,y\n1.5,a\n2.5,b\n3.5,a\n4.5,b\n");
  const TableEncoder encoder = TableEncoder::fit(table, "y", EncoderConfig{}.with_categories({"n"}));
  EXPECT_NOTICE(encoder.notices(), "column 'n' has another value in every row: used as numbers or dates");
  EXPECT_EQ(cells(encoder.transform(table), "n"), (Floats{1.5, 2.5, 3.5, 4.5}));
}

TEST(TableEncoder, ClassesOfDigitsAreInTheOrderOfTheirValues) {
  const TableEncoder encoder = TableEncoder::fit(csv_table("a,y\n1,10.0\n2,2.0\n3,x\n4,10.0\n5,2.0\n"), "y",
                                                 EncoderConfig{}.with_drop({}));
  EXPECT_EQ(encoder.class_names(), (std::vector<std::string>{"10.0", "2.0", "x"}));  // one is no number
  Table table;
  table.add_numbers("a", {1, 2, 3, 4});
  table.add_texts("y", std::vector<std::string>{"10.0", "2.0", "10.0", "2.0"});
  EXPECT_EQ(TableEncoder::fit(table, "y").class_names(), (std::vector<std::string>{"2.0", "10.0"}));
}

TEST(TableEncoder, DecidesTheTask) {
  const auto task = [](const std::string& target, const EncoderConfig& config = {}) {
    std::string text = "x,y\n";
    for (int i = 0; i < 40; ++i)
      text += std::to_string(i) + "," +
              (target == "binary"   ? std::to_string(i % 2)
               : target == "grades" ? std::to_string(i % 6)
               : target == "counts" ? std::to_string(i % 13)
               : target == "reals"  ? std::to_string(i % 4) + ".5"
               : target == "dates"  ? "2024-01-" + std::to_string(10 + i % 9)
                                    : (i % 3 ? "True" : "False")) +
              "\n";
    return TableEncoder::fit(csv_table(text), "y", config);
  };
  EXPECT_EQ(task("binary").task(), Task::classification);
  EXPECT_TRUE(task("binary").notices().empty());
  EXPECT_EQ(task("grades").task(), Task::classification);
  EXPECT_NOTICE(task("grades").notices(), "6 different integers, which are taken as classes");
  EXPECT_EQ(task("counts").task(), Task::regression);
  EXPECT_EQ(task("reals").task(), Task::regression);
  EXPECT_EQ(task("booleans").task(), Task::classification);
  EXPECT_EQ(task("dates").task(), Task::regression);
  EXPECT_NOTICE(task("dates").notices(), "seconds since 1970");
  const TableEncoder forced = task("counts", EncoderConfig{}.with_task(Task::classification));
  EXPECT_EQ(forced.task(), Task::classification);
  EXPECT_EQ(forced.class_names()[2], "2");  // by value
  EXPECT_EQ(forced.class_names()[12], "12");
  EXPECT_EQ(task("grades", EncoderConfig{}.with_task(Task::regression)).task(), Task::regression);
}

TEST(TableEncoder, ReadsDatesOfOtherForms) {
  const auto days = [](const std::string& dates, std::vector<std::string>* notices = nullptr) {
    Table table = csv_table("d,y\n" + dates);
    const TableEncoder encoder = TableEncoder::fit(table, "y", EncoderConfig{}.with_date_parts(false));
    if (notices) *notices = encoder.notices();
    return cells(encoder.transform(table), "d");
  };
  EXPECT_EQ(days("31/01/2024,1\n01/02/2024,2\n31/01/2024,3\n"), (Floats{0, 1, 0}));
  EXPECT_EQ(days("1/31/2024,1\n2/1/2024 12:00,2\n1/31/2024,3\n"), (Floats{0, 1.5, 0}));
  EXPECT_EQ(days("2024/01/31,1\n2024/02/01,2\n"), (Floats{0, 1}));
  std::vector<std::string> notices;
  EXPECT_EQ(days("01/02/2024,1\n02/02/2024,2\n", &notices), (Floats{0, 31}));
  EXPECT_NOTICE(notices, "the month is taken to come first; --day-first");
  const Table both = csv_table("d,y\n01/02/2024,1\n02/02/2024,2\n");
  const TableEncoder told =
      TableEncoder::fit(both, "y", EncoderConfig{}.with_date_parts(false).with_day_first(true));
  EXPECT_EQ(cells(told.transform(both), "d"), (Floats{0, 1}));
  EXPECT_FALSE(has_notice(told.notices(), "both ways"));
  EXPECT_EQ(days("01.02.2024,1.5\n02.02.2024,2.5\n", &notices), (Floats{0, 1}));
  EXPECT_TRUE(notices.empty());
}

TEST(TableEncoder, KeepsWhatF32WouldLose) {
  Table table;
  table.add_numbers("stamp", {1.7e9, 1.7e9 + 1, 1.7e9 + 2, 1.7e9 + 3});
  table.add_numbers("huge", {1e300, -3e300, 2e300, 0});
  table.add_numbers("tiny", {1e-300, 3e-300, 2e-300, 0});
  table.add_numbers("plain", {1, 2, 3, 1e6});
  table.add_numbers("y", {0, 1, 0, 1});
  const auto x = TableEncoder::fit(table, "y").transform(table);
  EXPECT_EQ(cells(x, "stamp"), (Floats{0, 1, 2, 3}));
  EXPECT_EQ(cells(x, "plain"), (Floats{1, 2, 3, 1e6f}));
  for (const char* name : {"huge", "tiny"}) {
    const Floats values = cells(x, name);
    EXPECT_NEAR(values[2] / values[0], 2, 1e-6) << name;
    EXPECT_NEAR(values[1] / values[0], name[0] == 'h' ? -3 : 3, 1e-6) << name;
    EXPECT_LE(std::abs(values[1]), 2) << name;
  }
}

TEST(TableEncoder, NumbersCanBeCategories) {
  Table table;
  table.add_numbers("code", {10, 9, 10, 9, NAN, 10});
  table.add_numbers("y", {0, 1, 0, 1, 0, 1});
  const TableEncoder encoder = TableEncoder::fit(table, "y", EncoderConfig{}.with_categories({"code"}));
  EXPECT_TRUE(encoder.features()[0].is_category);
  EXPECT_EQ(cells(encoder.transform(table), "code"), (Floats{1, 0, 1, 0, missing, 1}));
  expect_part(value_error([&] { TableEncoder::fit(table, "y", EncoderConfig{}.with_categories({"cod"})); }),
              "column 'cod': the options name it and the table does not have it");
}

TEST(TableEncoder, ComesBackFromItsText) {
  const Table table = csv_table(mixed);
  const TableEncoder encoder = TableEncoder::fit(table, "y");
  const TableEncoder back = TableEncoder::from_json(encoder.to_json());
  EXPECT_EQ(back.to_json(), encoder.to_json());
  EXPECT_EQ(back.features(), encoder.features());
  EXPECT_EQ(back.notices(), encoder.notices());
  EXPECT_EQ(cells(back.transform(table), "joined"), cells(encoder.transform(table), "joined"));
  for (const char* text : {"", "{}", "[1]", "{\"version\": 9}", "{\"version\": 1, \"target\": 3}"})
    EXPECT_THROW(TableEncoder::from_json(text), ParseError) << text;
}

TEST(Table, TakesRowsAndRefusesWhatDoesNotFit) {
  const Table table = csv_table("a,b\n1,x\n2,y\n3,\n");
  const std::vector<std::int64_t> rows{2, 0};
  const Table part = table.take(rows);
  EXPECT_EQ(part.find("a")->numbers, (std::vector<double>{3, 1}));
  EXPECT_EQ(part.find("b")->text.codes, (std::vector<std::int32_t>{-1, 0}));
  EXPECT_EQ(part.find("b")->text.distinct, (std::vector<std::string>{"x"}));
  pfn::TableConfig small_chunks;
  small_chunks.chunk_bytes = 16;
  std::string text = "w\n";
  for (int i = 0; i < 50; ++i) text += i % 3 ? "word\n" : i % 2 ? "other\n" : "third\n";
  const pfn::RawColumn joined = *csv_table(text, small_chunks).find("w");
  EXPECT_EQ(joined.text.distinct, (std::vector<std::string>{"third", "word", "other"}));
  for (std::size_t i = 0; i < 50; ++i) EXPECT_EQ(joined.text.codes[i], i % 3 ? 1 : i % 2 ? 2 : 0) << i;
  const std::vector<std::int64_t> outside{3};
  EXPECT_THROW(table.take(outside), ValueError);
  Table other;
  other.add_numbers("a", {1, 2});
  EXPECT_THROW(other.add_numbers("a", {1, 2}), ValueError);
  EXPECT_THROW(other.add_numbers("b", {1}), ValueError);
  EXPECT_THROW(other.add({"c", pfn::FieldKind::text, {}, {{0, 1}, {"x"}}}), ValueError);
  const auto encoded = TableEncoder::fit(csv_table(mixed), "y").transform(csv_table(mixed));
  EXPECT_THROW(encoded.take(std::vector<std::int64_t>{4}), ValueError);
}

}  // namespace
}  // namespace ferrite::testing
