// The state of a Trainer in checkpoints; trainer.hpp includes it.
#pragma once

#include "ferrite/train/trainer.hpp"

namespace ferrite::train {

/// What the average keeps of itself in an update for so many steps, up to the current one. At first that is
/// less than the config says, so that the first weights are soon forgotten.
template <class B>
double Trainer<B>::average_keeps(std::int64_t steps) const {
  if (steps == 0) return 1;
  const std::int64_t every = config_.average_every;
  const auto updates = static_cast<double>((step_ + every - 1) / every);
  const double keep = std::pow(config_.average, static_cast<double>(steps));
  return std::min(keep, (1 + updates) / (10 + updates));
}

template <class B>
NamedTensors Trainer<B>::weights() {
  begin_average();
  NamedTensors result;
  if (average_) result = average_->state(average_keeps(steps_since_average()));
  result.merge(model_.state());  // whatever has no average
  return result;
}

template <class B>
Checkpoint Trainer<B>::snapshot() {
  begin_average();
  Checkpoint c;
  c.model = model_.state();
  if (average_) c.average = average_->state(average_keeps(steps_since_average()));
  // A run that goes on from here updates the average at the same steps as one that was not interrupted.
  if (average_ && steps_since_average() > 0) c.average_state = average_->state();
  c.optimizer = optimizer_.state();
  for (const auto& [name, rng] : rngs()) c.rngs[name] = {rng->seed(), rng->position()};
  c.settings = settings(optimizer_.name());
  fill(c);
  return c;
}

template <class B>
void Trainer<B>::resume(const std::filesystem::path& path) {
  Checkpoint c = read_checkpoint(path);
  const std::map<std::string, Rng*> generators = rngs();
  if (!writes_files())  // the file has the seeds of rank 0, and each rank keeps its own
    for (auto& [name, key] : c.rngs)
      if (const auto own = generators.find(name); own != generators.end()) key.seed = own->second->seed();
  check_resumable(path, c, optimizer_.name(), generators);
  const data::LoaderPosition before = source_.position();
  constexpr auto own = optim::Optimizer<B>::StateOf::this_rank;
  const NamedTensors optimizer_before = optimizer_.state(own),
                     average_before = average_ ? average_->state() : NamedTensors();
  const auto seek = [this](const data::LoaderPosition& position) {
    if (source_.can_seek()) source_.seek(position);
  };
  const double given_rate = optimizer_.learning_rate();
  recordings_.clear();  // the optimiser gets new tensors
  replayed_ = nullptr;
  try {
    seek(c.position);
    optimizer_.load_state(c.optimizer);
    if (average_) average_->load_state(c.average_state.empty() ? c.average : c.average_state);
    model_.load_state(c.model);
  } catch (...) {
    seek(before);
    optimizer_.load_state(optimizer_before, own);
    if (average_) average_->load_state(average_before);
    throw;
  }
  for (const auto& [name, rng] : generators) rng->set_position(c.rngs.at(name).stream);
  unread_.clear();
  take_over(c);
  if (!config_.schedule && optimizer_.learning_rate() != given_rate)
    notice_rate(given_rate, optimizer_.learning_rate());
}

}  // namespace ferrite::train
