// StopStrings: ends a text that comes in parts before the first of some strings.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ferrite/core/export.hpp"

namespace ferrite::text {

/// All that `push` and `finish` return together is the text up to the stop string that ends first, or all of
/// it if there is none. Bytes that may begin a stop string wait until it is clear whether they do.
class FERRITE_API StopStrings {
 public:
  /// Throws ValueError for an empty string.
  explicit StopStrings(std::vector<std::string> stops);

  /// What can be shown after this part; may be empty.
  std::string push(std::string_view part);
  /// Whether a stop string has come. Parts after it are ignored.
  bool found() const { return found_; }
  /// The bytes that wait: there is no more text.
  std::string finish();

 private:
  std::vector<std::string> stops_;
  std::string waiting_;
  bool found_ = false;
};

}  // namespace ferrite::text
