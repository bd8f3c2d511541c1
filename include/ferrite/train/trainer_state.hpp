// The state of a Trainer in checkpoints; trainer.hpp includes it.
#pragma once

#include "ferrite/train/trainer.hpp"

namespace ferrite::train {

template <class B>
Checkpoint Trainer<B>::snapshot() {
  Checkpoint c;
  c.model = model_.state();
  if (average_) c.average = average_->state();
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
  recordings_.clear();  // the optimiser gets new tensors
  replayed_ = nullptr;
  try {
    seek(c.position);
    optimizer_.load_state(c.optimizer);
    if (average_) average_->load_state(c.average);
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
}

}  // namespace ferrite::train
