// The result of a replay as text and as JSON.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "ferrite/stacks/replay_call.hpp"

namespace ferrite {

namespace {

std::string verdict(const ReplayComparison& c, const HostTensor& value, const std::string& backend) {
  if (!c.file_has.empty()) return fmt::format(": differs from the file, which has {}", c.file_has);
  if (c.agrees())
    return fmt::format(": agrees with the file, worst error {:.3g} of what is allowed", c.ratio);
  return fmt::format(
      ": differs from the file in {} of {} elements\n"
      "    worst at element {}: {} has {:.9g}, the file {:.9g}; error {:.3g}, allowed {:.3g}",
      c.differing, value.numel(), c.index, backend, c.value, c.expected, c.error, c.allowed);
}

nlohmann::ordered_json to_json(const std::string& name, const HostTensor& x, const ReplayComparison* c) {
  nlohmann::ordered_json entry{{"name", name},
                               {"dtype", to_string(x.dtype())},
                               {"shape", std::vector<std::int64_t>(x.shape().begin(), x.shape().end())}};
  if (c == nullptr) return entry;
  entry["agrees"] = c->agrees();
  if (!c->file_has.empty()) {
    entry["file_has"] = c->file_has;
    return entry;
  }
  // JSON has no infinities: they become null.
  entry.update({{"ratio", c->ratio},
                {"differing", c->differing},
                {"index", c->index},
                {"value", c->value},
                {"expected", c->expected},
                {"error", c->error},
                {"allowed", c->allowed}});
  return entry;
}

const ReplayComparison* found_in(const std::map<std::string, ReplayComparison>& all,
                                 const std::string& name) {
  const auto found = all.find(name);
  return found == all.end() ? nullptr : &found->second;
}

}  // namespace

std::string ReplayResult::text() const {
  const bool of_another = !file_backend.empty() && file_backend != backend;
  std::string text = fmt::format("{} {} on {}{}", op, attributes, backend,
                                 of_another ? fmt::format(" (the file is of {})", file_backend) : "");
  const bool show_values = out.empty() && comparisons.empty() && gradient_comparisons.empty();
  const auto add = [&](const std::string& name, const HostTensor& x, const ReplayComparison* c) {
    const Meta meta{x.shape(), x.dtype()};
    text += fmt::format("\n  {} {}{}", name, to_string(meta), c == nullptr ? "" : verdict(*c, x, backend));
    if (show_values) text += "\n" + detail::format_elements(meta, x.bytes().data());
  };
  for (std::size_t k = 0; k < outputs.size(); ++k)
    add(fmt::format("out{}", k), outputs[k], comparisons.empty() ? nullptr : &comparisons[k]);
  for (const auto& [name, gradient] : gradients) add(name, gradient, found_in(gradient_comparisons, name));
  for (const std::string& name : without_gradient) text += fmt::format("\n  {} gets no gradient", name);
  if (!out.empty()) text += "\n  written to " + out.string();
  return text;
}

std::string ReplayResult::json() const {
  using Json = nlohmann::ordered_json;
  Json outs = Json::array(), grads = Json::array();
  for (std::size_t k = 0; k < outputs.size(); ++k)
    outs.push_back(
        to_json(fmt::format("out{}", k), outputs[k], comparisons.empty() ? nullptr : &comparisons[k]));
  for (const auto& [name, gradient] : gradients)
    grads.push_back(to_json(name, gradient, found_in(gradient_comparisons, name)));
  const Json json{{"op", op},           {"attributes", Json::parse(attributes)},
                  {"backend", backend}, {"outputs", outs},
                  {"gradients", grads}, {"without_gradient", without_gradient}};
  return json.dump(2);
}

}  // namespace ferrite
