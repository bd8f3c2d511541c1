#include "dist/watchdog.hpp"

#include <algorithm>

namespace ferrite::dist {

namespace {
constexpr auto pause = std::chrono::milliseconds(20);
}

Watchdog::Watchdog(Trouble trouble, Alarm alarm)
    : trouble_(std::move(trouble)), alarm_(std::move(alarm)), thread_([this] { work(); }) {}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void Watchdog::watch(std::string call, std::chrono::milliseconds timeout, std::function<bool()> is_done) {
  const std::lock_guard lock(mutex_);
  calls_.push_back({std::move(call), Clock::now(), timeout, std::move(is_done)});
}

void Watchdog::work() {
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, pause, [&] { return ends_; })) {
    while (!calls_.empty() && calls_.front().is_done()) {
      calls_.pop_front();
      if (!calls_.empty()) calls_.front().since = std::max(calls_.front().since, Clock::now());
    }
    const std::string trouble = trouble_();
    const bool is_late = !calls_.empty() && Clock::now() - calls_.front().since > calls_.front().timeout;
    if (trouble.empty() && !is_late) continue;
    const std::string call = calls_.empty() ? "" : calls_.front().call;
    lock.unlock();
    return alarm_(call, trouble);
  }
}

}  // namespace ferrite::dist
