// Rows in Eigen, compiled for the same instruction sets as the kernels that they are compared with.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace ferrite::cli::bench {

/// The op on inputs of n elements, or for matmul of n x n, as a call that writes to `out`. An empty function
/// for an op that Eigen has no one expression for.
template <class T>
using EigenCall = std::function<void()>(const std::string& op, const T* const* in, T* out, std::int64_t n);

struct EigenCalls {
  EigenCall<float>* of_f32;
  EigenCall<double>* of_f64;
  /// "Eigen 3.4.0"
  std::string (*version)();

  template <class T>
  EigenCall<T>* of() const {
    if constexpr (sizeof(T) == 4)
      return of_f32;
    else
      return of_f64;
  }
};
}  // namespace ferrite::cli::bench
