#include "models/irsynth/folder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "core/to_number.hpp"
#include "ferrite/io/mapped_file.hpp"

namespace ferrite::irsynth {

Summary::Summary(const Json& m)
    : index(m.at("index").get<std::int64_t>()),
      hash(m.at("hash").get<std::string>()),
      split(m.at("split").get<std::string>()),
      category(m.at("category").get<std::string>()),
      level(m.at("level").get<int>()) {
  for (const auto& [name, done] : m.at("verification").items())
    if (name != "roundings" && !done.is_null() && done != false &&
        !(done.is_string() && done.get<std::string>().starts_with("no")))
      verified.push_back(name);
}

void Tally::add(const Summary& r) {
  ++records;
  ++categories[r.category];
  ++levels[std::to_string(r.level)];
  ++splits[r.split];
  ++structures[r.hash];
  in_splits[r.split].insert(r.hash);
  for (const std::string& name : r.verified) ++verification[name];
}

std::int64_t Tally::shared_structures() const {
  std::map<std::string_view, int> found;
  for (const auto& [split, hashes] : in_splits)
    for (const std::string& h : hashes) ++found[h];
  std::int64_t shared = 0;
  for (const auto& [hash, splits_with_it] : found) shared += splits_with_it > 1;
  return shared;
}

Json Tally::json() const {
  const auto counts = [](const auto& map) {
    Json json = Json::object();
    for (const auto& [key, n] : map) json[key] = n;
    return json;
  };
  return {{"records", records},
          {"structures", structures.size()},
          {"categories", counts(categories)},
          {"levels", counts(levels)},
          {"splits", counts(splits)},
          {"structures_in_two_splits", shared_structures()},
          {"verification", counts(verification)}};
}

void write_small(const std::filesystem::path& path, std::string_view text) {
  const std::filesystem::path part = path.string() + ".part";
  std::ofstream file(part, std::ios::binary);
  file << text;
  file.close();
  std::error_code error;
  if (file) std::filesystem::rename(part, path, error);
  if (!file || error) throw IoError(fmt::format("[irsynth] {}: cannot be written", path.string()));
}

std::string shard_name(std::int64_t number) { return fmt::format("shard-{:05}.jsonl", number); }
std::string file_name(Device device, std::int64_t number) {
  return fmt::format("{}_synth_{:04}.json", to_string(device), number);
}

std::vector<std::filesystem::path> record_files(const std::filesystem::path& folder, const Plan& plan) {
  std::vector<std::filesystem::path> files;
  std::error_code error;
  for (std::int64_t i = 0;; ++i) {
    const auto path =
        folder / (plan.format == Format::json ? file_name(plan.config.device, i) : shard_name(i));
    if (!std::filesystem::exists(path, error)) break;
    files.push_back(path);
  }
  if (error) throw IoError(fmt::format("[irsynth] {}: {}", folder.string(), error.message()));
  return files;
}

std::int64_t records_of_file(const Plan& plan, std::int64_t number) {
  if (plan.format == Format::json) return 1;
  return std::clamp<std::int64_t>(plan.pairs - number * plan.shard_size, 0, plan.shard_size);
}

std::string plan_text(const Plan& plan) {
  Json json{{"generator", generator_version},
            {"seed", std::to_string(plan.seed)},
            {"pairs", plan.pairs},
            {"format", to_string(plan.format)},
            {"shard_size", plan.shard_size},
            {"config", Json::parse(plan.config.to_json())}};
  return json.dump(2) + "\n";
}

namespace {

/// Without the name that the library gives the error.
std::string problem_of(const Json::exception& e) {
  const std::string text = e.what();
  const std::size_t end = text.find("] ");
  return end == std::string::npos ? text : text.substr(end + 2);
}

std::uint64_t whole_number(const std::string& text) {
  const auto value = to_number<std::uint64_t>(text);
  if (!value) throw ValueError(fmt::format("'{}' is not a whole number below 2^64", text));
  return *value;
}

template <class E>
E named(const Json& json, std::initializer_list<E> all) {
  for (const E e : all)
    if (to_string(e) == json.get<std::string>()) return e;
  throw ValueError(fmt::format("'{}' is none of the choices", json.get<std::string>()));
}

}  // namespace

Plan read_plan(const std::filesystem::path& folder) {
  const auto path = folder / "irsynth.json";
  const auto file = MappedFile::open(path);
  try {
    const Json json = Json::parse(file->text());
    const Json& c = json.at("config");
    Plan plan;
    if (json.at("generator") != generator_version)
      throw ValueError(
          fmt::format("made by generator {}, this is {}", json.at("generator").dump(), generator_version));
    plan.seed = whole_number(json.at("seed").get<std::string>());
    plan.pairs = json.at("pairs");
    plan.format = named(json.at("format"), {Format::json, Format::jsonl});
    plan.shard_size = json.at("shard_size");
    plan.config.categories = c.at("categories");
    plan.config.lowest_level = c.at("lowest_level");
    plan.config.highest_level = c.at("highest_level");
    plan.config.device = named(c.at("device"), {Device::cuda, Device::cpu});
    plan.config.style = named(c.at("style"), {Style::standalone, Style::warp});
    plan.config.verify = named(c.at("verify"), {Verify::none, Verify::cpu, Verify::compile, Verify::gpu});
    plan.config.backward = c.at("backward");
    plan.config.ptx = c.at("ptx");
    plan.config.values = c.at("values");
    plan.config.most_per_structure = c.at("most_per_structure");
    plan.config.architecture = c.at("architecture");
    return plan;
  } catch (const Json::exception& e) {
    throw ParseError(fmt::format("[irsynth] {}: {}", path.string(), problem_of(e)));
  } catch (const std::exception& e) {
    throw ValueError(fmt::format("[irsynth] {}: {}", path.string(), e.what()));
  }
}

void for_each_text(const std::filesystem::path& path, Format format,
                   const std::function<void(std::string_view, int)>& visit) {
  const auto file = MappedFile::open(path);
  std::string_view rest = file->text();
  for (int line = 1; !rest.empty(); ++line) {
    const std::size_t size = format == Format::json ? rest.size() : std::min(rest.find('\n'), rest.size());
    visit(rest.substr(0, size), line);
    rest.remove_prefix(std::min(size + 1, rest.size()));
  }
}

void with_json(std::string_view text, const std::filesystem::path& path, int line,
               const std::function<void(const Json&)>& use) {
  try {
    use(Json::parse(text));
  } catch (const Json::exception& e) {
    throw ParseError(fmt::format("[irsynth] {}:{}: {}", path.string(), line, problem_of(e)));
  }
}

void for_each_record(const std::filesystem::path& path, Format format,
                     const std::function<void(const Json&)>& visit) {
  for_each_text(path, format, [&](std::string_view text, int line) { with_json(text, path, line, visit); });
}

std::map<std::string, std::string> manifest_digests(const std::filesystem::path& folder) {
  const auto path = folder / "manifest.json";
  std::map<std::string, std::string> digests;
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return digests;
  for_each_record(path, Format::json, [&](const Json& manifest) {
    for (const Json& f : manifest.at("files")) digests[f.at("file")] = f.at("sha256");
  });
  return digests;
}

}  // namespace ferrite::irsynth
