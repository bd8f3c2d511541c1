// Datasets: the same bytes however they come about, and every change to them noticed.
#include "ferrite/models/irsynth/dataset.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "ferrite/core/thread_pool.hpp"
#include "folder_files.hpp"
#include "scratch_folder.hpp"

namespace ferrite::irsynth {
namespace {

Plan small_plan(Format format) {
  Plan plan;
  plan.pairs = 60;
  plan.format = format;
  plan.shard_size = 7;
  return plan;
}

TEST(IrsynthDataset, DoesNotDependOnThreads) {
  const testing::ScratchFolder folder;
  const int before = num_threads();
  set_num_threads(1);
  write_dataset(folder / "one", small_plan(Format::jsonl));
  set_num_threads(3);
  write_dataset(folder / "three", small_plan(Format::jsonl));
  set_num_threads(before);
  EXPECT_EQ(files_of(folder / "one"), files_of(folder / "three"));
}

TEST(IrsynthDataset, RecordsDoNotDependOnHowManyThereAre) {
  const testing::ScratchFolder folder;
  Plan plan = small_plan(Format::json);
  write_dataset(folder / "all", plan);
  plan.pairs = 13;
  write_dataset(folder / "few", plan);
  EXPECT_EQ(read_file(folder / "all/cuda_synth_0012.json"), read_file(folder / "few/cuda_synth_0012.json"));
  EXPECT_FALSE(std::filesystem::exists(folder / "few/cuda_synth_0013.json"));
}

TEST(IrsynthDataset, AnotherPlanIsRefused) {
  const testing::ScratchFolder folder;
  Plan plan = small_plan(Format::jsonl);
  write_dataset(folder / "d", plan);
  plan.seed = 1;
  EXPECT_THROW(write_dataset(folder / "d", plan), ValueError);
}

TEST(IrsynthDataset, StructuresAreCappedAndSplitsShareNone) {
  const testing::ScratchFolder folder;
  Plan plan = small_plan(Format::jsonl);
  plan.config.categories = {"arithmetic"};
  plan.config.lowest_level = plan.config.highest_level = 0;
  plan.config.most_per_structure = 1;
  plan.pairs = 400;
  const DatasetResult result = write_dataset(folder / "d", plan);
  EXPECT_EQ(result.structures, 400);
  EXPECT_GT(result.candidates, 400);
  const auto manifest = nlohmann::json::parse(read_file(folder / "d/manifest.json"));
  EXPECT_EQ(manifest.at("counts").at("structures"), 400);
  EXPECT_EQ(manifest.at("counts").at("structures_in_two_splits"), 0);
  EXPECT_EQ(manifest.at("counts").at("splits").size(), 3u);
  const auto statistics = nlohmann::json::parse(dataset_statistics(folder / "d"));
  EXPECT_EQ(statistics.at("records"), 400);
  EXPECT_EQ(statistics.at("distinct_share"), 1.0);
  EXPECT_GT(statistics.at("operations").at("add").get<int>(), 50);
}

TEST(IrsynthDataset, ValidationFindsWhatWasChanged) {
  const testing::ScratchFolder folder;
  Plan plan = small_plan(Format::json);
  plan.pairs = 12;
  plan.config.backward = true;
  write_dataset(folder / "d", plan);
  EXPECT_TRUE(validate_dataset(folder / "d", false).problems.empty());
  const auto path = folder / "d/cuda_synth_0003.json";
  const std::string text = read_file(path);
  const auto changed = [&](auto change) {
    auto json = nlohmann::ordered_json::parse(text);
    change(json);
    std::ofstream(path) << json.dump(2) << "\n";
    std::string all;
    for (const std::string& p : validate_dataset(folder / "d", false).problems) all += p + "\n";
    return all;
  };
  EXPECT_NE(
      changed([](auto& j) { j["cuda_forward"] = "void"; }).find("cuda_synth_0003.json:1: the text is not"),
      std::string::npos);
  EXPECT_NE(changed([](auto& j) { j["metadata"]["hash"] = std::string(32, '0'); }).find("the hash"),
            std::string::npos);
  EXPECT_NE(changed([](auto& j) { j["metadata"]["outputs"][0]["sha256"] = "0"; }).find("an output"),
            std::string::npos);
  EXPECT_NE(changed([](auto& j) { j["python_source"] = "@wp.kernel\ndef f(:"; }).find("[kernel]"),
            std::string::npos);
  EXPECT_NE(changed([](auto& j) { j["python_source"] = "pass"; }).find("has one kernel"), std::string::npos);
  EXPECT_NE(changed([](auto& j) { j["metadata"]["seed"] = 0; }).find("not what its digest says"),
            std::string::npos);
}

}  // namespace
}  // namespace ferrite::irsynth
