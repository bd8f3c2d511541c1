#include "ferrite/models/pfn/file.hpp"

#include <fmt/format.h>

#include "ferrite/io/safetensors.hpp"

namespace ferrite::pfn {
namespace {

Config config_in(const std::filesystem::path& path, const char* key, std::string_view writer) {
  const auto settings = train::read_settings(path);
  const auto found = settings.find(key);
  if (found == settings.end())
    throw ParseError(fmt::format("[Pfn] {}: has no config in its metadata, under '{}': write it with {}",
                                 path.string(), key, writer));
  return Config::from_json(found->second, path.string());
}

}  // namespace

NamedTensors rounded(const NamedTensors& tensors, DType dtype) {
  ferrite::detail::check_floating("Pfn", "dtype", dtype);
  NamedTensors result;
  for (const auto& entry : tensors) {
    const HostTensor& from = entry.second;
    const auto convert = [&](std::span<std::byte> bytes) {
      ferrite::detail::convert_elements(from.dtype(), from.bytes().data(), dtype, bytes.data(), from.numel());
    };
    result.emplace(entry.first,
                   is_floating(from.dtype()) ? HostTensor::make(dtype, from.shape(), convert) : from);
  }
  return result;
}

Config read_config(const std::filesystem::path& path) {
  const Config config = config_in(path, setting, "pfn::save");
  const std::size_t tensors = read_safetensors(path).tensors.size();
  if (config.layers > static_cast<std::int64_t>(tensors))  // no memory may hold such a network
    throw ParseError(
        fmt::format("[Pfn] {}: its config says {} layers, and the file has {} tensors: it is damaged",
                    path.string(), config.layers, tensors));
  return config;
}

void check_context_file(const std::filesystem::path& path, const Config& config) {
  const Config saved = config_in(path, context_setting, "pfn::save_context");
  if (saved == config) return;
  throw ParseError(fmt::format("[Pfn] {}: is a context of a network with another config: {} instead of {}",
                               path.string(), saved.to_json(), config.to_json()));
}

}  // namespace ferrite::pfn
