// BatchStream: batches without end, made while the consumer works on earlier ones.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

#include "ferrite/models/priors/priors.hpp"

namespace ferrite::priors {

/// Batch k holds datasets first + k size to first + (k + 1) size - 1, as generate makes them. A second thread
/// keeps `ahead` batches ready, so the backend must allow calls from two threads: Reference, Cpu and Cuda do.
/// One thread at a time takes batches.
template <class B>
class BatchStream {
 public:
  /// Throws ValueError at once for a bad config, size or range; `ahead` must be at least 1.
  BatchStream(B& backend, const Config& config, std::uint64_t seed, std::int64_t first, std::int64_t size,
              int ahead = 2)
      : backend_(backend),
        config_(config),
        seed_(seed),
        next_(first),
        position_(first),
        size_(size),
        ahead_(ahead) {
    op::PriorDatasets{config, seed, first, size}.infer({});
    if (ahead < 1)
      throw ValueError("[priors stream] ahead " + std::to_string(ahead) + ": must be at least 1");
    worker_ = std::thread([this] { work(); });
  }
  BatchStream(const BatchStream&) = delete;
  BatchStream& operator=(const BatchStream&) = delete;
  ~BatchStream() {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    changed_.notify_all();
    worker_.join();
  }

  /// The next batch; waits for it if necessary. Rethrows the error of making it, now and on every later call.
  Batch<B> next() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !ready_.empty() || error_; });
    if (ready_.empty()) std::rethrow_exception(error_);
    Batch<B> batch = std::move(ready_.front());
    ready_.pop_front();
    position_ += size_;
    lock.unlock();
    changed_.notify_all();
    return batch;
  }
  /// Number of the first dataset of the next batch; with the seed it is enough to resume.
  std::int64_t position() const { return position_; }

 private:
  void work() {
    for (;;) {
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return stopped_ || static_cast<int>(ready_.size()) < ahead_; });
        if (stopped_) return;
      }
      try {
        Batch<B> batch = generate(backend_, config_, seed_, next_, size_);
        next_ += size_;
        const std::lock_guard lock(mutex_);
        ready_.push_back(std::move(batch));
      } catch (...) {
        const std::lock_guard lock(mutex_);
        error_ = std::current_exception();
        changed_.notify_all();
        return;
      }
      changed_.notify_all();
    }
  }

  B& backend_;
  Config config_;
  std::uint64_t seed_;
  std::int64_t next_, position_;  // to be made, to be handed out
  std::int64_t size_;
  int ahead_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Batch<B>> ready_;
  std::exception_ptr error_;
  bool stopped_ = false;
  std::thread worker_;
};

}  // namespace ferrite::priors
