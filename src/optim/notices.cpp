// Texts of the optimisers' errors and notices.
#include "ferrite/optim/notices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "ferrite/core/error.hpp"

namespace ferrite::optim {

void check_divisor(std::string_view optimizer, double divisor) {
  if (!(divisor > 0 && std::isfinite(divisor)))
    throw ValueError(fmt::format("[{}] gradients are to be divided by {}: must be above 0 and finite",
                                 optimizer, divisor));
}

std::vector<std::string> check_parameters(std::string_view optimizer,
                                          const std::vector<StateEntry>& parameters, std::size_t groups,
                                          const std::vector<std::size_t>& group_of) {
  if (parameters.empty())
    throw ValueError(
        fmt::format("[{}] no parameters: needs at least one that is a leaf and not frozen", optimizer));
  std::set<std::string_view> names;
  std::vector<std::string> narrow, notices;
  for (const StateEntry& p : parameters) {
    if (!names.insert(p.name).second) {
      throw ValueError(fmt::format(
          "[{}] two parameters are called '{}': their states need names of their own", optimizer, p.name));
    }
    if (p.meta.dtype == DType::bf16 || p.meta.dtype == DType::f16) narrow.push_back(p.name);
  }
  if (!narrow.empty()) {
    notices.push_back(
        fmt::format("[{}] 16-bit parameters {}: an update below about 1/256 (bf16) or 1/2048 (f16) of a "
                    "weight is lost in "
                    "rounding, so that they stop learning at small rates: keep parameters in f32",
                    optimizer, quoted_names(narrow)));
  }
  for (std::size_t group = 0; group < groups; ++group) {
    if (std::find(group_of.begin(), group_of.end(), group) == group_of.end())
      notices.push_back(fmt::format("[{}] group {}: selects no parameter that an earlier group has not taken",
                                    optimizer, group));
  }
  return notices;
}

std::string missing_notice(std::string_view optimizer, const std::vector<std::string>& names) {
  return fmt::format("[{}] no gradient in the first step for {}: the loss does not depend on them", optimizer,
                     quoted_names(names));
}

void throw_unlisted(std::string_view optimizer, const std::vector<std::pair<std::string, Meta>>& leaves) {
  std::string list;
  for (const auto& [name, meta] : leaves)
    list += fmt::format("{}'{}' {}", list.empty() ? "" : ", ", name, to_string(meta));
  throw GradientError(fmt::format(
      "[{}] {} got a gradient, but no module lists it in visit and no optimiser has it, so that it "
      "would never be trained: list it (or the child it belongs to), detach it, or say "
      "with_unlisted(Unlisted::allow)",
      optimizer, list));
}

void throw_no_gradients(std::string_view optimizer, const std::string& first, std::size_t count,
                        const std::vector<std::string>& present) {
  const std::string held = present.empty() ? std::string("there are none at all")
                                           : fmt::format("they are of {}", quoted_names(present));
  throw GradientError(fmt::format(
      "[{}] the gradients are of none of the {} parameters ('{}', ...); {}: give the gradients of a "
      "loss that depends on this optimiser's model",
      optimizer, count, first, held));
}

}  // namespace ferrite::optim
