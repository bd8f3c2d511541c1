// Checkpoint files: what they hold, what damage is named, and that a kill in the middle of a save costs
// nothing but the save.
#include "ferrite/train/checkpoint.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "ferrite/io/safetensors.hpp"
#include "train/train_test.hpp"

namespace ferrite::train {
namespace {

using testing::expect_error;
using testing::same_bits;
using testing::ScratchFolder;
using testing::slurp;
using testing::spill;

Checkpoint example() {
  Checkpoint c;
  c.model["w"] = HostTensor::from(std::span<const float>({1.0f, 2.0f}), {2});
  c.optimizer["w.momentum"] = HostTensor::from(std::span<const double>({3.0}), {1});
  c.rngs["model.dropout"] = {~std::uint64_t{0}, 17};
  c.step = 12;
  c.position = {3, 4};
  c.best = 0.25;
  c.stale = 2;
  c.settings = {{"schedule", "constant 1"}};
  return c;
}

TEST(Checkpoint, ReadsBackWhatWasWritten) {
  const ScratchFolder folder;
  write_checkpoint(folder / "a.safetensors", example());
  const Checkpoint c = read_checkpoint(folder / "a.safetensors");
  EXPECT_TRUE(same_bits(c.model, example().model));
  EXPECT_TRUE(same_bits(c.optimizer, example().optimizer));
  EXPECT_EQ(c.rngs, example().rngs);
  EXPECT_EQ(c.step, 12);
  EXPECT_EQ(c.position, (data::LoaderPosition{3, 4}));
  EXPECT_EQ(c.best, 0.25);
  EXPECT_EQ(c.stale, 2);
  EXPECT_EQ(c.settings, example().settings);
  EXPECT_TRUE(same_bits(read_weights(folder / "a.safetensors"), example().model));
}

TEST(Checkpoint, DamageIsNamed) {
  const ScratchFolder folder;
  const auto path = folder / "a.safetensors";
  expect_error<IoError>([&] { read_checkpoint(path); }, {"a.safetensors"});
  write_safetensors(path, {{}, example().model});
  expect_error<ParseError>([&] { read_checkpoint(path); }, {"a.safetensors", "ferrite checkpoint 1"});
  write_checkpoint(path, example());
  SafeTensors file = read_safetensors(path);
  file.metadata.erase("checksum");  // as in files from before there was one
  const auto expect_damage = [&](const std::string& name, std::optional<HostTensor> tensor,
                                 std::string_view message) {
    SafeTensors damaged = file;
    if (tensor)
      damaged.tensors[name] = *tensor;
    else
      damaged.tensors.erase(name);
    write_safetensors(folder / "b.safetensors", damaged);
    expect_error<ParseError>([&] { read_checkpoint(folder / "b.safetensors"); }, {"b.safetensors", message});
  };
  const auto word = [](std::int64_t v) {
    return HostTensor::from(std::span<const std::int64_t>(&v, 1), {1});
  };
  expect_damage("trainer.step", std::nullopt, "no tensor 'trainer.step'");
  expect_damage("trainer.step", word(-1), "step -1");
  expect_damage("trainer.position", word(1), "'trainer.position' is i64[1]: i64[2] is needed");
  expect_damage("rng.model.dropout", word(1), "'model.dropout' is i64[1]");
  expect_damage("trainer.best", word(1), "'trainer.best' is i64[1]: f64[1] is needed");
  spill(path, slurp(path).substr(0, 100));
  expect_error<ParseError>([&] { read_checkpoint(path); }, {"a.safetensors"});
}

TEST(Checkpoint, AChangedByteIsFound) {
  const ScratchFolder folder;
  const auto path = folder / "a.safetensors";
  write_checkpoint(path, example());
  std::string bytes = slurp(path);
  const std::string two("\x00\x00\x00\x40", 4);  // the weight 2.0f
  const std::size_t place = bytes.rfind(two);
  ASSERT_NE(place, std::string::npos);
  bytes[place + 2] = 1;
  spill(path, bytes);
  expect_error<ParseError>([&] { read_checkpoint(path); }, {"a.safetensors: damaged", "checksum"});
  expect_error<ParseError>([&] { read_weights(path); }, {"a.safetensors: damaged"});
}

TEST(Checkpoint, WeightsAloneAreAPlainSafetensorsFile) {
  const ScratchFolder folder;
  write_weights(folder / "w.safetensors", example().model);
  EXPECT_TRUE(same_bits(read_weights(folder / "w.safetensors"), example().model));
  EXPECT_TRUE(same_bits(read_safetensors(folder / "w.safetensors").tensors, example().model));
}

TEST(CheckpointFolder, FindsTheLatestAndIgnoresStrangers) {
  const ScratchFolder scratch;
  const CheckpointFolder folder(scratch / "deep" / "er", 2);
  EXPECT_EQ(folder.latest(), std::nullopt);
  spill(scratch / "deep/er/step-x.safetensors", "");
  spill(scratch / "deep/er/step-99.safetensors.tmp", "");
  Checkpoint c = example();
  for (const std::int64_t step : {5, 100, 123'456'789}) {
    c.step = step;
    folder.save(c);
  }
  EXPECT_EQ(folder.latest()->filename(), "step-123456789.safetensors");
  EXPECT_FALSE(std::filesystem::exists(scratch / "deep/er/step-00000005.safetensors"));
  EXPECT_TRUE(std::filesystem::exists(scratch / "deep/er/step-x.safetensors"));
  expect_error<ValueError>([&] { CheckpointFolder(scratch / "x", 0); }, {"keep 0"});
  spill(scratch / "file", "");
  expect_error<IoError>([&] { CheckpointFolder(scratch / "file" / "x"); }, {"cannot make the folder"});
}

/// A large tensor that no gradient reaches: it makes saves take long and steps quick.
template <class B>
class Heavy final : public nn::Layer<B> {
 public:
  nn::Linear<B> linear;
  Tensor<B> ballast;

  Heavy(B& backend, Rng& rng)
      : linear(backend, {4, 2}, rng), ballast(parameter(zeros(backend, {1 << 20}), "ballast")) {}
  void visit(nn::Visitor<B>& v) override {
    v.child("linear", linear);
    v.parameter("ballast", ballast);
  }
  Tensor<B> forward(const Tensor<B>& x) override { return linear.forward(x); }
};

struct HeavyRun {
  using B = testing::Exact;
  B backend;
  Rng rng{1};
  Heavy<B> net{backend, rng};
  optim::Sgd<B> optimizer{net.parameters(), optim::SgdConfig{}.with_lr(0.1)};
  data::DataLoader loader{testing::points(64, 5).with_row_shape({4})};
  Trainer<B> trainer;
  HeavyRun(const std::filesystem::path& folder, std::int64_t steps, std::int64_t every)
      : trainer(net, optimizer, loader, supervised(net, testing::cross_entropy),
                TrainerConfig{}.with_steps(steps).with_checkpoints(folder, every, 2)) {}
};

std::vector<std::filesystem::path> temporaries(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> found;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored))
    if (entry.path().extension() == ".tmp") found.push_back(entry.path());
  return found;
}

TEST(CheckpointFolder, SurvivesBeingKilledInTheMiddleOfASave) {
  const ScratchFolder scratch;
  const auto folder = scratch / "run";
  const CheckpointFolder files(folder);
  int killed_in_a_save = 0;
  for (int attempt = 0; attempt < 50 && killed_in_a_save < 3; ++attempt) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      try {
        HeavyRun run(folder, 1'000'000, 1);
        run.trainer.resume_latest();
        run.trainer.fit();
      } catch (...) {
      }
      ::_exit(1);
    }
    // Once a first save is complete, kill the child as soon as the temporary of another one is there.
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (std::chrono::steady_clock::now() < deadline && !(files.latest() && !temporaries(folder).empty()))
      std::this_thread::yield();
    ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the child ended by itself";
    ASSERT_TRUE(files.latest());
    EXPECT_NO_THROW(read_checkpoint(*files.latest()));
    if (!temporaries(folder).empty()) ++killed_in_a_save;
    for (const auto& leftover : temporaries(folder)) std::filesystem::remove(leftover);
  }
  EXPECT_EQ(killed_in_a_save, 3);
  // The survivor goes on as if nothing had happened.
  HeavyRun resumed(folder, 1'000'000, 0);
  ASSERT_TRUE(resumed.trainer.resume_latest());
  const std::int64_t reached = resumed.trainer.step();
  resumed.trainer.advance(3);
  HeavyRun whole(scratch / "other", 1'000'000, 0);
  whole.trainer.advance(reached + 3);
  EXPECT_TRUE(same_bits(resumed.net.state(), whole.net.state()));
}

}  // namespace
}  // namespace ferrite::train
