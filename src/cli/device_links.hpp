// What `ferrite devices` says about the links between GPUs.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "ferrite/backend/cuda_device.hpp"

namespace ferrite::cli {

/// A line for each GPU with the others that it reaches: "link  cuda:0 -> cuda:1 NVLink, cuda:2 NVLink".
std::string links_text(std::span<const CudaLink> links);
/// An array with an object for each link.
nlohmann::ordered_json links_json(std::span<const CudaLink> links);

}  // namespace ferrite::cli
