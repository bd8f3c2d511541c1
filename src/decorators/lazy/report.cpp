// The report of Lazy.
#include <fmt/format.h>

#include <algorithm>

#include "decorators/lazy/recorder_state.hpp"
#include "ferrite/core/config.hpp"
#include "ferrite/kernel/parse.hpp"

namespace ferrite {

LazyConfig LazyConfig::with_max_ops(int value) const {
  if (value < 1) throw ValueError(fmt::format("[lazy] max_ops {}: must be at least 1", value));
  return detail::with(*this, &LazyConfig::max_ops, value);
}
LazyConfig LazyConfig::with_max_arrays(int value) const {
  if (value < 4)
    throw ValueError(fmt::format("[lazy] max_arrays {}: must be at least 4, what one op reads", value));
  return detail::with(*this, &LazyConfig::max_arrays, value);
}

std::int64_t FusionReport::launches() const {
  std::int64_t total = 0;
  for (const Kernel& k : kernels) total += k.launches;
  return total;
}

std::string table(const FusionReport& report) {
  std::string text = fmt::format(
      "{} ops recorded: {} fused, {} one by one, {} never run; {} results never written\n"
      "{} kernels, {} launches\n",
      report.recorded, report.fused, report.single, report.never_run, report.not_written,
      report.kernels.size(), report.launches());
  if (!report.kernels.empty()) text += fmt::format("\n{:>9}  {}\n", "launches", "ops of a kernel");
  for (const FusionReport::Kernel& k : report.kernels) text += fmt::format("{:>9}  {}\n", k.launches, k.ops);
  const auto list = [&](std::string_view heading, const FusionReport::Reasons& reasons) {
    if (!reasons.empty()) text += fmt::format("\n{:>9}  {}\n", "times", heading);
    for (const auto& [reason, count] : reasons) text += fmt::format("{:>9}  {}\n", count, reason);
  };
  list("a group ran because of", report.ended);
  list("several ops ran one by one because of", report.unfused);
  return text;
}

namespace lazy {

namespace {
FusionReport::Reasons by_count(const std::map<std::string, std::int64_t, std::less<>>& counts) {
  FusionReport::Reasons reasons(counts.begin(), counts.end());
  std::stable_sort(reasons.begin(), reasons.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return reasons;
}
}  // namespace

FusionReport Recorder::report() const {
  const std::lock_guard lock(state_->mutex);
  const auto& counts = state_->counts;
  FusionReport report{counts.recorded,    counts.fused, counts.single,          counts.never_run,
                      counts.not_written, {},           by_count(counts.ended), by_count(counts.unfused)};
  for (const auto& [structure, kernel] : state_->kernels)
    if (kernel->launches > 0)
      report.kernels.push_back({kernel->ops, print(kernel->compiled.module()), kernel->launches});
  std::sort(report.kernels.begin(), report.kernels.end(), [](const auto& a, const auto& b) {
    return a.launches != b.launches ? a.launches > b.launches : a.source < b.source;
  });
  return report;
}

void Recorder::reset_report() {
  const std::lock_guard lock(state_->mutex);
  state_->counts = {};
  for (auto& [structure, kernel] : state_->kernels) kernel->launches = 0;
}

}  // namespace lazy
}  // namespace ferrite
