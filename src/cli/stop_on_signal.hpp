// Ctrl-C in the middle of a training, or of any command.
#pragma once

#include <csignal>

#include "ferrite/train/trainer_base.hpp"

namespace ferrite::cli {

/// From now on, SIGINT and SIGTERM end the program as always, but what it has not written to the end is
/// removed.
void remove_temporaries_on_signal();

/// While it lives, the first SIGINT or SIGTERM asks the trainer to stop. One that comes more than a second
/// later ends the program at once, as remove_temporaries_on_signal has it. Sooner it is the same request:
/// timeout and mpirun signal a program and then its whole group. One at a time.
class StopOnSignal {
 public:
  explicit StopOnSignal(train::TrainerBase& trainer);
  ~StopOnSignal();
  StopOnSignal(const StopOnSignal&) = delete;
  StopOnSignal& operator=(const StopOnSignal&) = delete;

 private:
  struct sigaction interrupt_ {
  }, terminate_{};  // as they were before
};

}  // namespace ferrite::cli
