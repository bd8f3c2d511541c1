#include "cli/stop_on_signal.hpp"

#include <atomic>
#include <cstdint>
#include <ctime>

#include "ferrite/io/atomic_file.hpp"

namespace ferrite::cli {

namespace {

std::atomic<train::TrainerBase*> current = nullptr;
std::atomic<std::int64_t> requested_at = 0;  // in milliseconds of a clock; 0: not yet
static_assert(std::atomic<train::TrainerBase*>::is_always_lock_free &&
                  std::atomic<std::int64_t>::is_always_lock_free,
              "a handler may use nothing else");

std::int64_t milliseconds() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return 1 + std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

/// The default action comes back only now: another thread may get the same signal meanwhile.
void remove_temporaries(int signal) {
  AtomicFile::remove_temporaries();
  ::signal(signal, SIG_DFL);
  ::raise(signal);  // comes when this handler returns
}

void stop(int signal) {
  const std::int64_t now = milliseconds();
  std::int64_t first = 0;
  if (requested_at.compare_exchange_strong(first, now)) {
    if (train::TrainerBase* const trainer = current.load()) trainer->request_stop();
  } else if (now - first > 1000) {
    remove_temporaries(signal);
  }
}

}  // namespace

void remove_temporaries_on_signal() {
  for (const int signal : {SIGINT, SIGTERM})
    if (::signal(signal, remove_temporaries) == SIG_IGN)
      ::signal(signal, SIG_IGN);  // nohup, or a shell's `&`
}

StopOnSignal::StopOnSignal(train::TrainerBase& trainer) {
  current = &trainer;
  requested_at = 0;
  struct sigaction action {};
  action.sa_handler = stop;
  action.sa_flags = SA_RESTART;
  const auto handle = [&](int signal, struct sigaction& before) {
    ::sigaction(signal, &action, &before);
    if (before.sa_handler == SIG_IGN) ::sigaction(signal, &before, nullptr);  // nohup, or a shell's `&`
  };
  handle(SIGINT, interrupt_);
  handle(SIGTERM, terminate_);
}

StopOnSignal::~StopOnSignal() {
  ::sigaction(SIGINT, &interrupt_, nullptr);
  ::sigaction(SIGTERM, &terminate_, nullptr);
  current = nullptr;
}

}  // namespace ferrite::cli
