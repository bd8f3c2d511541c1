// Classifiers of tables: what is predicted follows the rows, whatever their order, number and company.
#include "ferrite/models/pfn/classifier.hpp"

#include "ferrite/models/pfn/class_codes.hpp"
#include "ferrite/models/pfn/ensemble.hpp"
#include "models/pfn/pfn_members.hpp"
#include "models/pfn/pfn_predictors.hpp"

namespace ferrite::testing {
namespace {

using pfn::Classifier;
using pfn::Table;

struct ClassifierTest : ::testing::Test {
  SmallWeights weights;
  pfn::PredictorConfig config = weights.config();
};

void expect_probabilities(const std::vector<double>& p, std::int64_t rows, std::size_t classes) {
  ASSERT_EQ(p.size(), static_cast<std::size_t>(rows) * classes);
  for (std::size_t row = 0; row < p.size(); row += classes) {
    double sum = 0;
    for (std::size_t c = 0; c < classes; ++c) {
      EXPECT_GE(p[row + c], 0);
      sum += p[row + c];
    }
    EXPECT_NEAR(sum, 1, 1e-12);
  }
}

TEST_F(ClassifierTest, PredictsClassesByName) {
  const Table train = mixed_table(40, 3), test = mixed_table(9, 3, 2);
  Classifier model(config);
  const std::vector<double> p = model.fit(train, "y").predict_proba(test);
  EXPECT_EQ(model.classes(), (std::vector<std::string>{"k0", "k1", "k2"}));
  expect_probabilities(p, 9, 3);
  const std::vector<std::string> names = model.predict(test);
  for (std::size_t r = 0; r < names.size(); ++r) {
    const auto row = p.begin() + static_cast<std::ptrdiff_t>(3 * r);
    EXPECT_EQ(names[r], model.classes()[static_cast<std::size_t>(std::max_element(row, row + 3) - row)]);
  }
  EXPECT_EQ(Classifier(config).fit(train, "y").predict_proba(test), p);  // in one line, and again the same
  EXPECT_NE(Classifier(config.with_seed(5)).fit(train, "y").predict_proba(test), p);
}

/// What the network itself says of rows, given labelled ones: probabilities of so many classes.
std::vector<double> by_network(const SmallWeights& weights, const pfn::EncodedTable& train,
                               const std::vector<std::int32_t>& labels, const pfn::EncodedTable& rows,
                               std::int64_t classes) {
  Cpu cpu;
  auto network = pfn::load(cpu, weights.path(pfn::Task::classification));
  const auto x = [&](const pfn::EncodedTable& t) { return from_vector(cpu, t.x, {1, t.rows, t.columns()}); };
  const auto flags = train.is_category();
  const auto context = network.forward_context(
      x(train), from_vector(cpu, std::vector<float>(flags.begin(), flags.end()), {1, train.columns()}),
      from_vector(cpu, labels, {1, train.rows}));
  return softmax(slice(network.predict(context, x(rows)), 2, 0, classes), -1).to_vector<double>();
}

TEST_F(ClassifierTest, IsTheMeanOfTheNetworkOnEachMembersTable) {
  const Table train = mixed_table(20, 3), test = mixed_table(5, 3, 2);
  Classifier model(config.with_members(3).with_seed(4));
  const std::vector<double> p = model.fit(train, "y").predict_proba(test);
  const auto rows = model.encoder().transform(train), asked = model.encoder().transform(test);
  std::vector<double> mean(p.size());
  for (std::int64_t m = 0; m < 3; ++m) {
    const auto member = fit_member(rows, pfn::member_config(4, m));
    const auto seen = seen_by(member, rows);
    const auto alone = member.restore(by_network(weights, seen, seen.classes, seen_by(member, asked), 3));
    EXPECT_GT(difference(alone, p), 1e-4);  // members differ
    for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += alone[i] / 3;
  }
  expect_near(p, mean, 1e-6);
}

TEST_F(ClassifierTest, CodesAreDecodedFromTheirSymbols) {
  const Table train = mixed_table(40, 7), test = mixed_table(5, 7, 2);
  Classifier model(config.with_members(1).with_seed(4));
  const std::vector<double> p = model.fit(train, "y").predict_proba(test);
  const auto rows = model.encoder().transform(train), asked = model.encoder().transform(test);
  const pfn::ClassCodes codes(7, 2, 4, 4);
  ASSERT_EQ(codes.codings(), 4);
  std::vector<double> symbols;
  for (std::int64_t j = 0; j < 4; ++j) {
    const auto of_coding = by_network(weights, rows, codes.encode(j, rows.classes), asked, 4);
    symbols.insert(symbols.end(), of_coding.begin(), of_coding.end());
  }
  expect_near(p, codes.decode(symbols, 5), 1e-5);
}

TEST_F(ClassifierTest, RowsArePredictedTheSameInAnyCompany) {
  const Table train = mixed_table(40, 3), test = mixed_table(23, 3, 2);
  Classifier model(config);
  const std::vector<double> p = model.fit(train, "y").predict_proba(test);
  std::vector<std::int64_t> order(23);
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int64_t>(i * 7 % 23);
  std::vector<double> moved;
  for (const std::int64_t r : order) moved.insert(moved.end(), p.begin() + 3 * r, p.begin() + 3 * r + 3);
  expect_near(model.predict_proba(test.take(order)), moved, 1e-6);
  for (const std::int64_t rows : {1, 5, 100})
    expect_near(Classifier(config.with_query_rows(rows)).fit(train, "y").predict_proba(test), p, 1e-6);
}

TEST_F(ClassifierTest, MembersGoTogetherOrOneByOne) {
  for (const std::int64_t classes : {3, 9}) {
    const Table train = mixed_table(80, classes), test = mixed_table(9, classes, 2);
    const auto model = config.with_members(5).with_context_rows(50).with_query_rows(4);
    const std::vector<double> p = Classifier(model).fit(train, "y").predict_proba(test);
    for (const std::int64_t together : {2, 5, 100}) {
      Classifier grouped(model.with_members_together(together));
      expect_near(grouped.fit(train, "y").predict_proba(test), p, 1e-6);
      grouped.save(weights.folder / "grouped.safetensors");
      EXPECT_EQ(Classifier::load(weights.folder / "grouped.safetensors", model).predict_proba(test),
                grouped.predict_proba(test));
    }
  }
}

TEST_F(ClassifierTest, ColumnsAreFoundByNameAndTheTargetIsNotLookedAt) {
  const Table train = mixed_table(40, 3), test = mixed_table(9, 3, 2);
  Classifier model(config);
  const std::vector<double> p = model.fit(train, "y").predict_proba(test);
  Table other;
  const std::vector<std::string> wrong(9, "k0");
  other.add_texts("y", wrong).add(*test.find("c")).add_numbers("more", std::vector<double>(9));
  other.add(*test.find("b")).add(*test.find("a"));
  EXPECT_EQ(model.predict_proba(other), p);
  EXPECT_NOTICE(model.notices(), "column 'more' is not in the train table: ignored");
  model.predict_proba(test);
  EXPECT_FALSE(has_notice(model.notices(), "'more'"));  // of the last prediction alone
}

TEST_F(ClassifierTest, ManyClassesAreCoded) {
  for (const std::int64_t classes : {5, 23}) {  // the network tells 4 apart
    const Table train = mixed_table(80, classes), test = mixed_table(9, classes, 2);
    for (const std::int64_t members : {1, 3}) {
      Classifier model(config.with_members(members));
      const std::vector<double> p = model.fit(train, "y").predict_proba(test);
      expect_probabilities(p, 9, static_cast<std::size_t>(classes));
      EXPECT_NOTICE(model.notices(), "the network tells 4 apart");
    }
  }
}

TEST_F(ClassifierTest, LargeTablesAreSampledForEachMember) {
  const Table train = mixed_table(300, 3), test = mixed_table(9, 3, 2);
  const auto sampled = config.with_context_rows(50);
  Classifier model(sampled);
  const std::vector<double> p = model.fit(train, "y").predict_proba(test);
  EXPECT_NOTICE(model.notices(), "of 300 train rows, samples of 50 are read at a time, another for each");
  expect_probabilities(p, 9, 3);
  EXPECT_GT(difference(p, Classifier(config).fit(train, "y").predict_proba(test)), 1e-5);
  EXPECT_FALSE(has_notice(Classifier(config).fit(train, "y").notices(), "samples"));

  // 4 members, 3 layers, 16 features, 3 columns and the label: 4 * 2 * 4 * 16 * 9 bytes of a row.
  Classifier small(config.with_context_bytes(4608 * 52));
  EXPECT_NOTICE(small.fit(train, "y").notices(), "samples of 50 are read at a time");  // and two registers
  EXPECT_NOTICE(small.notices(), "context_bytes");
  EXPECT_EQ(small.predict_proba(test), p);
  expect_part(value_error([&] { Classifier(config.with_context_bytes(100)).fit(train, "y"); }),
              "context_bytes (--memory) 100: 3 columns and 4 members need");
  expect_part(value_error([&] { Classifier(config.with_context_bytes(-1)); }), "or 0 for a guess");
}

TEST_F(ClassifierTest, SaysHowFarItIs) {
  std::vector<std::pair<std::string, double>> told;
  const auto progress = [&](std::string_view work, double share) { told.emplace_back(work, share); };
  Classifier(config.with_progress(progress).with_query_rows(3))
      .fit(mixed_table(20, 2), "y")
      .predict_proba(mixed_table(9, 2, 2));
  const std::vector<std::pair<std::string, double>> all{
      {"reading train rows", 0},    {"reading train rows", 0.25}, {"reading train rows", 0.5},
      {"reading train rows", 0.75}, {"reading train rows", 1},    {"predicting rows", 0},
      {"predicting rows", 3.0 / 9}, {"predicting rows", 6.0 / 9}, {"predicting rows", 1}};
  EXPECT_EQ(told, all);
}

TEST_F(ClassifierTest, TemperatureMakesSure) {
  const Table train = mixed_table(40, 2), test = mixed_table(9, 2, 2);
  const auto p = [&](double t) {
    return Classifier(config.with_members(1).with_temperature(t)).fit(train, "y").predict_proba(test);
  };
  const std::vector<double> plain = p(1), sure = p(0.5);
  for (std::size_t i = 0; i < plain.size(); i += 2)
    EXPECT_NEAR(std::log(sure[i] / sure[i + 1]), 2 * std::log(plain[i] / plain[i + 1]), 1e-4);
}

TEST_F(ClassifierTest, BackendsAgree) {
  const Table train = mixed_table(25, 3), test = mixed_table(7, 3, 2);
  const auto p = [&](const char* backend) {
    return Classifier(config.with_backend(backend)).fit(train, "y").predict_proba(test);
  };
  const std::vector<double> cpu = p("cpu");
  expect_near(p("reference"), cpu, 1e-5);
  expect_near(p("lazy-cpu"), cpu, 1e-5);
}

TEST_F(ClassifierTest, ModelsForCrossValidation) {
  const Table table = mixed_table(50, 3);
  const pfn::FitPredict model = pfn::fit_predict(config);
  const pfn::TableEncoder encoder = pfn::TableEncoder::fit(table, "y");
  const pfn::EncodedTable rows = encoder.transform(table);
  Classifier same(config);
  same.fit(table, "y");
  EXPECT_EQ(model(rows, rows), same.predict_proba(table));
  const auto validation = pfn::cross_validate(table, "y", std::array{model}, 3);
  expect_probabilities(validation.predictions[0], 50, 3);
}

}  // namespace
}  // namespace ferrite::testing
