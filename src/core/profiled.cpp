// The parts of Profiled that know no backend: sums per op, the table, JSON and the trace file.
#include "ferrite/backend/profiled.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>
#include <unordered_map>

#include "ferrite/io/atomic_file.hpp"

namespace ferrite {

ProfiledConfig ProfiledConfig::with_trace(bool value) const {
  ProfiledConfig c = *this;
  c.trace = value;
  return c;
}
ProfiledConfig ProfiledConfig::with_max_events(std::size_t value) const {
  ProfiledConfig c = *this;
  c.max_events = value;
  return c;
}

std::string_view to_string(OpKind kind) {
  constexpr std::string_view names[] = {"kernel", "fused", "composed", "transfer"};
  return names[static_cast<int>(kind)];
}

namespace {
bool is_kernel(const OpProfile& op) { return op.kind == OpKind::kernel || op.kind == OpKind::fused; }
}  // namespace

double Profile::kernel_seconds() const {
  double total = 0;
  for (const OpProfile& op : ops)
    if (is_kernel(op)) total += op.seconds;
  return total;
}

namespace {

std::string joined(MetaSpan metas) {
  std::string text;
  for (const Meta& m : metas) text += (text.empty() ? "" : ", ") + to_string(m);
  return text;
}

/// 12345678 -> "12.3 M"; at most four digits and a prefix.
std::string scaled(double value, std::string_view unit) {
  constexpr std::string_view prefixes[] = {"", "k", "M", "G", "T", "P"};
  std::size_t i = 0;
  for (; value >= 999.5 && i + 1 < std::size(prefixes); ++i) value /= 1000;
  return fmt::format("{:.3g} {}{}", value, prefixes[i], unit);
}

std::string duration(double seconds) {
  if (seconds >= 1) return fmt::format("{:.3f} s", seconds);
  if (seconds >= 1e-3) return fmt::format("{:.3f} ms", seconds * 1e3);
  return fmt::format("{:.2f} us", seconds * 1e6);
}

/// Some of the durations of one op, evenly spread: when there are too many, every second one is dropped and
/// from then on only every second one is taken.
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
  /// The nearest rank; `kept` is put in order.
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

struct ProfileRecorder::State {
  /// One call, as the trace shows it. Names and shapes are kept once, in `texts`.
  struct Event {
    const std::string* name;
    const std::string* shapes;
    TimeSpan span;
    Cost cost;
    int thread;
    OpKind kind;
  };
  using Key = std::pair<std::string, OpKind>;
  struct ByKey {
    using is_transparent = void;
    template <class A, class B>
    bool operator()(const A& a, const B& b) const {
      return std::pair(std::string_view(a.first), a.second) < std::pair(std::string_view(b.first), b.second);
    }
  };

  explicit State(ProfiledConfig c) : config(c) {}

  void add(std::string_view name, OpKind kind, TimeSpan span, Cost cost, double allocated_bytes, MetaSpan in,
           MetaSpan out) {
    auto& [op, durations] = of(name, kind);
    const double seconds = static_cast<double>(span.duration) / 1e9;
    op.min_seconds = op.calls == 0 ? seconds : std::min(op.min_seconds, seconds);
    op.max_seconds = std::max(op.max_seconds, seconds);
    durations.add(static_cast<float>(seconds));
    ++op.calls;
    op.seconds += seconds;
    op.flops += cost.flops;
    op.bytes += cost.bytes;
    op.allocated += allocated_bytes;
    if (!config.trace) return;
    if (events.size() >= config.max_events) {
      ++dropped;
      return;
    }
    const int thread =
        threads.try_emplace(std::this_thread::get_id(), static_cast<int>(threads.size()) + 1).first->second;
    events.push_back(
        {text(std::string(name)), text(joined(in) + " -> " + joined(out)), span, cost, thread, kind});
  }

  struct Row {
    OpProfile op;
    Durations durations;
  };
  Row& of(std::string_view name, OpKind kind) {
    const auto found = ops.find(std::pair(name, kind));
    if (found != ops.end()) return found->second;
    Row& row = ops[Key(name, kind)];
    row.op.name = name;
    row.op.kind = kind;
    return row;
  }
  const std::string* text(std::string value) { return &texts.try_emplace(std::move(value)).first->first; }

  const ProfiledConfig config;
  mutable std::mutex mutex;
  std::map<Key, Row, ByKey> ops;
  double total_allocated = 0;
  double pending_allocated = 0;
  std::vector<Event> events;
  std::unordered_map<std::string, char> texts;
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

void ProfileRecorder::add(std::string_view name, OpKind kind, TimeSpan span, Cost cost, MetaSpan in,
                          MetaSpan out) {
  const std::lock_guard lock(state_->mutex);
  state_->add(name, kind, span, cost, std::exchange(state_->pending_allocated, 0), in, out);
}

void ProfileRecorder::add_composed(std::string_view name, TimeSpan span, Cost cost, double allocated_bytes,
                                   MetaSpan in, MetaSpan out) {
  const std::lock_guard lock(state_->mutex);
  state_->add(name, OpKind::composed, span, cost, allocated_bytes, in, out);
}

Profile ProfileRecorder::profile(std::string backend) const {
  const std::lock_guard lock(state_->mutex);
  Profile profile{std::move(backend), {}, state_->dropped, {}, {}};
  for (const auto& [key, row] : state_->ops) {
    profile.ops.push_back(row.op);
    row.durations.summarize(profile.ops.back());
  }
  std::stable_sort(profile.ops.begin(), profile.ops.end(),
                   [](const OpProfile& a, const OpProfile& b) { return a.seconds > b.seconds; });
  return profile;
}

void ProfileRecorder::reset() {
  const std::lock_guard lock(state_->mutex);
  state_->ops.clear();
  state_->events.clear();
  state_->texts.clear();
  state_->threads.clear();
  state_->dropped = 0;
  state_->total_allocated = state_->pending_allocated = 0;
}

std::string table(const Profile& profile, std::size_t top) {
  const double total = profile.kernel_seconds();
  const std::size_t shown = top == 0 ? profile.ops.size() : std::min(top, profile.ops.size());
  std::size_t width = 5;
  bool composed = false;
  for (std::size_t i = 0; i < shown; ++i) {
    width = std::max(width, profile.ops[i].name.size());
    composed = composed || profile.ops[i].kind == OpKind::composed;
  }
  constexpr auto row = "{:<{}}  {:<8} {:>8} {:>11} {:>7} {:>11} {:>11} {:>11} {:>14} {:>11} {:>11}\n";
  std::string text = fmt::format(row, "op", width, "kind", "calls", "time", "share", "mean", "min", "max",
                                 "rate", "traffic", "allocated");
  std::int64_t calls = 0;
  double flops = 0, bytes = 0, allocated = 0;
  for (const OpProfile& op : profile.ops) {
    if (!is_kernel(op)) continue;
    calls += op.calls;
    flops += op.flops;
    bytes += op.bytes;
    allocated += op.allocated;
  }
  const Ceilings& peak = profile.ceilings;
  const auto share = [](double rate, double ceiling) {
    return ceiling > 0 ? fmt::format(" {:3.0f} %", 100 * rate / ceiling) : "";
  };
  const auto per_second = [&](double amount) { return total > 0 ? amount / total : 0; };
  for (std::size_t i = 0; i < shown; ++i) {
    const OpProfile& op = profile.ops[i];
    text += fmt::format(
        row, op.name, width, to_string(op.kind), op.calls, duration(op.seconds),
        fmt::format("{:.1f} %", total > 0 ? 100 * op.seconds / total : 0), duration(op.mean_seconds()),
        duration(op.min_seconds), duration(op.max_seconds),
        scaled(op.flops_per_second(), "FLOP/s") + share(op.flops_per_second(), peak.flops_per_second),
        scaled(op.bytes_per_second(), "B/s") + share(op.bytes_per_second(), peak.bytes_per_second),
        scaled(op.allocated, "B"));
  }
  if (shown < profile.ops.size()) text += fmt::format("... {} more\n", profile.ops.size() - shown);
  text += fmt::format(row, "total", width, "kernels", calls, duration(total), "100.0 %", "", "", "",
                      scaled(per_second(flops), "FLOP/s"), scaled(per_second(bytes), "B/s"),
                      scaled(allocated, "B"));
  if (profile.ceilings.bytes_per_second > 0)
    text += fmt::format("ceilings of the device: copy {}, matrix product {}\n",
                        scaled(profile.ceilings.bytes_per_second, "B/s"),
                        scaled(profile.ceilings.flops_per_second, "FLOP/s"));
  if (composed)
    text += "composed: from beginning to end; the kernels inside are listed as well and make the total\n";
  return text;
}

std::string to_json(const Profile& profile) {
  nlohmann::ordered_json ops = nlohmann::ordered_json::array();
  for (const OpProfile& op : profile.ops) {
    ops.push_back({{"name", op.name},
                   {"kind", to_string(op.kind)},
                   {"calls", op.calls},
                   {"seconds", op.seconds},
                   {"mean_seconds", op.mean_seconds()},
                   {"min_seconds", op.min_seconds},
                   {"max_seconds", op.max_seconds},
                   {"median_seconds", op.median_seconds},
                   {"p90_seconds", op.p90_seconds},
                   {"p99_seconds", op.p99_seconds},
                   {"flops", op.flops},
                   {"bytes", op.bytes},
                   {"flops_per_second", op.flops_per_second()},
                   {"bytes_per_second", op.bytes_per_second()},
                   {"allocated_bytes", op.allocated}});
  }
  const nlohmann::ordered_json json{{"backend", profile.backend},
                                    {"kernel_seconds", profile.kernel_seconds()},
                                    {"dropped_events", profile.dropped_events},
                                    {"memory",
                                     {{"in_use_bytes", profile.memory.in_use},
                                      {"peak_bytes", profile.memory.peak},
                                      {"cached_bytes", profile.memory.cached},
                                      {"allocations", profile.memory.allocations}}},
                                    {"ceilings",
                                     {{"copy_bytes_per_second", profile.ceilings.bytes_per_second},
                                      {"product_flops_per_second", profile.ceilings.flops_per_second}}},
                                    {"ops", ops}};
  return json.dump(2);
}

void ProfileRecorder::write_trace(const std::filesystem::path& path, const std::string& backend) const {
  const std::lock_guard lock(state_->mutex);
  std::int64_t origin = INT64_MAX;
  for (const State::Event& e : state_->events) origin = std::min(origin, e.span.start);
  const auto quoted = [](const std::string& text) { return nlohmann::json(text).dump(); };
  AtomicFile file(path);
  std::string text = fmt::format(
      "{{\"displayTimeUnit\":\"ns\",\"otherData\":{{\"dropped_events\":{}}},\"traceEvents\":[\n"
      "{{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":1,\"args\":{{\"name\":{}}}}}",
      state_->dropped, quoted("ferrite on " + backend));
  for (const State::Event& e : state_->events) {
    text += fmt::format(
        ",\n{{\"name\":{},\"cat\":\"{}\",\"ph\":\"X\",\"pid\":1,\"tid\":{},\"ts\":{:.3f},\"dur\":{:.3f},"
        "\"args\":{{\"shapes\":{},\"flops\":{},\"bytes\":{}}}}}",
        quoted(*e.name), to_string(e.kind), e.thread, 1e-3 * static_cast<double>(e.span.start - origin),
        1e-3 * static_cast<double>(e.span.duration), quoted(*e.shapes), e.cost.flops, e.cost.bytes);
    if (text.size() > (std::size_t{1} << 20)) {
      file.write(text);
      text.clear();
    }
  }
  file.write(text + "\n]}\n");
  file.commit();
}

}  // namespace ferrite
