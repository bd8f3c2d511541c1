// ferrite gpt generate and ferrite gpt eval as a user runs them, on a checkpoint of a small model.
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/cli_test.hpp"
#include "ferrite/data/token_loader.hpp"
#include "ferrite/text/bpe.hpp"
#include "ferrite/train/gpt_file.hpp"
#include "ferrite/train/stacks.hpp"

namespace ferrite::testing {
namespace {

using B = Autodiff<Cpu>;
using Json = nlohmann::json;

const std::string sentence = "the cat sat on the mat, and the dog lay on the rug.\n";

/// One training for all tests: the model knows the sentence by heart.
struct GptModelCommand : ::testing::Test {
  static inline std::optional<ScratchFolder> folder;

  static void SetUpTestSuite() {
    folder.emplace();
    std::string text;
    for (int i = 0; i < 100; ++i) text += sentence;
    std::ofstream(*folder / "book.txt", std::ios::binary) << text;
    ASSERT_EQ(
        run_ferrite("gpt tokenizer train --vocab 270 --text " + at("book.txt") + " --out " + at("my.bpe"))
            .code,
        0);
    ASSERT_EQ(run_ferrite("gpt tokens --tokenizer " + at("my.bpe") + " --text " + at("book.txt") + " --out " +
                          at("book.bin"))
                  .code,
              0);
    B backend;
    Rng rng(1);
    const auto config =
        nn::GptConfig{}.with_vocab(270).with_context(64).with_layers(2).with_heads(2).with_dim(32);
    nn::Gpt<B> model(backend, config, rng);
    optim::AdamW<B> optimizer(model.parameters(), optim::AdamWConfig{}.with_lr(1e-2).with_weight_decay(0));
    data::TokenLoader loader((*folder / "book.bin").string(),
                             data::TokenLoaderConfig{}.with_batch(4, 64).with_vocab(270));
    const auto step = [&](const data::Batch<B>& batch) {
      const Tensor<B> loss = model.loss(batch.x, batch.y);
      return train::Prediction<B>{loss, loss};
    };
    const auto training = train::TrainerConfig{}
                              .with_steps(400)
                              .with_schedule(optim::Schedule::cosine(1e-2, 400, 1e-4))
                              .with_checkpoints(*folder / "run", 0)
                              .with_setting(train::gpt_setting, config.to_json());
    train::Trainer<B>(model, optimizer, loader, step, training).fit();
    std::filesystem::rename(*folder / "run/step-00000400.safetensors", *folder / "m.safetensors");
  }
  static void TearDownTestSuite() { folder.reset(); }

  static std::string at(const std::string& name) { return "'" + (*folder / name).string() + "'"; }
  static Reply generate(const std::string& arguments) {
    return run_ferrite("gpt generate --backend cpu --model " + at("m.safetensors") + " --tokenizer " +
                       at("my.bpe") + " " + arguments);
  }
  static Reply eval(const std::string& arguments) {
    return run_ferrite("gpt eval --backend cpu --model " + at("m.safetensors") + " " + arguments);
  }
};

TEST_F(GptModelCommand, ExplainsItselfWithExamples) {
  for (const std::string command : {"generate", "eval"}) {
    const Reply help = run_ferrite("gpt " + command + " --help");
    EXPECT_EQ(help.code, 0);
    expect_contains(help.output, "Examples:\n  ferrite gpt " + command);
  }
}

TEST_F(GptModelCommand, GoesOnWithAText) {
  const Reply reply = generate("--prompt 'the cat sat' --temperature 0 --stop '\n' --tokens 50 --quiet");
  EXPECT_EQ(reply.code, 0);
  EXPECT_EQ(reply.output, sentence);
  expect_contains(generate("--prompt 'the cat' --tokens 5").output, "5 tokens, ");
  std::ofstream(*folder / "in.txt", std::ios::binary) << "the cat";
  const Reply input = generate("--temperature 0 --stop , --quiet < " + at("in.txt"));
  EXPECT_EQ(input.output, "the cat sat on the mat\n");
}

TEST_F(GptModelCommand, WritesBeyondTheContext) {
  const Reply reply = generate("--prompt 'the cat' --temperature 0 --tokens 300 --quiet");
  EXPECT_EQ(reply.code, 0);
  EXPECT_GT(reply.output.size(), 300u);
  EXPECT_EQ(reply.output.substr(0, 2 * sentence.size()), sentence + sentence);
}

TEST_F(GptModelCommand, ABatchAsJson) {
  const Reply reply =
      generate("--prompt 'the cat' 'and the dog' --temperature 0 --stop . , --tokens 40 --json");
  ASSERT_EQ(reply.code, 0) << reply.output;
  const Json json = Json::parse(reply.output);
  EXPECT_EQ(json["texts"][0]["prompt"], "the cat");
  EXPECT_EQ(json["texts"][0]["text"], " sat on the mat");
  EXPECT_EQ(json["texts"][1]["text"], " lay on the rug");
  EXPECT_EQ(json["texts"][1]["stopped"], true);
  EXPECT_EQ(json["tokens"], json["texts"][0]["tokens"].size() + json["texts"][1]["tokens"].size());
  const std::string texts =
      generate("--prompt 'the cat' 'and the dog' --temperature 0 --stop . , --quiet").output;
  EXPECT_EQ(texts, "the cat sat on the mat\n\nand the dog lay on the rug\n");
}

TEST_F(GptModelCommand, TextsInBracketsStayAsTheyAre) {
  const Reply reply = generate("--prompt '[INST] a, b [/INST]' '[]' --stop '[x]' --tokens 2 --json");
  ASSERT_EQ(reply.code, 0) << reply.output;
  const Json texts = Json::parse(reply.output)["texts"];
  ASSERT_EQ(texts.size(), 2u);
  EXPECT_EQ(texts[0]["prompt"], "[INST] a, b [/INST]");
  EXPECT_EQ(texts[1]["prompt"], "[]");
}

TEST_F(GptModelCommand, ASeedDecides) {
  const auto text = [&](const std::string& more) {
    return generate("--prompt the --top-k 0 --tokens 30 --no-eot --quiet " + more).output;
  };
  EXPECT_EQ(text("--seed 1 --temperature 3"), text("--seed 1 --temperature 3"));
  EXPECT_NE(text("--seed 1 --temperature 3"), text("--seed 2 --temperature 3"));
  EXPECT_EQ(text("--seed 1 --temperature 3 --top-p 0.00001"), text("--seed 2 --temperature 0"));
}

TEST_F(GptModelCommand, MeasuresTheLoss) {
  const Reply reply = eval("--data " + at("bo*.bin") + " --tokenizer " + at("my.bpe") + " --json");
  ASSERT_EQ(reply.code, 0) << reply.output;
  const Json json = Json::parse(reply.output);
  const auto file = data::TokenFile::open(*folder / "book.bin");
  EXPECT_EQ(json["tokens"], file.size() - 1);
  EXPECT_LT(json["loss"], 0.1);
  EXPECT_NEAR(json["perplexity"], std::exp(json["loss"].get<double>()), 1e-9);
  const auto tokenizer = text::BytePairTokenizer::load(*folder / "my.bpe");
  std::vector<std::int32_t> first(1);
  file.copy(0, first);
  EXPECT_EQ(json["bytes"], 100 * sentence.size() - tokenizer.decode(first).size());
  EXPECT_NEAR(
      json["bits_per_byte"],
      json["loss"].get<double>() * json["tokens"].get<double>() / std::log(2.0) / json["bytes"].get<double>(),
      1e-9);
  // The result does not depend on the batch.
  const Json other = Json::parse(eval("--data " + at("book.bin") + " --batch 7 --json").output);
  EXPECT_NEAR(other["loss"], json["loss"], 1e-5);
  EXPECT_FALSE(other.contains("bits_per_byte"));
  const Reply text = eval("--data " + at("book.bin") + " --length 8");
  expect_contains(text.output, "loss ");
  expect_contains(text.output, "perplexity ");
  expect_contains(text.output, " tokens in 1 file, ");
}

TEST_F(GptModelCommand, SaysWhatIsWrong) {
  const auto refuses = [](const Reply& reply, const std::string& part) {
    EXPECT_EQ(reply.code, 2);
    expect_contains(reply.output, part);
  };
  refuses(generate("--prompt the --temperature -1"), "temperature -1");
  refuses(generate("--prompt the --top-p 0"), "top_p 0");
  refuses(generate("--prompt the --stop ''"), "one is empty");
  refuses(generate("--prompt the --temperature ''"), "--temperature is empty");
  refuses(generate("--prompt the --tokens 010"), "'010': give a whole number");
  std::string longer;
  for (int i = 0; i < 20; ++i) longer += sentence.substr(0, sentence.size() - 1) + " ";
  refuses(generate("--prompt '" + longer + "'"), "the model's context has 64");
  refuses(run_ferrite("gpt generate --prompt a --model " + at("none") + " --tokenizer " + at("my.bpe")),
          "none");
  ASSERT_EQ(run_ferrite("gpt tokenizer train --vocab 280 --least-count 1 --text " + at("book.txt") +
                        " --out " + at("large.bpe"))
                .code,
            0);
  refuses(run_ferrite("gpt generate --prompt a --model " + at("m.safetensors") + " --tokenizer " +
                      at("large.bpe")),
          "give the tokenizer of the model's text");
  refuses(eval("--data " + at("book.bin") + " --length 65"), "the model's context has 64");
  refuses(eval("--data " + at("no*.bin")), "no*.bin");
  train::write_weights(*folder / "bare.safetensors", {});
  refuses(run_ferrite("gpt eval --data " + at("book.bin") + " --model " + at("bare.safetensors")),
          "has no config in its metadata");
  data::TokenFileWriter ids(*folder / "ids.bin", DType::u16);
  ids.write(std::vector<std::int32_t>{1, 2, 300, 4});
  ids.commit();
  refuses(eval("--data " + at("ids.bin")), "300");
}

TEST_F(GptModelCommand, AFolderInPlaceOfAModelIsToldOfItsFile) {
  const std::string folder_of_run = " --model " + at("run");
  std::filesystem::create_directories(*folder / "run");
  for (const std::string& command :
       {"gpt generate --prompt a --tokenizer " + at("my.bpe"), "gpt eval --data " + at("book.bin"),
        "gpt quantize --out " + at("x"), "gpt export --to " + at("x")}) {
    const Reply reply = run_ferrite(command + folder_of_run);
    EXPECT_EQ(reply.code, 2) << command;
    expect_contains(reply.output, "it is a folder");
    expect_contains(reply.output, "best.safetensors");
  }
}

TEST_F(GptModelCommand, JsonNamesFilesOfAnyBytes) {
  const std::string name = at("caf\xe9.bin");
  const Reply reply = run_ferrite("gpt tokens --json --tokenizer " + at("my.bpe") + " --out " + name +
                                  " --text " + at("book.txt"));
  EXPECT_EQ(reply.code, 0) << reply.output;
  expect_contains(reply.output, "caf\uFFFD.bin");
}

}  // namespace
}  // namespace ferrite::testing
