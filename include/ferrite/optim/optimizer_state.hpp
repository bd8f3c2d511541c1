// What an Optimizer keeps between steps: slots, counts, the schedule; whole, or this rank's share.
// optimizer.hpp includes it.
#pragma once

#include "ferrite/optim/optimizer.hpp"

namespace ferrite::optim {

template <class B>
Array Optimizer<B>::own(std::size_t parameter, const Array& array) const {
  if (!shards_) return array;
  const Share share = shards_->share_of(parameters_[parameter].name);
  if (share.count == 0) return {};
  const Array dense = detail::contiguous(kernels(), array);
  Layout layout = Layout::contiguous({share.count});
  layout.offset = dense.layout().offset + share.begin;
  return dense.with_layout(layout);
}

template <class B>
void Optimizer<B>::make_slots(const std::vector<Slot>& kinds) {
  const auto shape_of = [&](const nn::NamedParameter<B>& p) {
    return shards_ ? Shape{shards_->share_of(p.name).count} : p.tensor.shape();
  };
  Shape largest;
  for (const auto& p : parameters_)
    if (shape_of(p).numel() > largest.numel()) largest = shape_of(p);
  // Scratch is never read back, so one buffer, viewed in every shape, serves all parameters.
  const auto zeros_of = [&](const Shape& shape, DType dtype) {
    return zeros(kernels(), shape, wide_dtype(dtype)).primitive();
  };
  for (const Slot& given : kinds) {
    slot_names_.push_back(given.name);
    std::vector<Array>& slot = slots_.emplace_back();
    std::map<DType, Array> shared;
    for (const auto& p : parameters_) {
      if (given.selects && !given.selects(p.name, p.tensor.shape())) {
        slot.emplace_back();
        continue;
      }
      if (memory_ == Memory::kept) {
        slot.push_back(zeros_of(shape_of(p), p.tensor.dtype()));
        continue;
      }
      Array& scratch = shared[p.tensor.dtype()];
      if (!scratch.defined()) scratch = zeros_of(largest, p.tensor.dtype());
      slot.push_back(scratch.with_layout(Layout::contiguous(shape_of(p))));
    }
  }
}

template <class B>
void Optimizer<B>::keep_schedule_on_device() {
  steps_ = steps();
  const double start[] = {lr_, 0}, advance[] = {0, 1};
  schedule_ = kernels().allocate({{2}, DType::f64});
  advance_ = kernels().allocate({{2}, DType::f64});
  kernels().copy_from_host(schedule_, start);
  kernels().copy_from_host(advance_, advance);
}

template <class B>
std::vector<std::int64_t> Optimizer<B>::steps() const {
  if (!schedule_.defined()) return steps_;
  double values[2];
  kernels().copy_to_host(schedule_, values);
  std::vector<std::int64_t> all = steps_;
  for (std::int64_t& count : all) count += static_cast<std::int64_t>(values[1]);
  return all;
}

/// This rank's share of a whole tensor.
template <class B>
HostTensor Optimizer<B>::own(std::size_t parameter, const HostTensor& whole) const {
  const Share share = shards_->share_of(parameters_[parameter].name);
  const std::size_t size = size_of(whole.dtype());
  return HostTensor::copy_of(whole.dtype(), {share.count},
                             whole.bytes().subspan(static_cast<std::size_t>(share.begin) * size,
                                                   static_cast<std::size_t>(share.count) * size));
}

template <class B>
std::vector<StateEntry> Optimizer<B>::entries(StateOf extent) const {
  std::vector<StateEntry> list{{"lr", {{}, DType::f64}},
                               {"steps", {{static_cast<std::int64_t>(parameters_.size())}, DType::i64}}};
  if (scaler_) {
    list.push_back({"loss_scale", {{}, DType::f32}});
    list.push_back({"loss_scale.good_updates", {{}, DType::f32}});
  }
  if (memory_ == Memory::scratch) return list;
  for_each_slot([&](std::size_t i, const std::string& slot, const Array& array) {
    list.push_back(
        {parameters_[i].name + "." + slot,
         {extent == StateOf::all_ranks ? parameters_[i].tensor.shape() : array.shape(), array.dtype()}});
  });
  return list;
}

template <class B>
NamedTensors Optimizer<B>::state(StateOf extent) const {
  NamedTensors result;
  result.emplace("lr", HostTensor::from(std::span<const double>(&lr_, 1), {}));
  const std::vector<std::int64_t> counts = steps();
  result.emplace("steps", HostTensor::from(std::span<const std::int64_t>(counts),
                                           {static_cast<std::int64_t>(counts.size())}));
  if (scaler_) {
    result.emplace("loss_scale", to_host(scaler_->scale()));
    result.emplace("loss_scale.good_updates", to_host(scaler_->good_updates()));
  }
  if (memory_ == Memory::scratch) return result;
  for_each_slot([&](std::size_t i, const std::string& slot, const Array& array) {
    const std::string& parameter = parameters_[i].name;
    HostTensor held = to_host(Tensor<Kernels>(kernels(), array));
    result.emplace(parameter + "." + slot, shards_ && extent == StateOf::all_ranks
                                               ? shards_->gather(parameter, held)
                                               : std::move(held));
  });
  return result;
}

template <class B>
void Optimizer<B>::load_state(const NamedTensors& state, StateOf extent) {
  check_state("load_state", entries(extent), state);
  const double lr = state.find("lr")->second.template as<double>()[0];
  const auto steps = state.find("steps")->second.template as<std::int64_t>();
  if (scaler_) {
    assign(scaler_->scale(), state.find("loss_scale")->second);
    assign(scaler_->good_updates(), state.find("loss_scale.good_updates")->second);
  }
  if (memory_ == Memory::kept) {
    for_each_slot([&](std::size_t i, const std::string& slot, const Array& array) {
      const HostTensor& given = state.find(parameters_[i].name + "." + slot)->second;
      assign(Tensor<Kernels>(kernels(), array),
             shards_ && extent == StateOf::all_ranks ? own(i, given) : given);
    });
  }
  lr_ = lr;
  const bool on_device = schedule_.defined();
  schedule_ = {};
  steps_.assign(steps.begin(), steps.end());
  if (on_device) keep_schedule_on_device();
}

}  // namespace ferrite::optim
