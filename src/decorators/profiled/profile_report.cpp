// Output of a profile: the table for people and the JSON for programs.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "ferrite/decorators/profiled.hpp"

namespace ferrite {

std::string_view to_string(OpKind kind) {
  static constexpr std::string_view names[] = {"kernel", "fused", "composed", "transfer"};
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

double Profile::compile_seconds() const {
  double total = 0;
  for (const CompileTime& time : facts.compile_times) total += time.seconds;
  return total;
}

namespace {

using nlohmann::ordered_json;

/// 12345678 -> "12.3 M"; at most four digits and a prefix.
std::string scaled(double value, std::string_view unit) {
  static constexpr std::string_view prefixes[] = {"", "k", "M", "G", "T", "P"};
  std::size_t i = 0;
  for (; value >= 999.5 && i + 1 < std::size(prefixes); ++i) value /= 1000;
  return fmt::format("{:.3g} {}{}", value, prefixes[i], unit);
}

std::string duration(double seconds) {
  if (seconds >= 1) return fmt::format("{:.3f} s", seconds);
  if (seconds >= 1e-3) return fmt::format("{:.3f} ms", seconds * 1e3);
  return fmt::format("{:.2f} us", seconds * 1e6);
}

}  // namespace

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
  if (!profile.facts.compile_times.empty())
    text += fmt::format("apart from that, loading libraries and choosing plans: {}\n",
                        duration(profile.compile_seconds()));
  if (composed)
    text += "composed: from beginning to end; the kernels inside are listed as well and make the total\n";
  return text;
}

namespace {

void append(ordered_json& json, const Figures& figures) {
  for (const auto& [name, value] : figures) {
    if (std::trunc(value) == value && std::abs(value) < 0x1p53)
      json[name] = static_cast<std::int64_t>(value);
    else
      json[name] = value;
  }
}

ordered_json device_of(const Profile& profile) {
  ordered_json device{
      {"device", to_string(profile.device)},
      {"name", profile.facts.device_name.empty() ? profile.backend : profile.facts.device_name}};
  append(device, profile.facts.device);
  return device;
}

ordered_json memory_of(const Profile& profile) {
  ordered_json memory{{"in_use_bytes", profile.memory.in_use},
                      {"peak_bytes", profile.memory.peak},
                      {"cached_bytes", profile.memory.cached},
                      {"allocations", profile.memory.allocations}};
  append(memory, profile.facts.pool);
  return memory;
}

ordered_json transfers_of(const Profile& profile) {
  constexpr std::pair<const char*, std::string_view> directions[] = {
      {"host_to_device", "copy_from_host"},
      {"device_to_host", "copy_to_host"},
      {"device_to_device", "copy_from_device"}};
  ordered_json transfers = ordered_json::object();
  for (const auto& [direction, name] : directions) {
    for (const OpProfile& op : profile.ops) {
      if (op.kind != OpKind::transfer || op.name != name) continue;
      transfers[direction] = {{"calls", op.calls},
                              {"bytes", op.bytes},
                              {"seconds", op.seconds},
                              {"bytes_per_second", op.bytes_per_second()}};
    }
  }
  return transfers;
}

ordered_json compile_times_of(const Profile& profile) {
  ordered_json times = ordered_json::array();
  for (const CompileTime& time : profile.facts.compile_times)
    times.push_back({{"what", time.what}, {"count", time.count}, {"seconds", time.seconds}});
  return times;
}

ordered_json json_of(const OpProfile& op, const Ceilings& ceilings) {
  ordered_json json{{"name", op.name},
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
                    {"allocated_bytes", op.allocated}};
  if (ceilings.bytes_per_second > 0)
    json["share_of_copy_bandwidth"] = op.bytes_per_second() / ceilings.bytes_per_second;
  if (ceilings.flops_per_second > 0)
    json["share_of_product_rate"] = op.flops_per_second() / ceilings.flops_per_second;
  return json;
}

}  // namespace

std::string to_json(const Profile& profile) {
  ordered_json ops = ordered_json::array();
  for (const OpProfile& op : profile.ops) ops.push_back(json_of(op, profile.ceilings));
  const ordered_json json{{"backend", profile.backend},
                          {"devices", ordered_json::array({device_of(profile)})},
                          {"kernel_seconds", profile.kernel_seconds()},
                          {"compile_seconds", profile.compile_seconds()},
                          {"dropped_events", profile.dropped_events},
                          {"memory", memory_of(profile)},
                          {"ceilings",
                           {{"copy_bytes_per_second", profile.ceilings.bytes_per_second},
                            {"product_flops_per_second", profile.ceilings.flops_per_second}}},
                          {"transfers", transfers_of(profile)},
                          {"compile_times", compile_times_of(profile)},
                          {"ops", ops}};
  return json.dump(2);
}

}  // namespace ferrite
