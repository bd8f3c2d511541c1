#include "ferrite/dist/reducer.hpp"

namespace ferrite::dist {

Reducer::~Reducer() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void Reducer::make(const Sum& sum) {
  if (sum.to == To::all)
    group_.all_reduce(sum.in, sum.out);
  else
    group_.reduce_scatter(sum.in, sum.out);
}

void Reducer::start(const Array& in, const Array& out, To to) {
  const bool is_queued = group_.is_queued(in.device());
  if (overlap_ && is_queued) {
    group_.fork();
    return make({in, out, to});
  }
  const std::lock_guard lock(mutex_);
  if (error_) std::rethrow_exception(error_);
  if (overlap_ && !thread_.joinable()) thread_ = std::thread([this] { work(); });
  sums_.push_back({in, out, to});
  changed_.notify_all();
}

void Reducer::wait() {
  group_.join();
  if (!thread_.joinable()) {
    std::deque<Sum> sums;
    sums.swap(sums_);
    for (const Sum& sum : sums) make(sum);
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
      make(sum);
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
