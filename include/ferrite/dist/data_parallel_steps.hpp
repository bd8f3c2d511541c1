// The steps of a DataParallel; data_parallel.hpp includes it.
#pragma once

#include "ferrite/dist/data_parallel.hpp"

namespace ferrite::dist {

template <class B>
void DataParallel<B>::accumulate(const Tensor<B>& loss, Gradients<Inner>& grads, double weight,
                                 const BackwardConfig<Inner>& config) {
  check_idle("accumulate");
  begin(grads, weight);
  const double before = std::exchange(weight_, 0);  // after an error the step begins again
  ferrite::backward(weight == 1 ? loss : loss * weight, grads, config);
  weight_ = before + weight;
}

template <class B>
void DataParallel<B>::backward(const Tensor<B>& loss, Gradients<Inner>& grads, double weight,
                               const BackwardConfig<Inner>& config) {
  check_idle("backward");
  begin(grads, weight);
  awaited_.clear();
  for (const Bucket& bucket : plan_.buckets) awaited_.push_back(bucket.parameters.size());
  const auto on_ready = [&](const std::string& leaf, const Tensor<Inner>& grad) {
    if (config.on_ready) config.on_ready(leaf, grad);
    ready(grad);
  };
  sends_ = failed_ = true;
  ferrite::backward(weight == 1 ? loss : loss * weight, grads, config.with_on_ready(on_ready));
  failed_ = false;
  weight_ += weight;
}

/// Before every pass: says where it writes.
template <class B>
void DataParallel<B>::begin(Gradients<Inner>& grads, double weight) {
  detail::check_weight(weight, false);
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (weight_ == 0 && grads.find(parameters_[i].tensor).defined())
      detail::throw_not_empty(parameters_[i].name);
    to_place(i, grads);
    grads.place(parameters_[i].tensor, places_[i]);
  }
}

/// False if the parameter has no gradient. One that somebody has put there (Gradients::set) is moved.
template <class B>
bool DataParallel<B>::to_place(std::size_t parameter, Gradients<Inner>& grads) const {
  const Tensor<B>& leaf = parameters_[parameter].tensor;
  const Tensor<Inner> grad = grads.find(leaf);
  if (!grad.defined()) return false;
  if (where(grad) != where(places_[parameter])) {
    assign(places_[parameter], grad);
    grads.set(leaf, places_[parameter]);
  }
  return true;
}

/// Buckets go in one order on all ranks, though their gradients may be complete in another.
template <class B>
void DataParallel<B>::ready(const Tensor<Inner>& grad) {
  const auto found = parameter_at_.find(where(grad));
  if (found == parameter_at_.end()) return;  // a leaf of another model
  --awaited_[plan_.places[found->second].bucket];
  while (sent_ < plan_.buckets.size() && awaited_[sent_] == 0) send(plan_.buckets[sent_++]);
}

/// The backend is used on this thread alone: what the reducer gets is memory of the host, or the group's own
/// device.
template <class B>
void DataParallel<B>::send(const Bucket& bucket) {
  const Tensor<Inner> whole = part_of(bucket, 0, 1);
  const Tensor<Inner> mine = is_sharded_ ? part_of(bucket, group_.rank(), group_.size()) : whole;
  Inner& inner = arenas_[bucket.arena].backend();  // which lives as long as the targets
  detail::before_overwriting(inner);
  const Array source = detail::source_of(group_, whole);
  targets_.emplace_back(group_, inner, mine.primitive());
  reducer_.start(source, targets_.back().array(), is_sharded_ ? Reducer::To::parts : Reducer::To::all);
}

template <class B>
double DataParallel<B>::finish(Gradients<Inner>& grads) {
  if (failed_) detail::throw_failed();
  if (is_sharded_ && !is_claimed_) detail::throw_not_claimed();
  sends_ = failed_ = true;
  send_rest(grads);
  const double weight = sum_up(grads);
  sends_ = failed_ = first_step_ = false;
  sent_ = 0;
  weight_ = 0;
  return weight;
}

template <class B>
bool DataParallel<B>::can_record() const {
  return !arenas_.empty() && ferrite::can_record(arenas_[0].backend()) &&
         group_.is_queued(arenas_[0].backend().device());
}

template <class B>
double DataParallel<B>::finish_recorded(Gradients<Inner>& grads) {
  if (failed_) detail::throw_failed();
  if (!can_record()) detail::throw_not_recordable(group_.describe());
  if (is_sharded_ && !is_claimed_) detail::throw_not_claimed();
  sends_ = failed_ = true;
  send_rest(grads);
  take_sums();
  sends_ = failed_ = false;
  sent_ = 0;
  return std::exchange(weight_, 0) * group_.size();
}

template <class B>
void DataParallel<B>::abandon_recorded() {
  group_.join();
  targets_.clear();
  sends_ = failed_ = false;
  sent_ = 0;
  weight_ = 0;
}

/// The buckets of which backward has not completed every gradient: it was not called, or did not reach them.
template <class B>
void DataParallel<B>::send_rest(Gradients<Inner>& grads) {
  present_.assign(parameters_.size(), false);
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (plan_.places[i].bucket < sent_) {
      present_[i] = true;
      continue;
    }
    present_[i] = to_place(i, grads);
    if (present_[i]) continue;
    Array place = places_[i].primitive();
    evaluate_in_place(places_[i].backend(), op::Fill{place.shape(), place.dtype(), 0}, Ins(nullptr, 0),
                      Outs(&place, 1));
  }
  while (sent_ < plan_.buckets.size()) send(plan_.buckets[sent_++]);
}

/// Afterwards the arenas hold the sums.
template <class B>
void DataParallel<B>::take_sums() {
  reducer_.wait();
  for (detail::Target<Inner>& target : targets_) target.commit();
  targets_.clear();
}

/// One more sum tells the weight of all ranks, and which parameters have a gradient somewhere.
template <class B>
double DataParallel<B>::sum_up(Gradients<Inner>& grads) {
  const Array totals = detail::host_array({{static_cast<std::int64_t>(parameters_.size()) + 1}, DType::f64});
  double* const counts = totals.data<double>() + 1;
  counts[-1] = weight_;
  for (std::size_t i = 0; i < parameters_.size(); ++i) counts[i] = present_[i] ? 1 : 0;
  take_sums();
  group_.all_reduce(totals, totals);
  std::vector<std::string> unused;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (counts[i] == 0)
      unused.push_back(parameters_[i].name);
    else if (!present_[i])
      grads.set(parameters_[i].tensor, places_[i]);
  }
  if (first_step_ && !unused.empty())
    notices_.push_back("[DataParallel] no rank has a gradient for " + quoted_names(unused) +
                       ": they are not trained");
  return counts[-1];
}

}  // namespace ferrite::dist
