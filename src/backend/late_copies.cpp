#include "ferrite/backend/late_copies.hpp"

#include "ferrite/core/error.hpp"

namespace ferrite::detail {

void throw_nothing_pushed() { throw ValueError("[pop] nothing was pushed: must follow a push"); }

}  // namespace ferrite::detail
