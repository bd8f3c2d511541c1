// The 16-bit copies of parameters.
#include "ferrite/decorators/autocast.hpp"

#include <fmt/format.h>

namespace ferrite::detail {

LoweredParameters::LoweredParameters(const AutocastConfig& config) : dtype_(config.dtype) {
  if (dtype_ != DType::bf16 && dtype_ != DType::f16)
    throw ValueError(fmt::format("[autocast] dtype {}: needs bf16 or f16", to_string(dtype_)));
}

void LoweredParameters::adopt(const Array& parameter) {
  const std::lock_guard guard(mutex_);
  // Parameters that are gone leave their copies behind until the next one comes.
  std::erase_if(copies_, [](const auto& entry) { return entry.second.master.expired(); });
  Copy& copy = copies_[parameter.buffer().get()];
  if (copy.master.lock() != parameter.buffer()) copy = {parameter.buffer(), {}, 0, false};
}

}  // namespace ferrite::detail
