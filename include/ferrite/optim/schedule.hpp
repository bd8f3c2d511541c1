// Schedule: the learning rate as a pure function of the step, so that a checkpoint needs only the step.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "ferrite/core/export.hpp"

namespace ferrite::optim {

/// Steps count from 0. Factories throw ValueError for negative rates or lengths.
class FERRITE_API Schedule {
 public:
  static Schedule constant(double lr);
  /// lr (step + 1) / steps for the first `steps` steps, then lr.
  static Schedule linear_warmup(double lr, std::int64_t steps);
  /// Half a cosine from lr at step 0 to `floor` at step `total`, and `floor` from there on.
  static Schedule cosine(double lr, std::int64_t total, double floor = 0);
  /// lr times `factor` once for every `every` completed steps.
  static Schedule step(double lr, std::int64_t every, double factor = 0.1);

  /// lr times factor(step), for any function of the step. `description` stands for it in checkpoints:
  /// different functions need different descriptions. at() throws ValueError if a factor is negative or not
  /// finite.
  static Schedule custom(double lr, std::function<double(std::int64_t step)> factor, std::string description);

  /// The same with a linear warm-up over the first `steps` steps. A cosine still ends at its `total`: it
  /// spans the steps after the warm-up. `step` and `custom` start counting after the warm-up.
  Schedule with_warmup(std::int64_t steps) const;

  double at(std::int64_t step) const;
  /// "cosine from 0.001 to 0 over 1000 steps after 100 of warm-up": a checkpoint keeps it for comparison.
  std::string describe() const;

 private:
  enum class Kind : std::uint8_t { constant, cosine, step, custom };
  Schedule(Kind kind, double lr, std::int64_t length);

  Kind kind_;
  double lr_;
  std::int64_t length_;  // total of a cosine, or steps between two factors
  double floor_ = 0;
  double factor_ = 1;
  std::int64_t warmup_ = 0;
  std::function<double(std::int64_t)> function_;
  std::string description_;
};

}  // namespace ferrite::optim
