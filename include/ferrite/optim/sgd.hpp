// Sgd: stochastic gradient descent with momentum.
#pragma once

#include "ferrite/optim/optimizer.hpp"

namespace ferrite::optim {

/// v = momentum v + g + decay p;  p -= lr v, or with Nesterov p -= lr (g + decay p + momentum v).
template <class B>
class Sgd final : public Optimizer<B> {
 public:
  explicit Sgd(std::vector<nn::NamedParameter<B>> parameters, SgdConfig config = {},
               Shards<typename Optimizer<B>::Kernels>* shards = nullptr)
      : Optimizer<B>("sgd", std::move(parameters), (config.check(), config), {"momentum"},
                     config.momentum != 0 ? Memory::kept : Memory::scratch, shards),
        config_(std::move(config)) {}
  std::string_view name() const override { return "sgd"; }

 private:
  void apply(typename Optimizer<B>::Kernels& kernels, const Update& u, Ins in, Outs out) override {
    const op::Sgd op{u.lr, config_.momentum, config_.nesterov == Nesterov::yes, u.weight_decay};
    evaluate_in_place(kernels, op, in, out);
  }
  SgdConfig config_;
};

}  // namespace ferrite::optim
