// What errors say.
#pragma once

#include <gtest/gtest.h>

#include <string>

namespace ferrite::testing {

/// The message of the error that f throws; "(no error of this kind)" if it throws none.
template <class E, class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const E& error) {
    return error.what();
  }
  return "(no error of this kind)";
}

inline void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in:\n" << text;
}

}  // namespace ferrite::testing
