// The activations of linear layers, row by row.
#pragma once

#include <cstdint>
#include <type_traits>

#include "backend_cpu/math/element_math.hpp"
#include "ferrite/cpu/blocks.hpp"
#include "ferrite/ops/linear.hpp"

namespace ferrite::cpu {

template <class T, op::UnaryFn fn>
void activate_row(const T* x, T* y, std::int64_t n) {
  // f64 has no vector code for these functions but relu.
  constexpr Loop loop = std::is_same_v<T, float> || fn == op::UnaryFn::relu ? Loop::vector : Loop::scalar;
  for_each_index<loop>(n, [=](std::int64_t i) { y[i] = formulas::unary(Math<T>{}, fn, x[i], T{1}); });
}

template <class T>
using RowFunction = void (*)(const T* x, T* y, std::int64_t n);

/// nullptr for none.
template <class T>
RowFunction<T> row_function(Activation activation) {
  switch (activation) {
    case Activation::relu:
      return activate_row<T, op::UnaryFn::relu>;
    case Activation::gelu:
      return activate_row<T, op::UnaryFn::gelu_tanh>;
    case Activation::silu:
      return activate_row<T, op::UnaryFn::silu>;
    case Activation::tanh:
      return activate_row<T, op::UnaryFn::tanh>;
    case Activation::sigmoid:
      return activate_row<T, op::UnaryFn::sigmoid>;
    default:
      return nullptr;
  }
}

}  // namespace ferrite::cpu
