// Config: its JSON form, its rules, and what messages say.
#include "ferrite/models/priors/config.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "ferrite/core/error.hpp"
#include "scratch_folder.hpp"

namespace ferrite::priors {
namespace {

template <class E>
std::string message_of(const std::string& json) {
  try {
    Config::from_json(json);
  } catch (const E& e) {
    return e.what();
  }
  ADD_FAILURE() << "no such error for " << json;
  return "";
}

TEST(PriorConfig, ReadsBackWhatItWrites) {
  Config config;
  config.family = Family::graph;
  config.task = Task::regression;
  config.rows = {64, 100};
  config.mlp_scm.hidden = {3, 17.5, 2};
  config.post.permute_labels = false;
  config.post.missing_share = 0.125;
  const Config again = Config::from_json(config.to_json());
  EXPECT_EQ(again.to_json(), config.to_json());
  EXPECT_EQ(again.family, Family::graph);
  EXPECT_EQ(again.rows.max, 100);
  EXPECT_EQ(again.mlp_scm.hidden.max, 17.5);
  EXPECT_FALSE(again.post.permute_labels);
}

TEST(PriorConfig, KeepsDefaultsForAbsentKeysAndTakesOneNumberForARange) {
  const Config config = Config::from_json(R"({"rows": 128, "mlp_scm": {"causality": "causal"}})");
  EXPECT_EQ(config.rows.min, 128);
  EXPECT_EQ(config.rows.max, 128);
  EXPECT_EQ(config.features.max, Config{}.features.max);
  EXPECT_EQ(config.mlp_scm.causality, Causality::causal);
  EXPECT_EQ(config.mlp_scm.hidden.max, 130);
}

TEST(PriorConfig, APresetIsWhatOtherKeysStandOn) {
  EXPECT_EQ(Config::preset("default").to_json(), Config{}.to_json());
  const Config realistic = Config::preset("realistic");
  realistic.check();
  EXPECT_GE(realistic.weights.graph, 0.5);
  const Config config = Config::from_json(R"({"rows": 128, "preset": "realistic", "post": {"evenness": 9}})");
  EXPECT_EQ(config.rows.max, 128);
  EXPECT_EQ(config.weights.graph, realistic.weights.graph);
  EXPECT_EQ(config.post.missing_share, realistic.post.missing_share);
  EXPECT_EQ(config.post.evenness, 9);
  EXPECT_NE(message_of<ValueError>(R"({"preset": "real"})").find("there are default and realistic"),
            std::string::npos);
  EXPECT_NE(message_of<ParseError>(R"({"preset": 3})").find("preset is 3: needs a name"), std::string::npos);
}

TEST(PriorConfig, NamesTheKeyThatIsUnknownOrOfTheWrongType) {
  EXPECT_EQ(message_of<ParseError>(R"({"rowz": 3})").substr(0, 43),
            "[priors config] rowz: unknown key; there ar");
  EXPECT_NE(message_of<ParseError>(R"({"mlp_scm": {"hiden": 3}})").find("mlp_scm.hiden: unknown key"),
            std::string::npos);
  EXPECT_NE(message_of<ParseError>(R"({"family": "forest"})")
                .find("family is \"forest\": needs one of formula, graph"),
            std::string::npos);
  EXPECT_NE(message_of<ParseError>(R"({"rows": "many"})").find("rows is \"many\": needs a number or"),
            std::string::npos);
  EXPECT_NE(message_of<ParseError>(R"({"rows": 12.5})").find("rows is 12.5: needs an integer"),
            std::string::npos);
  EXPECT_NE(message_of<ParseError>(R"({"post": {"standardise": 1}})")
                .find("post.standardise is 1: needs true or false"),
            std::string::npos);
  EXPECT_NE(message_of<ParseError>("[1]").find("the config is [1]: needs an object"), std::string::npos);
  EXPECT_NE(message_of<ParseError>("{").find("not JSON"), std::string::npos);
}

TEST(PriorConfig, RefusesWhatNoDatasetCouldSatisfy) {
  EXPECT_EQ(message_of<ValueError>(R"({"rows": 0})"), "[priors config] rows.min 0: must be from 4 to 65536");
  EXPECT_NE(message_of<ValueError>(R"({"features": 1000})").find("features.min 1000: must be from 1 to 128"),
            std::string::npos);
  EXPECT_NE(message_of<ValueError>(R"({"mlp_scm": {"noise_std": {"min": -0.1}}})")
                .find("mlp_scm.noise_std.min -0.1"),
            std::string::npos);
  EXPECT_NE(
      message_of<ValueError>(R"({"rows": 8, "post": {"classes": {"max": 10}}})").find("post.classes.max 10"),
      std::string::npos);
  for (const char* share : {"0.02", "0.98"}) {
    const std::string json = R"({"rows": 40, "post": {"classes": {"min": 2, "max": 4}}, "train_share": )";
    EXPECT_NE(message_of<ValueError>(json + share + "}")
                  .find("post.classes.min 2 with rows.min 40 and train_share"),
              std::string::npos);
    EXPECT_NO_THROW(Config::from_json(json + share + R"(, "task": "regression"})"));
  }
  EXPECT_NE(message_of<ValueError>(R"({"features": {"min": 9, "max": 3}})")
                .find("features 9 to 3: min must not exceed"),
            std::string::npos);
  EXPECT_NE(message_of<ValueError>(R"({"weights": {"mlp_scm": 0, "tree_scm": 0}})").find("weights are all 0"),
            std::string::npos);
  EXPECT_NE(message_of<ValueError>(R"({"formula": {"noise": -1}})").find("formula.noise -1"),
            std::string::npos);
}

TEST(PriorConfig, NamesTheFileItCannotUse) {
  const testing::ScratchFolder folder;
  const auto path = folder / "prior.json";
  std::ofstream(path) << R"({"rows": 1})";
  try {
    Config::from_file(path);
    FAIL();
  } catch (const ValueError& e) {
    EXPECT_NE(std::string(e.what()).find("prior.json"), std::string::npos);
  }
  EXPECT_THROW(Config::from_file(folder / "absent.json"), IoError);
}

}  // namespace
}  // namespace ferrite::priors
