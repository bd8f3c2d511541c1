// The model that comes with ferrite writes without any file given; ferrite gpt bench measures a step.
#include <nlohmann/json.hpp>

#include "cli/cli_test.hpp"
#include "cli/gpt/bench_run.hpp"
#include "ferrite/data/token_file.hpp"

namespace ferrite::testing {
namespace {

TEST(GptSharedModel, WritesInItsManner) {
  const Reply reply = run_ferrite("gpt generate --backend cpu --prompt 'ROMEO:' --tokens 60 --temperature 0");
  EXPECT_EQ(reply.code, 0);
  EXPECT_EQ(reply.output.rfind("ROMEO:\n", 0), 0u) << reply.output;
  expect_contains(reply.output, "6 layers, 4 heads, dim 256");
  expect_contains(reply.output, "\nI ");  // whoever speaks in a play speaks of himself
}

TEST(GptSharedModel, IsMissedByName) {
  const Reply reply = run_ferrite("gpt generate --prompt x", "FERRITE_SHARE=/nowhere");
  EXPECT_EQ(reply.code, 2);
  expect_contains(reply.output, "/nowhere/gpt/shakespeare.safetensors");
  expect_contains(reply.output, "give --model and --tokenizer");
}

TEST(GptBench, MeasuresAStep) {
  const Reply reply = run_ferrite("gpt bench --backend cpu --batch 1 --length 8 --seconds 0.001 --json");
  ASSERT_EQ(reply.code, 0) << reply.output;
  const auto row = nlohmann::json::parse(reply.output);
  EXPECT_EQ(row["batch"], 1);
  EXPECT_EQ(row["precision"], "f32");
  EXPECT_GT(row["tokens_per_second"].get<double>(), 0);
  EXPECT_LT(row["loss"].get<double>(), 10);  // from log 50257, in a few steps on the same 8 tokens
  EXPECT_NE(run_ferrite("gpt bench --batch 0").code, 0);
}

TEST(GptBench, MeasuresStepsOnTokenFiles) {
  const ScratchFolder folder;
  std::vector<std::int32_t> tokens(8 * 40 + 1);
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<std::int32_t>(1 + i % 2);
  data::TokenFileWriter out(folder / "two.bin", DType::u16);
  out.write(tokens);
  out.commit();
  const std::string file = "'" + (folder / "two.bin").string() + "'";
  const std::string command = "gpt bench --backend cpu --batch 2 --length 8 --seconds 0.001 --json --data ";
  const Reply reply = run_ferrite(command + file);
  ASSERT_EQ(reply.code, 0) << reply.output;
  const auto row = nlohmann::json::parse(reply.output);
  EXPECT_EQ(row["data"].size(), 1u);
  EXPECT_LT(row["loss"].get<double>(), 10);  // from log 50257
  EXPECT_TRUE(row["hardware"]["cpu"].contains("clocks"));
  expect_contains(run_ferrite(command + file + " --dtype u16").output, "begins with a header");
  expect_contains(run_ferrite(command + "/nowhere.bin").output, "/nowhere.bin");
  expect_contains(run_ferrite(command + file + " --decode").output, "--decode");
}

TEST(GptBench, EveryStepHasAnotherBatchInTheSameTensors) {
  const ScratchFolder folder;
  std::vector<std::int32_t> tokens(8 * 40 + 1);
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<std::int32_t>(i);
  data::TokenFileWriter out(folder / "many.bin", DType::u16);
  out.write(tokens);
  out.commit();
  cli::gpt::BenchOptions options;
  options.model = nn::GptConfig::gpt2();
  options.length = 8;
  options.data = {(folder / "many.bin").string()};
  Autodiff<Cpu> backend;
  Rng rng(1);
  cli::gpt::BenchBatches<Autodiff<Cpu>> batches(backend, options, 2, rng);
  const Tensor<Autodiff<Cpu>> ids = batches.ids();
  const auto first = ids.to_vector<std::int64_t>();
  batches.next();
  const auto second = ids.to_vector<std::int64_t>(), targets = batches.targets().to_vector<std::int64_t>();
  EXPECT_NE(second, first);
  for (std::size_t i = 0; i < second.size(); ++i) EXPECT_EQ(targets[i], second[i] + 1);
}

TEST(GptBench, MeasuresTexts) {
  const std::string command = "gpt bench --decode --backend cpu --batch 2 --seconds 0.001 --length 12 --json";
  const Reply reply = run_ferrite(command + " --prompt-length 4");
  ASSERT_EQ(reply.code, 0) << reply.output;
  const auto row = nlohmann::json::parse(reply.output);
  EXPECT_EQ(row["batch"], 2);
  EXPECT_EQ(row["tokens"], 8);  // the later half of 8 of each text
  EXPECT_GT(row["tokens_per_second"].get<double>(), 0);
  expect_contains(run_ferrite(command + " --prompt-length 11").output, "leave room");
}

}  // namespace
}  // namespace ferrite::testing
