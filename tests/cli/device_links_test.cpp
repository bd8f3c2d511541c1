// What `ferrite devices` says about links, with made-up machines: this one may have none.
#include "cli/device_links.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <vector>

namespace ferrite::cli {
namespace {

constexpr bool yes = true, no = false;

TEST(DeviceLinks, OneGpuHasNone) {
  EXPECT_EQ(links_text({}), "");
  EXPECT_EQ(links_json({}).dump(), "[]");
}

TEST(DeviceLinks, AreALineForEachGpuInTheOrderOfTheirNumbers) {
  const std::vector<CudaLink> links{{1, 0, yes, yes, 0}, {0, 1, yes, yes, 0}, {0, 2, yes, no, 1},
                                    {1, 2, no, no, 2},   {2, 0, yes, no, 0},  {2, 1, no, no, 1}};
  EXPECT_EQ(links_text(links),
            "link  cuda:0 -> cuda:1 NVLink, cuda:2 PCIe (peer access)\n"
            "link  cuda:1 -> cuda:0 NVLink, cuda:2 through the host\n"
            "link  cuda:2 -> cuda:0 PCIe (peer access), cuda:1 through the host\n");
}

TEST(DeviceLinks, JsonHasEveryFact) {
  const std::vector<CudaLink> links{{0, 1, yes, yes, 0}, {1, 0, no, no, 3}};
  EXPECT_EQ(links_json(links), nlohmann::ordered_json::parse(R"([
    {"from": 0, "to": 1, "kind": "NVLink", "peer_access": true, "speed_rank": 0},
    {"from": 1, "to": 0, "kind": "through the host", "peer_access": false, "speed_rank": 3}])"));
}

}  // namespace
}  // namespace ferrite::cli
