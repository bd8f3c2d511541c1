// The folder of shards and its description.
#include "ferrite/models/priors/shards.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "ferrite/core/error.hpp"
#include "ferrite/io/atomic_file.hpp"
#include "ferrite/io/mapped_file.hpp"
#include "ferrite/io/npz.hpp"
#include "ferrite/io/safetensors.hpp"

namespace ferrite::priors {
namespace {

using Json = nlohmann::ordered_json;

/// Those of to_host, in the order in which generate makes them.
constexpr std::array<std::string_view, 6> tensor_names{"x",      "y",   "row_mask", "feature_mask",
                                                       "levels", "info"};

std::string_view extension(ShardFormat format) { return format == ShardFormat::npz ? "npz" : "safetensors"; }

std::string manifest(const ShardPlan& plan) {
  const Json json{{"format", extension(plan.format)},
                  {"generator", generator_version},
                  {"seed", plan.seed},
                  {"first", plan.first},
                  {"datasets", plan.datasets},
                  {"shard_size", plan.shard_size},
                  {"config", Json::parse(plan.config.to_json())}};
  return json.dump(2) + "\n";
}

/// A manifest with every key of today's config, at its default if the file lacks it: datasets do not change
/// when a key is added.
std::string completed(std::string_view text) {
  try {
    Json json = Json::parse(text);
    json.at("config") = Json::parse(Config::from_json(json.at("config").dump()).to_json());
    return json.dump(2) + "\n";
  } catch (const std::exception&) {
    return "";  // no manifest
  }
}

bool is_there(const std::filesystem::path& path) {
  std::error_code error;
  const bool found = std::filesystem::exists(path, error);
  if (error) throw IoError(fmt::format("[priors shards] {}: {}", path.string(), error.message()));
  return found;
}

}  // namespace

ShardFolder::ShardFolder(const std::filesystem::path& folder, const ShardPlan& plan)
    : folder_(folder), plan_(plan) {
  op::PriorDatasets{plan.config, plan.seed, plan.first, plan.datasets}.infer({});
  if (plan.shard_size < 1)
    throw ValueError(fmt::format("[priors shards] shard size {}: must be at least 1", plan.shard_size));
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw IoError(fmt::format("[priors shards] {}: {}", folder.string(), error.message()));
  const std::filesystem::path description = folder / "prior.json";
  const std::string text = manifest(plan);
  if (!is_there(description)) {
    write_text(description, text);
  } else if (completed(MappedFile::open(description)->text()) != text) {
    throw ValueError(fmt::format(
        "[priors shards] {} holds another run (see prior.json): give the same config, seed, "
        "datasets, shard size and generator (this is version {}) to go on with it, or another folder",
        folder.string(), generator_version));
  }
}

std::int64_t ShardFolder::shards() const { return (plan_.datasets - 1) / plan_.shard_size + 1; }
std::int64_t ShardFolder::first(std::int64_t shard) const { return plan_.first + shard * plan_.shard_size; }
std::int64_t ShardFolder::size(std::int64_t shard) const {
  return std::min(plan_.shard_size, plan_.datasets - shard * plan_.shard_size);
}
std::filesystem::path ShardFolder::path(std::int64_t shard) const {
  return folder_ / fmt::format("shard-{:05}.{}", shard, extension(plan_.format));
}
bool ShardFolder::is_done(std::int64_t shard) const {
  if (!is_there(path(shard))) return false;
  try {
    const NamedTensors tensors =
        plan_.format == ShardFormat::npz ? read_npz(path(shard)) : read_safetensors(path(shard)).tensors;
    const Metas metas = op::PriorDatasets{plan_.config, plan_.seed, first(shard), size(shard)}.infer({});
    const auto fits = [&](std::string_view name, const Meta& meta) {
      const auto found = tensors.find(name);
      return found != tensors.end() && Meta{found->second.shape(), found->second.dtype()} == meta;
    };
    return std::equal(tensor_names.begin(), tensor_names.end(), metas.begin(), metas.end(), fits);
  } catch (const ParseError&) {
    return false;
  }
}

void ShardFolder::write(std::int64_t shard, const NamedTensors& tensors) const {
  write_batch(path(shard), plan_.format, plan_, tensors);
}

void write_batch(const std::filesystem::path& path, ShardFormat format, const ShardPlan& plan,
                 const NamedTensors& tensors) {
  if (format == ShardFormat::npz)
    write_npz(path, tensors);
  else
    write_safetensors(path, {{{"prior", plan.config.to_json()},
                              {"seed", std::to_string(plan.seed)},
                              {"generator", std::to_string(generator_version)}},
                             tensors});
}

}  // namespace ferrite::priors
