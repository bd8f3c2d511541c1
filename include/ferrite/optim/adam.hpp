// Adam (Kingma and Ba, 2015) and AdamW (Loshchilov and Hutter, 2019).
#pragma once

#include "ferrite/ops/optimizer_steps.hpp"
#include "ferrite/optim/optimizer.hpp"

namespace ferrite::optim {

/// m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2;
/// p -= lr m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + eps). Moments are f32, f64 for f64 parameters.
/// Adam adds decay p to g; AdamW subtracts lr decay p from the parameter.
template <class B, class Config>
class AdamFamily final : public Optimizer<B> {
  static constexpr bool decoupled = std::same_as<Config, AdamWConfig>;
  static constexpr std::string_view label = decoupled ? "adamw" : "adam";

 public:
  explicit AdamFamily(std::vector<nn::NamedParameter<B>> parameters, Config config = {},
                      Shards<typename Optimizer<B>::Kernels>* shards = nullptr)
      : Optimizer<B>(label, std::move(parameters), checked(config), {"exp_avg", "exp_avg_sq"}, Memory::kept,
                     shards),
        config_(std::move(config)) {}
  std::string_view name() const override { return label; }

 private:
  bool writes_copies() const override { return true; }
  static const Config& checked(const Config& config) {
    config.check(label);
    check_adam(label, config.beta1, config.beta2, config.eps);
    return config;
  }
  void apply(typename Optimizer<B>::Kernels& kernels, const Update& u, Ins in, Outs out) override {
    const op::Adam op{u.lr,           config_.beta1, config_.beta2, config_.eps,
                      u.weight_decay, decoupled,     u.step,        u.copies};
    evaluate_in_place(kernels, op, in, out);
  }
  Config config_;
};

/// Decay is added to the gradient. By default the learning rate is 1e-3 and there is no decay.
template <class B>
using Adam = AdamFamily<B, AdamConfig>;
/// Decay is subtracted from the parameter, apart from the gradient. By default the learning rate is 1e-3 and
/// the decay 0.01.
template <class B>
using AdamW = AdamFamily<B, AdamWConfig>;

}  // namespace ferrite::optim
