#include "ferrite/dist/reducer.hpp"

namespace ferrite::dist {

Reducer::Reducer(Group& group, bool overlap) : group_(group) {
  if (overlap) thread_ = std::thread([this] { work(); });
}

Reducer::~Reducer() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void Reducer::start(const Array& in, const Array& out) {
  const std::lock_guard lock(mutex_);
  if (error_) std::rethrow_exception(error_);
  sums_.push_back({in, out});
  changed_.notify_all();
}

void Reducer::wait() {
  if (!thread_.joinable()) {
    std::deque<Sum> sums;
    sums.swap(sums_);
    for (const Sum& sum : sums) group_.all_reduce(sum.in, sum.out);
    return;
  }
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return sums_.empty(); });
  if (error_) std::rethrow_exception(error_);
}

void Reducer::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return ends_ || !sums_.empty(); });
    if (ends_) return;
    const Sum sum = sums_.front();
    lock.unlock();
    std::exception_ptr error;
    try {
      group_.all_reduce(sum.in, sum.out);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    if (error) {
      error_ = error;
      sums_.clear();
    } else {
      sums_.pop_front();
    }
    changed_.notify_all();
  }
}

}  // namespace ferrite::dist
