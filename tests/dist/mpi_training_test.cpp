// `mpirun ferrite gpt train` and `pfn train`: the training of one process, by several. ctest tells where
// mpirun is.
#include <cstdlib>
#include <span>

#include "cli/cli_test.hpp"
#include "ferrite/data/token_file.hpp"
#include "ferrite/train/checkpoint.hpp"

namespace ferrite::testing {
namespace {

class MpiTraining : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::getenv("FERRITE_TEST_MPIRUN") == nullptr) GTEST_SKIP() << "no mpirun, or not run by ctest";
    std::vector<std::int32_t> ids;
    for (int i = 0; i < 4000; ++i) ids.push_back(i * i % 61);
    data::TokenFileWriter file(folder / "tokens.bin", DType::u16);
    file.write(ids);
    file.commit();
  }
  /// By mpirun, or without it for 0 ranks.
  Reply run(int ranks, const std::string& command, const std::string& out, const std::string& more) const {
    const std::string start =
        ranks == 0 ? "" : std::getenv("FERRITE_TEST_MPIRUN") + (" " + std::to_string(ranks));
    return run_ferrite(
        command + " --backend cpu --report-every 2 --out '" + (folder / out).string() + "' " + more,
        "FERRITE_NUM_THREADS=1 FERRITE_DIST_TIMEOUT=60 " + start);
  }
  Reply train(int ranks, const std::string& out, const std::string& more) const {
    return run(ranks,
               "gpt train --layers 1 --heads 2 --dim 16 --context 16 --vocab 64 --batch 2 --data '" +
                   (folder / "tokens.bin").string() + "'",
               out, more);
  }
  Reply train_pfn(int ranks, const std::string& out, const std::string& more) const {
    return run(ranks,
               "pfn train --layers 1 --dim 32 --hidden 32 --registers 2 --cells 500 --evaluate-batches 1 "
               "--checkpoint-every 0",
               out, more);
  }
  static void expect_near(const NamedTensors& a, const NamedTensors& b) {
    for (const auto& [name, tensor] : a) {
      const auto x = tensor.as<float>(), y = b.at(name).as<float>();
      for (std::size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(x[i], y[i], 1e-5) << name;
    }
  }
  static void expect_same_bits(const NamedTensors& a, const NamedTensors& b) {
    ASSERT_EQ(a.size(), b.size());
    for (const auto& [name, tensor] : a)
      EXPECT_TRUE(std::ranges::equal(tensor.bytes(), b.at(name).bytes())) << name;
  }
  train::Checkpoint read(const std::string& file) const { return train::read_checkpoint(folder / file); }
  void expect_same_runs(const std::string& one, const std::string& other) const {
    const train::Checkpoint a = read(one), b = read(other);
    expect_same_bits(a.model, b.model);
    expect_same_bits(a.average, b.average);
    expect_same_bits(a.optimizer, b.optimizer);
  }
  NamedTensors weights(const std::string& file) const { return read(file).model; }

  ScratchFolder folder;
};

TEST_F(MpiTraining, IsThatOfOneProcessWithAsManyMicroBatches) {
  const Reply one = train(0, "one", "--steps 8 --micro-batches 4");
  ASSERT_EQ(one.code, 0) << one.output;
  const NamedTensors expected = weights("one/step-00000008.safetensors");
  for (const int ranks : {2, 4}) {
    const std::string out = "ranks" + std::to_string(ranks);
    const Reply reply = train(ranks, out, "--steps 8 --micro-batches " + std::to_string(4 / ranks));
    ASSERT_EQ(reply.code, 0) << reply.output;
    expect_contains(reply.output, std::to_string(ranks) + " ranks");
    EXPECT_EQ(reply.output.find("8/8  loss"), reply.output.rfind("8/8  loss")) << "only one rank reports";
    expect_near(weights(out + "/step-00000008.safetensors"), expected);
  }
}

TEST_F(MpiTraining, GoesOnWithAnotherNumberOfRanks) {
  const Reply four = train(4, "run", "--steps 4");
  ASSERT_EQ(four.code, 0) << four.output;
  const Reply two = train(2, "run", "--steps 8 --resume");
  ASSERT_EQ(two.code, 0) << two.output;
  expect_contains(two.output, "from step 4");
  const train::Checkpoint last = read("run/step-00000008.safetensors");
  EXPECT_EQ(last.step, 8);
  EXPECT_EQ(last.position.batch, 4 * 4 + 4 * 2);
  // One process goes on from the same file. It may not change its micro-batches, so the file says that there
  // were two.
  train::Checkpoint four_steps = read("run/step-00000004.safetensors");
  four_steps.settings["micro_batches"] = "2";
  std::filesystem::create_directory(folder / "alone");
  train::write_checkpoint(folder / "alone" / "step-00000004.safetensors", four_steps);
  const Reply alone = train(0, "alone", "--steps 8 --micro-batches 2 --resume");
  ASSERT_EQ(alone.code, 0) << alone.output;
  expect_near(last.model, weights("alone/step-00000008.safetensors"));
}

TEST_F(MpiTraining, AShardedOptimiserGivesTheSameBits) {
  ASSERT_EQ(train(2, "whole", "--steps 6").code, 0);
  const Reply sharded = train(2, "sharded", "--steps 6 --shard-optimizer --checkpoint-every 4");
  ASSERT_EQ(sharded.code, 0) << sharded.output;
  expect_same_runs("whole/step-00000006.safetensors", "sharded/step-00000006.safetensors");
  const Reply four = train(4, "sharded", "--steps 8 --shard-optimizer --resume");
  ASSERT_EQ(four.code, 0) << four.output;
  expect_contains(four.output, "from step 6");
}

TEST_F(MpiTraining, TheSameStepsGiveTheSameBits) {
  ASSERT_EQ(train(2, "a", "--steps 6 --dropout 0.1").code, 0);
  const Reply again = train(2, "c", "--steps 6 --dropout 0.1 --checkpoint-every 3");
  ASSERT_EQ(again.code, 0) << again.output;
  expect_same_bits(weights("a/step-00000006.safetensors"), weights("c/step-00000006.safetensors"));
}

/// Each rank draws tables of its own, so that there is no run of one process to compare with.
TEST_F(MpiTraining, OfNetworksForTablesGivesTheSameBitsAgainAndSharded) {
  for (const char* out : {"a", "b"}) {
    const Reply muon = train_pfn(2, out, "--steps 6");
    ASSERT_EQ(muon.code, 0) << muon.output;
    expect_contains(muon.output, "2 ranks");
    EXPECT_EQ(muon.output.find("6/6  loss"), muon.output.rfind("6/6  loss")) << "only one rank reports";
  }
  expect_same_bits(weights("a/step-00000006.safetensors"), weights("b/step-00000006.safetensors"));
  ASSERT_EQ(train_pfn(2, "whole", "--steps 6 --optimizer adamw").code, 0);
  const Reply sharded = train_pfn(2, "sharded", "--steps 6 --optimizer adamw --shard-optimizer");
  ASSERT_EQ(sharded.code, 0) << sharded.output;
  expect_same_runs("whole/step-00000006.safetensors", "sharded/step-00000006.safetensors");
  EXPECT_EQ(read("whole/step-00000006.safetensors").position.batch, 6);
}

}  // namespace
}  // namespace ferrite::testing
