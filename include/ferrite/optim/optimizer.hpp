// Optimizer: one multi-tensor call per step for all parameters (one per group where there are groups),
// written into the parameters' own buffers.
#pragma once

#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "ferrite/data/finite.hpp"
#include "ferrite/nn/module.hpp"
#include "ferrite/ops/optimizer_steps.hpp"
#include "ferrite/optim/config.hpp"
#include "ferrite/optim/loss_scaler.hpp"
#include "ferrite/optim/notices.hpp"
#include "ferrite/optim/shards.hpp"

namespace ferrite::optim {

/// What differs from one multi-tensor call to the next.
struct Update {
  double lr = 0;
  double weight_decay = 0;
  std::int64_t step = 1;                       // number of updates of these parameters, including this one
  std::optional<DType> copies = std::nullopt;  // of the copies that are written along with the parameters
  std::uint32_t slots = 0;                     // bit s: these parameters have slot s
};

/// A tensor that an optimiser has for every parameter, or for those that the selector picks.
struct Slot {
  std::string name;
  Selector selects;
  Slot(const char* slot_name, Selector selector = {}) : name(slot_name), selects(std::move(selector)) {}
};

/// Whether the per-parameter tensors of an optimiser carry information between steps.
enum class Memory : std::uint8_t { kept, scratch };

/// B is the differentiating backend of the parameters. Updates run on the kernels below it, so that Profiled
/// and Parity see them. Frozen parameters are skipped.
///
/// Keep weights in f32. An update is computed in f32 and rounded to the parameter's dtype, so an update
/// smaller than about 1/256 (bf16) or 1/2048 (f16) of a weight is lost. At small learning rates 16-bit
/// weights stop changing long before they are trained. notices() says so.
template <class B>
class Optimizer {
 public:
  using Inner = typename Differentiated<B>::Inner;
  using Kernels = std::remove_reference_t<decltype(detail::kernel_backend(std::declval<B&>()))>;

  virtual ~Optimizer() {
    if (shards_) shards_->release();
  }
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// "adamw"
  virtual std::string_view name() const = 0;

  /// Updates every parameter that has a gradient, in place; the others are skipped (see `missing`). Gradients
  /// are first divided by `divisor`, for example the number of accumulated micro-batches. Throws, with
  /// nothing changed, ValueError for a divisor that is not above 0 and finite; GradientError if no parameter
  /// has a gradient (another model's?), and at the first step if a leaf with a gradient is in no module's
  /// `visit` and in no optimiser (see Unlisted).
  void step(const Gradients<Inner>& grads, double divisor = 1);

  double learning_rate() const { return lr_; }
  /// Throws ValueError for a negative or infinite rate, or NaN.
  void set_learning_rate(double lr) {
    if (!(lr >= 0 && lr <= std::numeric_limits<double>::max()))
      throw ValueError("[optim] learning rate " + std::to_string(lr) + ": must be 0 or more, and finite");
    lr_ = lr;
    if (schedule_.defined()) write_learning_rate();
  }
  /// From now on the learning rate and step count live in a tensor, which set_learning_rate() writes and
  /// step() advances on the device. A step captured into a graph then replays with their current values.
  void keep_schedule_on_device();
  /// For f16 (see LossScaler): from now on step() expects gradients of scaled losses. It divides them by the
  /// scale. If one of them is not finite, it changes nothing but the scale, which gets smaller.
  ///
  ///     optimizer.scale_losses();
  ///     optimizer.step(optimizer.scaled(loss).backward());
  ///
  /// Nothing waits for the device: the schedule is kept there too. Throws as LossScalerConfig::check does.
  void scale_losses(const LossScalerConfig& config = {}) {
    scaler_.emplace(parameters_[0].tensor.backend(), config);
    if (!schedule_.defined()) keep_schedule_on_device();
  }
  bool scales_losses() const { return scaler_.has_value(); }
  /// The loss times the scale; without scale_losses the loss itself.
  Tensor<B> scaled(const Tensor<B>& loss) const { return scaler_ ? scaler_->scaled(loss) : loss; }
  /// Waits for the device; 1 without scale_losses.
  double loss_scale() const { return scaler_ ? scaler_->scale().template item<double>() : 1; }

  /// Made with Shards: it has the state of this rank's share of the parameters only, makes those updates, and
  /// ends every step by getting the others from their ranks. Norms are of all ranks. Every rank then calls
  /// step and state at the same time. The shards outlive the optimiser.
  bool is_sharded() const { return shards_ != nullptr; }

  /// Names of the parameters that have no gradient here.
  std::vector<std::string> missing(const Gradients<Inner>& grads) const {
    std::vector<std::string> names;
    for (const auto& p : parameters_)
      if (!grads.find(p.tensor).defined()) names.push_back(p.name);
    return names;
  }
  /// Names of the parameters whose gradients hold NaN or inf, in this rank's share of them. Reads the
  /// gradients once and waits for the device.
  std::vector<std::string> non_finite(const Gradients<Inner>& grads) const;
  const std::vector<nn::NamedParameter<B>>& parameters() const { return parameters_; }

  /// Facts that a user should know but that are not errors, in the order they were found: 16-bit weights,
  /// groups that select nothing, parameters without a first gradient. Trainers pass them to their observers.
  const std::vector<std::string>& notices() const { return notices_; }
  /// Global norm of the last step's gradients, without the scale of the loss and before clipping by it; 0
  /// without clip_norm and scale_losses, which need it.
  double gradient_norm() const { return norm_.defined() ? norm_.template item<double>() : 0; }
  /// The same on the device, without waiting for it; undefined where it is not needed.
  const Tensor<Kernels>& gradient_norm_tensor() const { return norm_; }

  /// Learning rate, step counts, the tensors kept per parameter ("block0.weight.exp_avg") and the scale of
  /// the losses.
  NamedTensors state() const { return state(StateOf::all_ranks); }
  /// Throws as check_state does; then nothing is changed.
  void load_state(const NamedTensors& state) { load_state(state, StateOf::all_ranks); }
  /// Of an optimiser with shards: the whole, which every rank has then, or what this one has, for which it
  /// asks nobody. Other optimisers have all of it.
  enum class StateOf : std::uint8_t { all_ranks, this_rank };
  NamedTensors state(StateOf extent) const;
  void load_state(const NamedTensors& state, StateOf extent);

 protected:
  /// `shards` only if an element's update depends on that element alone: `apply` then gets shares of
  /// parameters, of one axis.
  Optimizer(std::string_view name, std::vector<nn::NamedParameter<B>> parameters,
            const OptimizerSettings& settings, std::vector<Slot> slots, Memory memory,
            Shards<Kernels>* shards = nullptr);

  /// Runs the op. in: parameters, gradients, the tensors of each slot that they have (update.slots), clip
  /// factor [], and the schedule if it is on the device; out: parameters, slots, and with update.copies the
  /// copies.
  virtual void apply(Kernels& kernels, const Update& update, Ins in, Outs out) = 0;
  /// Whether `apply` knows what to do with copies. Without it products cast parameters after every step.
  virtual bool writes_copies() const { return false; }

 private:
  /// Parameters that one call can take together: of one group, updated equally often, all of them with a
  /// 16-bit copy or none, and with the same slots.
  using Calls =
      std::map<std::tuple<std::size_t, std::int64_t, bool, std::uint32_t>, std::vector<std::size_t>>;

  void list_parameters(std::string_view name);
  void check_first(const Gradients<Inner>& grads);
  /// The 16-bit copy that mixed precision keeps of a parameter; undefined where there is none, or where this
  /// optimiser does not write copies.
  Array copy_of(const nn::NamedParameter<B>& parameter) const {
    if constexpr (requires(Array x) { kernels().copy_of(x); })
      if (writes_copies()) return kernels().copy_of(detail::kernel_array(parameter.tensor.primitive()));
    return {};
  }
  Kernels& kernels() const { return detail::kernel_backend(parameters_[0].tensor.backend()); }
  /// The gradients of a step, by parameter, and the 16-bit copies that it writes; undefined where there is
  /// none.
  struct Step {
    std::vector<Array> gradients, copies;
  };
  void make_slots(const std::vector<Slot>& kinds);
  /// This rank's share of an array of a parameter's size; undefined if there is none.
  Array own(std::size_t parameter, const Array& array) const;
  HostTensor own(std::size_t parameter, const HostTensor& whole) const;
  DType norm_dtype() const {
    const bool wide =
        std::ranges::all_of(parameters_, [](const auto& p) { return p.tensor.dtype() == DType::f64; });
    return wide ? DType::f64 : DType::f32;
  }
  Tensor<Kernels> norm_of(const std::vector<Array>& gradients) const;
  void clip_values(std::vector<Array>& gradients, double divisor) const;
  Tensor<Kernels> clip_factor(std::vector<Array>& gradients, double divisor);
  Tensor<Kernels> scaled_clip_factor(std::vector<Array>& gradients, double divisor);
  void advance_schedule(const Tensor<Kernels>& clip);
  void run(const Update& update, const std::vector<std::size_t>& members, const Step& step,
           const Array& clip);
  /// Calls use(parameter, name of the slot, array) for every tensor of the slots.
  template <class Use>
  void for_each_slot(Use&& use) const {
    for (std::size_t s = 0; s < slots_.size(); ++s)
      for (std::size_t i = 0; i < parameters_.size(); ++i)
        if (slots_[s][i].defined()) use(i, slot_names_[s], slots_[s][i]);
  }
  std::uint32_t slots_of(std::size_t parameter) const {
    std::uint32_t bits = 0;
    for (std::size_t s = 0; s < slots_.size(); ++s)
      if (slots_[s][parameter].defined()) bits |= 1u << s;
    return bits;
  }
  std::vector<StateEntry> entries(StateOf extent) const;
  void write_learning_rate() {
    kernels().copy_from_host(schedule_.with_layout(schedule_.layout().slice(0, 0, 1, 1)), &lr_);
  }
  /// How often each parameter was updated.
  std::vector<std::int64_t> steps() const;

  std::vector<nn::NamedParameter<B>> parameters_;
  OptimizerSettings settings_;
  std::vector<std::size_t> groups_;  // per parameter
  std::vector<std::int64_t> steps_;  // per parameter; without those counted by the schedule
  Array schedule_;                   // f64 [2]: learning rate, steps since it was made; or undefined
  Array advance_;                    // what a step adds to it
  std::vector<std::string> slot_names_;
  std::vector<std::vector<Array>> slots_;  // per slot and parameter; undefined where it has none
  Memory memory_;
  Shards<Kernels>* shards_;
  double lr_;
  Tensor<Kernels> norm_;
  std::optional<LossScaler<B>> scaler_;
  std::vector<std::string> notices_;
  bool first_checked_ = false;
};

template <class B>
Optimizer<B>::Optimizer(std::string_view name, std::vector<nn::NamedParameter<B>> parameters,
                        const OptimizerSettings& settings, std::vector<Slot> slots, Memory memory,
                        Shards<Kernels>* shards)
    : parameters_(std::move(parameters)),
      settings_(settings),
      memory_(memory),
      shards_(shards),
      lr_(settings.lr) {
  list_parameters(name);
  steps_.assign(parameters_.size(), 0);
  if (shards) shards->claim();
  try {
    make_slots(slots);
  } catch (...) {
    if (shards) shards->release();
    throw;
  }
}

/// Lists the parameters and their groups, and what is unusual about them.
template <class B>
void Optimizer<B>::list_parameters(std::string_view name) {
  std::erase_if(parameters_, [](const auto& p) { return !nn::is_trainable(p.tensor); });
  std::vector<StateEntry> entries;
  for (const auto& p : parameters_) {
    rename_parameter(p.tensor, p.name);
    entries.push_back({p.name, p.tensor.meta()});
    groups_.push_back(settings_.group_of(p.name, p.tensor.shape()));
  }
  notices_ = check_parameters(name, entries, settings_.groups.size(), groups_);
  std::map<std::pair<const Buffer*, std::int64_t>, const nn::NamedParameter<B>*> places;
  for (const auto& p : parameters_) {
    const std::int64_t offset = detail::kernel_array(p.tensor.primitive()).layout().offset;
    const auto [place, is_new] = places.try_emplace({detail::buffer_of(p.tensor), offset}, &p);
    if (is_new) continue;
    const auto& first = *place->second;
    if (first.tensor.primitive().node == p.tensor.primitive().node)
      detail::throw_listed_twice(name, first.name, p.name);
    detail::throw_two_leaves(name, first.name, p.name);
  }
}

template <class B>
void Optimizer<B>::check_first(const Gradients<Inner>& grads) {
  const auto strangers = grads.unlisted();
  if (settings_.unlisted == Unlisted::error && !strangers.empty()) throw_unlisted(name(), strangers);
  const std::vector<std::string> left_out = missing(grads);
  if (!left_out.empty()) notices_.push_back(missing_notice(name(), left_out));
  first_checked_ = true;
}

template <class B>
void Optimizer<B>::step(const Gradients<Inner>& grads, double divisor) {
  check_divisor(name(), divisor);
  std::vector<Tensor<Inner>> found;
  for (const auto& p : parameters_) found.push_back(grads.find(p.tensor));
  if (std::none_of(found.begin(), found.end(), [](const auto& g) { return g.defined(); }))
    throw_no_gradients(name(), parameters_[0].name, parameters_.size(), grads.names());
  if (!first_checked_) check_first(grads);

  Step all{std::vector<Array>(parameters_.size()), std::vector<Array>(parameters_.size())};
  Calls calls;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (!found[i].defined()) continue;
    if (!schedule_.defined()) ++steps_[i];
    all.gradients[i] = own(i, detail::kernel_array(found[i].primitive()));
    if (!all.gradients[i].defined()) continue;
    if (!shards_) all.copies[i] = copy_of(parameters_[i]);
    calls[{groups_[i], steps_[i], all.copies[i].defined(), slots_of(i)}].push_back(i);
  }
  const Tensor<Kernels> clip = clip_factor(all.gradients, divisor);
  if (schedule_.defined()) advance_schedule(clip);
  for (const auto& [key, members] : calls) {
    const auto& [group_index, steps, has_copies, slots] = key;
    Update update{schedule_.defined() ? 1.0 : lr_, settings_.weight_decay, steps, std::nullopt, slots};
    if (group_index < settings_.groups.size()) {
      const ParameterGroup& group = settings_.groups[group_index];
      update.lr *= group.lr_scale;
      update.weight_decay = group.weight_decay.value_or(update.weight_decay);
    }
    if (has_copies) update.copies = all.copies[members[0]].dtype();
    run(update, members, all, clip.primitive());
  }
  if (shards_) shards_->gather_parameters();
}

template <class B>
std::vector<std::string> Optimizer<B>::non_finite(const Gradients<Inner>& grads) const {
  std::vector<Tensor<Kernels>> tensors;
  std::vector<std::string> names, bad;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const Tensor<Inner> grad = grads.find(parameters_[i].tensor);
    const Array mine = grad.defined() ? own(i, detail::kernel_array(grad.primitive())) : Array();
    if (!mine.defined()) continue;
    tensors.push_back({kernels(), mine});
    names.push_back(parameters_[i].name);
  }
  if (tensors.empty() || std::isfinite(global_norm(tensors).template item<double>())) return bad;
  // A norm may overflow although no gradient does, so each gradient is checked.
  for (std::size_t i = 0; i < tensors.size(); ++i)
    if (first_non_finite(to_host(tensors[i])) >= 0) bad.push_back(names[i]);
  return bad;
}

template <class B>
Tensor<typename Optimizer<B>::Kernels> Optimizer<B>::norm_of(const std::vector<Array>& gradients) const {
  std::vector<Tensor<Kernels>> tensors;
  for (const Array& g : gradients)
    if (g.defined()) tensors.push_back({kernels(), g});
  if (!shards_) return global_norm(tensors);
  const Tensor<Kernels> squares =
      tensors.empty() ? zeros(kernels(), {}, DType::f64) : square(global_norm(tensors, DType::f64));
  return cast(sqrt(shards_->sum(squares)), norm_dtype());
}

template <class B>
void Optimizer<B>::clip_values(std::vector<Array>& gradients, double divisor) const {
  const double bound = *settings_.clip_value * divisor;
  for (Array& g : gradients) {
    if (!g.defined()) continue;
    const Tensor<Kernels> x(kernels(), g);
    if (scaler_) {
      const Tensor<Kernels> most = scaler_->scale() * bound;
      g = cast(maximum(minimum(x, most), -most), g.dtype()).primitive();
    } else {
      g = clamp(x, -bound, bound).primitive();
    }
  }
}

/// One number on the device for division and clipping: neither costs an extra pass nor waits for the host. It
/// is negative if the step must change nothing.
template <class B>
Tensor<typename Optimizer<B>::Kernels> Optimizer<B>::clip_factor(std::vector<Array>& gradients,
                                                                 double divisor) {
  if (scaler_) return scaled_clip_factor(gradients, divisor);
  if (settings_.clip_value) clip_values(gradients, divisor);
  if (!settings_.clip_norm) return full(kernels(), {}, 1 / divisor, norm_dtype());
  norm_ = norm_of(gradients) * (1 / divisor);
  return minimum(*settings_.clip_norm / (norm_ + 1e-6), 1) * (1 / divisor);
}

/// The same for gradients of a scaled loss, whose scale it updates.
template <class B>
Tensor<typename Optimizer<B>::Kernels> Optimizer<B>::scaled_clip_factor(std::vector<Array>& gradients,
                                                                        double divisor) {
  Tensor<Kernels> norm = norm_of(gradients);
  const Tensor<Kernels> finite = isfinite(norm);
  if (settings_.clip_value) {
    clip_values(gradients, divisor);
    norm = where(finite, norm_of(gradients), norm);
  }
  Tensor<Kernels> factor = (1 / divisor) / scaler_->scale();
  norm_ = norm * factor;
  if (settings_.clip_norm) factor = minimum(*settings_.clip_norm / (norm_ + 1e-6), 1) * factor;
  factor = where(finite, factor, -1);
  scaler_->update(finite);
  return factor;
}

/// Counts the step, unless the clip factor says that it changes nothing.
template <class B>
void Optimizer<B>::advance_schedule(const Tensor<Kernels>& clip) {
  const Tensor<Kernels> step(kernels(), advance_);
  const Array count = scaler_ ? where(clip >= 0, step, 0).primitive() : advance_;
  const Array* in[] = {&schedule_, &count};
  evaluate_in_place(kernels(), op::Binary{op::BinaryFn::add}, Ins(in, 2), Outs(&schedule_, 1));
}

template <class B>
void Optimizer<B>::run(const Update& update, const std::vector<std::size_t>& members, const Step& step,
                       const Array& clip) {
  std::vector<const Array*> in;
  std::vector<Array> parameters, out;
  for (std::size_t i : members)
    parameters.push_back(own(i, detail::kernel_array(parameters_[i].tensor.primitive())));
  for (const Array& parameter : parameters) in.push_back(&parameter);
  out = parameters;
  for (std::size_t i : members) in.push_back(&step.gradients[i]);
  for (const auto& slot : slots_) {
    for (std::size_t i : members) {
      if (!slot[i].defined()) continue;
      in.push_back(&slot[i]);
      out.push_back(slot[i]);
    }
  }
  in.push_back(&clip);
  if (schedule_.defined()) in.push_back(&schedule_);
  if (update.copies)
    for (std::size_t i : members) out.push_back(step.copies[i]);
  apply(kernels(), update, Ins(in.data(), in.size()), Outs(out));
  if constexpr (requires(Array x) { kernels().set_copy_is_current(x); }) {
    if (update.copies)
      for (std::size_t i : members)
        kernels().set_copy_is_current(detail::kernel_array(parameters_[i].tensor.primitive()));
  }
}

}  // namespace ferrite::optim

#include "ferrite/optim/optimizer_state.hpp"
