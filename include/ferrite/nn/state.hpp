// State: named tensors on the host, the form in which models and optimisers are saved, loaded and moved
// between backends.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "ferrite/core/array.hpp"
#include "ferrite/io/host_tensor.hpp"

namespace ferrite {

/// A tensor that a state must hold.
struct StateEntry {
  std::string name;
  Meta meta;
};

/// "'a', 'b' and 5 more": the first eight, for messages.
FERRITE_API std::string quoted_names(std::span<const std::string> names);

/// Throws unless `given` holds exactly the tensors `needed`, with their shapes and with dtypes that convert
/// to theirs (floating to floating, any other only to itself): ValueError naming what is missing and what is
/// unexpected, else ShapeError or DTypeError naming the tensors. `what` names the owner: "[load_state] ...".
FERRITE_API void check_state(std::string_view what, std::span<const StateEntry> needed,
                             const NamedTensors& given);

namespace detail {
/// A ValueError: an optimiser would take its step twice.
[[noreturn]] FERRITE_API void throw_listed_twice(std::string_view what, const std::string& first,
                                                 const std::string& second);
/// Two leaves made from one tensor are neither tied weights nor two parameters: ValueError says how to make
/// either.
[[noreturn]] FERRITE_API void throw_two_leaves(std::string_view what, const std::string& first,
                                               const std::string& second);
}  // namespace detail

/// with_prefix puts `prefix` before all names. strip_prefix selects the names that start with it, and removes
/// it.
FERRITE_API NamedTensors with_prefix(std::string_view prefix, const NamedTensors& tensors);
FERRITE_API NamedTensors strip_prefix(std::string_view prefix, const NamedTensors& tensors);

}  // namespace ferrite
