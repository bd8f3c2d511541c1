#include "cli/device_links.hpp"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <vector>

namespace ferrite::cli {

namespace {
std::string kind_of(const CudaLink& link) {
  return !link.peer_access ? "through the host" : link.atomics ? "NVLink" : "PCIe (peer access)";
}
}  // namespace

std::string links_text(std::span<const CudaLink> links) {
  std::map<int, std::vector<std::string>> lines;
  for (const CudaLink& link : links)
    lines[link.from].push_back(fmt::format("cuda:{} {}", link.to, kind_of(link)));
  std::string text;
  for (const auto& [from, others] : lines)
    text += fmt::format("link  cuda:{} -> {}\n", from, fmt::join(others, ", "));
  return text;
}

nlohmann::ordered_json links_json(std::span<const CudaLink> links) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const CudaLink& link : links)
    json.push_back({{"from", link.from},
                    {"to", link.to},
                    {"kind", kind_of(link)},
                    {"peer_access", link.peer_access},
                    {"speed_rank", link.rank}});
  return json;
}

}  // namespace ferrite::cli
