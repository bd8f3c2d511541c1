// A queue of batches between the thread that makes them and the one that takes them.
#include "ferrite/data/prefetch.hpp"

#include <fmt/format.h>

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

#include "ferrite/core/error.hpp"

namespace ferrite::data {

class Prefetch::Worker {
 public:
  /// The result of one pull of the source, and the position of the source after it.
  struct Item {
    std::optional<HostBatch> batch;
    std::exception_ptr error;
    LoaderPosition after;
    /// Nothing comes after an end or an error.
    bool last() const { return !batch; }
  };

  Worker(BatchSource& source, std::size_t depth)
      : source_(source), depth_(depth), thread_([this] { work(); }) {}
  ~Worker() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  /// The last item stays, so that further calls get it too.
  Item take() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !items_.empty(); });
    Item item = items_.front();
    if (!item.last()) items_.pop_front();
    lock.unlock();
    changed_.notify_all();
    return item;
  }

 private:
  void work() {
    for (;;) {
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return stop_ || items_.size() < depth_; });
        if (stop_) return;
      }
      Item item;
      try {
        item.batch = source_.pull();
        item.after = source_.position();
      } catch (...) {
        item.batch.reset();
        item.error = std::current_exception();
      }
      const bool last = item.last();
      {
        const std::lock_guard lock(mutex_);
        items_.push_back(std::move(item));
      }
      changed_.notify_all();
      if (last) return;
    }
  }

  BatchSource& source_;
  std::size_t depth_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Item> items_;
  bool stop_ = false;
  std::thread thread_;  // last: it uses all of the above
};

Prefetch::Prefetch(BatchSource& source, int depth)
    : source_(source),
      description_(source.describe()),
      depth_(depth),
      position_(source.position()),
      rows_(source.batch_size()) {
  if (depth < 1) throw ValueError(fmt::format("[prefetch] depth {}: must be at least 1", depth));
}

Prefetch::~Prefetch() {
  if (!worker_) return;
  worker_.reset();
  try {
    if (source_.can_seek()) source_.seek(position_);
  } catch (...) {  // the source stays where it is
  }
}

std::optional<HostBatch> Prefetch::pull() {
  if (!worker_) worker_ = std::make_unique<Worker>(source_, static_cast<std::size_t>(depth_));
  Worker::Item item = worker_->take();
  if (item.error) std::rethrow_exception(item.error);
  if (item.batch) {
    position_ = item.after;
    // The last batch of an epoch may be short.
    if (position_.batch > 0 || item.batch->size() > rows_) rows_ = item.batch->size();
  }
  return std::move(item.batch);
}

void Prefetch::seek(LoaderPosition position) {
  if (!can_seek()) return BatchSource::seek(position);
  worker_.reset();
  try {
    source_.seek(position);
  } catch (...) {
    source_.seek(position_);
    throw;
  }
  position_ = source_.position();
}

}  // namespace ferrite::data
