// Rows in Eigen. The interface has plain pointers: only this peer is compiled with the instruction set of the
// kernels, and what it shares with the program must not be.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace ferrite::cli::bench {

/// The op on inputs of n elements, or for matmul of n x n, as a call that writes to `out`. T is float or
/// double. An empty function for an op that Eigen has no one expression for.
template <class T>
std::function<void()> eigen_call(const std::string& op, const T* const* in, T* out, std::int64_t n);

/// "Eigen 3.4.0"
std::string eigen_version();

}  // namespace ferrite::cli::bench
