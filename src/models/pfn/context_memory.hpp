// How much memory what is kept of train rows may take, if nobody says.
#pragma once

#include "ferrite/stacks/any_backend.hpp"

namespace ferrite::pfn::detail {

/// 8 GiB, or half of what there is if that is less: of the memory of the machine, or of what is free on the
/// GPU. `needed` is what all rows would take.
double usual_context_bytes(AnyBackend& backend, double needed);

}  // namespace ferrite::pfn::detail
