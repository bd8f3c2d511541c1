// The result of a replay as text and as JSON.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "ferrite/stacks/replay_call.hpp"

namespace ferrite {

std::string ReplayResult::text() const {
  const bool of_another = !file_backend.empty() && file_backend != backend;
  std::string text = fmt::format("{} {} on {}{}", op, attributes, backend,
                                 of_another ? fmt::format(" (the file is of {})", file_backend) : "");
  const bool show_values = out.empty() && comparisons.empty();
  const auto add = [&](const std::string& name, const HostTensor& x, const std::string& verdict) {
    const Meta meta{x.shape(), x.dtype()};
    text += fmt::format("\n  {} {}{}", name, to_string(meta), verdict);
    if (show_values) text += "\n" + detail::format_elements(meta, x.bytes().data());
  };
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    std::string verdict;
    if (!comparisons.empty()) {
      const Comparison& c = comparisons[k];
      verdict = c.agrees()
                    ? fmt::format(": agrees with the file, worst error {:.3g} of what is allowed", c.ratio)
                    : fmt::format(
                          ": differs from the file in {} of {} elements\n    worst at element {}: {} "
                          "has {:.9g}, the file {:.9g}; error {:.3g}, allowed {:.3g}",
                          c.differing, outputs[k].numel(), c.index, backend, c.value, c.expected, c.error,
                          c.allowed);
    }
    add(fmt::format("out{}", k), outputs[k], verdict);
  }
  for (const auto& [name, gradient] : gradients) add(name, gradient, "");
  for (const std::string& name : without_gradient) text += fmt::format("\n  {} gets no gradient", name);
  if (!out.empty()) text += "\n  written to " + out.string();
  return text;
}

std::string ReplayResult::json() const {
  using Json = nlohmann::ordered_json;
  const auto tensor = [](const std::string& name, const HostTensor& x) {
    return Json{{"name", name},
                {"dtype", to_string(x.dtype())},
                {"shape", std::vector<std::int64_t>(x.shape().begin(), x.shape().end())}};
  };
  // JSON has no infinities: they become null.
  Json outs = Json::array(), grads = Json::array();
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    Json entry = tensor(fmt::format("out{}", k), outputs[k]);
    if (!comparisons.empty()) {
      const Comparison& c = comparisons[k];
      entry.update({{"agrees", c.agrees()},
                    {"ratio", c.ratio},
                    {"differing", c.differing},
                    {"index", c.index},
                    {"value", c.value},
                    {"expected", c.expected},
                    {"error", c.error},
                    {"allowed", c.allowed}});
    }
    outs.push_back(std::move(entry));
  }
  for (const auto& [name, gradient] : gradients) grads.push_back(tensor(name, gradient));
  const Json json{{"op", op},           {"attributes", Json::parse(attributes)},
                  {"backend", backend}, {"outputs", outs},
                  {"gradients", grads}, {"without_gradient", without_gradient}};
  return json.dump(2);
}

}  // namespace ferrite
