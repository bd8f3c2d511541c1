#include "dist/watchdog.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <future>

namespace ferrite::testing {
namespace {

using dist::Watchdog;
using namespace std::chrono_literals;

/// What an alarm said.
struct Said {
  std::string call, trouble;
};

struct Watched {
  std::promise<Said> said;
  std::atomic<bool> broken = false;
  std::future<Said> future = said.get_future();
  Watchdog watchdog{[this] { return broken ? std::string("the link is down") : ""; },
                    [this](const std::string& call, const std::string& trouble) {
                      said.set_value({call, trouble});
                    }};
};

TEST(Watchdog, ACallThatDoesNotEndIsNamed) {
  Watched w;
  w.watchdog.watch("the first", 10s, [] { return true; });
  w.watchdog.watch("the second", 50ms, [] { return false; });
  w.watchdog.watch("the third", 10s, [] { return false; });
  const Said said = w.future.get();
  EXPECT_EQ(said.call, "the second");
  EXPECT_EQ(said.trouble, "");
}

/// Ten calls of 100 ms each: the last ends long after its timeout has passed since it was given.
TEST(Watchdog, ACallHasItsTimeFromTheEndOfTheOneBefore) {
  std::atomic<int> ended = 0;
  Watched w;
  const auto start = std::chrono::steady_clock::now();
  for (int i = 1; i <= 10; ++i)
    w.watchdog.watch("a call", 400ms, [&ended, start, i] {
      const bool is_done = std::chrono::steady_clock::now() - start > i * 100ms;
      ended += is_done;
      return is_done;
    });
  EXPECT_EQ(w.future.wait_for(1500ms), std::future_status::timeout);
  EXPECT_EQ(ended, 10);
}

TEST(Watchdog, TroubleIsToldBeforeACallIsLate) {
  Watched w;
  w.watchdog.watch("a call", 100s, [] { return false; });
  w.broken = true;
  const Said said = w.future.get();
  EXPECT_EQ(said.call, "a call");
  EXPECT_EQ(said.trouble, "the link is down");
}

}  // namespace
}  // namespace ferrite::testing
