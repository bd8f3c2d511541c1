// LossScaler: keeps the gradients of a model that multiplies in f16 within the range of f16.
#pragma once

#include "ferrite/nn/module.hpp"
#include "ferrite/optim/config.hpp"

namespace ferrite::optim {

/// The scale of a loss, between 1 and 2^64. It lives on the device, where each update changes it, so that
/// nothing waits for the host and a captured step goes on scaling. Optimizer::scale_losses makes one.
template <class B>
class LossScaler {
 public:
  using Kernels = std::remove_reference_t<decltype(detail::kernel_backend(std::declval<B&>()))>;

  LossScaler(B& backend, LossScalerConfig config)
      : config_((config.check(), config)),
        scale_(full(backend, {}, config.initial, DType::f32)),
        good_updates_(full(backend, {}, 0, DType::f32)) {}

  /// The loss times the scale. Its gradients are larger by the same factor.
  Tensor<B> scaled(const Tensor<B>& loss) const { return loss * scale_; }

  /// f32 [], on the device.
  Tensor<Kernels> scale() const { return kernel_tensor(scale_); }
  /// The updates since the scale changed: f32 [].
  Tensor<Kernels> good_updates() const { return kernel_tensor(good_updates_); }

  /// After every backward pass. `finite`: bool [], whether all gradients of the scaled loss are finite.
  void update(const Tensor<Kernels>& finite) const {
    constexpr double smallest = 1, largest = 0x1p64;
    const Tensor<Kernels> now = scale(), updates = where(finite, good_updates() + 1, 0);
    const Tensor<Kernels> grows = updates >= static_cast<double>(config_.growth_interval);
    const Tensor<Kernels> kept = where(grows, minimum(now * config_.growth, largest), now);
    write(where(finite, kept, maximum(now * config_.backoff, smallest)), scale_);
    write(where(grows, 0, updates), good_updates_);
  }

 private:
  static Tensor<Kernels> kernel_tensor(const Tensor<B>& x) {
    return {detail::kernel_backend(x.backend()), detail::kernel_array(x.primitive())};
  }
  /// Into the buffer that is there: a captured step knows no other.
  static void write(const Tensor<Kernels>& from, const Tensor<B>& to) {
    const Array* in[] = {&from.primitive()};
    Array out = detail::kernel_array(to.primitive());
    evaluate_in_place(from.backend(), op::Copy{to.dtype()}, Ins(in, 1), Outs(&out, 1));
  }

  LossScalerConfig config_;
  Tensor<B> scale_, good_updates_;
};

}  // namespace ferrite::optim
