// Reading replay files.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <nlohmann/json.hpp>

#include "core/to_number.hpp"
#include "ferrite/io/safetensors.hpp"
#include "ferrite/stacks/replay_call.hpp"

namespace ferrite {

namespace {

/// The name without the digits at its end.
std::string_view stem_of(std::string_view name) {
  return name.substr(0, name.find_last_not_of("0123456789") + 1);
}

/// A tensor that nothing reads would look as if it had been compared.
void check_names(const std::string& path, const NamedTensors& tensors) {
  constexpr std::array<std::string_view, 5> stems{"in", "out", "before", "got", "grad_in"};
  for (const auto& [name, tensor] : tensors) {
    const std::string_view stem = stem_of(name);
    const bool is_numbered = stem.size() < name.size() && std::ranges::find(stems, stem) != stems.end();
    if (!is_numbered && name != "grad0")
      throw ParseError(
          fmt::format("[replay] {}: '{}' is no tensor of a replay file: name them in0, ..., out0, "
                      "..., before0, ..., grad0, grad_in0, ...",
                      path, name));
  }
}

std::int64_t count_of(const NamedTensors& tensors, std::string_view stem) {
  return std::ranges::count_if(tensors, [&](const auto& entry) { return stem_of(entry.first) == stem; });
}

/// name0, name1, ...
std::vector<HostTensor> numbered(const std::string& path, const NamedTensors& tensors,
                                 std::string_view name) {
  std::vector<HostTensor> found;
  for (std::int64_t i = 0, count = count_of(tensors, name); i < count; ++i) {
    const auto entry = tensors.find(fmt::format("{}{}", name, i));
    if (entry == tensors.end())
      throw ParseError(fmt::format(
          "[replay] {}: there is no tensor {}{} but one after it: number them from 0", path, name, i));
    found.push_back(entry->second);
  }
  return found;
}

/// The layout of an input from its strides, with the smallest offset that keeps every element inside the
/// buffer.
Layout layout_of(const std::string& path, const std::string& key, const HostTensor& x,
                 const std::string& text) {
  const auto reject = [&](std::string_view rule) -> ParseError {
    return ParseError(fmt::format("[replay] {}, metadata '{}': {}", path, key, rule));
  };
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_array() || json.size() != static_cast<std::size_t>(x.shape().rank()))
    throw reject("must be a JSON list of one stride per axis");
  Layout layout{x.shape(), {}, 0};
  constexpr std::int64_t largest = std::int64_t{1} << 30;  // bytes from the first element to the last
  std::int64_t reach = 1;
  for (int i = 0; i < x.shape().rank(); ++i) {
    const auto& stride = json[static_cast<std::size_t>(i)];
    if (!stride.is_number_integer()) throw reject("strides must be integers");
    const auto step = stride.get<std::int64_t>();
    std::int64_t length = 0;
    if (__builtin_mul_overflow(std::max<std::int64_t>(x.shape()[i] - 1, 0), step, &length) ||
        length > largest || length < -largest)
      throw reject("the strides reach further than 1 GiB");
    reach += std::abs(length);
    if (step < 0) layout.offset -= length;
    layout.strides.push_back(step);
  }
  if (reach > largest / static_cast<std::int64_t>(size_of(x.dtype())))
    throw reject("the strides reach further than 1 GiB");
  return layout;
}

}  // namespace

ReplayFile ReplayFile::read(const std::filesystem::path& file_path, const std::string& op,
                            const std::string& attributes) {
  const std::string path = file_path.string();
  const SafeTensors content = read_safetensors(path);
  const auto metadata = [&](const std::string& key) -> std::string {
    const auto found = content.metadata.find(key);
    return found == content.metadata.end() ? "" : found->second;
  };
  ReplayFile file;
  file.op = op.empty() ? metadata("op") : op;
  if (file.op.empty())
    throw ParseError(
        fmt::format("[replay] {}: has no metadata 'op'; name the op by --op and --attributes", path));
  file.attributes = attributes.empty() ? metadata("attributes") : attributes;
  if (file.attributes.empty()) file.attributes = "{}";
  file.backend = metadata("backend");
  check_names(path, content.tensors);
  file.inputs = numbered(path, content.tensors, "in");
  file.expected = numbered(path, content.tensors, "out");
  for (std::size_t i = 0; i < file.inputs.size(); ++i) {
    const std::string key = fmt::format("in{}.strides", i), text = metadata(key);
    file.layouts.push_back(text.empty() ? Layout::contiguous(file.inputs[i].shape())
                                        : layout_of(path, key, file.inputs[i], text));
  }
  if (const std::string text = metadata("accumulate"); !text.empty()) {
    const auto mask = to_number<std::uint32_t>(text);
    if (!mask)
      throw ParseError(
          fmt::format("[replay] {}, metadata 'accumulate' is '{}': must be a bit mask", path, text));
    file.accumulate = static_cast<Accumulate>(*mask);
    for (std::size_t k = 0; k < 32 && (*mask >> k) != 0; ++k) {
      const auto found = content.tensors.find(fmt::format("before{}", k));
      if (accumulates(file.accumulate, k) && found == content.tensors.end())
        throw ParseError(
            fmt::format("[replay] {}: output {} accumulates but there is no tensor before{}", path, k, k));
      file.before.push_back(accumulates(file.accumulate, k) ? found->second : HostTensor());
    }
  }
  if (count_of(content.tensors, "before") > std::popcount(static_cast<std::uint32_t>(file.accumulate)))
    throw ParseError(
        fmt::format("[replay] {}: there are tensors before0, ... of outputs that do not accumulate: leave "
                    "them out, or set the outputs' bits in metadata 'accumulate'",
                    path));
  if (const auto found = content.tensors.find("grad0"); found != content.tensors.end())
    file.root_gradient = found->second;
  for (const auto& [name, tensor] : content.tensors)
    if (stem_of(name) == "grad_in") file.gradients.emplace(name, tensor);
  return file;
}

}  // namespace ferrite
