#include "models/gpt/hugging_face_files.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>

#include "ferrite/core/error.hpp"
#include "ferrite/io/mapped_file.hpp"
#include "io/format.hpp"

namespace ferrite::gpt {
namespace fs = std::filesystem;
namespace {

using io_detail::in_quotes;

void add_tensors(const fs::path& file, LazyTensors& out) {
  for (auto& [name, tensor] : open_safetensors(file).tensors) {
    std::string_view plain = name;
    for (const std::string_view prefix : {"transformer.", "model."})  // of a GPT-2, of a Llama
      if (name.starts_with(prefix)) plain = std::string_view(name).substr(prefix.size());
    if (!out.emplace(plain, std::move(tensor)).second)
      throw ParseError(
          fmt::format("[gpt import] {}: the tensor {} is there twice", file.string(), in_quotes(plain)));
  }
}

/// The files that an index names, each once. They are beside the index: it may come from strangers and must
/// not reach other places.
std::vector<fs::path> shards_of(const fs::path& index) {
  const auto reject = [&](std::string_view rule) {
    throw ParseError(fmt::format("[gpt import] {}: {}", index.string(), rule));
  };
  const auto json = nlohmann::json::parse(MappedFile::open(index)->text(), nullptr, false);
  if (!json.is_object() || !json.contains("weight_map") || !json["weight_map"].is_object())
    reject("must be JSON with an object 'weight_map'");
  std::set<std::string> names;
  for (const auto& [tensor, file] : json["weight_map"].items()) {
    if (!file.is_string()) reject(fmt::format("the file of {} must be a name", in_quotes(tensor)));
    names.insert(file.get<std::string>());
  }
  std::vector<fs::path> out;
  for (const std::string& name : names) {
    if (!name.ends_with(".safetensors") || fs::path(name).filename() != name)
      reject(fmt::format("{} must be the name of a .safetensors file beside it", in_quotes(name)));
    out.push_back(index.parent_path() / name);
  }
  return out;
}

}  // namespace

std::optional<fs::path> find_config(const fs::path& from) {
  const fs::path config = (fs::is_directory(from) ? from : from.parent_path()) / "config.json";
  return fs::exists(config) ? std::optional(config) : std::nullopt;
}

std::vector<fs::path> weight_files(const fs::path& from) {
  if (!fs::is_directory(from)) return {from};
  if (fs::exists(from / "model.safetensors")) return {from / "model.safetensors"};
  if (fs::exists(from / "model.safetensors.index.json"))
    return shards_of(from / "model.safetensors.index.json");
  if (fs::exists(from / "pytorch_model.bin"))
    throw IoError(
        fmt::format("[gpt import] {}: has only pytorch_model.bin: load it with transformers and "
                    "save_pretrained(folder), which writes model.safetensors",
                    from.string()));
  throw IoError(fmt::format("[gpt import] {}: has neither model.safetensors nor model.safetensors.index.json",
                            from.string()));
}

LazyTensors open_weights(const std::vector<fs::path>& files) {
  LazyTensors out;
  for (const fs::path& file : files) add_tensors(file, out);
  return out;
}

}  // namespace ferrite::gpt
