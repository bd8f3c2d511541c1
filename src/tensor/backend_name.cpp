// Names of backends, from their descriptions and types.
#include "ferrite/tensor/backend_name.hpp"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>

namespace ferrite::detail {

std::string short_name(const std::string& description) {
  return description.substr(0, description.find_first_of(" :"));
}

std::string type_name(const std::type_info& type) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(type.name(), nullptr, nullptr, &status), std::free);
  const std::string whole = status == 0 ? text.get() : type.name();
  // The last part of a::b<c::d>::e<f::g>: colons inside brackets belong to arguments.
  std::size_t start = 0;
  int depth = 0;
  for (std::size_t i = 0; i + 1 < whole.size(); ++i) {
    if (whole[i] == '<' || whole[i] == '(') ++depth;
    if (whole[i] == '>' || whole[i] == ')') --depth;
    if (depth == 0 && whole[i] == ':' && whole[i + 1] == ':') start = i + 2;
  }
  return whole.substr(start);
}

}  // namespace ferrite::detail
