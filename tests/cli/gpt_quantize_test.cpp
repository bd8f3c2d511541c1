// ferrite gpt quantize, and --int8, as a user runs them: on the model that comes with ferrite.
#include <nlohmann/json.hpp>

#include "cli/cli_test.hpp"
#include "ferrite/data/token_file.hpp"

namespace ferrite::testing {
namespace {

struct GptQuantize : ::testing::Test {
  const std::string share = test_paths::source_folder() + "/share/gpt/";
  const std::string model = "'" + share + "shakespeare.safetensors'";
  ScratchFolder folder;

  std::string at(const std::string& name) { return "'" + (folder / name).string() + "'"; }
  double perplexity(const std::string& arguments) {
    const Reply reply =
        run_ferrite("gpt eval --backend cpu --json --data " + at("some.bin") + " " + arguments);
    EXPECT_EQ(reply.code, 0) << reply.output;
    return nlohmann::json::parse(reply.output)["perplexity"].get<double>();
  }
};

TEST_F(GptQuantize, ChangesPerplexityByLessThanHalfAPercent) {
  const auto all = data::TokenFile::open(test_paths::source_folder() + "/examples/data/shakespeare.bin");
  std::vector<std::int32_t> ids(4097);
  all.copy(0, ids);
  data::TokenFileWriter out(folder / "some.bin", DType::u16);
  out.write(ids);
  out.commit();
  const Reply reply =
      run_ferrite("gpt quantize --json --model " + model + " --out " + at("int8.safetensors"));
  ASSERT_EQ(reply.code, 0) << reply.output;
  const auto json = nlohmann::json::parse(reply.output);
  EXPECT_LT(json["bytes"].get<double>(), 0.55 * json["before"].get<double>());  // of bf16

  const double exact = perplexity("--model " + model), file = perplexity("--model " + at("int8.safetensors"));
  EXPECT_NEAR(file, exact, 0.005 * exact);
  EXPECT_NE(file, exact);
  EXPECT_EQ(file, perplexity("--int8 --model " + model));
}

TEST_F(GptQuantize, WritesATextAndIsNotRoundedTwice) {
  const std::string small = at("int8.safetensors");
  ASSERT_EQ(run_ferrite("gpt quantize --model " + model + " --out " + small).code, 0);
  const Reply text = run_ferrite("gpt generate --backend cpu --model " + small + " --tokenizer '" + share +
                                 "shakespeare.bpe' --prompt 'ROMEO:' --tokens 20 --temperature 0");
  EXPECT_EQ(text.code, 0);
  expect_contains(text.output, "ROMEO:\n");
  expect_contains(text.output, "2048 tokens, int8");
  const Reply again = run_ferrite("gpt quantize --model " + small + " --out " + at("other.safetensors"));
  EXPECT_EQ(again.code, 2);
  expect_contains(again.output, "has weights of 8 bits already");
  const Reply exported = run_ferrite("gpt export --model " + small + " --to " + at("hf"));
  EXPECT_EQ(exported.code, 2);
  expect_contains(exported.output, "export the model that it was made from");
}

TEST_F(GptQuantize, ExplainsItself) {
  const Reply help = run_ferrite("gpt quantize --help");
  EXPECT_EQ(help.code, 0);
  expect_contains(help.output, "Examples:\n  ferrite gpt quantize");
}

}  // namespace
}  // namespace ferrite::testing
