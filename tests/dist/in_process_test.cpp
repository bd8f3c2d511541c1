#include <functional>

#include "dist/collective_checks.hpp"
#include "dist/on_ranks.hpp"
#include "messages.hpp"

namespace ferrite::testing {
namespace {

using namespace std::chrono_literals;
using dist::DistError;
using dist::InProcessGroup;

class InProcess : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, InProcess, ::testing::Values(1, 2, 3, 4, 5));

TEST_P(InProcess, CollectivesOfAllDtypesAreWhatTheyAreDefinedAs) {
  on_ranks(GetParam(), [](Handle& g) { check_all_dtypes(*g); });
}
TEST_P(InProcess, MaxAndMinKeepNanAndTheFirstZero) {
  on_ranks(GetParam(), [](Handle& g) { check_nan_and_zeros(*g); });
}
TEST_P(InProcess, ViewsAndScalars) {
  on_ranks(GetParam(), [](Handle& g) { check_views(*g); });
}
TEST_P(InProcess, PartsOfTheWholeInPlace) {
  on_ranks(GetParam(), [](Handle& g) { check_parts_in_place(*g); });
}
TEST_P(InProcess, WrongArgumentsAreNamedBeforeAnythingIsSent) {
  on_ranks(GetParam(), [](Handle& g) { check_arguments(*g); });
}
TEST_P(InProcess, MismatchesAreNamedOnAllRanks) {
  on_ranks(GetParam(), [](Handle& g) { check_mismatches(*g); });
}

TEST(InProcessFaults, ARankThatDoesNotArriveIsNamed) {
  on_ranks(3, [](Handle& g) {
    if (g->rank() == 1) {
      std::this_thread::sleep_for(600ms);
      EXPECT_NE(message_of<DistError>([&] { g->barrier(); }).find("rank 1 did not arrive"),
                std::string::npos);
      return;
    }
    g->set_timeout(200ms);
    const std::string text = message_of<DistError>([&] { g->barrier(); });
    EXPECT_NE(text.find("[dist] rank 1 did not arrive within 0.2 s at barrier"), std::string::npos) << text;
    EXPECT_EQ(message_of<DistError>([&] { g->barrier(); }), text) << "the group has failed";
    std::this_thread::sleep_for(500ms);
  });
}

TEST(InProcessFaults, ARankThatThrowsEndsTheOthers) {
  on_ranks(3, [](Handle& g) {
    if (g->rank() == 2) {
      g.reset();  // as when its thread ends by an exception
      return;
    }
    Cpu b;
    const std::string text = message_of<DistError>([&] { dist::all_reduce(*g, ones(b, {2, 2})); });
    EXPECT_NE(text.find("rank 2 is gone"), std::string::npos) << text;
    EXPECT_NE(text.find("all_reduce(sum) of f32[2, 2]"), std::string::npos) << text;
  });
}

TEST(InProcessFaults, TwoRanksThatSendFirstAreEndedByTheTimeout) {
  on_ranks(2, [](Handle& g) {
    g->set_timeout(200ms);
    Cpu b;
    const std::string text = message_of<DistError>([&] { dist::send(*g, ones(b, {2}), 1 - g->rank()); });
    EXPECT_NE(text.find("did not arrive within 0.2 s at send of f32[2] to rank"), std::string::npos) << text;
  });
}

TEST(InProcessFaults, TheLongestTimeoutIsLong) {
  on_ranks(2, [](Handle& g) {
    g->set_timeout(std::chrono::milliseconds::max());
    if (g->rank() == 1) std::this_thread::sleep_for(50ms);
    g->barrier();
  });
}

TEST(InProcessFaults, ARankMayEndWhileOthersGoOnWithoutIt) {
  on_ranks(3, [](Handle& g) {
    g->barrier();
    if (g->rank() == 2) return g.reset();
    Cpu b;
    if (g->rank() == 0) dist::send(*g, ones(b, {2}), 1);
    if (g->rank() == 1) {
      EXPECT_EQ(dist::recv(*g, b, {{2}, DType::f32}, 0).to_vector<float>()[1], 1);
    }
  });
}

TEST(InProcessFaults, AGroupHasRanks) { EXPECT_THROW(InProcessGroup::create(0), ValueError); }

}  // namespace
}  // namespace ferrite::testing
