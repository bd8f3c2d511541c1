// WeightAverage: an exponential average of a model's parameters, which often predicts better than the last
// step's.
#pragma once

#include <vector>

#include "ferrite/nn/module.hpp"
#include "ferrite/tensor/assign.hpp"

namespace ferrite::train {

/// The averages are on the model's backend, in f32 (f64 for f64). They begin as the parameters.
template <class B>
class WeightAverage {
  using Kernels = std::remove_reference_t<decltype(detail::kernel_backend(std::declval<B&>()))>;

 public:
  /// The model must outlive it and keep its parts.
  explicit WeightAverage(nn::Module<B>& model) : parameters_(model.parameters()) { restart(); }

  /// Forgets what it has, and begins again as the parameters are now.
  void restart() {
    averages_.clear();
    for (const auto& p : parameters_) {
      const Tensor<Kernels> now = kernel_tensor(p.tensor);
      averages_.push_back(clone(cast(now, wide_dtype(now.dtype()))));
    }
  }
  /// average = keep average + (1 - keep) parameter
  void update(double keep) {
    for (std::size_t i = 0; i < averages_.size(); ++i) assign(averages_[i], updated(i, keep));
  }

  /// As update(keep) would leave them, with nothing changed; keep = 1: as they are.
  NamedTensors state(double keep = 1) const {
    NamedTensors result;
    for (std::size_t i = 0; i < averages_.size(); ++i)
      result.emplace(parameters_[i].name, to_host(updated(i, keep)));
    return result;
  }
  /// Throws ValueError naming a parameter without an average, with nothing changed.
  void load_state(const NamedTensors& state) {
    for (const auto& p : parameters_)
      if (!state.contains(p.name))
        throw ValueError("[trainer] no average of '" + p.name + "' in the checkpoint");
    for (std::size_t i = 0; i < averages_.size(); ++i) assign(averages_[i], state.at(parameters_[i].name));
  }

  /// While it lives, the model has the averages of state(keep) in place of its parameters.
  class Scope {
   public:
    explicit Scope(const WeightAverage& average, double keep = 1) : average_(average) {
      for (const auto& p : average.parameters_) kept_.push_back(clone(kernel_tensor(p.tensor)));
      try {
        for (std::size_t i = 0; i < kept_.size(); ++i) put(i, average.updated(i, keep));
      } catch (...) {
        put_back();
        throw;
      }
    }
    ~Scope() { put_back(); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    void put(std::size_t i, const Tensor<Kernels>& value) {
      assign(kernel_tensor(average_.parameters_[i].tensor), value);
    }
    void put_back() {
      for (std::size_t i = 0; i < kept_.size(); ++i) put(i, kept_[i]);
    }
    const WeightAverage& average_;
    std::vector<Tensor<Kernels>> kept_;
  };

 private:
  Tensor<Kernels> updated(std::size_t i, double keep) const {
    if (keep == 1) return averages_[i];
    const Tensor<Kernels> now = cast(kernel_tensor(parameters_[i].tensor), averages_[i].dtype());
    return averages_[i] + (now - averages_[i]) * (1 - keep);
  }
  static Tensor<Kernels> kernel_tensor(const Tensor<B>& x) {
    return {detail::kernel_backend(x.backend()), detail::kernel_array(x.primitive())};
  }

  std::vector<nn::NamedParameter<B>> parameters_;
  std::vector<Tensor<Kernels>> averages_;
};

}  // namespace ferrite::train
