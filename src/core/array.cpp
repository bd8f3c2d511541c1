// Printed forms of devices and tensor descriptions, as they appear in error messages.
#include "ferrite/core/array.hpp"

namespace ferrite {

std::string to_string(Device device) {
  return device.kind == DeviceKind::cpu ? "cpu" : "cuda:" + std::to_string(device.index);
}

std::string to_string(const Meta& meta) { return std::string(to_string(meta.dtype)) + to_string(meta.shape); }

}  // namespace ferrite
