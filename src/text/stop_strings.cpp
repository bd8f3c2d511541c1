#include "ferrite/text/stop_strings.hpp"

#include <algorithm>
#include <utility>

#include "ferrite/core/error.hpp"

namespace ferrite::text {
namespace {

/// Whether some stop string begins with all of `bytes`.
bool may_begin(const std::vector<std::string>& stops, std::string_view bytes) {
  return std::ranges::any_of(stops, [&](const std::string& stop) { return stop.starts_with(bytes); });
}

}  // namespace

StopStrings::StopStrings(std::vector<std::string> stops) : stops_(std::move(stops)) {
  if (std::ranges::count(stops_, std::string()) > 0)
    throw ValueError("[stop strings] one is empty: every text would end at once");
}

std::string StopStrings::push(std::string_view part) {
  std::string shown;
  for (const char byte : part) {
    if (found_) break;
    waiting_ += byte;
    std::size_t stop = 0;  // the length of the longest stop string that ends here
    for (const std::string& s : stops_)
      if (waiting_.ends_with(s)) stop = std::max(stop, s.size());
    if (stop > 0) {
      shown.append(waiting_, 0, waiting_.size() - stop);
      waiting_.clear();
      found_ = true;
      break;
    }
    std::size_t clear = 0;  // bytes that begin no stop string
    while (clear < waiting_.size() && !may_begin(stops_, std::string_view(waiting_).substr(clear))) ++clear;
    shown.append(waiting_, 0, clear);
    waiting_.erase(0, clear);
  }
  return shown;
}

std::string StopStrings::finish() { return std::exchange(waiting_, {}); }

}  // namespace ferrite::text
