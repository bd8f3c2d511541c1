// Printed forms of devices and tensor descriptions, as they appear in error messages.
#include "ferrite/core/array.hpp"

namespace ferrite {

std::string to_string(Device device) {
  return device.kind == DeviceKind::cpu ? "cpu" : "cuda:" + std::to_string(device.index);
}

std::string to_string(const Meta& meta) { return std::string(to_string(meta.dtype)) + to_string(meta.shape); }

ByteRange byte_range(const Array& array) {
  const Layout& layout = array.layout();
  if (layout.shape.numel() == 0) return {};
  std::int64_t low = layout.offset, high = layout.offset;
  for (int axis = 0; axis < layout.shape.rank(); ++axis) {
    const std::int64_t reach = (layout.shape[axis] - 1) * layout.strides[axis];
    (reach < 0 ? low : high) += reach;
  }
  const auto size = static_cast<std::int64_t>(size_of(array.dtype()));
  return {low * size, (high + 1) * size};
}

}  // namespace ferrite
