#include "cli/backend_option.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "ferrite/stacks.hpp"

namespace ferrite::cli {

CLI::Option* add_backend_option(CLI::App* command, std::string& value, const std::string& help) {
  std::string list;
  for (const auto& [name, meaning] : AnyBackend::names()) list += (list.empty() ? "" : ", ") + name;
  const CLI::Validator known(
      [list](const std::string& text) {
        const std::string stem = text.substr(0, text.find(':'));
        const auto names = AnyBackend::names();
        const bool is_name =
            std::any_of(names.begin(), names.end(), [&](const auto& entry) { return entry.first == stem; });
        return is_name ? std::string()
                       : fmt::format("'{}' must be one of {}; a GPU's may end in its index, as in cuda:1",
                                     text, list);
      },
      "");
  return add_checked(*command, "--backend", value, fmt::format("{}: {}; cuda:N for another GPU", help, list),
                     known);
}

std::string precision_on(const AnyBackend& backend, const std::string& precision) {
  if (precision != "auto") return precision;
  return backend.device().kind == DeviceKind::cuda ? "bf16" : "f32";
}

bool is_built_with_cuda() {
  try {
    op_table<Cuda>();
    return true;
  } catch (const DeviceError&) {
    return false;
  }
}

}  // namespace ferrite::cli
