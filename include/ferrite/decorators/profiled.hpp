// Profiled<B>: measures every op of a backend: calls, time, FLOP/s, bytes/s, memory, fused or composed. It
// reports a table, JSON, or a trace for chrome://tracing and ui.perfetto.dev. Ops do not wait for an
// asynchronous device: its times are read later, many calls at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "ferrite/core/config.hpp"
#include "ferrite/core/time_span.hpp"
#include "ferrite/decorators/decorator.hpp"

namespace ferrite {

struct ProfiledConfig {
  /// Keep every call for write_trace, up to max_events; later ones are counted as dropped.
  bool trace = false;
  std::size_t max_events = 1'000'000;

  ProfiledConfig with_trace(bool value) const { return detail::with(*this, &ProfiledConfig::trace, value); }
  ProfiledConfig with_max_events(std::size_t value) const {
    return detail::with(*this, &ProfiledConfig::max_events, value);
  }
};

/// How an op was evaluated. kernel: a primitive; fused: a kernel for an op that could be composed; composed:
/// made of other ops, whose kernels are listed as well; transfer: a copy from or to the host.
enum class OpKind : std::uint8_t { kernel, fused, composed, transfer };
FERRITE_API std::string_view to_string(OpKind kind);

struct OpProfile {
  std::string name;
  OpKind kind = OpKind::kernel;
  std::int64_t calls = 0;
  double seconds = 0;  // of all calls; a composed op includes its parts
  double min_seconds = 0;
  double max_seconds = 0;
  // Percentiles of the calls, from a regular sample if there were many.
  double median_seconds = 0;
  double p90_seconds = 0;
  double p99_seconds = 0;
  double flops = 0;      // by the op's own account (op_cost)
  double bytes = 0;      // bytes that the op must move
  double allocated = 0;  // bytes allocated for it

  double mean_seconds() const { return calls > 0 ? seconds / static_cast<double>(calls) : 0; }
  double flops_per_second() const { return seconds > 0 ? flops / seconds : 0; }
  double bytes_per_second() const { return seconds > 0 ? bytes / seconds : 0; }
};

/// The highest rates that were measured on the device: for a large copy (bytes read and written) and a large
/// matrix product. 0 if not measured.
struct Ceilings {
  double bytes_per_second = 0;
  double flops_per_second = 0;
};

/// Time spent on preparation, apart from the ops: loading a library, building or choosing a plan.
struct CompileTime {
  std::string what;
  std::int64_t count = 0;
  double seconds = 0;  // of the host, all together
};

/// Names and numbers, in the order of a report.
using Figures = std::vector<std::pair<std::string, double>>;

/// What a backend reports beyond describe() and memory_stats(), through a member `facts()`.
struct BackendFacts {
  std::string device_name;                 // "NVIDIA H200"
  Figures device;                          // memory, multiprocessors, clocks
  Figures pool;                            // of its memory
  std::vector<CompileTime> compile_times;  // slowest first
};

struct FERRITE_API Profile {
  std::string backend;
  std::vector<OpProfile> ops;  // slowest first
  std::size_t dropped_events = 0;
  Device device;
  MemoryStats memory;
  BackendFacts facts;
  Ceilings ceilings;

  double compile_seconds() const;
  /// Time inside kernels: all rows except transfers and composed ops, whose time is already in the rows of
  /// their parts.
  double kernel_seconds() const;
};

/// Aligned text, the `top` slowest rows (0: all), their share of the kernel time, and the total.
FERRITE_API std::string table(const Profile& profile, std::size_t top = 0);
FERRITE_API std::string to_json(const Profile& profile);

/// The time of work that a device may still have to do.
class FERRITE_API PendingTime {
 public:
  virtual ~PendingTime() = default;
  /// Waits for the work. Called at most once.
  virtual TimeSpan get() = 0;
};
/// A time that is known now or later. A nullptr is work that was only captured and has not run: not counted.
using Timing = std::variant<TimeSpan, std::unique_ptr<PendingTime>>;

/// Profiled measures with it, from construction to `TimeSpan stop()`. An asynchronous backend specialises it,
/// or provides another through a member `auto stopwatch()`, with device events and a
/// `std::unique_ptr<PendingTime> stop_later()` that does not wait.
template <class B>
class Stopwatch {
 public:
  explicit Stopwatch(B& backend) : backend_(backend) {
    backend_.synchronize();
    start_ = now();
  }
  TimeSpan stop() {
    backend_.synchronize();
    return {start_, now() - start_};
  }

 private:
  static std::int64_t now() {
    return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
  }
  B& backend_;
  std::int64_t start_ = 0;
};

/// The records of Profiled. Any thread may add to it. Functions that read it first wait for the pending
/// calls, and throw any error of the device.
class FERRITE_API ProfileRecorder {
 public:
  /// At most so many calls are pending. Then it waits for the older half while the device works on the rest.
  static constexpr std::size_t most_pending = 1024;

  explicit ProfileRecorder(ProfiledConfig config);
  ~ProfileRecorder();

  void allocated(std::size_t bytes);
  /// Bytes allocated since the last op ended belong to this one: outputs are allocated before it runs.
  void add(std::string_view name, OpKind kind, Timing time, Cost cost, MetaSpan in, MetaSpan out);
  /// All bytes allocated so far, to find out how much a composed op allocates from beginning to end.
  double total_allocated() const;
  void add_composed(std::string_view name, Timing time, Cost cost, double allocated_bytes, MetaSpan in,
                    MetaSpan out);

  Profile profile(std::string backend) const;
  void reset();
  void write_trace(const std::filesystem::path& path, const std::string& backend) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// A handle: copies share what they measure, and tensors keep it alive.
template <class B>
class Profiled : public Decorator<Profiled<B>, B, ProfiledConfig, ProfileRecorder> {
  using Base = Decorator<Profiled, B, ProfiledConfig, ProfileRecorder>;

 public:
  using Base::Base;
  using Base::inner;

  /// Waits for unfinished ops. The first call also measures the ceilings of the device, if the backend can
  /// (member ceilings()); that takes some 10 ms.
  Profile profile() const {
    Profile profile = recorder().profile(inner().describe());
    profile.device = inner().device();
    profile.memory = inner().memory_stats();
    if constexpr (requires(const B& b) { b.facts(); }) profile.facts = inner().facts();
    if constexpr (requires(const B& b) { b.ceilings(); }) profile.ceilings = inner().ceilings();
    return profile;
  }
  /// Forgets everything measured, traced events included.
  void reset() { recorder().reset(); }
  /// The calls since construction or reset as a trace file. Empty unless ProfiledConfig::with_trace(true).
  void write_trace(const std::filesystem::path& path) const {
    recorder().write_trace(path, inner().describe());
  }

  Array allocate(const Meta& meta, std::string_view op = "allocate") {
    recorder().allocated(meta.bytes());
    return Base::allocate(meta, op);
  }
  void copy_from_host(const Array& array, const void* source) {
    auto watch = stopwatch();
    inner().copy_from_host(array, source);
    record_transfer("copy_from_host", stopped(watch), array);
  }
  void copy_to_host(const Array& array, void* target) {
    auto watch = stopwatch();
    inner().copy_to_host(array, target);
    record_transfer("copy_to_host", stopped(watch), array);
  }
  Array copy_from_device(const Array& array) requires requires(B& b) { b.copy_from_device(array); }
  {
    auto watch = stopwatch();
    Array copy = inner().copy_from_device(array);
    record_transfer("copy_from_device", stopped(watch), array);
    return copy;
  }
  std::string describe() const { return "profiled " + inner().describe(); }

  template <class Op>
  void call(const Op& op, Ins in, Outs out, Accumulate mask) {
    auto watch = stopwatch();
    Base::call(op, in, out, mask);
    record(op, stopped(watch), in, out);
  }

  /// Measures a composed op from now until the result is destroyed. Called by evaluate.
  template <class Op>
  auto composing(const Op& op, MetaSpan in) {
    return ComposedScope<Op>(*this, op, in);
  }

 private:
  auto stopwatch() {
    if constexpr (requires { inner().stopwatch(); })
      return inner().stopwatch();
    else
      return Stopwatch<B>(inner());
  }
  static Timing stopped(auto& watch) {
    if constexpr (requires { watch.stop_later(); })
      return watch.stop_later();
    else
      return watch.stop();
  }

  template <class Op>
  void record(const Op& op, Timing time, Ins in, Outs out) {
    constexpr bool optional = detail::Composes<B, Op> || detail::Assembles<B, Op>;
    const Metas inputs = detail::metas_of(in);
    Metas outputs;
    for (const Array& y : out) outputs.push_back(y.meta());
    recorder().add(op_name(op), optional ? OpKind::fused : OpKind::kernel, std::move(time),
                   op_cost(op, inputs, outputs), inputs, outputs);
  }

  void record_transfer(std::string_view name, Timing time, const Array& array) {
    const Meta meta = array.meta();
    recorder().add(name, OpKind::transfer, std::move(time), {0, static_cast<double>(meta.bytes())}, {},
                   {&meta, 1});
  }

  template <class Op>
  class ComposedScope {
   public:
    ComposedScope(Profiled& owner, const Op& op, MetaSpan in)
        : owner_(owner),
          op_(op),
          in_(in),
          out_(op.infer(in)),
          before_(owner.recorder().total_allocated()),
          watch_(owner.stopwatch()) {}
    ComposedScope(const ComposedScope&) = delete;
    ComposedScope& operator=(const ComposedScope&) = delete;
    ~ComposedScope() {
      try {
        owner_.recorder().add_composed(op_name(op_), stopped(watch_), op_cost(op_, in_, out_),
                                       owner_.recorder().total_allocated() - before_, in_, out_);
      } catch (...) {  // no memory, or the device is lost: lose a line of the profile, not the program
      }
    }

   private:
    Profiled& owner_;
    const Op& op_;
    MetaSpan in_;
    Metas out_;
    double before_;
    decltype(std::declval<Profiled&>().stopwatch()) watch_;
  };

  ProfileRecorder& recorder() const { return Base::state(); }
};

}  // namespace ferrite
