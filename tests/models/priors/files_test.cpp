// Streams of batches, shards on disk, pictures.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>

#include "ferrite/backend/cpu.hpp"
#include "ferrite/backend/reference.hpp"
#include "ferrite/io/npz.hpp"
#include "ferrite/io/safetensors.hpp"
#include "ferrite/models/priors/describe.hpp"
#include "ferrite/models/priors/shards.hpp"
#include "ferrite/models/priors/stream.hpp"
#include "scratch_folder.hpp"

namespace ferrite::priors {
namespace {

Config small() {
  Config config;
  config.family = Family::tree_scm;
  config.rows = {32, 32};
  config.features = {2, 4};
  config.post.classes = {2, 3};
  return config;
}

TEST(BatchStream, HandsOutTheBatchesOfGenerateInOrder) {
  Cpu cpu;
  BatchStream<Cpu> stream(cpu, small(), 3, 40, 8);
  for (int k = 0; k < 5; ++k) {
    EXPECT_EQ(stream.position(), 40 + 8 * k);
    const auto batch = stream.next();
    EXPECT_EQ(batch.x.to_vector<float>(), generate(cpu, small(), 3, 40 + 8 * k, 8).x.to_vector<float>());
  }
}

/// Counts the batches that are made.
struct Counting : Cpu {
  friend void run(Counting& b, const op::PriorDatasets& op, Ins in, Outs out) {
    run(static_cast<Cpu&>(b), op, in, out);
    ++b.made;
  }
  std::atomic<int> made = 0;
};

TEST(BatchStream, WorksAheadAsFarAsTold) {
  Counting backend;
  BatchStream<Counting> stream(backend, small(), 3, 0, 4, 3);
  const auto wait_for = [&](int count) {
    for (int i = 0; i < 2000 && backend.made < count; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    return backend.made.load();
  };
  EXPECT_EQ(wait_for(3), 3);
  stream.next();
  EXPECT_EQ(wait_for(4), 4);
}

TEST(BatchStream, RefusesBadConfigsAtOnceAndReportsTheEndOfTheNumbers) {
  Cpu cpu;
  Config bad = small();
  bad.rows = {0, 0};
  EXPECT_THROW(BatchStream<Cpu>(cpu, bad, 0, 0, 4), ValueError);
  EXPECT_THROW(BatchStream<Cpu>(cpu, small(), 0, 0, 4, 0), ValueError);
  BatchStream<Cpu> stream(cpu, small(), 0, (std::int64_t{1} << 48) - 4, 4);
  EXPECT_EQ(stream.next().x.size(0), 4);
  EXPECT_THROW(stream.next(), ValueError);
  EXPECT_THROW(stream.next(), ValueError);
}

TEST(Shards, HoldWhatGenerateMakesInBothFormats) {
  const testing::ScratchFolder folder;
  Cpu cpu;
  for (const ShardFormat format : {ShardFormat::safetensors, ShardFormat::npz}) {
    const ShardPlan plan{small(), 5, 10, 25, 10, format};
    const auto path = folder / (format == ShardFormat::npz ? "npz" : "safetensors");
    std::int64_t finished = 0;
    write_shards(cpu, path, plan, [&](const NamedTensors* tensors, std::int64_t done) {
      EXPECT_NE(tensors, nullptr);
      finished = done;
    });
    EXPECT_EQ(finished, 25);
    const ShardFolder shards(path, plan);
    ASSERT_EQ(shards.shards(), 3);
    EXPECT_EQ(shards.size(2), 5);
    for (std::int64_t s = 0; s < 3; ++s) {
      const NamedTensors read =
          format == ShardFormat::npz ? read_npz(shards.path(s)) : read_safetensors(shards.path(s)).tensors;
      const NamedTensors made = to_host(generate(cpu, small(), 5, shards.first(s), shards.size(s)));
      ASSERT_EQ(read.size(), made.size());
      for (const auto& [name, tensor] : made) {
        const HostTensor& other = read.find(name)->second;
        EXPECT_EQ(other.shape(), tensor.shape());
        EXPECT_EQ(other.dtype(), tensor.dtype());
        EXPECT_TRUE(std::equal(tensor.bytes().begin(), tensor.bytes().end(), other.bytes().begin())) << name;
      }
    }
  }
}

TEST(Shards, ARunThatWasCutShortGoesOnAndAnotherRunIsRefused) {
  const testing::ScratchFolder folder;
  Cpu cpu;
  const ShardPlan plan{small(), 5, 0, 20, 5, ShardFormat::safetensors};
  const auto path = folder / "sets";
  EXPECT_THROW(write_shards(cpu, path, plan,
                            [](const NamedTensors*, std::int64_t done) {
                              if (done == 10) throw std::runtime_error("power cut");
                            }),
               std::runtime_error);
  const ShardFolder shards(path, plan);
  EXPECT_TRUE(shards.is_done(1));
  EXPECT_FALSE(shards.is_done(2));
  int made = 0;
  write_shards(cpu, path, plan,
               [&](const NamedTensors* tensors, std::int64_t) { made += tensors != nullptr; });
  EXPECT_EQ(made, 2);
  ShardPlan other = plan;
  other.seed = 6;
  EXPECT_THROW(ShardFolder(path, other), ValueError);
}

TEST(Shards, ThatWereCutAreMadeAgain) {
  Cpu cpu;
  for (const ShardFormat format : {ShardFormat::safetensors, ShardFormat::npz}) {
    const testing::ScratchFolder folder;
    const ShardPlan plan{small(), 5, 0, 20, 8, format};
    const auto write = [&] {
      std::vector<std::int64_t> made;
      write_shards(cpu, folder / "sets", plan, [&](const NamedTensors* tensors, std::int64_t done) {
        if (tensors) made.push_back(done);
      });
      return made;
    };
    write();
    const ShardFolder shards(folder / "sets", plan);
    const auto whole = std::filesystem::file_size(shards.path(1));
    for (const std::uintmax_t left : {std::uintmax_t{0}, std::uintmax_t{100}, whole / 2, whole - 1}) {
      std::filesystem::resize_file(shards.path(1), left);
      EXPECT_FALSE(shards.is_done(1)) << left;
      EXPECT_EQ(write(), std::vector<std::int64_t>{16}) << left;
      EXPECT_EQ(std::filesystem::file_size(shards.path(1)), whole);
    }
    std::filesystem::copy_file(shards.path(2), shards.path(1),
                               std::filesystem::copy_options::overwrite_existing);
    EXPECT_FALSE(shards.is_done(1)) << "the last one has fewer datasets";
    EXPECT_TRUE(shards.is_done(2));
  }
}

TEST(Shards, OfAnotherGeneratorAreNotContinued) {
  const testing::ScratchFolder folder;
  const ShardPlan plan{small(), 5, 0, 20, 5, ShardFormat::safetensors};
  const auto path = folder / "sets";
  EXPECT_NO_THROW(ShardFolder(path, plan));
  std::ifstream in(path / "prior.json");
  std::string text{std::istreambuf_iterator<char>(in), {}};
  const std::string version = "\"generator\": " + std::to_string(generator_version);
  ASSERT_NE(text.find(version), std::string::npos);
  text.replace(text.find(version), version.size(), "\"generator\": 1");
  std::ofstream(path / "prior.json") << text;
  EXPECT_THROW(ShardFolder(path, plan), ValueError);
}

TEST(Shards, OfAConfigWithoutLaterKeysAreContinued) {
  const testing::ScratchFolder folder;
  const ShardPlan plan{small(), 5, 0, 20, 5, ShardFormat::safetensors};
  const auto path = folder / "sets";
  EXPECT_NO_THROW(ShardFolder(path, plan));
  std::ifstream in(path / "prior.json");
  auto prior = nlohmann::ordered_json::parse(in);
  ASSERT_EQ(prior["config"]["post"].erase("skewed_share"), 1u);
  std::ofstream(path / "prior.json") << prior.dump(2) << "\n";
  EXPECT_NO_THROW(ShardFolder(path, plan));
  prior["config"]["post"]["skewed_share"] = 0.5;
  std::ofstream(path / "prior.json") << prior.dump(2) << "\n";
  EXPECT_THROW(ShardFolder(path, plan), ValueError);
  std::ofstream(path / "prior.json") << "junk";
  EXPECT_THROW(ShardFolder(path, plan), ValueError);
}

TEST(Shards, WhatCannotBeLookedUpIsAnIoError) {
  const testing::ScratchFolder folder;
  const ShardPlan plan{small(), 5, 0, 20, 5, ShardFormat::safetensors};
  const auto path = folder / "sets";
  const ShardFolder shards(path, plan);
  std::filesystem::remove_all(path);
  std::filesystem::create_symlink("sets", path);  // a link to itself
  EXPECT_THROW(shards.is_done(0), IoError);
}

TEST(Shards, AFullDiskLeavesNothingBehind) {
  const testing::ScratchFolder folder;
  Cpu cpu;
  ShardPlan plan{small(), 5, 0, 400, 400, ShardFormat::safetensors};
  const auto path = folder / "sets";
  const ShardFolder shards(path, plan);
  const NamedTensors tensors = to_host(generate(cpu, small(), 5, 0, 400));
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);  // so that write fails instead, as on a full disk
  const rlimit little{4096, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &little);
  EXPECT_THROW(shards.write(0, tensors), IoError);
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_FALSE(shards.is_done(0));
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(path)) ++files;
  EXPECT_EQ(files, 1u);  // prior.json
  shards.write(0, tensors);
  EXPECT_TRUE(shards.is_done(0));
}

TEST(Picture, IsOnePageWithGraphScatterAndClasses) {
  Config config = small();
  const std::string page = picture_html(config, 1, 0);
  for (const char* part :
       {"<!DOCTYPE html>", "Causal graph", "First features", "Classes", ">y</text>", ">x0</text>", "</html>"})
    EXPECT_NE(page.find(part), std::string::npos) << part;
  EXPECT_EQ(page.find("http"), std::string::npos);
  EXPECT_EQ(page.find("<script"), std::string::npos);
  config.task = Task::regression;
  EXPECT_EQ(picture_html(config, 1, 0).find("<h2>Classes"), std::string::npos);
}

}  // namespace
}  // namespace ferrite::priors
