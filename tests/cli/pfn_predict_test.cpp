// ferrite pfn predict as a user runs it, with tiny weights that know nothing.
#include <cmath>
#include <fstream>
#include <sstream>

#include "cli/cli_test.hpp"
#include "ferrite/models/pfn/classifier.hpp"
#include "models/pfn/pfn_test.hpp"

namespace ferrite::testing {
namespace {

struct PfnPredictCommand : ::testing::Test {
  ScratchFolder folder;

  PfnPredictCommand() {
    Cpu cpu;
    for (const pfn::Task task : both_tasks) {
      auto model = lively_pfn(cpu, small_pfn(task));
      pfn::save(folder / (std::string(to_string(task)) + ".safetensors"), model);
    }
    std::string train = "a,b,kind,price\n", test = "b,a,extra\n";
    for (int i = 0; i < 30; ++i) {
      const std::string a = std::to_string(i * 7 % 11), b = i % 3 == 0 ? "u" : i % 3 == 1 ? "v" : "";
      train += a + "," + b + "," + (i % 2 == 0 ? "\"x, y\"" : "z") + "," + std::to_string(i * 1.5) + "\n";
      if (i < 8) test += b + "," + a + ",1\n";
    }
    write("a.csv", train);
    write("b.csv", test);
  }
  void write(const char* name, const std::string& text) const {
    std::ofstream(folder / name, std::ios::binary) << text;
  }
  std::string at(const std::string& name) const { return "'" + (folder / name).string() + "'"; }
  Reply predict(const std::string& arguments) const {
    return run_ferrite("pfn predict --backend cpu " + arguments,
                       "FERRITE_PFN_WEIGHTS='" + (folder / "").string() + "'");
  }
  Reply predict(const std::string& target, const std::string& out, const std::string& more) const {
    const std::string drop = target == "kind" ? " --drop price " : target == "price" ? " --drop kind " : " ";
    return predict("--train " + at("a.csv") + " --test " + at("b.csv") + " --target " + target + " --out " +
                   at(out) + drop + more);
  }
  std::string text(const std::string& name) const {
    std::ifstream file(folder / name, std::ios::binary);
    std::stringstream all;
    all << file.rdbuf();
    return all.str();
  }
};

TEST_F(PfnPredictCommand, ExplainsItselfWithExamples) {
  const Reply help = run_ferrite("pfn predict --help");
  EXPECT_EQ(help.code, 0);
  expect_contains(help.output, "Examples:\n  ferrite pfn predict --train");
  expect_contains(run_ferrite("pfn --help").output, "ferrite pfn predict");
}

TEST_F(PfnPredictCommand, WritesClassesAsTheLibraryPredictsThem) {
  const Reply reply = predict("kind", "p.csv", "--seed 3");
  ASSERT_EQ(reply.code, 0) << reply.output;
  expect_contains(reply.output, "8 rows, classification");
  expect_contains(reply.output, "notice: column 'extra' is not in the train table: ignored");
  expect_contains(text("p.csv"), "prediction,\"p_x, y\",p_z\n");
  pfn::Classifier model(pfn::PredictorConfig{}
                            .with_weights((folder / "classification.safetensors").string())
                            .with_backend("cpu")
                            .with_seed(3)
                            .with_encoder(pfn::EncoderConfig{}.with_drop({"price"})));
  const pfn::Table test = pfn::read_table(folder / "b.csv"), made = pfn::read_table(folder / "p.csv");
  const auto p = model.fit(pfn::read_table(folder / "a.csv"), "kind").predict_proba(test);
  ASSERT_EQ(made.rows(), 8);
  for (std::size_t r = 0; r < 8; ++r) {
    EXPECT_EQ(made.find("p_x, y")->numbers[r], p[2 * r]);
    EXPECT_EQ(made.find("p_z")->numbers[r], p[2 * r + 1]);
  }
}

TEST_F(PfnPredictCommand, WritesNumbersWithTheirQuantiles) {
  const Reply reply = predict("price", "p.csv", "--members 2");
  ASSERT_EQ(reply.code, 0) << reply.output;
  expect_contains(reply.output, "8 rows, regression");
  const pfn::Table made = pfn::read_table(folder / "p.csv");
  ASSERT_EQ(made.rows(), 8);
  for (std::size_t r = 0; r < 8; ++r) {
    EXPECT_LT(made.find("q05")->numbers[r], made.find("q50")->numbers[r]);
    EXPECT_LT(made.find("q50")->numbers[r], made.find("q95")->numbers[r]);
    EXPECT_TRUE(std::isfinite(made.find("prediction")->numbers[r]));
  }
}

TEST_F(PfnPredictCommand, TheTaskCanBeForced) {
  write("a.csv", "a,y\n1,1\n2,2\n3,1\n4,2\n5,1\n6,2\n");
  write("b.csv", "a\n4\n");
  expect_contains(predict("y", "p.csv", "").output, "1 rows, classification");
  expect_contains(predict("y", "p.csv", "--task regression").output, "1 rows, regression");
}

TEST_F(PfnPredictCommand, ClassesKeepTheNamesThatTheyHaveInTheFile) {
  write("a.csv", "a,y\n1,007\n2,2.0\n3,007\n4,2.0\n5,\n6,2.0\n");
  write("b.csv", "a,y\n4,2.0\n5,007\n");
  const Reply reply = predict("y", "p.csv", "");
  ASSERT_EQ(reply.code, 0) << reply.output;
  expect_contains(text("p.csv"), "prediction,p_007,p_2.0\n");
  expect_contains(reply.output, "on the 2 rows whose target is known");
  write("a.csv", "a,y\n1,1\n2,2\n3,1.0\n4,2\n5,1\n6,2\n");  // two names of one number
  ASSERT_EQ(predict("y", "p.csv", "").code, 0);
  expect_contains(text("p.csv"), "prediction,p_1,p_2\n");
}

TEST_F(PfnPredictCommand, WhatWasFittedPredictsAgain) {
  ASSERT_EQ(predict("kind", "p.csv", "--save-fitted " + at("f.safetensors")).code, 0);
  const Reply reply =
      predict("--fitted " + at("f.safetensors") + " --test " + at("b.csv") + " --out " + at("q.csv"));
  ASSERT_EQ(reply.code, 0) << reply.output;
  EXPECT_EQ(text("q.csv"), text("p.csv"));
  EXPECT_FALSE(text("p.csv").empty());
}

TEST_F(PfnPredictCommand, AKnownTargetIsScored) {
  write("b.csv", text("a.csv"));
  const Reply reply = predict("kind", "q.csv", "");
  ASSERT_EQ(reply.code, 0) << reply.output;
  expect_contains(reply.output, "on the 30 rows whose target is known: accuracy 0.");
  expect_contains(reply.output, "AUC 0.");
  expect_contains(predict("price", "q.csv", "").output, "R2 ");
}

TEST_F(PfnPredictCommand, QuietSaysOnlyWhatWasLeftOut) {
  const Reply reply = predict("kind", "p.csv", "--quiet --context-rows 10");
  EXPECT_EQ(reply.code, 0);
  EXPECT_EQ(reply.output.find("8 rows"), std::string::npos) << reply.output;
  expect_contains(reply.output, "notice: of 30 train rows, samples of 10 are read");
}

TEST_F(PfnPredictCommand, BadInputIsRefusedWithAdvice) {
  const auto refused = [&](const Reply& reply, const char* part) {
    EXPECT_EQ(reply.code, 2);
    expect_contains(reply.output, part);
  };
  refused(predict("nothing", "p.csv", ""), "target 'nothing': there is no such column");
  refused(predict("--test " + at("b.csv") + " --out " + at("p.csv")), "give --train and --target");
  refused(predict("kind", "p.csv", "--fitted " + at("f.safetensors")), "leave out --train");
  refused(predict("kind", "p.csv", "--members 0"), "--members");
  refused(predict("kind", "p.csv", "--weights " + at("regression.safetensors")),
          "weights are for regression");
  refused(run_ferrite("pfn predict --train " + at("a.csv") + " --test " + at("b.csv") +
                          " --target kind --out " + at("p.csv"),
                      "FERRITE_SHARE=/nowhere"),
          "no weights for classification");
  write("b.csv", "b\nu\n");
  refused(predict("kind", "p.csv", ""), "'a'");
  EXPECT_FALSE(std::filesystem::exists(folder / "p.csv"));
}

}  // namespace
}  // namespace ferrite::testing
