#include "backend_cuda/runtime/pool_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>

#include "backend_cuda/runtime/device_context.hpp"
#include "ferrite/backend/cuda_memory_log.hpp"
#include "ferrite/core/integers.hpp"
#include "ferrite/io/atomic_file.hpp"

namespace ferrite::cuda {

namespace {

constexpr int kinds = 5;

std::chrono::nanoseconds time_now() { return std::chrono::steady_clock::now().time_since_epoch(); }

struct Level {
  std::int64_t in_use = 0, reserved = 0;
};

/// What the event changed. The log has the bytes that were asked for; blocks are cut in whole units.
Level change_by(const PoolEvent& event) {
  const auto bytes = static_cast<std::int64_t>(event.bytes);
  const auto unit = static_cast<std::int64_t>(block_alignment);
  switch (event.kind) {
    case PoolEvent::Kind::allocate:
      return {std::max(unit, round_up(bytes, unit)), 0};
    case PoolEvent::Kind::free:
      return {-std::max(unit, round_up(bytes, unit)), 0};
    case PoolEvent::Kind::segment:
      return {0, bytes};
    case PoolEvent::Kind::segment_release:
      return {0, -bytes};
    case PoolEvent::Kind::out_of_memory:
      break;
  }
  return {};
}

class TraceFile {
 public:
  explicit TraceFile(const std::filesystem::path& path) : file_(path) {
    text_ = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[";
  }
  void add(std::string_view event) {
    text_ += first_ ? "\n" : ",\n";
    text_ += event;
    first_ = false;
    if (text_.size() < (std::size_t{1} << 20)) return;
    file_.write(text_);
    text_.clear();
  }
  void finish() {
    file_.write(text_ + "\n]}\n");
    file_.commit();
  }

 private:
  AtomicFile file_;
  std::string text_;
  bool first_ = true;
};

void add_timeline(TraceFile& trace, const PoolTimeline& pool, std::chrono::nanoseconds origin) {
  const int pid = pool.device.index + 1;
  const auto name = [&](const char* what, int tid, std::string_view text) {
    trace.add(fmt::format(R"({{"name":"{}","ph":"M","pid":{},"tid":{},"args":{{"name":"{}"}}}})", what, pid,
                          tid, text));
  };
  name("process_name", 0, "memory of " + to_string(pool.device));
  for (int kind = 0; kind < kinds; ++kind)
    name("thread_name", kind + 1, to_string(static_cast<PoolEvent::Kind>(kind)));

  // The log may have lost its beginning, but its end is known.
  Level level{static_cast<std::int64_t>(pool.in_use), static_cast<std::int64_t>(pool.reserved)};
  const auto move = [&](const PoolEvent& event, int sign) {
    const Level change = change_by(event);
    level.in_use += sign * change.in_use;
    level.reserved += sign * change.reserved;
  };
  for (const PoolEvent& event : pool.events) move(event, -1);
  for (const PoolEvent& event : pool.events) {
    move(event, 1);
    const double time = 1e-3 * static_cast<double>((pool.start - origin + event.time).count());
    trace.add(fmt::format(R"({{"name":{},"cat":"{}","ph":"i","s":"t","pid":{},"tid":{},"ts":{:.3f},)"
                          R"("args":{{"bytes":{}}}}})",
                          nlohmann::json(event.op).dump(), to_string(event.kind), pid,
                          static_cast<int>(event.kind) + 1, time, event.bytes));
    if (event.kind != PoolEvent::Kind::out_of_memory)
      trace.add(fmt::format(
          R"({{"name":"memory","ph":"C","pid":{},"ts":{:.3f},"args":{{"in use":{},"cached":{}}}}})", pid,
          time, level.in_use, level.reserved - level.in_use));
  }
}

/// The pools that FERRITE_CUDA_MEMORY_TRACE logs, written when the program ends. Never destroyed, as they.
class WholeProgram {
 public:
  static WholeProgram& get() {
    static auto* const all = new WholeProgram;
    return *all;
  }
  void add(DeviceContext& context, const char* path) {
    const std::lock_guard guard(mutex_);
    if (logged_.empty()) {
      path_ = path;
      std::atexit([] { get().write(); });
    }
    logged_.push_back({&context, time_now()});
    context.common_pool().log_events(CudaMemoryLog::usual_events);
  }

 private:
  void write() noexcept {
    try {
      const std::lock_guard guard(mutex_);
      std::vector<PoolTimeline> pools;
      for (const auto& [context, start] : logged_)
        pools.push_back(timeline_of(context->common_pool(), context->device(), start));
      write_pool_trace(path_, pools);
    } catch (const std::exception& e) {
      std::fprintf(stderr, "ferrite: FERRITE_CUDA_MEMORY_TRACE: %s\n", e.what());
    }
  }

  std::mutex mutex_;
  std::string path_;
  std::vector<std::pair<DeviceContext*, std::chrono::nanoseconds>> logged_;
};

}  // namespace

PoolTimeline timeline_of(const Pool& pool, Device device, std::chrono::nanoseconds start) {
  // Events and levels belong together unless another thread came between them. Then it looks again.
  PoolStats before = pool.pool_stats();
  for (int tries = 0;; ++tries) {
    auto events = pool.events();
    const PoolStats after = pool.pool_stats();
    const bool same = before.allocations == after.allocations && before.in_use == after.in_use &&
                      before.reserved == after.reserved;
    if (same || tries == 100) return {device, start, std::move(events), after.in_use, after.reserved};
    before = after;
  }
}

void write_pool_trace(const std::filesystem::path& path, std::span<const PoolTimeline> pools) {
  std::chrono::nanoseconds origin = std::chrono::nanoseconds::max();
  for (const PoolTimeline& pool : pools) origin = std::min(origin, pool.start);
  TraceFile trace(path);
  for (const PoolTimeline& pool : pools) add_timeline(trace, pool, origin);
  trace.finish();
}

namespace {
const char* traced_path() {
  const char* const path = std::getenv("FERRITE_CUDA_MEMORY_TRACE");
  return path != nullptr && *path != '\0' ? path : nullptr;
}
}  // namespace

bool is_memory_traced() { return traced_path() != nullptr; }

void trace_memory_if_asked(DeviceContext& context) {
  if (const char* const path = traced_path()) WholeProgram::get().add(context, path);
}

}  // namespace ferrite::cuda

namespace ferrite {

namespace {

/// The log of each GPU that has one.
struct CurrentLogs {
  std::mutex mutex;
  std::map<const cuda::DeviceContext*, const CudaMemoryLog*> of;
};
CurrentLogs& current_logs() {
  static auto* const logs = new CurrentLogs;
  return *logs;
}

}  // namespace

CudaMemoryLog::CudaMemoryLog(Cuda& cuda, std::size_t most_events) : cuda_(cuda), start_(cuda::time_now()) {
  if (cuda::is_memory_traced())
    throw ValueError(
        "[memory log] FERRITE_CUDA_MEMORY_TRACE logs this GPU already, and a GPU has one log: unset it");
  CurrentLogs& logs = current_logs();
  const std::lock_guard guard(logs.mutex);
  logs.of[&cuda.context()] = this;
  cuda.context().common_pool().log_events(most_events);
}

CudaMemoryLog::~CudaMemoryLog() {
  CurrentLogs& logs = current_logs();
  const std::lock_guard guard(logs.mutex);
  if (logs.of[&cuda_.context()] != this) return;  // a newer one has ended it
  logs.of.erase(&cuda_.context());
  cuda_.context().common_pool().log_events(0);
}

void CudaMemoryLog::write_trace(const std::filesystem::path& path) const {
  CurrentLogs& logs = current_logs();
  const std::lock_guard guard(logs.mutex);
  if (logs.of[&cuda_.context()] != this)
    throw ValueError("[memory log] a newer log of this GPU has ended this one: write it before");
  const auto timeline = cuda::timeline_of(cuda_.context().common_pool(), cuda_.device(), start_);
  cuda::write_pool_trace(path, {&timeline, 1});
}

}  // namespace ferrite
