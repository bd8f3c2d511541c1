// Settings of optimisers: rates, decay, clipping, groups of parameters, scales of losses.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ferrite/core/config.hpp"
#include "ferrite/core/dtype.hpp"
#include "ferrite/core/shape.hpp"

namespace ferrite::optim {

/// Picks parameters by name and shape.
using Selector = std::function<bool(std::string_view name, const Shape& shape)>;

/// Biases and the scales of norms: everything with fewer than two axes.
FERRITE_API bool biases_and_norms(std::string_view name, const Shape& shape);
/// The parameters of one part of a model: under("encoder") selects "encoder.0.weight".
FERRITE_API Selector under(std::string part);

/// Parameters with their own settings. A parameter belongs to the first group that selects it.
struct ParameterGroup {
  Selector selects;
  double lr_scale = 1;
  /// Absent: the optimiser's.
  std::optional<double> weight_decay = std::nullopt;
};

/// What happens if the first step's gradients contain leaves that no module lists in `visit` and no optimiser
/// has: such a parameter would never be trained.
enum class Unlisted : std::uint8_t { error, allow };

/// Settings that all optimisers share.
struct FERRITE_API OptimizerSettings {
  double lr = 1e-3;
  double weight_decay = 0;
  std::optional<double> clip_norm;
  std::optional<double> clip_value;
  std::vector<ParameterGroup> groups;
  Unlisted unlisted = Unlisted::error;

  /// Throws ValueError for a negative or non-finite rate, decay, scale or bound.
  void check(std::string_view optimizer) const;
  /// Index into groups, or groups.size() for none.
  std::size_t group_of(std::string_view name, const Shape& shape) const;
};

/// Settings as a chain of calls: SgdConfig{}.with_lr(0.1).with_clip_norm(1).
template <class Self>
struct OptimizerConfig : OptimizerSettings {
  Self with_lr(double v) const { return with(&OptimizerSettings::lr, v); }
  Self with_weight_decay(double v) const { return with(&OptimizerSettings::weight_decay, v); }
  /// Scales all gradients by one factor so that their global norm is at most v.
  Self with_clip_norm(double v) const { return with(&OptimizerSettings::clip_norm, std::optional(v)); }
  /// Clamps every gradient element to [-v, v], before the norm is taken.
  Self with_clip_value(double v) const { return with(&OptimizerSettings::clip_value, std::optional(v)); }
  Self with_group(ParameterGroup group) const {
    auto all = groups;
    all.push_back(std::move(group));
    return with(&OptimizerSettings::groups, std::move(all));
  }
  Self with_no_decay(Selector selects) const { return with_group({std::move(selects), 1, 0.0}); }
  Self with_unlisted(Unlisted v) const { return with(&OptimizerSettings::unlisted, v); }

 protected:
  template <class Owner, class T>
  Self with(T Owner::*member, T value) const {
    return detail::with(static_cast<const Self&>(*this), member, std::move(value));
  }
};

/// Whether the step looks ahead along the momentum.
enum class Nesterov : bool { no, yes };

/// PyTorch's defaults.
struct FERRITE_API SgdConfig : OptimizerConfig<SgdConfig> {
  double momentum = 0;
  Nesterov nesterov = Nesterov::no;

  SgdConfig with_momentum(double v) const { return with(&SgdConfig::momentum, v); }
  SgdConfig with_nesterov(Nesterov v = Nesterov::yes) const { return with(&SgdConfig::nesterov, v); }
  void check() const;
};

/// Settings that Adam and AdamW share.
template <class Self>
struct AdamFamilyConfig : OptimizerConfig<Self> {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;

  Self with_betas(double first, double second) const {
    return this->with(&AdamFamilyConfig::beta1, first).with(&AdamFamilyConfig::beta2, second);
  }
  Self with_eps(double v) const { return this->with(&AdamFamilyConfig::eps, v); }
};

/// Decay is added to the gradient.
struct AdamConfig : AdamFamilyConfig<AdamConfig> {};
/// Decay is subtracted from the parameter, apart from the gradient.
struct AdamWConfig : AdamFamilyConfig<AdamWConfig> {
  AdamWConfig() { weight_decay = 0.01; }
};

/// What the step of a matrix is multiplied by. aspect: sqrt(max(1, rows / columns)), so that every output of
/// a layer moves alike. adam: 0.2 sqrt(max(rows, columns)), with which a step is about as large as AdamW's
/// and wants the same learning rate and decay (Liu et al., 2025).
enum class MuonScale : std::uint8_t { aspect, adam };

/// PyTorch's defaults. Settings of AdamW are for the parameters that are not matrices.
struct FERRITE_API MuonConfig : OptimizerConfig<MuonConfig> {
  double momentum = 0.95;
  Nesterov nesterov = Nesterov::yes;
  MuonScale scale = MuonScale::aspect;
  /// Of Newton and Schulz: more make the singular values no more alike.
  int iterations = 5;
  /// What the iterations compute in. Absent: f32, or f64 for f64 parameters. bf16 is faster on GPUs.
  std::optional<DType> dtype = std::nullopt;
  /// Parameters of two axes are matrices; with a selector only those that it picks. Tables of embeddings
  /// and output layers learn better with AdamW.
  Selector matrices;
  /// AdamW's learning rate as a multiple of Muon's.
  double adam_lr_scale = 1;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;

  MuonConfig() { weight_decay = 0.1; }
  MuonConfig with_momentum(double v) const { return with(&MuonConfig::momentum, v); }
  MuonConfig with_nesterov(Nesterov v) const { return with(&MuonConfig::nesterov, v); }
  MuonConfig with_scale(MuonScale v) const { return with(&MuonConfig::scale, v); }
  MuonConfig with_iterations(int v) const { return with(&MuonConfig::iterations, v); }
  MuonConfig with_dtype(std::optional<DType> v) const { return with(&MuonConfig::dtype, v); }
  MuonConfig with_matrices(Selector v) const { return with(&MuonConfig::matrices, std::move(v)); }
  MuonConfig with_adam_lr_scale(double v) const { return with(&MuonConfig::adam_lr_scale, v); }
  MuonConfig with_betas(double first, double second) const {
    return with(&MuonConfig::beta1, first).with(&MuonConfig::beta2, second);
  }
  MuonConfig with_eps(double v) const { return with(&MuonConfig::eps, v); }
  void check() const;
};

/// How the scale of a loss follows the gradients. The defaults are PyTorch's.
struct FERRITE_API LossScalerConfig {
  /// The first scale.
  double initial = 65536;
  /// What the scale is multiplied by after `growth_interval` updates in a row, and after gradients that were
  /// not finite.
  double growth = 2, backoff = 0.5;
  std::int64_t growth_interval = 2000;

  LossScalerConfig with_initial(double v) const { return detail::with(*this, &LossScalerConfig::initial, v); }
  LossScalerConfig with_growth(double factor, std::int64_t interval) const {
    return detail::with(detail::with(*this, &LossScalerConfig::growth, factor),
                        &LossScalerConfig::growth_interval, interval);
  }
  LossScalerConfig with_backoff(double v) const { return detail::with(*this, &LossScalerConfig::backoff, v); }
  /// Throws ValueError unless initial >= 1, growth >= 1, 0 < backoff < 1 and growth_interval >= 1, all
  /// finite.
  void check() const;
};

FERRITE_API void check_adam(std::string_view optimizer, double beta1, double beta2, double eps);

}  // namespace ferrite::optim
