// Datasets: the same bytes however they come about, and every change to them noticed.
#include "ferrite/models/irsynth/dataset.hpp"

#include <gtest/gtest.h>

#include <functional>
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

TEST(IrsynthDataset, FilesThatWereChangedAreWrittenAgain) {
  for (const Format format : {Format::json, Format::jsonl}) {
    const testing::ScratchFolder folder;
    const Plan plan = small_plan(format);
    write_dataset(folder / "d", plan);
    const auto whole = files_of(folder / "d");
    const std::string name = format == Format::json ? "cuda_synth_0003.json" : "shard-00003.jsonl";
    std::string text = whole.at(name);
    const std::size_t place = text.find("def ");
    ASSERT_NE(place, std::string::npos);
    text.replace(place, 4, "Def ");  // still a record
    std::ofstream(folder / "d" / name, std::ios::binary) << text;
    EXPECT_EQ(write_dataset(folder / "d", plan).kept, format == Format::json ? 3 : 21);
    EXPECT_EQ(files_of(folder / "d"), whole);
    EXPECT_TRUE(validate_dataset(folder / "d", false).problems.empty());
    std::ofstream(folder / "d/manifest.json") << "{";
    EXPECT_EQ(write_dataset(folder / "d", plan).kept, 60) << "there is nothing to compare with";
    EXPECT_EQ(files_of(folder / "d"), whole);
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
  EXPECT_NE(same.find("8 pairs of 60, then none in 10000 candidates: nearly all"), std::string::npos) << same;
  EXPECT_NE(same.find("--per-structure"), std::string::npos);
}

TEST(IrsynthDataset, StopsWhereMoreThanOneCandidateInTwentyFails) {
  const testing::ScratchFolder folder;
  Plan plan = small_plan(Format::jsonl);
  plan.config.verify = Verify::none;
  plan.config.most_per_structure = 10'000;
  plan.pairs = 3000;
  // One in `each` fails; at what candidate the run stops is the same with every number of threads.
  const Record good = make_record(plan.config, plan.seed, 0);
  const auto problem = [&](const std::string& name, std::int64_t each, int threads) -> std::string {
    const int before = num_threads();
    set_num_threads(threads);
    std::string message;
    try {
      write_records(folder / name, plan, [&](std::int64_t i) {
        Record r = good;
        r.index = i;
        if (i % each == each - 1) r.failure = "a bug";
        return r;
      });
    } catch (const BackendError& e) {
      message = e.what();
    }
    set_num_threads(before);
    return message;
  };
  const std::string broken = problem("broken", 10, 1);
  EXPECT_NE(broken.find("100 of 1000 candidates could not be verified, more than one in 20"),
            std::string::npos)
      << broken;
  EXPECT_NE(broken.find("because: a bug"), std::string::npos) << broken;
  EXPECT_EQ(problem("broken3", 10, 3), broken);
  EXPECT_EQ(read_file(folder / "broken/failures.jsonl"), read_file(folder / "broken3/failures.jsonl"));
  EXPECT_EQ(problem("broken", 10, 2), broken) << "resumed";
  EXPECT_EQ(problem("rare", 21, 2), "");
  const auto manifest = nlohmann::json::parse(read_file(folder / "rare/manifest.json"));
  EXPECT_EQ(manifest.at("counts").at("records"), 3000);
  EXPECT_EQ(manifest.at("failures"), 149);  // of the 3149 candidates that 3000 pairs took
  EXPECT_EQ(nlohmann::json::parse(read_file(folder / "rare/progress.json")).at("failures"), 149);
}

TEST(IrsynthDataset, NumbersBeyondWhatReadersKeepAreText) {
  const testing::ScratchFolder folder;
  Plan plan = small_plan(Format::jsonl);
  plan.pairs = 3;
  plan.seed = 0xfedcba9876543210u;
  write_dataset(folder / "d", plan);
  const std::string seed = std::to_string(plan.seed);
  for (const char* name : {"d/irsynth.json", "d/manifest.json"})
    EXPECT_EQ(nlohmann::json::parse(read_file(folder / name)).at("seed"), seed) << name;
  const auto record =
      nlohmann::json::parse(read_file(folder / "d/shard-00000.jsonl")
                                .substr(0, read_file(folder / "d/shard-00000.jsonl").find('\n')));
  EXPECT_EQ(record.at("metadata").at("seed"), seed);
  const std::function<void(const nlohmann::json&)> look = [&](const nlohmann::json& json) {
    if (json.is_number_integer()) {
      EXPECT_LT(json.get<double>(), 0x1p53);
    }
    if (json.is_structured())
      for (const auto& item : json) look(item);
  };
  look(record);
  const auto& arguments = record.at("metadata").at("arguments");
  for (std::size_t i = 0; i < arguments.size(); ++i)
    EXPECT_EQ(arguments[i].at("stream"), std::to_string((1ull << 63) + i));
  EXPECT_TRUE(validate_dataset(folder / "d", false).problems.empty());
  std::string text = read_file(folder / "d/irsynth.json");
  text.replace(text.find(seed), seed.size(), "12x");
  std::ofstream(folder / "d/irsynth.json") << text;
  EXPECT_THROW(validate_dataset(folder / "d", false), ValueError);
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
  EXPECT_NE(
      changed([](auto& j) {
        j["metadata"]["outputs"][0]["sha256"] = "0";
      }).find("cuda_synth_0003.json:1: metadata.outputs[0].sha256 is \"0\": the program and its number give"),
      std::string::npos);
  EXPECT_NE(changed([](auto& j) {
              j["metadata"]["arguments"][0]["stream"] = "7";
            }).find("metadata.arguments[0].stream is \"7\": the program and its number give \"9223"),
            std::string::npos);
  EXPECT_NE(changed([](auto& j) { j["metadata"]["colour"] = 1; }).find("metadata.colour is not a field"),
            std::string::npos);
  EXPECT_NE(changed([](auto& j) { j["python_source"] = "@wp.kernel\ndef f(:"; }).find("[kernel]"),
            std::string::npos);
  EXPECT_NE(changed([](auto& j) { j["python_source"] = "pass"; }).find("has one kernel"), std::string::npos);
  EXPECT_NE(changed([](auto& j) { j["metadata"]["seed"] = 0; }).find("not what its digest says"),
            std::string::npos);
}

/// Every field that can be taken away, by its path: "/metadata/arguments/0/stream".
void paths_of(const nlohmann::ordered_json& json, const nlohmann::ordered_json::json_pointer& at,
              std::vector<nlohmann::ordered_json::json_pointer>& paths) {
  for (const auto& [key, value] : json.items()) {
    const auto path = json.is_array() ? at / static_cast<std::size_t>(std::stoul(key)) : at / key;
    if (json.is_object()) paths.push_back(path);
    if (value.is_structured()) paths_of(value, path, paths);
  }
}

TEST(IrsynthDataset, ValidationNamesEveryFieldThatWasRemoved) {
  const testing::ScratchFolder folder;
  Plan plan = small_plan(Format::json);
  plan.pairs = 1;
  plan.config.values = true;
  plan.config.categories = {"arithmetic"};
  plan.config.lowest_level = highest_level;
  write_dataset(folder / "d", plan);
  const auto path = folder / "d/cuda_synth_0000.json";
  const auto whole = nlohmann::ordered_json::parse(read_file(path));
  std::vector<nlohmann::ordered_json::json_pointer> paths;
  paths_of(whole, nlohmann::ordered_json::json_pointer(""), paths);
  ASSERT_GT(paths.size(), 40u);
  for (const auto& p : paths) {
    auto json = whole;
    json.at(p.parent_pointer()).erase(p.back());
    std::ofstream(path) << json.dump(2) << "\n";
    std::string all;
    for (const std::string& problem : validate_dataset(folder / "d", false).problems) all += problem + "\n";
    EXPECT_NE(all.find("cuda_synth_0000.json:1: "), std::string::npos) << p << "\n" << all;
    EXPECT_NE(all.find(p.back() + " is missing"), std::string::npos) << p << "\n" << all;
  }
}

TEST(IrsynthDataset, ValidationNamesARecordThatIsThereTwice) {
  const testing::ScratchFolder folder;
  write_dataset(folder / "d", small_plan(Format::jsonl));
  const std::string first = read_file(folder / "d/shard-00000.jsonl");
  std::string third = read_file(folder / "d/shard-00002.jsonl");
  third.replace(0, third.find('\n'), first.substr(0, first.find('\n')));  // line 1 is that of the first shard
  std::ofstream(folder / "d/shard-00002.jsonl") << third;
  std::string all;
  for (const std::string& p : validate_dataset(folder / "d", false).problems) all += p + "\n";
  EXPECT_NE(all.find("shard-00002.jsonl:1: record 0 is at shard-00000.jsonl:1 already"), std::string::npos)
      << all;
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
  EXPECT_NE(statistics_problem(folder / "d").find("shard-00002.jsonl:1: key '"), std::string::npos);
  std::ofstream(folder / "d/manifest.json") << "{";
  EXPECT_NE(statistics_problem(folder / "d").find("manifest.json"), std::string::npos);
  const Validation found = validate_dataset(folder / "d", false);
  EXPECT_EQ(found.records, 60 - 2 - 7);
  std::string all;
  for (const std::string& p : found.problems) all += p + "\n";
  for (const char* const part :
       {"manifest.json:1: parse error", "shard-00002.jsonl:1: metadata.hash is missing",
        "shard-00002.jsonl:2: parse error", "shard-00002.jsonl: 5 records: 7 belong there",
        "shard-00005.jsonl: 0 records: 7 belong there"})
    EXPECT_NE(all.find(part), std::string::npos) << part << " is not in\n" << all;
  std::ofstream(folder / "d/irsynth.json") << "junk";
  EXPECT_NE(statistics_problem(folder / "d").find("irsynth.json: parse error"), std::string::npos);
}

}  // namespace
}  // namespace ferrite::irsynth
