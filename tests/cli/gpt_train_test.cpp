// ferrite gpt train as a user runs it, on a model that learns one sentence.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <span>

#include "cli/cli_test.hpp"
#include "cli/gpt/train.hpp"
#include "ferrite/data/token_file.hpp"
#include "ferrite/train/checkpoint.hpp"

namespace ferrite::testing {
namespace {

using Json = nlohmann::json;

struct GptTrainCommand : ::testing::Test {
  static inline std::optional<ScratchFolder> folder;

  static void SetUpTestSuite() {
    folder.emplace();
    std::string text;
    for (int i = 0; i < 100; ++i) text += "the cat sat on the mat, and the dog lay on the rug.\n";
    std::ofstream(*folder / "book.txt", std::ios::binary) << text;
    ASSERT_EQ(
        run_ferrite("gpt tokenizer train --vocab 270 --text " + at("book.txt") + " --out " + at("my.bpe"))
            .code,
        0);
    ASSERT_EQ(run_ferrite("gpt tokens --tokenizer " + at("my.bpe") + " --text " + at("book.txt") + " --out " +
                          at("book.bin"))
                  .code,
              0);
  }
  static void TearDownTestSuite() { folder.reset(); }

  static std::string at(const std::string& name) { return "'" + (*folder / name).string() + "'"; }
  /// With `change`, sizes in place of the usual ones.
  static Reply train(const std::string& out, const std::string& arguments,
                     const std::string& environment = "",
                     const std::map<std::string, std::string>& change = {}) {
    std::map<std::string, std::string> sizes{{"--layers", "2"},   {"--heads", "2"},   {"--dim", "32"},
                                             {"--context", "32"}, {"--vocab", "270"}, {"--batch", "4"}};
    for (const auto& [name, value] : change) sizes[name] = value;
    std::string all = "gpt train --backend cpu --lr 1e-2 --data " + at("book.bin") + " --out " + at(out);
    for (const auto& [name, value] : sizes) all += " " + name + " " + value;
    return run_ferrite(all + " " + arguments, environment);
  }
  static std::vector<Json> lines_of(const std::string& out) {
    std::vector<Json> lines;
    std::ifstream in(*folder / (out + "/metrics.jsonl"));
    for (std::string line; std::getline(in, line);) lines.push_back(Json::parse(line));
    return lines;
  }
  static std::filesystem::path checkpoint(const std::string& out, int step) {
    return *folder / fmt::format("{}/step-{:08}.safetensors", out, step);
  }
};

void expect_refused(const Reply& reply, const std::string& part) {
  EXPECT_EQ(reply.code, 2);
  expect_contains(reply.output, part);
}

TEST_F(GptTrainCommand, ExplainsItselfWithExamples) {
  const Reply help = run_ferrite("gpt train --help");
  EXPECT_EQ(help.code, 0);
  expect_contains(help.output, "Examples:\n  ferrite gpt train");
  expect_contains(run_ferrite("gpt --help").output, "ferrite gpt train");
}

TEST_F(GptTrainCommand, LearnsReportsAndWritesAModelThatGenerateReads) {
  const Reply reply = train("learns", "--steps 60 --report-every 20 --valid " + at("book.bin") +
                                          " --evaluate-every 30 --evaluate-batches 2 --tokenizer " +
                                          at("my.bpe") + " --sample-every 40 --prompt 'the cat'");
  ASSERT_EQ(reply.code, 0) << reply.output;
  for (const char* part :
       {"2 layers, 2 heads, dim 32", "128 tokens per step", "60/60  loss", "tokens/s",
        "step 60  validation loss", "--- step 40 ---\nthe cat", "learns/step-00000060.safetensors"})
    expect_contains(reply.output, part);
  const auto lines = lines_of("learns");
  ASSERT_EQ(lines.size(), 5u);  // three reports, two evaluations
  EXPECT_LT(lines[3].at("loss").get<double>(), 0.7 * lines[0].at("loss").get<double>());
  EXPECT_GT(lines[0].at("tokens_per_second").get<double>(), 0);
  EXPECT_GT(lines[0].at("gradient_norm").get<double>(), 0);
  EXPECT_TRUE(lines[1].contains("validation_loss"));
  EXPECT_TRUE(std::filesystem::exists(*folder / "learns/metrics.html"));
  const Reply text = run_ferrite("gpt generate --backend cpu --quiet --tokens 5 --prompt 'the cat' --model " +
                                 at("learns/best.safetensors") + " --tokenizer " + at("my.bpe"));
  EXPECT_EQ(text.code, 0) << text.output;
  EXPECT_EQ(text.output.rfind("the cat", 0), 0u);
}

TEST_F(GptTrainCommand, TheResultAsJson) {
  const std::string course = "--steps 6 --json --valid " + at("book.bin") + " --evaluate-batches 2";
  const Reply reply = train("json", course);
  ASSERT_EQ(reply.code, 0) << reply.output;
  const Json json = Json::parse(reply.output);
  EXPECT_EQ(json["step"], 6);
  EXPECT_EQ(json["interrupted"], false);
  EXPECT_EQ(json["out"], checkpoint("json", 6).string());
  EXPECT_TRUE(std::filesystem::exists(json["best"].get<std::string>()));
  EXPECT_GT(json["validation_loss"].get<double>(), 0);
  EXPECT_EQ(json["loss"], lines_of("json").front().at("loss"));
  EXPECT_EQ(json["data_tokens"], data::TokenFile::open(*folder / "book.bin").size());
  EXPECT_FALSE(json.contains("resumed_from"));
  const Reply more = train("json", "--steps 8 --json --resume");
  ASSERT_EQ(more.code, 0) << more.output;
  EXPECT_EQ(Json::parse(more.output)["resumed_from"], 6);
  expect_refused(train("x", "--steps 1 --json --sample-every 1"), "--sample-every");
}

TEST_F(GptTrainCommand, ReadsBareTokensOfANamedDtype) {
  const data::TokenFile book = data::TokenFile::open(*folder / "book.bin");
  std::vector<std::int32_t> ids(static_cast<std::size_t>(book.size()));
  book.copy(0, ids);
  const std::vector<std::uint16_t> narrow(ids.begin(), ids.end());
  const auto write = [](const std::filesystem::path& path, const auto& tokens) {
    const auto bytes = std::as_bytes(std::span(tokens));
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), std::ssize(bytes));
  };
  write(*folder / "narrow.tokens", narrow);
  write(*folder / "wide.tokens", ids);
  const auto loss_of = [](const std::string& data, const std::string& out) {
    const Reply reply = run_ferrite(
        "gpt train --backend cpu --layers 1 --heads 2 --dim 16 --context 16 --vocab 270 --steps 3 --json " +
        data + " --out " + at(out));
    EXPECT_EQ(reply.code, 0) << reply.output;
    return Json::parse(reply.output).at("loss").get<double>();
  };
  const double loss = loss_of("--data " + at("book.bin"), "headed");
  EXPECT_EQ(loss_of("--dtype u16 --data " + at("narrow.tokens"), "narrow"), loss);
  EXPECT_EQ(loss_of("--dtype u32 --data " + at("wide.tokens"), "wide"), loss);
  expect_refused(train("x", "--steps 1 --dtype u16"), "header");
  expect_refused(train("x", "--steps 1 --dtype f32"), "--dtype");
}

TEST_F(GptTrainCommand, AnInterruptedRunGoesOnBitForBit) {
  const std::string course = "--quiet --report-every 4 --micro-batches 2 --dropout 0.1 --warmup 2 --steps ";
  ASSERT_EQ(train("whole", course + "16").code, 0);
  ASSERT_EQ(train("parts", course + "16 --checkpoint-every 6").code, 0);
  std::filesystem::remove(checkpoint("parts", 16));
  std::filesystem::remove(checkpoint("parts", 12));
  const Reply resumed = train("parts", course + "16 --checkpoint-every 6 --resume");
  ASSERT_EQ(resumed.code, 0) << resumed.output;
  const auto whole = train::read_checkpoint(checkpoint("whole", 16)),
             parts = train::read_checkpoint(checkpoint("parts", 16));
  for (const auto& [name, tensor] : whole.model)
    EXPECT_TRUE(std::ranges::equal(tensor.bytes(), parts.model.at(name).bytes())) << name;
  std::vector<std::int64_t> steps;
  for (const Json& line : lines_of("parts")) steps.push_back(line["step"]);
  EXPECT_EQ(steps, (std::vector<std::int64_t>{4, 8, 12, 16}));
}

TEST_F(GptTrainCommand, StartsFromAModelFile) {
  ASSERT_EQ(train("first", "--steps 40 --quiet --dropout 0.1").code, 0);
  const std::string from = " --from " + at("first/step-00000040.safetensors");
  const std::string tune =
      "gpt train --backend cpu --data " + at("book.bin") + " --batch 4 --lr 1e-9 --weight-decay 0 --quiet";
  const Reply tuned = run_ferrite(tune + " --steps 1 --report-every 1 --out " + at("tuned") + from);
  ASSERT_EQ(tuned.code, 0) << tuned.output;
  // Almost no step: these are the weights of the file, and their loss.
  const auto before = train::read_checkpoint(checkpoint("first", 40)),
             after = train::read_checkpoint(checkpoint("tuned", 1));
  for (const auto& [name, tensor] : before.model) {
    if (tensor.dtype() != DType::f32) continue;  // the state of dropout
    const auto expected = tensor.as<float>(), actual = after.model.at(name).as<float>();
    for (std::size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(actual[i], expected[i], 1e-8) << name;
  }
  EXPECT_LT(lines_of("tuned").at(0).at("loss").get<double>(), 2);  // new weights have log(270) = 5.6
  const Reply more = run_ferrite(tune + " --steps 2 --resume --out " + at("tuned") + from);
  EXPECT_EQ(more.code, 0) << more.output;
  EXPECT_TRUE(std::filesystem::exists(checkpoint("tuned", 2)));

  expect_refused(run_ferrite(tune + " --steps 1 --layers 3 --out " + at("x") + from), "--from");
  expect_refused(run_ferrite(tune + " --steps 1 --length 33 --out " + at("x") + from), "smaller --length");
  const auto from_other = [&](const std::string& file) {
    return run_ferrite(tune + " --steps 1 --out " + at("x") + " --from " + file);
  };
  expect_refused(from_other(at("none.safetensors")), "none.safetensors");
  expect_refused(from_other("''"), "--from: needs the name of a model file");
  expect_refused(from_other(at("first")), "of a run give its best.safetensors");
  ASSERT_EQ(run_ferrite("gpt quantize --model " + at("first/step-00000040.safetensors") + " --out " +
                        at("int8.safetensors"))
                .code,
            0);
  expect_refused(from_other(at("int8.safetensors")), "weights of 8 bits, which cannot be trained");
}

TEST_F(GptTrainCommand, CtrlCSavesACheckpoint) {
  // After three seconds: the machine decides at which step that is.
  const Reply stopped = train("stopped", "--steps 1000000", "timeout --preserve-status -s INT 3");
  EXPECT_EQ(stopped.code, 130) << stopped.output;
  expect_contains(stopped.output, "as requested");
  expect_contains(stopped.output, "interrupted; --resume goes on from there");
  EXPECT_TRUE(train::CheckpointFolder(*folder / "stopped").latest());
}

TEST_F(GptTrainCommand, ASignalThatComesTwiceIsOneRequest) {
  // As `timeout` sends it, to the program and then to its group.
  const Reply stopped =
      train("twice", "--steps 1000000",
            R"(sh -c '"$@" & sleep 3; kill -TERM $!; sleep 0.05; kill -TERM $!; wait $!' sh)");
  EXPECT_EQ(stopped.code, 130) << stopped.output;
  EXPECT_TRUE(train::CheckpointFolder(*folder / "twice").latest());
}

TEST_F(GptTrainCommand, TrainsInMixedPrecision) {
  const Reply reply = train("bf16", "--steps 30 --report-every 10 --precision bf16");
  ASSERT_EQ(reply.code, 0) << reply.output;
  expect_contains(reply.output, "autocast(bf16)");
  const auto lines = lines_of("bf16");
  EXPECT_LT(lines.back().at("loss").get<double>(), lines.front().at("loss").get<double>());
}

TEST_F(GptTrainCommand, TrainsInF16WithAScaledLoss) {
  const Reply reply = train("f16", "--steps 30 --report-every 10 --precision f16");
  ASSERT_EQ(reply.code, 0) << reply.output;
  expect_contains(reply.output, "autocast(f16)");
  const auto lines = lines_of("f16");
  EXPECT_LT(lines.back().at("loss").get<double>(), lines.front().at("loss").get<double>());
  // It begins at 65536, and is halved where a gradient leaves the range of f16.
  const auto scale = lines.back().at("loss_scale").get<double>();
  EXPECT_TRUE(scale >= 1 && scale <= 65536) << scale;
}

TEST_F(GptTrainCommand, ABatchThatIsTooLargeIsToldWhatFits) {
  cli::gpt::TrainOptions options;
  options.model = nn::GptConfig::gpt2();
  options.batch = 1'000'000;
  options.length = 1024;
  const AnyBackend cpu("cpu");
  const std::string fits = cli::gpt::too_large("gpt train", options, cpu, true, "the reason");
  for (const char* part : {"1000000 rows of 1024 tokens", "rows fit: give --batch", "(the reason)"})
    expect_contains(fits, part);
  EXPECT_NE(fits.find("--micro-batches"), std::string::npos);
  const std::string measured = cli::gpt::too_large("gpt bench", options, cpu, true, "the reason");
  expect_contains(measured, "[gpt bench]");
  EXPECT_EQ(measured.find("--micro-batches"), std::string::npos) << measured;
  options.model = options.model.with_layers(100'000);
  expect_contains(cli::gpt::too_large("gpt train", options, cpu, true, "the reason"), "give a smaller model");
}

TEST_F(GptTrainCommand, MemoryIsEstimatedAsItWasMeasured) {
  // Peaks of `ferrite gpt bench` on an H200: benches/results/2026-11-17-h200-sizes and -gpt-steps.
  const auto expect_near = [](const nn::GptConfig& model, std::int64_t batch, double measured) {
    cli::gpt::TrainOptions options;
    options.model = model;
    options.length = 1024;
    const cli::gpt::TrainMemory memory = cli::gpt::estimate_memory(options, true);
    EXPECT_NEAR(memory.fixed + memory.per_row * static_cast<double>(batch), measured, 0.15 * measured);
  };
  expect_near(nn::GptConfig::gpt2(), 64, 24.9e9);
  expect_near(nn::GptConfig::gpt2(), 4, 3.63e9);
  expect_near(nn::GptConfig::gpt2_medium(), 32, 34.6e9);
  expect_near(nn::GptConfig::gpt2_large(), 16, 37.1e9);
}

TEST_F(GptTrainCommand, AFullDiskLeavesTheLastCheckpoint) {
  // Files may have 200 KB, as if the disk were full then: a checkpoint is larger, metrics.html is not.
  const std::string small_disk = R"(sh -c 'trap "" XFSZ; ulimit -f 400; exec "$@"' sh)";
  const std::string course = "--quiet --checkpoint-every 2 --steps ";
  ASSERT_EQ(train("full", course + "4").code, 0);
  ASSERT_GT(std::filesystem::file_size(checkpoint("full", 4)), 400u * 512);
  const auto before = train::read_checkpoint(checkpoint("full", 4));
  const Reply full = train("full", course + "8 --resume", small_disk);
  expect_refused(full, "step-00000006.safetensors: cannot write it");
  expect_contains(full.output, "step-00000004.safetensors: --resume goes on from there");
  EXPECT_FALSE(std::filesystem::exists(checkpoint("full", 6)));
  for (const auto& entry : std::filesystem::directory_iterator(*folder / "full"))
    EXPECT_NE(entry.path().extension(), ".tmp") << entry.path();
  const auto after = train::read_checkpoint(checkpoint("full", 4));
  for (const auto& [name, tensor] : before.model)
    EXPECT_TRUE(std::ranges::equal(tensor.bytes(), after.model.at(name).bytes())) << name;
  EXPECT_EQ(train("full", course + "8 --resume").code, 0);
  EXPECT_TRUE(std::filesystem::exists(checkpoint("full", 8)));
}

TEST_F(GptTrainCommand, BadInputIsRefusedWithAReason) {
  ASSERT_EQ(train("used", "--steps 1 --quiet").code, 0);
  expect_refused(train("used", "--steps 1"), "has checkpoints of an earlier run: give --resume");
  expect_refused(train("used", "--steps 2 --resume", "", {{"--layers", "1"}}), "gpt is");
  expect_refused(train("used", "--steps 2 --resume --clip 3"), "update is \"");
  std::filesystem::rename(checkpoint("used", 1), *folder / "used" / "best.safetensors");
  expect_refused(train("used", "--steps 1"), "has checkpoints of an earlier run");
  expect_refused(train("x", "--steps 1", "", {{"--vocab", "200"}}), "vocabulary");
  expect_refused(train("x", "--steps 1 --length 33"), "--length 33: the model's context has 32");
  expect_refused(train("x", "--steps 1", "", {{"--heads", "3"}}), "3 heads");
  expect_refused(train("x", "--steps 1 --sample-every 1"), "--tokenizer");
  expect_refused(train("x", "--steps 1 --valid " + at("none_*.bin")), "none_");
  expect_refused(train("x", ""), "--steps");
  std::ofstream(*folder / "empty.bin");
  expect_refused(
      run_ferrite("gpt train --backend cpu --steps 1 --data " + at("empty.bin") + " --out " + at("x")),
      "empty.bin");
  expect_refused(train("book.txt", "--steps 1"), "book.txt");  // a file, no folder
}

}  // namespace
}  // namespace ferrite::testing
