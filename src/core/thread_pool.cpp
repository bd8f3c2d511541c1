// A job is opened, joined by whichever workers are awake, and closed by the caller once no chunk is left. The
// caller waits only for workers that joined, so a sleeping one never delays a small job.
#include "ferrite/core/thread_pool.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <thread>
#include <utility>
#include <vector>

#include "core/spin.hpp"
#include "ferrite/core/error.hpp"

namespace ferrite {
namespace {

constexpr int max_threads = 256;

/// Spins until done() holds or about 100 us have passed, as long as a sleep and a wake-up may take on a
/// virtual machine.
template <class Done>
bool spin_until(Done&& done) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::microseconds(100);
  do {
    for (int i = 0; i < 32; ++i) {
      if (done()) return true;
      cpu_pause();
    }
  } while (std::chrono::steady_clock::now() < deadline);
  return done();
}

class ThreadPool {
 public:
  static ThreadPool& instance() {
    // Never destroyed: workers and the user's static objects may outlive every static of the library.
    static ThreadPool* const pool = new ThreadPool;
    return *pool;
  }

  int threads() const { return threads_.load(std::memory_order_relaxed); }
  void set_threads(int n) { threads_.store(n, std::memory_order_relaxed); }

  /// False if the pool is serving a job, this thread's own included.
  bool try_run(std::int64_t chunks, detail::ChunkFunction function, void* context);

 private:
  ThreadPool();

  // state_: bits 0-7 count the workers inside the job, bit 8 says that it may be joined, the rest counts
  // jobs. It may wrap around: joining is correct whenever bit 8 is set, and the others do a job that a worker
  // missed.
  using State = std::uint32_t;
  static constexpr State joined_mask = 0xff, open_bit = 0x100, job_step = 0x200;

  void resize(std::size_t workers);
  void work();
  void worker_loop(std::size_t index);
  bool join(State state);
  void leave();
  void wait_for_workers();

  std::atomic<int> threads_;
  std::atomic<bool> busy_{false};
  std::vector<std::thread> workers_;  // used by the owner of busy_
  std::size_t resized_to_ = 0;
  std::atomic<std::size_t> worker_limit_{0};

  // The job; written while no worker is inside.
  std::int64_t chunks_ = 0;
  detail::ChunkFunction function_ = nullptr;
  void* context_ = nullptr;
  std::exception_ptr error_;
  std::atomic<bool> failed_{false};

  alignas(64) std::atomic<std::int64_t> next_chunk_{0};
  alignas(64) std::atomic<State> state_{0};
  alignas(64) std::atomic<std::uint32_t> finished_{0};  // wakes a caller that waits for the last worker
};

int threads_from_environment() {
  const char* text = std::getenv("FERRITE_NUM_THREADS");
  if (!text || !*text) {
    return std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, max_threads);
  }
  char* end = nullptr;
  const long value = std::strtol(text, &end, 10);
  if (*end != '\0' || value < 1 || value > max_threads) {
    throw ValueError(fmt::format("[num_threads] FERRITE_NUM_THREADS='{}': must be a number from 1 to {}",
                                 text, max_threads));
  }
  return static_cast<int>(value);
}

ThreadPool::ThreadPool() : threads_(threads_from_environment()) {}

bool ThreadPool::try_run(std::int64_t chunks, detail::ChunkFunction function, void* context) {
  if (busy_.load(std::memory_order_relaxed) || busy_.exchange(true, std::memory_order_acquire)) return false;
  resize(static_cast<std::size_t>(threads() - 1));

  chunks_ = chunks;
  function_ = function;
  context_ = context;
  next_chunk_.store(0, std::memory_order_relaxed);
  state_.fetch_add(job_step + open_bit);
  const auto helpers = static_cast<std::int64_t>(workers_.size());
  if (chunks > helpers) {
    state_.notify_all();
  } else {
    for (std::int64_t i = 1; i < chunks; ++i) state_.notify_one();
  }
  work();
  state_.fetch_and(~open_bit, std::memory_order_relaxed);
  wait_for_workers();

  std::exception_ptr error = std::exchange(error_, nullptr);
  failed_.store(false, std::memory_order_relaxed);
  busy_.store(false, std::memory_order_release);
  if (error) std::rethrow_exception(std::move(error));
  return true;
}

void ThreadPool::work() {
  for (;;) {
    const std::int64_t chunk = next_chunk_.fetch_add(1, std::memory_order_relaxed);
    if (chunk >= chunks_) return;
    try {
      function_(context_, chunk);
    } catch (...) {
      next_chunk_.store(chunks_, std::memory_order_relaxed);
      if (!failed_.exchange(true, std::memory_order_relaxed)) error_ = std::current_exception();
    }
  }
}

bool ThreadPool::join(State state) {
  while (state & open_bit) {
    if (state_.compare_exchange_weak(state, state + 1, std::memory_order_acquire)) return true;
  }
  return false;
}

void ThreadPool::leave() {
  const State left = state_.fetch_sub(1) - 1;
  if ((left & (joined_mask | open_bit)) == 0) {
    finished_.fetch_add(1);
    finished_.notify_one();
  }
}

void ThreadPool::wait_for_workers() {
  const auto empty = [&] { return (state_.load(std::memory_order_acquire) & joined_mask) == 0; };
  if (spin_until(empty)) return;
  for (;;) {
    const std::uint32_t seen = finished_.load();
    if (empty()) return;
    finished_.wait(seen);
  }
}

void ThreadPool::worker_loop(std::size_t index) {
  const auto job_of = [](State state) { return state & ~(joined_mask | open_bit); };
  State handled = 0;
  for (;;) {
    State state = 0;
    const auto is_new = [&] { return job_of(state = state_.load(std::memory_order_acquire)) != handled; };
    if (!spin_until(is_new)) {
      state_.wait(state);
      continue;
    }
    handled = job_of(state);
    if (index >= worker_limit_.load(std::memory_order_relaxed)) return;
    if (join(state)) {
      work();
      leave();
    }
  }
}

void ThreadPool::resize(std::size_t workers) {
  if (workers == resized_to_) return;
  resized_to_ = workers;
  worker_limit_.store(workers, std::memory_order_relaxed);
  state_.fetch_add(job_step);  // a job nobody can join: workers beyond the limit see it and end
  state_.notify_all();
  while (workers_.size() > workers) {
    workers_.back().join();
    workers_.pop_back();
  }
  try {
    while (workers_.size() < workers) {
      workers_.emplace_back([this, index = workers_.size()] { worker_loop(index); });
    }
  } catch (const std::exception&) {
    // The system gives no more threads; those that started do the work, with the same results.
  }
}

}  // namespace

int num_threads() { return ThreadPool::instance().threads(); }

void set_num_threads(int n) {
  if (n < 1 || n > max_threads) {
    throw ValueError(fmt::format("[set_num_threads] {}: must be from 1 to {}", n, max_threads));
  }
  ThreadPool::instance().set_threads(n);
}

void detail::run_chunks(std::int64_t chunks, ChunkFunction function, void* context) {
  ThreadPool& pool = ThreadPool::instance();
  if (chunks > 1 && pool.threads() > 1 && pool.try_run(chunks, function, context)) return;
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) function(context, chunk);
}

}  // namespace ferrite
