// What a training's signals leave behind.
#include "cli/stop_on_signal.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "ferrite/data/source.hpp"
#include "ferrite/io/atomic_file.hpp"
#include "scratch_folder.hpp"

namespace ferrite::cli {
namespace {

struct Idle final : train::TrainerBase {
  explicit Idle(data::BatchSource& source) : TrainerBase(source, train::TrainerConfig{}.with_steps(1)) {}
};

data::Generated nothing() {
  return {"nothing", [](std::int64_t) { return std::optional<data::HostBatch>(); }};
}

TEST(StopOnSignal, TheFirstAsksTheTrainerToStop) {
  auto source = nothing();
  Idle trainer(source);
  const StopOnSignal stop(trainer);
  EXPECT_FALSE(trainer.is_stopping());
  ::raise(SIGTERM);
  EXPECT_TRUE(trainer.is_stopping());
  ::raise(SIGTERM);  // so soon it is the same request
}

TEST(StopOnSignal, ALaterOneEndsTheProgramInTheMiddleOfASaveWithoutALeftover) {
  const testing::ScratchFolder folder;
  const auto killed_while_saving = [&] {
    auto source = nothing();
    Idle trainer(source);
    const StopOnSignal stop(trainer);
    AtomicFile checkpoint(folder / "checkpoint");
    checkpoint.write("half of");
    if (folder.file_count() != 1) std::_Exit(1);
    ::raise(SIGINT);
    std::this_thread::sleep_for(std::chrono::milliseconds(1100));
    ::raise(SIGINT);
  };
  EXPECT_EXIT(killed_while_saving(), ::testing::KilledBySignal(SIGINT), "");
  EXPECT_EQ(folder.file_count(), 0u);
}

}  // namespace
}  // namespace ferrite::cli
