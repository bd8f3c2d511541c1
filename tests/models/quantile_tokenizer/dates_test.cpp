// Dates as numbers, and back.
#include <cmath>

#include "models/quantile_tokenizer/table_support.hpp"

namespace ferrite::testing {
namespace {

using namespace quantile_tokenizer;

struct Dates : TableTest {
  /// Of one column, read as dates.
  std::vector<double> seconds(const std::vector<std::string>& texts) {
    std::string text = "day\n";
    for (const std::string& field : texts) text += field + "\n";
    const auto source = csv(text);
    EXPECT_TRUE(source->kinds()[0] == FieldKind::date || source->kinds()[0] == FieldKind::date_time);
    return source->next()->numbers[0];
  }
};

TEST_F(Dates, AreSecondsSince1970) {
  EXPECT_EQ(seconds({"1970-01-01", "1970-01-02", "1969-12-31", "2000-02-29", "2024-01-31", "0001-01-01"}),
            (std::vector<double>{0, 86400, -86400, 951782400, 1706659200, -62135596800}));
  EXPECT_EQ(seconds({"1970-01-01T00:00", "1970-01-01 10:30", " 1970-01-01T10:30:15 ",
                     "\"1970-01-01 00:00:00.25\"", "1970-01-01T00:00:00Z", "1970-01-01T02:00:00+02",
                     "1970-01-01T00:00-0130", "1970-01-01T00:00:01.5+00:30", "2024-01-31"}),
            (std::vector<double>{0, 37800, 37815, 0.25, 0, 0, 5400, -1798.5, 1706659200}));
  EXPECT_TRUE(std::isnan(seconds({"2024-01-31", "NA"})[1]));
}

TEST_F(Dates, ThatNoCalendarHasAreText) {
  for (const char* field :
       {"2023-02-29", "2024-13-01", "2024-00-10", "2024-01-32", "2024-1-05", "24-01-05", "2024-01-05T",
        "2024-01-05T25:00", "2024-01-05T10", "2024-01-05T10:60", "2024-01-05T10:00:00.", "2024-01-05T10:00+2",
        "2024-01-05x", "31/01/2024", "2024/01/05"})
    EXPECT_EQ(csv("d\n2024-01-05\n" + std::string(field) + "\n")->kinds()[0], FieldKind::text) << field;
  const auto fitted = fit("d\n31/01/2024\n01/02/2024\n");
  EXPECT_EQ(fitted.columns()[0].kind, ColumnKind::date_category);
}

TEST_F(Dates, AloneAreNoHeader) {
  const auto source = csv("2024-01-05,1\n2024-01-06,2\n");
  EXPECT_EQ(source->names(), (std::vector<std::string>{"c0", "c1"}));
  EXPECT_EQ(source->next()->rows, 2);
}

TEST_F(Dates, AreBinnedInTheirOrderAndWrittenAgain) {
  for (const bool with_time : {false, true}) {
    std::string text = "day,y\n";
    for (int i = 0; i < 300; ++i) {
      const auto pick = [&](std::uint64_t stream, int most) {
        return 1 + static_cast<int>(most * uniform_at<double>({9, stream}, static_cast<std::uint64_t>(i)));
      };
      char field[64];
      std::snprintf(field, sizeof field, with_time ? "%04d-%02d-%02dT%02d:%02d:%02d.%03d" : "%04d-%02d-%02d",
                    1950 + pick(1, 80), pick(2, 12), pick(3, 28), pick(4, 23), pick(5, 59), pick(6, 59),
                    pick(7, 999));
      text += (i % 50 == 9 ? "" : std::string(field)) + "," + std::to_string(i * 0.5) + "\n";
    }
    for (const Closed closed : {Closed::left, Closed::right})
      for (const int bins : {2, 7, 250}) {
        const auto fitted =
            fit(text, {}, {TokenizerConfig{}.with_bins(bins).with_closed(closed).with_statistics(true)});
        ASSERT_EQ(fitted.columns()[0].kind, with_time ? ColumnKind::date_time : ColumnKind::date);
        const auto source = csv(text, fitted.reading({}));
        const std::vector<int> want = tokens(fitted, *source);
        for (const BinValue value : {BinValue::mean, BinValue::midpoint}) {
          std::string back = "day,y\n";
          for (std::size_t i = 0; i < want.size(); i += 2)
            back +=
                fitted.inverse(want[i], 0, 0, value) + "," + fitted.inverse(want[i + 1], 1, 0, value) + "\n";
          EXPECT_TRUE(with_time || bins > 2 || back.find('T') == std::string::npos) << back;
          EXPECT_EQ(tokens(fitted, *csv(back, fitted.reading({}))), want);
        }
      }
  }
}

TEST_F(Dates, AreWrittenInAsFewPlacesAsWillDo) {
  for (const char* text : {"2024-01-05T10:00:00", "2024-01-05T10:00:00.129", "1965-02-17T14:41:26.000007",
                           "1970-01-01T00:00:00.000000001", "9999-12-31T23:59:59"})
    EXPECT_EQ(fit("d\n" + std::string(text) + "\n").inverse(0, 0, 0, BinValue::midpoint), text);
}

TEST_F(Dates, AreKeptByTheFileOfAFit) {
  const auto fitted = fit("d\n2024-01-05\n2024-01-07\n2024-01-09\n", {}, {TokenizerConfig{}.with_bins(3)});
  fitted.save(folder / "fit.safetensors");
  const auto loaded = TableTokenizer::load(folder / "fit.safetensors");
  EXPECT_EQ(loaded.columns()[0].kind, ColumnKind::date);
  EXPECT_EQ(loaded.inverse(2, 0, 0, BinValue::midpoint), "2024-01-08");
  expect_part(loaded.report(), "2024-01-05 to 2024-01-09");
  expect_part(error<ParseError>([&] { csv("d\n7\n", loaded.reading({}))->next(); }),
              "the column is one of dates");
}

}  // namespace
}  // namespace ferrite::testing
