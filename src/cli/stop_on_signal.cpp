#include "cli/stop_on_signal.hpp"

#include <atomic>

namespace ferrite::cli {

namespace {

std::atomic<train::TrainerBase*> current = nullptr;
static_assert(std::atomic<train::TrainerBase*>::is_always_lock_free, "a handler may use nothing else");

void stop(int) {
  if (train::TrainerBase* const trainer = current.load()) trainer->request_stop();
}

}  // namespace

StopOnSignal::StopOnSignal(train::TrainerBase& trainer) {
  current = &trainer;
  struct sigaction action {};
  action.sa_handler = stop;
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;  // only the first
  ::sigaction(SIGINT, &action, &interrupt_);
  ::sigaction(SIGTERM, &action, &terminate_);
}

StopOnSignal::~StopOnSignal() {
  ::sigaction(SIGINT, &interrupt_, nullptr);
  ::sigaction(SIGTERM, &terminate_, nullptr);
  current = nullptr;
}

}  // namespace ferrite::cli
