// Errors and notices of optimisers about their parameters and gradients.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ferrite/nn/state.hpp"

namespace ferrite::optim {

/// Notices about 16-bit parameters and about groups that select nothing. `group_of` gives each parameter's
/// group. Throws ValueError if there is no parameter, or if two have the same name.
FERRITE_API std::vector<std::string> check_parameters(std::string_view optimizer,
                                                      const std::vector<StateEntry>& parameters,
                                                      std::size_t groups,
                                                      const std::vector<std::size_t>& group_of);
/// Throws ValueError unless what gradients are divided by is above 0 and finite.
FERRITE_API void check_divisor(std::string_view optimizer, double divisor);
FERRITE_API std::string missing_notice(std::string_view optimizer, const std::vector<std::string>& names);

[[noreturn]] FERRITE_API void throw_unlisted(std::string_view optimizer,
                                             const std::vector<std::pair<std::string, Meta>>& leaves);
/// `present` holds the names of the leaves that have gradients.
[[noreturn]] FERRITE_API void throw_no_gradients(std::string_view optimizer, const std::string& first,
                                                 std::size_t count, const std::vector<std::string>& present);

}  // namespace ferrite::optim
