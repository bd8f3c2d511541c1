// The data of Profiled: sums per op, calls whose time is not known yet, and the trace file.
#include "ferrite/decorators/profiled.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>
#include <unordered_map>

#include "decorators/profiled/launch_note.hpp"
#include "ferrite/io/atomic_file.hpp"

namespace ferrite {

namespace {

thread_local std::string launch_note;

std::string shapes_of(MetaSpan metas) {
  std::string text;
  for (const Meta& m : metas) text += (text.empty() ? "" : ", ") + to_string(m);
  return text;
}

/// An evenly spread sample of the durations of one op: when there are too many, every second one is dropped,
/// and from then on only every second new one is kept.
class Durations {
 public:
  void add(float seconds) {
    if (seen_++ % step_ != 0) return;
    if (kept_.size() == most) {
      for (std::size_t i = 0; i < most / 2; ++i) kept_[i] = kept_[2 * i];
      kept_.resize(most / 2);
      step_ *= 2;
      if ((seen_ - 1) % step_ != 0) return;
    }
    kept_.push_back(seconds);
  }
  /// Percentiles by the nearest rank.
  void summarize(OpProfile& op) const {
    std::vector<float> sorted = kept_;
    std::sort(sorted.begin(), sorted.end());
    const auto at = [&](double share) {
      const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(sorted.size())));
      return static_cast<double>(sorted[std::max<std::size_t>(rank, 1) - 1]);
    };
    if (sorted.empty()) return;
    op.median_seconds = at(0.5);
    op.p90_seconds = at(0.9);
    op.p99_seconds = at(0.99);
  }

 private:
  static constexpr std::size_t most = 4096;
  std::vector<float> kept_;
  std::int64_t seen_ = 0, step_ = 1;
};

}  // namespace

void detail::note_launch(std::string text) { launch_note = std::move(text); }
std::string detail::take_launch_note() { return std::exchange(launch_note, {}); }

struct ProfileRecorder::State {
  using Key = std::pair<std::string, OpKind>;
  struct ByKey {
    using is_transparent = void;
    template <class A, class B>
    bool operator()(const A& a, const B& b) const {
      return std::pair(std::string_view(a.first), a.second) < std::pair(std::string_view(b.first), b.second);
    }
  };

  struct Row {
    OpProfile op;
    Durations durations;
  };
  /// The facts about a call that are known when it is made. `shapes` is set only if there is a trace, and
  /// `launch` only if the backend said how it was started.
  struct Call {
    Row* row;
    const std::string* shapes;
    const std::string* launch;
    Cost cost;
    double allocated;
    int thread;
  };
  struct PendingCall {
    Call call;
    std::unique_ptr<PendingTime> time;
  };

  explicit State(ProfiledConfig c) : config(c) {}

  void add(std::string_view name, OpKind kind, Timing time, Cost cost, double allocated_bytes, MetaSpan in,
           MetaSpan out, std::string launch = {}) {
    auto* const later = std::get_if<std::unique_ptr<PendingTime>>(&time);
    if (later && !*later) return;
    Call call{&of(name, kind), nullptr, nullptr, cost, allocated_bytes, 0};
    if (config.trace) {
      call.shapes = text(shapes_of(in) + " -> " + shapes_of(out));
      if (!launch.empty()) call.launch = text(std::move(launch));
      call.thread =
          threads.try_emplace(std::this_thread::get_id(), static_cast<int>(threads.size()) + 1).first->second;
    }
    if (!later) return count(call, std::get<TimeSpan>(time));
    pending.push_back({call, std::move(*later)});
    if (pending.size() >= most_pending) settle(most_pending / 2);
  }

  /// Counts the oldest pending calls. If the device fails, they are lost.
  void settle(std::size_t calls) {
    const auto end = pending.begin() + static_cast<std::ptrdiff_t>(calls);
    const std::vector<PendingCall> due(std::move_iterator(pending.begin()), std::move_iterator(end));
    pending.erase(pending.begin(), end);
    for (const PendingCall& one : due) count(one.call, one.time->get());
  }

  void count(const Call& call, TimeSpan span) {
    auto& [op, durations] = *call.row;
    const double seconds = static_cast<double>(span.duration) / 1e9;
    op.min_seconds = op.calls == 0 ? seconds : std::min(op.min_seconds, seconds);
    op.max_seconds = std::max(op.max_seconds, seconds);
    durations.add(static_cast<float>(seconds));
    ++op.calls;
    op.seconds += seconds;
    op.flops += call.cost.flops;
    op.bytes += call.cost.bytes;
    op.allocated += call.allocated;
    if (!config.trace) return;
    if (events.size() < config.max_events)
      events.push_back({call, span});
    else
      ++dropped;
  }

  Row& of(std::string_view name, OpKind kind) {
    const auto found = ops.find(std::pair(name, kind));
    if (found != ops.end()) return found->second;
    Row& row = ops[Key(name, kind)];
    row.op.name = name;
    row.op.kind = kind;
    return row;
  }
  const std::string* text(std::string value) { return &texts.try_emplace(std::move(value)).first->first; }

  struct Event {
    Call call;
    TimeSpan span;
  };

  const ProfiledConfig config;
  std::mutex mutex;
  std::map<Key, Row, ByKey> ops;
  double total_allocated = 0;
  double pending_allocated = 0;
  std::vector<PendingCall> pending;  // oldest first
  std::vector<Event> events;
  std::unordered_map<std::string, char> texts;  // the shapes and launches of all events, each once
  std::unordered_map<std::thread::id, int> threads;
  std::size_t dropped = 0;
};

ProfileRecorder::ProfileRecorder(ProfiledConfig config) : state_(new State(config)) {}
ProfileRecorder::~ProfileRecorder() = default;

void ProfileRecorder::allocated(std::size_t bytes) {
  const std::lock_guard lock(state_->mutex);
  state_->pending_allocated += static_cast<double>(bytes);
  state_->total_allocated += static_cast<double>(bytes);
}

double ProfileRecorder::total_allocated() const {
  const std::lock_guard lock(state_->mutex);
  return state_->total_allocated;
}

void ProfileRecorder::add(std::string_view name, OpKind kind, Timing time, Cost cost, MetaSpan in,
                          MetaSpan out) {
  const std::lock_guard lock(state_->mutex);
  state_->add(name, kind, std::move(time), cost, std::exchange(state_->pending_allocated, 0), in, out,
              detail::take_launch_note());
}

void ProfileRecorder::add_composed(std::string_view name, Timing time, Cost cost, double allocated_bytes,
                                   MetaSpan in, MetaSpan out) {
  const std::lock_guard lock(state_->mutex);
  state_->add(name, OpKind::composed, std::move(time), cost, allocated_bytes, in, out);
}

Profile ProfileRecorder::profile(std::string backend) const {
  const std::lock_guard lock(state_->mutex);
  state_->settle(state_->pending.size());
  Profile profile;
  profile.backend = std::move(backend);
  profile.dropped_events = state_->dropped;
  for (const auto& [key, row] : state_->ops) {
    if (row.op.calls == 0) continue;  // all of them lost
    profile.ops.push_back(row.op);
    row.durations.summarize(profile.ops.back());
  }
  std::stable_sort(profile.ops.begin(), profile.ops.end(),
                   [](const OpProfile& a, const OpProfile& b) { return a.seconds > b.seconds; });
  return profile;
}

void ProfileRecorder::reset() {
  const std::lock_guard lock(state_->mutex);
  state_->pending.clear();
  state_->ops.clear();
  state_->events.clear();
  state_->texts.clear();
  state_->threads.clear();
  state_->dropped = 0;
  state_->total_allocated = state_->pending_allocated = 0;
}

void ProfileRecorder::write_trace(const std::filesystem::path& path, const std::string& backend) const {
  const std::lock_guard lock(state_->mutex);
  state_->settle(state_->pending.size());
  std::int64_t origin = INT64_MAX;
  for (const State::Event& e : state_->events) origin = std::min(origin, e.span.start);
  const auto quoted = [](const std::string& text) { return nlohmann::json(text).dump(); };
  AtomicFile file(path);
  std::string text = fmt::format(
      "{{\"displayTimeUnit\":\"ns\",\"otherData\":{{\"dropped_events\":{}}},\"traceEvents\":[\n"
      "{{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":1,\"args\":{{\"name\":{}}}}}",
      state_->dropped, quoted("ferrite on " + backend));
  for (const auto& [call, span] : state_->events) {
    text += fmt::format(
        ",\n{{\"name\":{},\"cat\":\"{}\",\"ph\":\"X\",\"pid\":1,\"tid\":{},\"ts\":{:.3f},\"dur\":{:.3f},"
        "\"args\":{{\"shapes\":{},\"flops\":{},\"bytes\":{}{}}}}}",
        quoted(call.row->op.name), to_string(call.row->op.kind), call.thread,
        1e-3 * static_cast<double>(span.start - origin), 1e-3 * static_cast<double>(span.duration),
        quoted(*call.shapes), call.cost.flops, call.cost.bytes,
        call.launch ? ",\"launch\":" + quoted(*call.launch) : "");
    if (text.size() > (std::size_t{1} << 20)) {
      file.write(text);
      text.clear();
    }
  }
  file.write(text + "\n]}\n");
  file.commit();
}

}  // namespace ferrite
