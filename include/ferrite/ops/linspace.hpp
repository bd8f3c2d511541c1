// linspace: a number of evenly spaced values.
#pragma once

#include "ferrite/ops/cat.hpp"
#include "ferrite/ops/fill.hpp"
#include "ferrite/ops/iota.hpp"
#include "ferrite/ops/unary.hpp"

namespace ferrite {

/// `count` evenly spaced values, both ends included. For an integer dtype they are rounded down, as NumPy
/// does.
template <class B>
Tensor<B> linspace(B& b, double start, double stop, std::int64_t count, DType dtype = DType::f32) {
  const DType wide = is_floating(dtype) ? dtype : DType::f64;
  const auto evenly = [&](std::int64_t n, double step) {
    return create(b, op::Iota{n, wide, start, step, "linspace"});
  };
  Tensor<B> y;
  if (count < 2) {
    y = evenly(count, 0);
  } else {
    // start + (count - 1) * step is not always stop.
    const double step = (stop - start) / static_cast<double>(count - 1);
    y = cat(std::vector{evenly(count - 1, step), full(b, {1}, stop, wide)});
  }
  return is_floating(dtype) ? y : cast(floor(y), dtype);
}

}  // namespace ferrite
