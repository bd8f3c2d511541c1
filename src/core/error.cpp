// The only part of the errors that is not in the header.
#include "ferrite/core/error.hpp"

#include <fmt/format.h>

namespace ferrite {

void Error::rename(std::string_view op) {
  const std::size_t end = message_.starts_with('[') ? message_.find(']') : std::string::npos;
  message_ = end == std::string::npos ? fmt::format("[{}] {}", op, message_)
                                      : fmt::format("[{}{}", op, message_.substr(end));
}

}  // namespace ferrite
