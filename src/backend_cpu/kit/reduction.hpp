// Reductions over any set of axes of any layout, by one of the folds.
#pragma once

#include "backend_cpu/kit/folds.hpp"

namespace ferrite::cpu {

/// Folds `in` along `axes` into `out`, or adds the results to it.
void reduce_axes(const Fold& fold, const Array& in, const Array& out, const Shape& axes, bool keepdim,
                 bool accumulate);

}  // namespace ferrite::cpu
