// Races of a run.
#include "kernel/interpret/race_log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

namespace ferrite::kernel {

namespace {

/// Limit on the watched numbers of an array; larger arrays would take too much memory.
constexpr std::size_t most_watched = std::size_t{1} << 22;
/// Limit on distinct pairs of places.
constexpr std::size_t most_races = 64;

std::string_view verb(Race::Access access) {
  return access == Race::Access::read ? "reads" : access == Race::Access::write ? "writes" : "updates";
}

}  // namespace

void RaceLog::add_array(const std::string& name, std::span<const std::int64_t> shape, int stride,
                        const Number* data, bool of_block) {
  auto size = static_cast<std::size_t>(stride);
  for (const std::int64_t extent : shape) size *= static_cast<std::size_t>(extent);
  if (size > most_watched) return;
  arrays_.push_back({name, {shape.begin(), shape.end()}, stride, data, size, of_block, {}});
}

void RaceLog::end_block() {
  std::erase_if(arrays_, [](const Tracked& a) { return a.of_block; });
}

void RaceLog::note(const Number* first, int count, Race::By by, bool same) {
  for (Tracked& array : arrays_) {
    const std::less<const Number*> before;
    if (before(first, array.data) || !before(first, array.data + array.size)) continue;
    if (array.shadows.empty()) array.shadows.resize(array.size);
    const auto at = static_cast<std::size_t>(first - array.data);
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) note(array, at + i, by, same);
    return;
  }
}

/// Whether the order of the two is undefined.
bool RaceLog::meets(const Mark& mark, const Race::By& by) const {
  if (mark.thread < 0 || mark.thread == by.thread) return false;
  const bool one_block = mark.thread / block_dim_ == by.thread / block_dim_;
  return !one_block || mark.phase == phase_;
}

void RaceLog::note(Tracked& array, std::size_t at, const Race::By& by, bool same) {
  Shadow& s = array.shadows[at];
  const auto against = [&](const Mark& mark, Race::Access access) {
    if (!meets(mark, by)) return false;
    report(array, at, mark, access, by);
    return true;
  };
  using enum Race::Access;
  const bool reads = by.access == read;
  const Mark now{static_cast<std::int32_t>(by.thread), phase_, by.place};
  if ((same || !against(s.write, write)) && !(by.access != atomic && against(s.atomic, atomic)) && !reads)
    against(s.read, read) || against(s.other_read, read);
  if (by.access == write) {
    s.write = now;
  } else if (by.access == atomic) {
    s.atomic = now;
  } else if (s.read.thread < 0 || s.read.thread == now.thread) {
    s.read = now;
  } else {
    s.other_read = now;
  }
}

void RaceLog::report(const Tracked& array, std::size_t at, const Mark& mark, Race::Access access,
                     const Race::By& by) {
  const auto same = [](Place a, Place b) { return a.line == b.line && a.column == b.column; };
  for (Race& r : found_)
    if (r.array == array.name && r.first.access == access && r.second.access == by.access &&
        same(r.first.place, mark.place) && same(r.second.place, by.place)) {
      ++r.count;
      return;
    }
  if (found_.size() >= most_races) return;
  std::vector<std::int64_t> index(array.shape.size());
  auto element = static_cast<std::int64_t>(at) / array.stride;
  for (std::size_t axis = index.size(); axis-- > 0; element /= array.shape[axis])
    index[axis] = element % array.shape[axis];
  found_.push_back({kernel_, array.name, std::move(index), {access, mark.thread, mark.place}, by});
}

KernelError warning(const Module& module, const Race& r) {
  const std::string_view end = r.first.access == Race::Access::write && r.second.access == Race::Access::write
                                   ? "use an atomic, or give each thread an element of its own"
                                   : "read another array, or put a barrier between them";
  std::string text = fmt::format(
      "race in '{}': thread {} {} {}[{}], which thread {} {} in line {} without an order between them: the "
      "result "
      "depends on it, and the gradient is not defined; {}",
      r.kernel, r.second.thread, verb(r.second.access), r.array, fmt::join(r.index, ", "), r.first.thread,
      verb(r.first.access), r.first.place.line, end);
  if (r.count > 1) text += fmt::format(" ({} such pairs)", r.count);
  return {module.source.get(), r.second.place, text};
}

}  // namespace ferrite::kernel
