// `mpirun ferrite gpt train`: the training of one process, by several. ctest tells where mpirun is.
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
  Reply train(int ranks, const std::string& out, const std::string& more) const {
    const std::string start =
        ranks == 0 ? "" : std::getenv("FERRITE_TEST_MPIRUN") + (" " + std::to_string(ranks));
    return run_ferrite(
        "gpt train --backend cpu --layers 1 --heads 2 --dim 16 --context 16 --vocab 64 --batch 2 "
        "--report-every 2 --data '" +
            (folder / "tokens.bin").string() + "' --out '" + (folder / out).string() + "' " + more,
        "FERRITE_NUM_THREADS=1 FERRITE_DIST_TIMEOUT=60 " + start);
  }
  NamedTensors weights(const std::string& file) const { return train::read_checkpoint(folder / file).model; }

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
    for (const auto& [name, tensor] : weights(out + "/step-00000008.safetensors")) {
      const auto a = tensor.as<float>(), b = expected.at(name).as<float>();
      for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-5) << name;
    }
  }
}

TEST_F(MpiTraining, GoesOnWithAnotherNumberOfRanks) {
  const Reply four = train(4, "run", "--steps 4");
  ASSERT_EQ(four.code, 0) << four.output;
  const Reply two = train(2, "run", "--steps 8 --resume");
  ASSERT_EQ(two.code, 0) << two.output;
  expect_contains(two.output, "from step 4");
  const train::Checkpoint last = train::read_checkpoint(folder / "run" / "step-00000008.safetensors");
  EXPECT_EQ(last.step, 8);
  EXPECT_EQ(last.position.batch, 4 * 4 + 4 * 2);
}

TEST_F(MpiTraining, AShardedOptimiserGivesTheSameBits) {
  ASSERT_EQ(train(2, "whole", "--steps 6").code, 0);
  const Reply sharded = train(2, "sharded", "--steps 6 --shard-optimizer --checkpoint-every 4");
  ASSERT_EQ(sharded.code, 0) << sharded.output;
  const auto read = [&](const std::string& file) { return train::read_checkpoint(folder / file); };
  const train::Checkpoint a = read("whole/step-00000006.safetensors"),
                          b = read("sharded/step-00000006.safetensors");
  for (const auto& [one, other] : {std::pair(&a.model, &b.model), std::pair(&a.optimizer, &b.optimizer)}) {
    ASSERT_EQ(one->size(), other->size());
    for (const auto& item : *one)
      EXPECT_TRUE(std::ranges::equal(item.second.bytes(), other->at(item.first).bytes())) << item.first;
  }
  const Reply four = train(4, "sharded", "--steps 8 --shard-optimizer --resume");
  ASSERT_EQ(four.code, 0) << four.output;
  expect_contains(four.output, "from step 6");
}

TEST_F(MpiTraining, TheSameStepsGiveTheSameBits) {
  ASSERT_EQ(train(2, "a", "--steps 6 --dropout 0.1").code, 0);
  const Reply again = train(2, "c", "--steps 6 --dropout 0.1 --checkpoint-every 3");
  ASSERT_EQ(again.code, 0) << again.output;
  const NamedTensors a = weights("a/step-00000006.safetensors"), c = weights("c/step-00000006.safetensors");
  for (const auto& [name, tensor] : a)
    EXPECT_TRUE(std::ranges::equal(tensor.bytes(), c.at(name).bytes())) << name;
}

}  // namespace
}  // namespace ferrite::testing
