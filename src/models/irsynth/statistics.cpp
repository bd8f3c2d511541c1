// The contents of a dataset in numbers.
#include <fmt/format.h>

#include <algorithm>

#include "ferrite/models/irsynth/dataset.hpp"
#include "models/irsynth/folder.hpp"

namespace ferrite::irsynth {

namespace {

Json spread(std::vector<std::size_t> sizes) {
  if (sizes.empty()) return nullptr;
  std::sort(sizes.begin(), sizes.end());
  std::size_t sum = 0;
  for (const std::size_t n : sizes) sum += n;
  return {{"mean", sum / sizes.size()},
          {"median", sizes[sizes.size() / 2]},
          {"p90", sizes[sizes.size() * 9 / 10]},
          {"most", sizes.back()}};
}

/// Files are read up to the first that is not there: the numbers would be of those before it.
void check_all_there(const std::filesystem::path& folder) {
  std::error_code ignored;
  for (const auto& [name, digest] : manifest_digests(folder))
    if (!std::filesystem::exists(folder / name, ignored))
      throw IoError(
          fmt::format("[irsynth] {}: is missing, and manifest.json lists it: run irsynth again with the "
                      "options in irsynth.json, which makes it anew",
                      (folder / name).string()));
}

}  // namespace

std::string dataset_statistics(const std::filesystem::path& folder) {
  const Plan plan = read_plan(folder);
  check_all_there(folder);
  const std::string forward(std::string(to_string(plan.config.device)) + "_forward");
  Tally tally;
  std::map<std::string, std::int64_t> operations;
  std::vector<std::size_t> python_lines, python, target, operation_counts;
  for (const auto& file : record_files(folder, plan)) {
    for_each_record(file, plan.format, [&](const Json& record) {
      const auto& source = record.at("python_source").get_ref<const std::string&>();
      const Json& m = record.at("metadata");
      tally.add(Summary(m));
      std::size_t all = 0;
      for (const auto& [name, n] : m.at("operations").items()) {
        operations[name] += n.get<std::int64_t>();
        all += n.get<std::size_t>();
      }
      operation_counts.push_back(all);
      python_lines.push_back(static_cast<std::size_t>(std::count(source.begin(), source.end(), '\n')));
      python.push_back(source.size());
      target.push_back(record.at(forward).get_ref<const std::string&>().size());
    });
  }
  std::vector<std::pair<std::string, std::int64_t>> ordered(operations.begin(), operations.end());
  std::stable_sort(ordered.begin(), ordered.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  Json json = tally.json();
  json["distinct_share"] =
      tally.records == 0 ? 0.0
                         : static_cast<double>(tally.structures.size()) / static_cast<double>(tally.records);
  json["python_lines"] = spread(std::move(python_lines));
  json["python_characters"] = spread(std::move(python));
  json[forward + "_characters"] = spread(std::move(target));
  json["operations_per_kernel"] = spread(std::move(operation_counts));
  json["operations"] = Json::object();
  for (const auto& [name, n] : ordered) json["operations"][name] = n;
  return json.dump(2);
}

}  // namespace ferrite::irsynth
