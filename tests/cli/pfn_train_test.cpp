// ferrite pfn train as a user runs it, on a tiny network.
#include <fstream>

#include "cli/cli_test.hpp"
#include "ferrite/backend/cpu.hpp"
#include "ferrite/models/pfn/file.hpp"
#include "ferrite/train/checkpoint.hpp"

namespace ferrite::testing {
namespace {

struct PfnTrainCommand : ::testing::Test {
  ScratchFolder folder;

  std::string at(const std::string& name) const { return "'" + (folder / name).string() + "'"; }
  Reply train(const std::string& out, const std::string& arguments) const {
    return run_ferrite(
        "pfn train --backend cpu --layers 1 --dim 32 --hidden 32 --registers 2 --cells 500 "
        "--report-every 2 --evaluate-batches 1 --out " +
        at(out) + " " + arguments);
  }
  std::string write_points() const {
    std::ofstream csv(folder / "points.csv");
    csv << "a,b,kind\n";
    for (int i = 0; i < 60; ++i) csv << i % 7 << "," << i << "," << (i % 3 == 0 ? "x" : "y") << "\n";
    return " --tables " + at("points.csv:kind");
  }
  std::string bytes_of(const std::string& name) const {
    std::ifstream file(folder / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
};

bool same_weights(const NamedTensors& a, const NamedTensors& b) {
  return std::ranges::equal(a, b, [](const auto& x, const auto& y) {
    return x.first == y.first && std::ranges::equal(x.second.bytes(), y.second.bytes());
  });
}

TEST_F(PfnTrainCommand, ExplainsItselfWithExamples) {
  const Reply help = run_ferrite("pfn train --help");
  EXPECT_EQ(help.code, 0);
  expect_contains(help.output, "Examples:\n  ferrite pfn train");
  expect_contains(run_ferrite("pfn --help").output, "ferrite pfn train");
}

TEST_F(PfnTrainCommand, TrainsAndWritesANetworkWithItsAveragedWeights) {
  for (const char* task : {"classification", "regression"}) {
    const std::string out = std::string("run_") + task;
    const Reply reply = train(out, std::string("--steps 20 --task ") + task);
    ASSERT_EQ(reply.code, 0) << reply.output;
    for (const char* part :
         {"M parameters", "20/20  loss", "step 20  validation loss", "step-00000020.safetensors"})
      expect_contains(reply.output, part);
    EXPECT_TRUE(std::filesystem::exists(folder / out / "metrics.html"));
    Cpu cpu;
    const auto path = folder / out / "step-00000020.safetensors";
    const auto model = pfn::load(cpu, path);
    EXPECT_EQ(model.config().dim, 32);
    EXPECT_EQ(to_string(model.config().task), task);
    const train::Checkpoint checkpoint = train::read_checkpoint(path);
    ASSERT_FALSE(checkpoint.average.empty());
    const auto differ = [&](const std::string& name) {
      return !std::ranges::equal(checkpoint.average.at(name).bytes(), checkpoint.model.at(name).bytes());
    };
    EXPECT_TRUE(differ("output.weight"));
    const NamedTensors loaded = train::read_weights(path);
    EXPECT_TRUE(std::ranges::equal(loaded.at("output.weight").bytes(),
                                   checkpoint.average.at("output.weight").bytes()));
  }
}

TEST_F(PfnTrainCommand, MuonIsNotSharded) {
  const Reply muon = train("muon", "--steps 2 --shard-optimizer");
  EXPECT_NE(muon.code, 0);
  expect_contains(muon.output, "Muon needs whole matrices; give --optimizer adamw");
  const Reply adamw = train("adamw", "--steps 2 --shard-optimizer --optimizer adamw");
  EXPECT_EQ(adamw.code, 0) << adamw.output;  // alone it has all of the state
}

TEST_F(PfnTrainCommand, ItsWeightsAreExported) {
  ASSERT_EQ(train("run", "--steps 4").code, 0);
  const auto checkpoint = folder / "run" / "step-00000004.safetensors", small = folder / "small.safetensors";
  const std::string from = at("run/step-00000004.safetensors");
  const Reply reply = run_ferrite("pfn export " + from + " --out " + at("small.safetensors"));
  ASSERT_EQ(reply.code, 0) << reply.output;
  EXPECT_LT(std::filesystem::file_size(small) * 5, std::filesystem::file_size(checkpoint));
  EXPECT_EQ(train::read_weights(small).at("output.weight").dtype(), DType::bf16);
  expect_contains(train::read_settings(small).at("schedule"), "over 4 steps");
  Cpu cpu;
  const auto exported = pfn::load(cpu, small), whole = pfn::load(cpu, checkpoint);
  EXPECT_EQ(exported.config(), whole.config());
  const auto rounded = cast(cast(whole.output.weight, DType::bf16), DType::f32);
  EXPECT_EQ(exported.output.weight.to_vector(), rounded.to_vector());
  // Four steps are fewer than lie between two updates of the average, which still has its first weights.
  const train::Checkpoint saved = train::read_checkpoint(checkpoint);
  ASSERT_EQ(saved.average_state.size(), saved.average.size());
  EXPECT_FALSE(same_weights(saved.average_state, saved.average));
  EXPECT_EQ(run_ferrite("pfn export " + from + " --out " + from).code, 2);
  const Reply other = run_ferrite("pfn export " + at("run/metrics.html") + " --out " + at("x.safetensors"));
  EXPECT_NE(other.code, 0);
  EXPECT_FALSE(std::filesystem::exists(folder / "x.safetensors"));
}

TEST_F(PfnTrainCommand, ExportsItsWeightsWhenItIsDone) {
  const Reply reply = train("run", "--steps 4 --export " + at("run/trained.safetensors"));
  ASSERT_EQ(reply.code, 0) << reply.output;
  expect_contains(reply.output, "trained.safetensors: 0.");
  const std::string checkpoint = at("run/step-00000004.safetensors");
  ASSERT_EQ(run_ferrite("pfn export " + checkpoint + " --out " + at("exported.safetensors")).code, 0);
  EXPECT_EQ(bytes_of("run/trained.safetensors"), bytes_of("exported.safetensors"));
  // A run that has ended already is exported, too.
  ASSERT_EQ(train("run", "--steps 4 --resume --export " + at("later.safetensors")).code, 0);
  EXPECT_EQ(bytes_of("later.safetensors"), bytes_of("exported.safetensors"));
  // What cannot be written is refused before the training.
  const Reply nowhere = train("other", "--steps 4 --export " + at("none/w.safetensors"));
  EXPECT_EQ(nowhere.code, 2);
  expect_contains(nowhere.output, "make it first");
  const Reply a_folder = train("other", "--steps 4 --export " + at("run"));
  EXPECT_EQ(a_folder.code, 2);
  expect_contains(a_folder.output, "name a file in it");
  EXPECT_FALSE(std::filesystem::exists(folder / "other" / "step-00000004.safetensors"));
}

TEST_F(PfnTrainCommand, IsJudgedByRealTablesAtEveryCheckpoint) {
  const Reply reply = train("judged", "--steps 4 --checkpoint-every 2" + write_points());
  ASSERT_EQ(reply.code, 0) << reply.output;
  expect_contains(reply.output, "step 2  table_auc 0.");
  expect_contains(reply.output, "step 4  table_auc 0.");
  expect_contains(bytes_of("judged/metrics.jsonl"), "\"validation_table_log_loss\":");
  expect_contains(bytes_of("judged/metrics.html"), "Validation: table_auc");
  for (const char* wrong : {"points.csv", "points.csv:", "points.csv:colour", "none.csv:kind"}) {
    const Reply refused = train("refused", "--steps 4 --tables " + at(wrong));
    EXPECT_EQ(refused.code, 2) << wrong << refused.output;
    expect_contains(refused.output, std::string(wrong).substr(0, 8));
  }
}

TEST_F(PfnTrainCommand, ReadsRealTablesAsItIsTold) {
  std::ofstream(folder / "t.csv") << "a;y\n1;u\n2;v\n3;u\n4;v\n5;u\n6;v\n7;u\n8;v\n9;u\n10;v\n";
  const std::string tables = " --tables " + at("t.csv") + ":y";
  const Reply reply = train("refused", "--steps 2" + tables);
  EXPECT_EQ(reply.code, 2);
  expect_contains(reply.output, "--tables " + (folder / "t.csv").string());
  expect_contains(reply.output, "--delimiter ';'");
  EXPECT_EQ(train("run", "--steps 2 --delimiter ';'" + tables).code, 0);
}

TEST_F(PfnTrainCommand, IsJudgedByRealTablesEverySoManyMinutes) {
  const std::string tables = write_points();
  const auto scores_of = [](const Reply& reply, const std::string& step) {
    const std::size_t begin = reply.output.find("step " + step + "  table_auc");
    return begin == std::string::npos ? ""
                                      : reply.output.substr(begin, reply.output.find('\n', begin) - begin);
  };
  const Reply saved = train("saved", "--steps 6 --checkpoint-every 2" + tables);
  const Reply often = train("often", "--steps 6 --checkpoint-every 0 --evaluate-minutes 1e-6" + tables);
  const Reply rarely = train("rarely", "--steps 6 --checkpoint-every 0 --evaluate-minutes 1e6" + tables);
  for (const Reply& reply : {saved, often, rarely}) ASSERT_EQ(reply.code, 0) << reply.output;
  for (const char* step : {"2", "4", "6"}) {  // the scores are those of checkpoints
    EXPECT_NE(scores_of(saved, step), "") << saved.output;
    EXPECT_EQ(scores_of(often, step), scores_of(saved, step)) << often.output;
  }
  EXPECT_EQ(scores_of(rarely, "4"), "");
  EXPECT_EQ(scores_of(rarely, "6"), scores_of(saved, "6"));
  // The training is as if there were none, and nothing is left of them.
  EXPECT_EQ(bytes_of("often/step-00000006.safetensors"), bytes_of("rarely/step-00000006.safetensors"));
  EXPECT_FALSE(std::filesystem::exists(folder / "often" / "scored.safetensors"));
  const Reply refused = train("refused", "--steps 6 --evaluate-minutes 1");
  EXPECT_EQ(refused.code, 2);
  expect_contains(refused.output, "give --tables FILE:TARGET");
}

TEST_F(PfnTrainCommand, GoesOnAsIfItHadNotBeenInterrupted) {
  ASSERT_EQ(train("whole", "--steps 24 --checkpoint-every 16").code, 0);
  std::filesystem::create_directories(folder / "resumed");
  std::filesystem::copy(folder / "whole" / "step-00000016.safetensors",
                        folder / "resumed" / "step-00000016.safetensors");
  const Reply reply = train("resumed", "--steps 24 --checkpoint-every 16 --resume");
  ASSERT_EQ(reply.code, 0) << reply.output;
  expect_contains(reply.output, "from step 16");
  const auto weights = [&](const char* out) {
    return train::read_checkpoint(folder / out / "step-00000024.safetensors");
  };
  const train::Checkpoint whole = weights("whole"), resumed = weights("resumed");
  EXPECT_TRUE(same_weights(whole.model, resumed.model));
  ASSERT_FALSE(whole.average.empty());
  EXPECT_TRUE(same_weights(whole.average, resumed.average));
}

TEST_F(PfnTrainCommand, OtherOptionsThanTheRunHadAreNamed) {
  ASSERT_EQ(train("run", "--steps 2").code, 0);
  const Reply other = run_ferrite(
      "pfn train --backend cpu --layers 3 --dim 32 --hidden 32 --registers 2 --cells 500 --seed 5 --steps 2 "
      "--resume --out " +
      at("run"));
  EXPECT_EQ(other.code, 2);
  expect_contains(other.output, R"(pfn is ""layers":1" there and ""layers":3" here)");
  expect_contains(other.output, R"(data is "seed 1" there and "seed 5" here)");
  expect_contains(other.output, "give what that run had, or begin another in another folder");
  EXPECT_EQ(other.output.find("mixture"), std::string::npos) << other.output;
}

TEST_F(PfnTrainCommand, CtrlCSavesACheckpointAndHasItsExitCode) {
  const Reply stopped = run_ferrite(
      "pfn train --backend cpu --layers 1 --dim 32 --hidden 32 --registers 2 --cells 500 --steps 1000000 "
      "--out " +
          at("stopped"),
      "timeout --preserve-status -s INT 2");
  EXPECT_EQ(stopped.code, 130) << stopped.output;
  expect_contains(stopped.output, "interrupted; --resume goes on from there");
}

TEST_F(PfnTrainCommand, BadOptionsAreRefusedWithAdvice) {
  ASSERT_EQ(train("run", "--steps 1").code, 0);
  const auto refused = [&](const Reply& reply, const char* part) {
    EXPECT_EQ(reply.code, 2);
    expect_contains(reply.output, part);
  };
  refused(train("run", "--steps 2"), "give --resume to go on with it, or another --out");
  refused(run_ferrite("pfn train --steps 2 --dim 33 --out " + at("other")), "33");
  refused(train("other", "--steps 0"), "--steps");
  refused(train("other", "--steps 2 --optimizer adagrad"), "--optimizer");
  refused(train("other", "--steps 2 --average 1"), "average 1");
}

}  // namespace
}  // namespace ferrite::testing
