// Checks of optimiser settings.
#include "ferrite/optim/config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ferrite/core/error.hpp"

namespace ferrite::optim {
namespace {

void check_not_negative(std::string_view optimizer, std::string_view what, double v) {
  if (!(v >= 0) || !std::isfinite(v))
    throw ValueError(fmt::format("[{}] {} {}: must be a finite number of at least 0", optimizer, what, v));
}
void check_below_one(std::string_view optimizer, std::string_view what, double v) {
  if (!(v >= 0 && v < 1)) throw ValueError(fmt::format("[{}] {} {}: must lie in [0, 1)", optimizer, what, v));
}

void check_scale(std::string_view what, double v, bool meets, std::string_view rule) {
  if (!meets || !std::isfinite(v)) throw ValueError(fmt::format("[loss scaler] {} {}: {}", what, v, rule));
}

}  // namespace

void LossScalerConfig::check() const {
  check_scale("initial", initial, initial >= 1 && initial <= std::ldexp(1.0, 64), "must lie in [1, 2^64]");
  check_scale("growth", growth, growth >= 1, "must be a finite number of at least 1");
  check_scale("backoff", backoff, backoff > 0 && backoff < 1, "must lie in (0, 1)");
  check_scale("growth interval", static_cast<double>(growth_interval), growth_interval >= 1,
              "must be at least 1");
}

bool biases_and_norms(std::string_view, const Shape& shape) { return shape.rank() < 2; }

Selector under(std::string part) {
  return [prefix = std::move(part) + '.'](std::string_view name, const Shape&) {
    return name.starts_with(prefix);
  };
}

void OptimizerSettings::check(std::string_view optimizer) const {
  check_not_negative(optimizer, "learning rate", lr);
  check_not_negative(optimizer, "weight decay", weight_decay);
  if (clip_norm) check_not_negative(optimizer, "clip norm", *clip_norm);
  if (clip_value) check_not_negative(optimizer, "clip value", *clip_value);
  for (const ParameterGroup& group : groups) {
    check_not_negative(optimizer, "learning rate scale", group.lr_scale);
    if (group.weight_decay) check_not_negative(optimizer, "weight decay", *group.weight_decay);
    if (!group.selects) throw ValueError(fmt::format("[{}] a group without a selector", optimizer));
  }
}

std::size_t OptimizerSettings::group_of(std::string_view name, const Shape& shape) const {
  const auto found = std::find_if(groups.begin(), groups.end(),
                                  [&](const ParameterGroup& g) { return g.selects(name, shape); });
  return static_cast<std::size_t>(found - groups.begin());
}

void SgdConfig::check() const {
  OptimizerSettings::check("sgd");
  check_not_negative("sgd", "momentum", momentum);
  if (nesterov == Nesterov::yes && momentum == 0)
    throw ValueError("[sgd] nesterov with momentum 0: needs a momentum");
}

void MuonConfig::check() const {
  OptimizerSettings::check("muon");
  check_below_one("muon", "momentum", momentum);
  if (nesterov == Nesterov::yes && momentum == 0)
    throw ValueError("[muon] nesterov with momentum 0: needs a momentum");
  if (iterations < 1 || iterations > 100)
    throw ValueError(fmt::format("[muon] {} iterations: must lie in [1, 100]", iterations));
  if (dtype && !is_floating(*dtype))
    throw ValueError(fmt::format("[muon] dtype {}: must be floating", to_string(*dtype)));
  check_not_negative("muon", "scale of AdamW's learning rate", adam_lr_scale);
  check_adam("muon", beta1, beta2, eps);
}

void check_adam(std::string_view optimizer, double beta1, double beta2, double eps) {
  check_below_one(optimizer, "beta1", beta1);
  check_below_one(optimizer, "beta2", beta2);
  check_not_negative(optimizer, "eps", eps);
}

}  // namespace ferrite::optim
