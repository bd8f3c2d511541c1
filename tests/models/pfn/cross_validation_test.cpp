// Cross-validation predicts every row from others, with encoders of the train parts.
#include "ferrite/models/pfn/cross_validation.hpp"

#include "ferrite/models/pfn/baselines.hpp"
#include "ferrite/models/pfn/class_codes.hpp"
#include "pfn_tables.hpp"
#include "sklearn_reference.hpp"

namespace ferrite::testing {
namespace {

using pfn::FitPredict;

FitPredict of(std::unique_ptr<pfn::Baseline> (*make)()) {
  return [make](const pfn::EncodedTable& train, const pfn::EncodedTable& test) {
    const auto model = make();
    model->fit(train);
    return model->predict(test);
  };
}
const std::vector<FitPredict> baselines{of([] { return pfn::majority(); }),
                                        of([] { return pfn::nearest_neighbours(); }),
                                        of([] { return pfn::linear_model(); })};

TEST(CrossValidation, RanksTheBaselines) {
  const pfn::Table cancer = pfn::read_table(reference_path("breast_cancer.csv"));
  const auto found = pfn::cross_validate(cancer, "target", baselines);
  EXPECT_EQ(pfn::mean_score(found, 0), 0.5);
  EXPECT_NEAR(pfn::mean_score(found, 1), 0.974, 0.015);
  EXPECT_NEAR(pfn::mean_score(found, 2), 0.986, 0.01);
  const auto again = pfn::cross_validate(cancer, "target", baselines);
  EXPECT_EQ(again.predictions, found.predictions);

  const auto numbers =
      pfn::cross_validate(pfn::read_table(reference_path("diabetes.csv")), "target", baselines);
  EXPECT_LT(pfn::mean_score(numbers, 0), 0);
  EXPECT_NEAR(pfn::mean_score(numbers, 2), 0.48, 0.04);
}

TEST(CrossValidation, ATrainPartMayLackAClass) {
  const pfn::Table table = csv_table("x,y\n1,b\n2,a\n3,b\n4,a\n5,once\n6,b\n7,\n8,a\n");
  const auto found = pfn::cross_validate(table, "y", baselines, 2);
  EXPECT_EQ(found.rows.rows, 7);  // one has no target
  EXPECT_EQ(found.rows.class_names, (std::vector<std::string>{"a", "b", "once"}));
  EXPECT_NOTICE(found.notices, "1 of 8 rows have no target 'y'");
  EXPECT_NOTICE(found.notices, "target 'y': 1 rows have classes that no train row has");
  EXPECT_EQ(found.predictions[0][3 * 4 + 2], 0);  // the row of that class was predicted by rows without it
  for (std::size_t r = 0; r < 7; ++r) {
    const double* const p = found.predictions[0].data() + 3 * r;
    EXPECT_NEAR(p[0] + p[1] + p[2], 1, 1e-12);
  }
}

TEST(CrossValidation, SaysOnceThatTrainPartsLackCategories) {
  std::string text = "c1,c2,y\n";  // four rows have categories of their own
  for (int i = 0; i < 40; ++i) {
    const std::string rare = i % 10 == 0 ? "once" + std::to_string(i) : i % 3 ? "u" : "v";
    text += rare + "," + rare + (i % 2 ? ",a\n" : ",b\n");
  }
  const auto found = pfn::cross_validate(csv_table(text), "y", baselines, 5);
  for (const char* column : {"column 'c1': ", "column 'c2': "})
    EXPECT_EQ(std::count_if(found.notices.begin(), found.notices.end(),
                            [&](const std::string& notice) {
                              return notice.starts_with("in fold ") &&
                                     notice.find(column) != std::string::npos &&
                                     notice.find("categories that no train row has") != std::string::npos;
                            }),
              1)
        << ::testing::PrintToString(found.notices);
}

TEST(CrossValidation, CodesOfClassesCostLittle) {
  // Three classes by two symbols, each coding with a model of its own, beside all three at once.
  const FitPredict coded = [](const pfn::EncodedTable& train, const pfn::EncodedTable& test) {
    const pfn::ClassCodes codes(train.class_count(), 4, 1, 2);
    std::vector<double> symbols;
    for (std::int64_t j = 0; j < codes.codings(); ++j) {
      pfn::EncodedTable labelled = train;
      labelled.class_names = {"0", "1"};
      labelled.classes = codes.encode(j, train.classes);
      const auto model = pfn::linear_model();
      model->fit(labelled);
      const auto part = model->predict(test);
      symbols.insert(symbols.end(), part.begin(), part.end());
    }
    return codes.decode(symbols, test.rows);
  };
  const std::vector<FitPredict> models{baselines[2], coded};
  const auto found = pfn::cross_validate(pfn::read_table(reference_path("wine.csv")), "target", models);
  EXPECT_GT(pfn::mean_score(found, 0), 0.99);
  EXPECT_GT(pfn::mean_score(found, 1), 0.98);
}

TEST(CrossValidation, SaysWhichFoldCannotBeLearnedFrom) {
  std::string text = "x,y\n";
  for (int i = 0; i < 12; ++i) text += std::to_string(i) + (i == 7 ? ",3.25\n" : ",5.5\n");
  const std::string error = value_error([&] {
    pfn::cross_validate(csv_table(text), "y", baselines, 3, 0,
                        pfn::EncoderConfig{}.with_task(pfn::Task::regression));
  });
  expect_part(error, " of 3, the rows of all others: ");
  expect_part(error, "target 'y' is '5.5' in every row");
}

TEST(CrossValidation, RefusesPredictionsOfTheWrongNumber) {
  const std::vector<FitPredict> models{[](const auto&, const auto&) { return std::vector<double>(3); }};
  expect_part(value_error([&] {
                pfn::cross_validate(pfn::read_table(reference_path("iris.csv")), "target", models);
              }),
              "3 predictions of model 0: 30 rows need 3 for each");
}

}  // namespace
}  // namespace ferrite::testing
