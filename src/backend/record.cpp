#include "ferrite/backend/record.hpp"

#include <fmt/format.h>

namespace ferrite::detail {

void throw_cannot_record(const std::string& backend) {
  throw BackendError(fmt::format("[record] {}: cannot record steps; cuda can", backend));
}

}  // namespace ferrite::detail
