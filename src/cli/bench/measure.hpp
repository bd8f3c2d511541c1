// Runs one row on one backend after another, on the same inputs.
#pragma once

#include <optional>

#include "cli/bench/rows.hpp"
#include "cli/bench/timing.hpp"

namespace ferrite::cli::bench {

/// |y - exact| / |exact| by L2 norms, in f64; both on one backend. NaN if one of them has a NaN.
double relative_error(const Tensor<AnyBackend>& y, const Tensor<AnyBackend>& exact);

class RowRunner {
 public:
  /// Keeps a reference to the row.
  RowRunner(const Row& row, const Timing& timing) : row_(row), timing_(timing) {}

  Times time_on(AnyBackend& backend);
  /// The error of a backend against the row in f64. Nothing for rows that have none: training steps, f64, and
  /// rows so large that f64 would take longer than all else.
  std::optional<double> error_on(AnyBackend& backend);

  /// The row's inputs on the CPU, the same in every call.
  const std::vector<Tensor<AnyBackend>>& inputs();
  bool has_error() const;
  /// The first output in f64, on the CPU; only if has_error().
  const Tensor<AnyBackend>& exact();

 private:
  std::vector<Tensor<AnyBackend>> inputs_on(AnyBackend& backend);

  const Row& row_;
  Timing timing_;
  AnyBackend cpu_{"cpu"};
  std::vector<Tensor<AnyBackend>> inputs_;
  std::optional<Tensor<AnyBackend>> exact_;
};

}  // namespace ferrite::cli::bench
