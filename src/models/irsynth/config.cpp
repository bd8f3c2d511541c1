#include "ferrite/models/irsynth/config.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "ferrite/models/irsynth/program.hpp"

namespace ferrite::irsynth {

std::string_view to_string(Device v) { return v == Device::cuda ? "cuda" : "cpu"; }
std::string_view to_string(Style v) { return v == Style::standalone ? "standalone" : "warp"; }
std::string_view to_string(Format v) { return v == Format::json ? "json" : "jsonl"; }
std::string_view to_string(Verify v) {
  static constexpr std::string_view names[] = {"none", "cpu", "compile", "gpu"};
  return names[static_cast<int>(v)];
}

void Config::check() const {
  if (lowest_level < 0 || highest_level > irsynth::highest_level || lowest_level > highest_level)
    throw ValueError(fmt::format("[irsynth] levels {} to {}: there are 0 to {}", lowest_level, highest_level,
                                 irsynth::highest_level));
  for (const std::string& name : categories) {
    const Category& c = category(name);
    if (c.lowest_level > highest_level || c.highest_level < lowest_level)
      throw ValueError(fmt::format("[irsynth] category {} has levels {} to {}: none of them is asked for",
                                   name, c.lowest_level, c.highest_level));
    if (style == Style::warp && !c.in_warp)
      throw ValueError(fmt::format("[irsynth] category {} in style warp: Warp has no such kernels", name));
  }
  if (device == Device::cpu && (verify > Verify::cpu || ptx))
    throw ValueError("[irsynth] device cpu with verify compile or gpu, or ptx: they are about CUDA texts");
  if (style == Style::warp && ptx)
    throw ValueError(
        "[irsynth] style warp with ptx: NVRTC would need Warp's headers; ask for style standalone");
  if (most_per_structure < 1)
    throw ValueError(fmt::format("[irsynth] {} records of a structure: at least 1", most_per_structure));
}

std::string Config::to_json() const {
  const nlohmann::ordered_json json{{"categories", categories},
                                    {"lowest_level", lowest_level},
                                    {"highest_level", highest_level},
                                    {"device", to_string(device)},
                                    {"style", to_string(style)},
                                    {"verify", to_string(verify)},
                                    {"backward", backward},
                                    {"ptx", ptx},
                                    {"values", values},
                                    {"most_per_structure", most_per_structure},
                                    {"architecture", architecture}};
  return json.dump();
}

}  // namespace ferrite::irsynth
