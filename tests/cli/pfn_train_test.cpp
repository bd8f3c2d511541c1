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
};

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
  EXPECT_EQ(run_ferrite("pfn export " + from + " --out " + from).code, 2);
  const Reply other = run_ferrite("pfn export " + at("run/metrics.html") + " --out " + at("x.safetensors"));
  EXPECT_NE(other.code, 0);
  EXPECT_FALSE(std::filesystem::exists(folder / "x.safetensors"));
}

TEST_F(PfnTrainCommand, IsJudgedByRealTablesAtEveryCheckpoint) {
  std::ofstream csv(folder / "points.csv");
  csv << "a,b,kind\n";
  for (int i = 0; i < 60; ++i) csv << i % 7 << "," << i << "," << (i % 3 == 0 ? "x" : "y") << "\n";
  csv.close();
  const Reply reply = train("judged", "--steps 4 --checkpoint-every 2 --tables " + at("points.csv:kind"));
  ASSERT_EQ(reply.code, 0) << reply.output;
  expect_contains(reply.output, "step 2  table_auc 0.");
  expect_contains(reply.output, "step 4  table_auc 0.");
  std::ifstream lines(folder / "judged" / "metrics.jsonl");
  const std::string text{std::istreambuf_iterator<char>(lines), {}};
  expect_contains(text, "\"validation_table_log_loss\":");
  std::ifstream page(folder / "judged" / "metrics.html");
  expect_contains(std::string{std::istreambuf_iterator<char>(page), {}}, "Validation: table_auc");
  for (const char* wrong : {"points.csv", "points.csv:", "points.csv:colour", "none.csv:kind"}) {
    const Reply refused = train("refused", "--steps 4 --tables " + at(wrong));
    EXPECT_EQ(refused.code, 2) << wrong << refused.output;
    expect_contains(refused.output, std::string(wrong).substr(0, 8));
  }
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
  for (const auto& [name, tensor] : whole.model)
    EXPECT_TRUE(std::ranges::equal(tensor.bytes(), resumed.model.at(name).bytes())) << name;
  ASSERT_FALSE(whole.average.empty());
  for (const auto& [name, tensor] : whole.average)
    EXPECT_TRUE(std::ranges::equal(tensor.bytes(), resumed.average.at(name).bytes())) << name;
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
