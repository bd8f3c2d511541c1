// The schedules' formulas.
#include "ferrite/optim/schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "ferrite/core/error.hpp"

namespace ferrite::optim {
namespace {

void check_rate(const char* what, double rate) {
  if (!(rate >= 0) || !std::isfinite(rate))
    throw ValueError(fmt::format("[schedule] {} {}: must be a finite number of at least 0", what, rate));
}
void check_length(const char* what, std::int64_t steps, std::int64_t least) {
  if (steps < least)
    throw ValueError(fmt::format("[schedule] {} {}: must be at least {}", what, steps, least));
}

}  // namespace

Schedule::Schedule(Kind kind, double lr, std::int64_t length) : kind_(kind), lr_(lr), length_(length) {
  check_rate("learning rate", lr);
}

Schedule Schedule::constant(double lr) { return {Kind::constant, lr, 0}; }

Schedule Schedule::linear_warmup(double lr, std::int64_t steps) { return constant(lr).with_warmup(steps); }

Schedule Schedule::cosine(double lr, std::int64_t total, double floor) {
  check_length("total", total, 1);
  check_rate("floor", floor);
  Schedule schedule(Kind::cosine, lr, total);
  schedule.floor_ = floor;
  return schedule;
}

Schedule Schedule::step(double lr, std::int64_t every, double factor) {
  check_length("every", every, 1);
  check_rate("factor", factor);
  Schedule schedule(Kind::step, lr, every);
  schedule.factor_ = factor;
  return schedule;
}

Schedule Schedule::custom(double lr, std::function<double(std::int64_t)> factor, std::string description) {
  if (!factor) throw ValueError("[schedule] no function: needs one from a step to a factor");
  if (description.empty())
    throw ValueError("[schedule] no description: checkpoints need one to tell functions apart");
  Schedule schedule(Kind::custom, lr, 0);
  schedule.function_ = std::move(factor);
  schedule.description_ = std::move(description);
  return schedule;
}

Schedule Schedule::with_warmup(std::int64_t steps) const {
  check_length("warm-up", steps, 0);
  Schedule copy = *this;
  copy.warmup_ = steps;
  return copy;
}

double Schedule::at(std::int64_t step) const {
  check_length("step", step, 0);
  if (step < warmup_) return lr_ * static_cast<double>(step + 1) / static_cast<double>(warmup_);
  switch (kind_) {
    case Kind::cosine: {
      const auto span = static_cast<double>(std::max<std::int64_t>(length_ - warmup_, 1));
      const double done = std::min(1.0, static_cast<double>(step - warmup_) / span);
      return floor_ + (lr_ - floor_) * 0.5 * (1 + std::cos(std::numbers::pi * done));
    }
    case Kind::step:
      return lr_ * std::pow(factor_, static_cast<double>((step - warmup_) / length_));
    case Kind::custom: {
      const double factor = function_(step - warmup_);
      if (!(factor >= 0) || !std::isfinite(factor)) {
        throw ValueError(
            fmt::format("[schedule] {} gives {} at step {}: must be a finite number of at least 0",
                        description_, factor, step - warmup_));
      }
      return lr_ * factor;
    }
    default:
      return lr_;
  }
}

std::string Schedule::describe() const {
  std::string text;
  if (kind_ == Kind::cosine)
    text = fmt::format("cosine from {} to {} over {} steps", lr_, floor_, length_);
  else if (kind_ == Kind::step)
    text = fmt::format("{} times {} every {} steps", lr_, factor_, length_);
  else if (kind_ == Kind::custom)
    text = fmt::format("{} times {}", lr_, description_);
  else
    text = fmt::format("constant {}", lr_);
  return warmup_ > 0 ? fmt::format("{} after {} of warm-up", text, warmup_) : text;
}

}  // namespace ferrite::optim
