// ferrite pfn predict as a user runs it, with tiny weights that know nothing.
#include <cmath>
#include <fstream>
#include <sstream>

#include "cli/cli_test.hpp"
#include "ferrite/io/npz.hpp"
#include "ferrite/io/safetensors.hpp"
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
  expect_contains(text("p.csv"), "prediction,p_2.0,p_007\n");  // by value
  expect_contains(reply.output, "on the 2 rows whose target is known");
  write("a.csv", "a,y\n1,007\n2,7\n3,007\n4,7\n5,7\n6,007\n");
  ASSERT_EQ(predict("y", "p.csv", "").code, 0);
  expect_contains(text("p.csv"), "prediction,p_007,p_7\n");
  write("a.csv", "a,y\n1,1\n2,2\n3,1.0\n4,2\n5,1\n6,2\n");  // two names of one number
  ASSERT_EQ(predict("y", "p.csv", "").code, 0);
  expect_contains(text("p.csv"), "prediction,p_1,p_2\n");
}

TEST_F(PfnPredictCommand, TellsOfNumbersThatAFewTextsHaveSpoilt) {
  write("a.csv", "a,b,y\n1,1,4.5\n2,?,5.5\n3,3,6.5\n4,4,?\n5,5,7.5\n6,-,8.5\n7,7,4.5\n8,8,5.5\n");
  write("b.csv", "a,b\n4,4\n");
  const std::string output = predict("y", "p.csv", "").output;
  expect_contains(
      output,
      "column 'b' is taken as text: 6 of its 8 values are numbers, the others are '?', '-'; --missing "
      "'?,-' (TableConfig::missing) reads these as missing values");
  expect_contains(output,
                  "the target 'y' is taken as text: 7 of its 8 values are numbers, the others are '?'");
  const Reply read = predict("y", "p.csv", "--missing '?,-'");
  expect_contains(read.output, "1 rows, regression");
  EXPECT_EQ(read.output.find("taken as text"), std::string::npos);
}

TEST_F(PfnPredictCommand, NamesOfColumnsMayBeNumbers) {
  write("a.csv", "2019,2020,2021\n1,2,1.5\n2,3,2.5\n3,1,3.5\n4,2,4.5\n");
  write("b.csv", "2019,2020\n4,4\n");
  const Reply guessed = predict("2021", "p.csv", "");
  EXPECT_EQ(guessed.code, 2);
  expect_contains(guessed.output, "--header present");
  const Reply told = predict("2021", "p.csv", "--header present");
  EXPECT_EQ(told.code, 0) << told.output;
  expect_contains(told.output, "1 rows, regression");
}

TEST_F(PfnPredictCommand, LongIntegersAreDifferentClasses) {
  const std::string rows =
      "a,y\n1,12345678901234567\n2,12345678901234568\n3,5\n4,12345678901234567\n"
      "5,12345678901234568\n6,5.0\n7,+5\n8,12345678901234568\n";
  write("a.csv", rows);
  write("b.csv", rows);
  const Reply reply = predict("y", "p.csv", "");
  ASSERT_EQ(reply.code, 0) << reply.output;
  expect_contains(text("p.csv"), "prediction,p_5,p_12345678901234567,p_12345678901234568\n");
  expect_contains(reply.output, "on the 8 rows whose target is known");
  // As doubles they are all one.
  write("a.csv",
        "a,y\n1,12345678901234567001\n2,12345678901234567002\n3,12345678901234567001\n"
        "4,12345678901234567002\n");
  ASSERT_EQ(predict("y", "p.csv", "").code, 0);
  expect_contains(text("p.csv"), "prediction,p_12345678901234567001,p_12345678901234567002\n");
}

TEST_F(PfnPredictCommand, NamesThatAreKeptDoNotHideTheGuess) {
  write("a.csv", "a,y\n1,007\n2,8\n3,9\n4,007\n5,8\n6,9\n");
  const std::string guess = "notice: the target 'y' has 3 different integers, which are taken as classes";
  write("b.csv", "a\n4\n");
  expect_contains(predict("y", "p.csv", "").output, guess);
  expect_contains(text("p.csv"), "prediction,p_007,p_8,p_9\n");
  EXPECT_EQ(predict("y", "p.csv", "--task classification").output.find("which are taken"), std::string::npos);
}

TEST_F(PfnPredictCommand, ArraysHaveClassesToo) {
  Cpu cpu;
  const std::vector<double> a{1, 2, 3, 4, 5, 6}, y{1, 2, 1, 2, 1, 2};
  const NamedTensors vectors{{"a", to_host(from_vector(cpu, a, {6}))},
                             {"y", to_host(from_vector(cpu, y, {6}))}};
  write_npz(folder / "a.npz", vectors);
  write_safetensors(folder / "a.safetensors", {{}, vectors});
  write("b.csv", "a,y\n4,2\n5,1.0\n");
  for (const std::string name : {"a.npz", "a.safetensors"}) {
    const Reply reply =
        predict("--train " + at(name) + " --test " + at("b.csv") + " --target y --out " + at("p.csv"));
    ASSERT_EQ(reply.code, 0) << reply.output;
    expect_contains(reply.output, "on the 2 rows whose target is known");
    expect_contains(text("p.csv"), "prediction,p_1,p_2\n");
    EXPECT_EQ(
        predict("--train " + at(name) + " --test " + at(name) + " --target y --out " + at("p.csv")).code, 0);
  }
}

TEST_F(PfnPredictCommand, DatesCanBeClasses) {
  const std::string dates = "a,y\n1,2024-01-31\n2,2024-02-01\n3,2024-01-31\n4,2024-02-01\n";
  write("a.csv", dates);
  write("b.csv", dates);
  const Reply reply = predict("y", "p.csv", "--task classification");
  ASSERT_EQ(reply.code, 0) << reply.output;
  expect_contains(reply.output, "on the 4 rows whose target is known");
  expect_contains(text("p.csv"), "prediction,p_2024-01-31,p_2024-02-01\n");
  write("a.csv", dates + "5,never\n6,never\n");
  expect_contains(predict("y", "p.csv", "").output, "on the 4 rows whose target is known");
}

TEST_F(PfnPredictCommand, NumbersThatCannotBeScoredAreTold) {
  const std::string train = "a,y\n1,1.5\n2,2.5\n3,4.25\n4,3.5\n5,2\n6,1\n";
  write("a.csv", train);
  write("b.csv", "a,y\n1,much\n2,little\n");
  const Reply texts = predict("y", "p.csv", "");
  ASSERT_EQ(texts.code, 0) << texts.output;
  expect_contains(texts.output, "notice: target 'y': 2 rows have no finite number");
  write("b.csv", "a,y\n1,2.5\n2,2.5\n");
  const Reply constant = predict("y", "p.csv", "");
  expect_contains(constant.output, "known: RMSE ");
  EXPECT_EQ(constant.output.find("R2"), std::string::npos) << constant.output;
  write("b.csv", "a,y\n1,1e308\n2,-1e308\n");
  const Reply huge = predict("y", "p.csv", "");
  expect_contains(huge.output, "R2 0.0000, RMSE 1e+308");
}

TEST_F(PfnPredictCommand, FilesAreNotOverwrittenByMistake) {
  const std::string before = text("a.csv");
  const auto refused = [&](const std::string& arguments, const char* part) {
    const Reply reply = predict(arguments);
    EXPECT_EQ(reply.code, 2) << reply.output;
    expect_contains(reply.output, part);
  };
  const std::string tables = "--train " + at("a.csv") + " --test " + at("b.csv") + " --target kind --out ";
  refused(tables + at("a.csv"), "--train and --out name the same file");
  refused(tables + at("./b.csv"), "--test and --out name the same file");
  refused(tables + at("x") + " --save-fitted " + at("./x"), "--save-fitted and --out name the same file");
  ASSERT_EQ(predict("kind", "p.csv", "--save-fitted " + at("f")).code, 0);
  std::filesystem::remove(folder / "p.csv");
  const std::string fitted = text("f");
  const Reply same =
      run_ferrite("pfn predict --fitted f --test b.csv --out f", "cd '" + (folder / "").string() + "' &&");
  EXPECT_EQ(same.code, 2) << same.output;
  expect_contains(same.output, "--fitted and --out name the same file");
  EXPECT_EQ(text("f"), fitted);
  refused(tables + at("nowhere/p.csv"), "nowhere");
  refused(tables + at("p.csv") + " --save-fitted " + at("nowhere/f.safetensors"), "nowhere");
  EXPECT_EQ(text("a.csv"), before);
  EXPECT_FALSE(std::filesystem::exists(folder / "p.csv"));
}

TEST_F(PfnPredictCommand, NamesWithCommasAreQuoted) {
  write("a.csv", "\"a,b\",c,y\n1,2,u\n2,1,v\n3,5,u\n4,3,v\n");
  write("b.csv", "\"a,b\",c\n1,2\n");
  expect_contains(predict("y", "p.csv", "--drop a,b").output, "column 'a': the options name it");
  EXPECT_EQ(predict("y", "p.csv", "--drop '\"a,b\"'").code, 0);
  expect_contains(predict("y", "p.csv", "--drop '\"a,b\",c'").output, "all others are dropped");
  const Reply stray = predict("y", "p.csv", "--missing '\"'");
  EXPECT_NE(stray.code, 0);
  expect_contains(stray.output, "write a quote in a name as two");
}

TEST_F(PfnPredictCommand, NumbersThatMeanMissingAreNoClasses) {
  write("a.csv", "a,y\n1,7\n2,12\n3,-1\n4,-1.0\n5,7\n6,12\n");
  write("b.csv", "a,y\n1,7\n2,-1.0\n");
  const Reply reply = predict("y", "p.csv", "--missing -1");
  ASSERT_EQ(reply.code, 0) << reply.output;
  expect_contains(text("p.csv"), "prediction,p_7,p_12\n");
  expect_contains(reply.output, "2 of 6 rows have no target 'y'");
  expect_contains(reply.output, "on the 1 rows whose target is known");
}

TEST_F(PfnPredictCommand, ATabIsTheDelimiterOfTsvFilesAlone) {
  write("a.tsv", "a\ty\n1\tu\n2\tv\n3\tu\n4\tv\n");
  write("commas.tsv", "a,y\n1,u\n2,v\n3,u\n4,v\n");
  const auto reply = [&](const char* file, const char* more) {
    return predict("--train " + at(file) + " --test " + at(file) + " --target y --out " + at("p.csv") + more);
  };
  EXPECT_EQ(reply("a.tsv", "").code, 0);
  expect_contains(reply("commas.tsv", "").output, "--delimiter ','");
  EXPECT_EQ(reply("commas.tsv", " --delimiter ,").code, 0);
}

TEST_F(PfnPredictCommand, ColumnsOfOneNameCanBeNumbered) {
  write("a.csv", "a,a,y\n1,2,u\n2,1,v\n3,5,u\n4,3,v\n");
  write("b.csv", "a,a\n1,2\n");
  expect_contains(predict("y", "p.csv", "").output, "--rename-duplicates");
  EXPECT_EQ(predict("y", "p.csv", "--rename-duplicates").code, 0);
}

TEST_F(PfnPredictCommand, WhatWasFittedPredictsAgain) {
  ASSERT_EQ(predict("kind", "p.csv", "--save-fitted " + at("f.safetensors")).code, 0);
  const Reply reply =
      predict("--fitted " + at("f.safetensors") + " --test " + at("b.csv") + " --out " + at("q.csv"));
  ASSERT_EQ(reply.code, 0) << reply.output;
  EXPECT_EQ(text("q.csv"), text("p.csv"));
  EXPECT_FALSE(text("p.csv").empty());
  for (const std::string option :
       {"--target kind", "--task regression", "--drop a", "--categories a", "--members 2", "--seed 1",
        "--context-rows 9", "--memory 1", "--train x", "--save-fitted x"}) {
    const Reply refused = predict("--fitted " + at("f.safetensors") + " --test " + at("b.csv") + " --out " +
                                  at("q.csv") + " " + option);
    EXPECT_EQ(refused.code, 2) << option;
    expect_contains(refused.output, option.substr(0, option.find(' ')) + " excludes --fitted");
  }
}

TEST_F(PfnPredictCommand, WhatMeantMissingThenMeansItStill) {
  write("a.csv", "a,b,y\n1,2,u\n-1,none,v\n3,5,u\n4,none,v\n2,4,u\n");
  write("b.csv", "a,b\n-1,none\n2,none\n-1,3\n");
  ASSERT_EQ(predict("y", "p.csv", "--missing=-1,NONE --save-fitted " + at("f")).code, 0);
  const Reply reply = predict("--fitted " + at("f") + " --test " + at("b.csv") + " --out " + at("q.csv"));
  ASSERT_EQ(reply.code, 0) << reply.output;
  EXPECT_EQ(text("q.csv"), text("p.csv"));
  ASSERT_EQ(predict("y", "p.csv", "").code, 0);
  EXPECT_NE(text("q.csv"), text("p.csv"));
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
  refused(predict("kind", "p.csv", "--members 0"), "give a number from 1 to 1000");
  refused(predict("kind", "p.csv", "--context-rows 1"), "--context-rows");
  refused(predict("kind", "p.csv", "--memory 1e-6"), "--memory");
  refused(predict("kind", "p.csv", "--drop a,b"), "all others are dropped");
  refused(predict("kind", "p.csv", "--drop kind"), "--drop kind: is the target");
  refused(predict("kind", "p.csv", "--categories kind"), "--categories kind: is the target");
  refused(predict("kind", "p.csv", "--weights " + at("regression.safetensors")),
          "weights are for regression");
  refused(run_ferrite("pfn predict --train " + at("a.csv") + " --test " + at("b.csv") +
                          " --target kind --drop price --out " + at("p.csv"),
                      "FERRITE_SHARE=/nowhere"),
          "no weights for classification");
  write("b.csv", "b\nu\n");  // found before the fit
  refused(predict("kind", "p.csv", "--save-fitted " + at("f.safetensors")), "'a'");
  EXPECT_FALSE(std::filesystem::exists(folder / "f.safetensors"));
  EXPECT_FALSE(std::filesystem::exists(folder / "p.csv"));
}

TEST_F(PfnPredictCommand, WeightsMayBeInAFolderAndMustBeNumbers) {
  EXPECT_EQ(predict("kind", "p.csv", "--weights " + at("")).code, 0);
  Cpu cpu;
  auto model = lively_pfn(cpu, small_pfn(pfn::Task::classification));
  model.norm.weight = full(cpu, model.norm.weight.shape(), std::nanf(""));
  pfn::save(folder / "nan.safetensors", model);
  const Reply reply = predict("kind", "q.csv", "--weights " + at("nan.safetensors"));
  EXPECT_EQ(reply.code, 2) << reply.output;
  expect_contains(reply.output, "nan.safetensors: the network predicts NaN with these weights");
}

}  // namespace
}  // namespace ferrite::testing
