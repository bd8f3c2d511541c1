// Profiled over a device that runs on its own: nothing waits for it before the profile is wanted.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "ferrite/backend/reference.hpp"
#include "ferrite/ops/softmax.hpp"
#include "ferrite/tensor/tensor_data.hpp"
#include "profiled_support.hpp"
#include "scratch_folder.hpp"

namespace ferrite {
namespace {

/// Reference on which every call takes 1 us, but says so only later, when asked; what it is given while it
/// captures never runs.
struct Asynchronous : Reference {
  int given = 0, asked = 0, alive = 0;
  bool capturing = false, broken = false;

  struct Pending final : PendingTime {
    Pending(Asynchronous& b) : owner(b), number(b.given++) { ++owner.alive; }
    ~Pending() override { --owner.alive; }
    TimeSpan get() override {
      if (owner.broken) throw BackendError("[stopwatch] the device is gone");
      EXPECT_EQ(number, owner.asked++) << "the oldest first";
      return {1000 * number, 1000};
    }
    Asynchronous& owner;
    int number;
  };
  struct Watch {
    Asynchronous& owner;
    std::unique_ptr<PendingTime> stop_later() {
      return owner.capturing ? nullptr : std::make_unique<Pending>(owner);
    }
  };
  Watch stopwatch() { return {*this}; }
};

TEST(ProfiledAsynchronous, AsksAnAsynchronousDeviceForNothingUntilTheProfileIsWanted) {
  const testing::ScratchFolder folder;
  Profiled<Asynchronous> b(ProfiledConfig{}.with_trace(true));
  for (int i = 0; i < 100; ++i) ones(b, {5});
  softmax(ones(b, {2, 3}));
  EXPECT_EQ(b.inner().asked, 0);
  const Profile profile = b.profile();
  EXPECT_EQ(b.inner().asked, b.inner().given);
  EXPECT_EQ(b.inner().alive, 0);
  const OpProfile& fill = find(profile, "ones", OpKind::kernel);
  EXPECT_EQ(fill.calls, 101);
  EXPECT_NEAR(fill.seconds, 101e-6, 1e-12);
  EXPECT_DOUBLE_EQ(fill.allocated, 4 * (100 * 5 + 6));
  EXPECT_EQ(find(profile, "softmax", OpKind::composed).calls, 1);
  exp(ones(b, {5}));
  b.write_trace(folder / "trace.json");
  const auto events = nlohmann::json::parse(std::ifstream(folder / "trace.json"))["traceEvents"];
  ASSERT_EQ(events.size(), 1u + static_cast<std::size_t>(b.inner().given));
  EXPECT_EQ(events[1]["ts"], 0);
  EXPECT_EQ(events[2]["ts"], 1);
  EXPECT_EQ(events.back()["name"], "exp");
}

TEST(ProfiledAsynchronous, KeepsHalfOfThePendingCallsPendingWhenThereAreMany) {
  constexpr int most = ProfileRecorder::most_pending;
  Profiled<Asynchronous> b;
  for (int i = 0; i < most - 1; ++i) ones(b, {1});
  EXPECT_EQ(b.inner().asked, 0);
  ones(b, {1});
  EXPECT_EQ(b.inner().asked, most / 2);
  for (int i = 0; i < most / 2 - 1; ++i) ones(b, {1});
  EXPECT_EQ(b.inner().asked, most / 2);
  ones(b, {1});
  EXPECT_EQ(b.inner().asked, most);
  EXPECT_EQ(b.inner().alive, most / 2);
  EXPECT_EQ(find(b.profile(), "ones", OpKind::kernel).calls, most + most / 2);
}

TEST(ProfiledAsynchronous, ForgetsPendingCallsWithoutWaitingForThem) {
  Profiled<Asynchronous> b;
  ones(b, {1});
  b.reset();
  EXPECT_EQ(b.inner().alive, 0);
  EXPECT_EQ(b.inner().asked, 0);
  EXPECT_TRUE(b.profile().ops.empty());
}

TEST(ProfiledAsynchronous, DoesNotCountWhatIsCaptured) {
  Profiled<Asynchronous> b;
  b.inner().capturing = true;
  const auto x = ones(b, {1});
  softmax(ones(b, {2, 3}));
  b.inner().capturing = false;
  EXPECT_TRUE(b.profile().ops.empty());
  exp(x);
  const Profile profile = b.profile();
  ASSERT_EQ(profile.ops.size(), 1u);
  EXPECT_DOUBLE_EQ(profile.ops[0].allocated, 4) << "what was allocated in the capture is not the op's";
}

TEST(ProfiledAsynchronous, ThrowsWhatTheDeviceThrowsAndWorksOn) {
  Profiled<Asynchronous> b;
  ones(b, {1});
  b.inner().broken = true;
  EXPECT_THROW(b.profile(), BackendError);
  EXPECT_EQ(b.inner().alive, 0);
  EXPECT_TRUE(b.profile().ops.empty());
}

}  // namespace
}  // namespace ferrite
