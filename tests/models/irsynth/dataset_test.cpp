// Datasets: the same bytes however they come about, and every change to them noticed.
#include "ferrite/models/irsynth/dataset.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "ferrite/core/thread_pool.hpp"
#include "folder_files.hpp"
#include "models/irsynth/folder.hpp"
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

TEST(IrsynthDataset, ARunThatMadeNothingLeavesTheFolderFree) {
  const testing::ScratchFolder folder;
  Plan plan = small_plan(Format::jsonl);
  const auto broken = [](std::int64_t) -> Record { throw BackendError("no driver"); };
  EXPECT_THROW(write_records(folder / "d", plan, broken), BackendError);
  plan.seed = 1;
  EXPECT_EQ(write_dataset(folder / "d", plan).pairs, 60);
  std::filesystem::remove(folder / "d/irsynth.json");
  EXPECT_THROW(write_dataset(folder / "d", plan), ValueError) << "records of nobody knows which run";
}

/// Records of which every third is a failure, as a bug would make them.
Record with_failures(const Plan& plan, std::int64_t index) {
  Record r = make_record(plan.config, plan.seed, index);
  if (index % 3 == 1) r.failure = "failure " + std::to_string(index);
  return r;
}

TEST(IrsynthDataset, FailuresOfAnEarlierRunAreKept) {
  for (const Format format : {Format::json, Format::jsonl}) {
    const testing::ScratchFolder folder;
    const Plan plan = small_plan(format);
    const Maker make = [&](std::int64_t i) { return with_failures(plan, i); };
    const DatasetResult all = write_records(folder / "d", plan, make);
    EXPECT_EQ(all.pairs, 60);
    EXPECT_GT(all.failures, 25);
    const auto whole = files_of(folder / "d");
    const bool single = format == Format::json;
    std::filesystem::remove(folder / (single ? "d/cuda_synth_0030.json" : "d/shard-00004.jsonl"));
    std::filesystem::remove(folder / "d/manifest.json");
    const DatasetResult again = write_records(folder / "d", plan, make);
    EXPECT_EQ(again.kept, single ? 30 : 28);
    EXPECT_EQ(again.failures, all.failures);
    EXPECT_EQ(files_of(folder / "d"), whole);
  }
}

TEST(IrsynthDataset, FailuresAreWrittenOnlyWhereThereIsANewOne) {
  const testing::ScratchFolder folder;
  const Plan plan = small_plan(Format::json);
  std::set<std::filesystem::file_time_type> written;
  write_records(
      folder / "d", plan,
      [&](std::int64_t i) {
        Record r = make_record(plan.config, plan.seed, i);
        if (i == 0) r.failure = "the first";
        return r;
      },
      [&](const Progress&) {
        std::error_code none;
        const auto time = std::filesystem::last_write_time(folder / "d/failures.jsonl", none);
        if (!none) written.insert(time);
      });
  EXPECT_EQ(written.size(), 1u);
}

TEST(IrsynthDataset, FilesThatWereCutAreWrittenAgain) {
  for (const Format format : {Format::json, Format::jsonl}) {
    const testing::ScratchFolder folder;
    const Plan plan = small_plan(format);
    write_dataset(folder / "d", plan);
    const auto whole = files_of(folder / "d");
    const std::string name = format == Format::json ? "cuda_synth_0003.json" : "shard-00003.jsonl";
    const auto path = folder / "d" / name;
    const std::size_t size = whole.at(name).size();
    const std::size_t line = whole.at(name).rfind('\n', size - 2) + 1;  // the last line begins here
    for (const std::size_t left : {std::size_t{0}, line, size / 2, size - 2, size - 1}) {
      std::filesystem::resize_file(path, left);
      const Validation found = validate_dataset(folder / "d", false);
      EXPECT_FALSE(found.problems.empty());
      EXPECT_EQ(write_dataset(folder / "d", plan).kept, format == Format::json ? 3 : 21) << left;
      EXPECT_EQ(files_of(folder / "d"), whole) << left;
    }
  }
}

TEST(IrsynthDataset, StopsWhereNoCandidateIsTaken) {
  const testing::ScratchFolder folder;
  const Plan plan = small_plan(Format::jsonl);
  const auto problem = [&](const std::string& name, const Maker& make) -> std::string {
    try {
      write_records(folder / name, plan, make);
    } catch (const ValueError& e) {
      return e.what();
    }
    return "";
  };
  const Record one = make_record(plan.config, plan.seed, 0);
  const std::string same = problem("same", [&](std::int64_t i) {
    Record r = one;
    r.index = i;
    return r;
  });
  EXPECT_NE(same.find("8 pairs of 60, then none in 10000 candidates: 0 could not"), std::string::npos)
      << same;
  EXPECT_NE(same.find("--per-structure"), std::string::npos);
  const std::string failing = problem("failing", [&](std::int64_t i) {
    Record r = with_failures(plan, i);
    if (i > 20) r.failure = "all of them";
    return r;
  });
  EXPECT_NE(failing.find("200 could not be verified"), std::string::npos) << failing;
  EXPECT_NE(read_file(folder / "failing/failures.jsonl").find("all of them"), std::string::npos);
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

std::string statistics_problem(const std::filesystem::path& folder) {
  try {
    dataset_statistics(folder);
  } catch (const ParseError& e) {
    return e.what();
  }
  return "";
}

TEST(IrsynthDataset, WhatIsNoRecordIsNamed) {
  const testing::ScratchFolder folder;
  write_dataset(folder / "d", small_plan(Format::jsonl));
  const auto path = folder / "d/shard-00002.jsonl";
  std::string text = read_file(path);
  text.replace(0, text.find('\n'), "{\"metadata\": {}}");
  const std::size_t second = text.find('\n') + 1;
  text.replace(second, text.find('\n', second) - second, "junk");
  std::ofstream(path) << text;
  std::ofstream(folder / "d/shard-00005.jsonl") << "";
  std::ofstream(folder / "d/manifest.json") << "{";
  EXPECT_NE(statistics_problem(folder / "d").find("shard-00002.jsonl:1: key '"), std::string::npos);
  const Validation found = validate_dataset(folder / "d", false);
  EXPECT_EQ(found.records, 60 - 2 - 7);
  std::string all;
  for (const std::string& p : found.problems) all += p + "\n";
  for (const char* const part :
       {"manifest.json:1: parse error", "shard-00002.jsonl:1: key '", "shard-00002.jsonl:2: parse error",
        "shard-00002.jsonl: 5 records: 7 belong there", "shard-00005.jsonl: 0 records: 7 belong there"})
    EXPECT_NE(all.find(part), std::string::npos) << part << " is not in\n" << all;
  std::ofstream(folder / "d/irsynth.json") << "junk";
  EXPECT_NE(statistics_problem(folder / "d").find("irsynth.json: parse error"), std::string::npos);
}

}  // namespace
}  // namespace ferrite::irsynth
