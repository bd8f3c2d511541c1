// Fitted predictors as files, weights that are found or refused, and input that is bad.
#include "models/pfn/pfn_predictors.hpp"

#include <cstdlib>

#include "ferrite/io/safetensors.hpp"

namespace ferrite::testing {
namespace {

using pfn::Classifier;
using pfn::Precision;
using pfn::Regressor;
using pfn::Table;
using pfn::Task;

struct PredictorTest : ::testing::Test {
  SmallWeights weights;
  pfn::PredictorConfig config = weights.config(), regression = weights.config(Task::regression);
  std::filesystem::path file = weights.folder / "fitted.safetensors";
};

TEST_F(PredictorTest, AFilePredictsTheSameBits) {
  for (const std::int64_t classes : {3, 7}) {  // seven are coded
    const Table train = mixed_table(60, classes), test = mixed_table(11, classes, 2);
    Classifier model(config.with_context_rows(30).with_temperature(0.9));
    model.fit(train, "y").save(file);
    Classifier loaded = Classifier::load(file, config.with_members(9));  // what was fitted decides
    EXPECT_EQ(loaded.notices(), model.notices());
    EXPECT_EQ(loaded.classes(), model.classes());
    EXPECT_EQ(loaded.predict_proba(test), model.predict_proba(test));
    EXPECT_EQ(pfn::fitted_task(file), Task::classification);
  }
  const Table train = mixed_table(60, 0), test = mixed_table(11, 0, 2);
  Regressor model(regression.with_context_rows(30));
  model.fit(train, "y").save(file);
  Regressor loaded = Regressor::load(file, regression);
  EXPECT_EQ(loaded.predict(test).mean(), model.predict(test).mean());
  EXPECT_EQ(loaded.predict(test).quantile(0.7), model.predict(test).quantile(0.7));
  EXPECT_EQ(pfn::fitted_task(file), Task::regression);
}

/// A predictor that was fitted on a GPU, say, predicts elsewhere.
TEST_F(PredictorTest, PrecisionIsChosenAndMayChange) {
  const Table train = mixed_table(60, 3), test = mixed_table(11, 3, 2);
  const auto probabilities = [&](const pfn::PredictorConfig& c) {
    return Classifier(c).fit(train, "y").predict_proba(test);
  };
  const auto usual = probabilities(config), f32 = probabilities(config.with_precision(Precision::f32)),
             bf16 = probabilities(config.with_precision(Precision::bf16));
  EXPECT_EQ(usual, f32);  // on a CPU
  EXPECT_NE(bf16, f32);
  for (std::size_t i = 0; i < f32.size(); ++i) EXPECT_NEAR(bf16[i], f32[i], 0.03) << i;
  for (const auto& [fitted, loaded, expected] :
       {std::tuple{Precision::bf16, Precision::f32, &f32}, {Precision::f32, Precision::bf16, &bf16}}) {
    Classifier(config.with_precision(fitted)).fit(train, "y").save(file);
    const auto p = Classifier::load(file, config.with_precision(loaded)).predict_proba(test);
    for (std::size_t i = 0; i < p.size(); ++i) EXPECT_NEAR(p[i], (*expected)[i], 0.03) << i;
  }
  expect_part(value_error([] { pfn::precision_from_string("half"); }), "choose auto, f32 or bf16");
}

TEST_F(PredictorTest, OtherWeightsAreRefused) {
  Classifier(config).fit(mixed_table(30, 3), "y").save(file);
  Cpu cpu;
  auto other = lively_pfn(cpu, small_pfn());
  assign(other.label_unknown, to_host(other.label_unknown + 0.01));
  const auto path = weights.folder / "other.safetensors";
  pfn::save(path, other);
  const std::string error = value_error([&] { Classifier::load(file, config.with_weights(path.string())); });
  expect_part(error, "other.safetensors: these weights");
  expect_part(error, "not those that the predictor was fitted with");
  expect_part(value_error([&] { Regressor::load(file, regression); }),
              "was fitted for classification; load it as a Classifier");
  expect_part(value_error([&] { Classifier(regression).fit(mixed_table(30, 3), "y"); }),
              "the weights are for regression and classification is asked for");
}

TEST_F(PredictorTest, DamagedFilesAreRefused) {
  Classifier(config).fit(mixed_table(30, 3), "y").save(file);
  expect_error<ParseError>([&] { Classifier::load(config.weights, config); }, {"is not a fitted predictor"});
  expect_error<IoError>([&] { Classifier::load(weights.folder / "none.safetensors", config); }, {"none"});
  const SafeTensors whole = read_safetensors(file);
  const auto damaged = [&](const char* name, const std::string& from, const std::string& to,
                           const std::string& said) {
    SafeTensors copy = whole;
    std::string& text = copy.metadata.at(name);
    EXPECT_NE(text.find(from), std::string::npos) << from;
    text.replace(text.find(from), from.size(), to);
    write_safetensors(weights.folder / "damaged.safetensors", copy);
    expect_error<ParseError>([&] { Classifier::load(weights.folder / "damaged.safetensors", config); },
                             {said});
  };
  damaged("pfn_fitted", "\"version\":1", "\"version\":2", "version 2");
  damaged("pfn_fitted", "\"columns\":3", "\"columns\":2", "columns 2: there must be 3");
  damaged("pfn_fitted", "\"contexts\":4", "\"contexts\":3", "contexts do not fit each other");
  damaged("pfn_fitted", "\"contexts\":4", "\"contexts\":-1", "contexts -1: there must be 1 to 4");
  damaged("pfn_fitted", "\"contexts\":4", "\"contexts\":1000000000000000000",
          "contexts 1000000000000000000: there");
  damaged("pfn_fitted", "\"classes\":3", "\"classes\":1000000000000000",
          "classes 1000000000000000: there must be 3");
  damaged("pfn_fitted", "\"temperature\":1.0", "\"temperature\":0", "temperature 0: must be above 0");
  // Of members, as texts in a text: one with a column too many, and one with a class too many.
  damaged(
      "pfn_fitted", R"(\"columns\":[0,1,2],\"scales\":[)",
      R"(\"columns\":[0,1,2,3],\"scales\":[{\"kind\":0,\"values\":[],\"scores\":[],\"centre\":0,\"deviation\":1},)",
      "contexts do not fit each other");
  damaged("pfn_fitted", R"(\"classes\":[0,1,2])", R"(\"classes\":[0,1,2,3])",
          "contexts do not fit each other");
  damaged("pfn_fitted", R"(\"classes\":[0,1,2])", R"(\"classes\":[0,1,1])", "orders or scales are damaged");
  damaged("pfn_fitted", "{", "", "not a fitted predictor");
  SafeTensors copy = whole;
  copy.tensors.erase("2.is_category");
  write_safetensors(weights.folder / "damaged.safetensors", copy);
  EXPECT_THROW(Classifier::load(weights.folder / "damaged.safetensors", config), ValueError);
}

TEST_F(PredictorTest, WeightsAreFoundByTheEnvironment) {
  const auto bare = config.with_weights("");
  const Table train = mixed_table(30, 3), test = mixed_table(5, 3, 2);
  const std::vector<double> p = Classifier(config).fit(train, "y").predict_proba(test);
  ::setenv("FERRITE_PFN_WEIGHTS", (weights.folder / "").c_str(), 1);
  EXPECT_EQ(pfn::default_weights(Task::regression), weights.path(Task::regression));
  EXPECT_EQ(Classifier(bare).fit(train, "y").predict_proba(test), p);
  ::setenv("FERRITE_PFN_WEIGHTS", config.weights.c_str(), 1);
  EXPECT_EQ(Classifier(bare).fit(train, "y").predict_proba(test), p);
  ::setenv("FERRITE_PFN_WEIGHTS", "nowhere", 1);
  expect_part(value_error([&] { Classifier(bare).fit(train, "y"); }), "FERRITE_PFN_WEIGHTS: nowhere");
  ::unsetenv("FERRITE_PFN_WEIGHTS");
  ::setenv("FERRITE_SHARE", (weights.folder / "share").c_str(), 1);
  const std::string error = value_error([&] { Classifier(bare).fit(train, "y"); });
  for (const char* part : {"no weights for classification", "share/pfn/classification.safetensors",
                           "FERRITE_PFN_WEIGHTS", "ferrite pfn train"})
    expect_part(error, part);
  std::filesystem::create_directories(weights.folder / "share" / "pfn");
  std::filesystem::copy(config.weights, weights.folder / "share" / "pfn");
  EXPECT_EQ(Classifier(bare).fit(train, "y").predict_proba(test), p);
  ::unsetenv("FERRITE_SHARE");
}

TEST_F(PredictorTest, BadTargetsAreRefusedByName) {
  const auto classes = [&](const std::string& text) {
    const Table table = csv_table(text);
    return value_error([&] { Classifier(config).fit(table, "y"); });
  };
  expect_part(classes("a,b\n1,2\n2,3\n"), "target 'y': there is no such column; choose one of 'a', 'b'");
  expect_part(classes("a,y\n1,u\n2,u\n"), "target 'y' is 'u' in every row");
  expect_part(classes("a,y\n1,\n2,\n"), "target 'y', 2 rows: all are missing");
  expect_part(classes("a,y\n1,u\n2,v\n3,w\n"), "target 'y': every row has a class of its own");
  expect_part(classes("a,y\n1,1.5\n2,2.5\n3,3.5\n"), "ask for regression");
  expect_part(classes("a,y\n1,u\n"), "target 'y': one row has a target");
  const Table texts = csv_table("a,y\n1,u\n2,v\n3,u\n");
  expect_part(value_error([&] { Regressor(regression).fit(texts, "y"); }), "regression needs numbers");
  const auto encoder = pfn::TableEncoder::fit(texts, "y");
  Regressor model(regression);
  expect_part(value_error([&] { model.fit(texts, encoder); }), "use a Classifier");
}

TEST_F(PredictorTest, BadRowsAreSaidOrRefused) {
  const Table train = csv_table("a,b,c,y\n1,2,u,0\n2,,v,1\n3,4,u,\n4,5,v,1\n5,9,u,0\n");
  Classifier model(config);
  model.fit(train, "y");
  EXPECT_NOTICE(model.notices(), "1 of 5 rows have no target 'y'");
  expect_part(value_error([&] { model.predict(csv_table("a,c\n1,u\n")); }),
              "column 'b': the train table has it");
  EXPECT_EQ(model.predict(csv_table("c,b,a\nw,inf,1\nu,1,1\n")).size(), 2u);
  EXPECT_NOTICE(model.notices(), "column 'c': 1 cells have categories that no train row has");
  EXPECT_NOTICE(model.notices(), "column 'b': 1 cells are infinite");
  EXPECT_EQ(model.predict(csv_table("c,b,a\nu,1,1\n")).size(), 1u);  // one row
  const Table none = train.take({});
  EXPECT_TRUE(model.predict_proba(none).empty());
  EXPECT_TRUE(model.predict(none).empty());
  const Table numbers = mixed_table(20, 0);
  Regressor regressor(regression);
  EXPECT_EQ(regressor.fit(numbers, "y").predict(numbers.take({})).median().size(), 0u);
}

TEST_F(PredictorTest, NothingIsPredictedBeforeAFit) {
  Classifier model(config);
  EXPECT_FALSE(model.is_fitted());
  const Table test = mixed_table(3, 2);
  for (const std::string& error :
       {value_error([&] { model.predict(test); }), value_error([&] { model.save(file); }),
        value_error([&] { model.classes(); }), value_error([&] { Regressor(regression).predict(test); })})
    expect_part(error, "nothing was fitted yet: call fit or load first");
}

TEST_F(PredictorTest, OfManyColumnsTheBestAreUsed) {
  Table train = mixed_table(40, 2);
  for (int i = 0; i < 600; ++i) {
    std::vector<double> noise;
    for (std::uint64_t r = 0; r < 40; ++r)
      noise.push_back(normal_at<double>({9, static_cast<std::uint64_t>(i)}, r));
    train.add_numbers("n" + std::to_string(i), noise);
  }
  Classifier model(config.with_members(1));
  EXPECT_EQ(model.fit(train, "y").predict(train).size(), 40u);
  EXPECT_NOTICE(model.notices(), "of 603 columns, the 500 that tell most about 'y' are used");
}

TEST_F(PredictorTest, BadConfigsAreRefused) {
  const auto refused = [&](const pfn::PredictorConfig& c, const char* part) {
    expect_part(value_error([&] { Classifier model(c); }), part);
  };
  refused(config.with_members(0), "members 0");
  refused(config.with_members(1001), "members 1001");
  refused(config.with_context_rows(1), "context_rows (--context-rows) 1");
  refused(config.with_query_rows(-1), "query_rows -1");
  refused(config.with_members_together(-1), "members_together -1");
  refused(config.with_temperature(0), "temperature 0");
  const Table train = mixed_table(30, 3);
  expect_part(value_error([&] { Classifier(config.with_backend("abacus")).fit(train, "y"); }), "abacus");
  expect_part(value_error([&] { Classifier(config.with_context_rows(2)).fit(train, "y"); }), "at least 3");
  Classifier model(config);
  const auto rows = pfn::TableEncoder::fit(mixed_table(30, 2), "y").transform(train);
  expect_part(value_error([&] { model.fit(train, "y").predict_proba(rows); }), "encoder of the train table");
}

}  // namespace
}  // namespace ferrite::testing
