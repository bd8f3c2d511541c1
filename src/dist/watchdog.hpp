// Watchdog: notices calls that a device does not end in time. Who gave them to the device cannot: it waits
// for the device itself.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "ferrite/core/export.hpp"

namespace ferrite::dist {

class FERRITE_API Watchdog {
 public:
  /// What is wrong although no call is late; empty if nothing is.
  using Trouble = std::function<std::string()>;
  /// Called once, on the watchdog's thread, with a call that is late or that was running when there was
  /// trouble (empty if none was), and the trouble (empty if it is late). Nothing is watched afterwards.
  using Alarm = std::function<void(const std::string& call, const std::string& trouble)>;

  Watchdog(Trouble trouble, Alarm alarm);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// Calls end in the order in which they are given here: the time of one counts from the end of the one
  /// before. `is_done` is asked on the watchdog's thread, for the last time when it is true.
  void watch(std::string call, std::chrono::milliseconds timeout, std::function<bool()> is_done);

 private:
  using Clock = std::chrono::steady_clock;
  struct Watched {
    std::string call;
    Clock::time_point since;
    std::chrono::milliseconds timeout;
    std::function<bool()> is_done;
  };
  void work();

  Trouble trouble_;
  Alarm alarm_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Watched> calls_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace ferrite::dist
