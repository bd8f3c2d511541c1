// The pool's log as a timeline: the counters are those of the pool, on the host and on a GPU.
#include "backend_cuda/runtime/pool_trace.hpp"

#include <fstream>
#include <nlohmann/json.hpp>

#include "backend_cuda/fake_device.hpp"
#include "ferrite/backend/cuda_device.hpp"
#include "ferrite/backend/cuda_memory_log.hpp"
#include "ferrite/stacks.hpp"
#include "scratch_folder.hpp"

namespace ferrite::cuda {
namespace {

using nlohmann::json;

std::vector<json> events_of(const json& trace, std::string_view phase, int pid = 1) {
  std::vector<json> found;
  for (const json& e : trace["traceEvents"])
    if (e["ph"] == phase && e["pid"] == pid) found.push_back(e);
  return found;
}

class PoolTrace : public PoolTest {
 protected:
  json written(std::span<const PoolTimeline> pools) const {
    write_pool_trace(folder_ / "memory.json", pools);
    return json::parse(std::ifstream(folder_ / "memory.json"));
  }
  json written() const {
    const PoolTimeline one = timeline_of(*pool, {DeviceKind::cuda, 0}, {});
    return written({&one, 1});
  }
  const testing::ScratchFolder folder_;
};

TEST_F(PoolTrace, CountsWhatThePoolCounts) {
  const auto earlier = pool->allocate(3 * MiB);  // before the log
  pool->log_events(1000);
  std::vector<std::size_t> in_use, cached;
  const auto note = [&] {
    in_use.push_back(pool->pool_stats().in_use);
    cached.push_back(pool->pool_stats().cached);
  };
  const OpScope scope("softmax");
  auto a = pool->allocate(100);
  note();
  auto b = pool->allocate(600);
  note();
  a.reset();
  note();
  const json trace = written();
  const auto marks = events_of(trace, "i");
  std::vector<json> counters = events_of(trace, "C");
  ASSERT_EQ(marks.size(), counters.size());
  std::size_t at = 0;
  for (std::size_t i = 0; i < marks.size(); ++i) {
    EXPECT_EQ(marks[i]["name"], "softmax");
    if (marks[i]["cat"] == "segment") continue;
    ASSERT_LT(at, in_use.size());
    EXPECT_EQ(counters[i]["args"]["in use"], in_use[at]);
    EXPECT_EQ(counters[i]["args"]["cached"], cached[at]);
    EXPECT_EQ(counters[i]["ts"], marks[i]["ts"]);
    ++at;
  }
  EXPECT_EQ(at, 3u);
  EXPECT_EQ(marks.back()["cat"], "free");
  EXPECT_EQ(marks.back()["args"]["bytes"], 100);
}

TEST_F(PoolTrace, CountsRightlyWithoutItsBeginning) {
  pool->log_events(4);
  std::vector<std::shared_ptr<Buffer>> held;
  for (int i = 0; i < 10; ++i) held.push_back(pool->allocate(1 * MiB));
  held.pop_back();
  const auto counters = events_of(written(), "C");
  ASSERT_EQ(counters.size(), 4u);
  EXPECT_EQ(counters[0]["args"]["in use"], 8 * MiB);
  EXPECT_EQ(counters[2]["args"]["in use"], 10 * MiB);
  EXPECT_EQ(counters[3]["args"]["in use"], pool->pool_stats().in_use);
}

TEST_F(PoolTrace, MarksWhereMemoryRanOut) {
  restart(1 * GiB);
  pool->log_events(100);
  const auto held = pool->allocate(700 * MiB);
  const OpScope scope("matmul");
  EXPECT_THROW(pool->allocate(400 * MiB), OutOfMemory);
  const auto marks = events_of(written(), "i");
  EXPECT_EQ(marks.back()["cat"], "out_of_memory");
  EXPECT_EQ(marks.back()["name"], "matmul");
  EXPECT_EQ(marks.back()["args"]["bytes"], 400 * MiB);
}

TEST_F(PoolTrace, HasOneProcessForEachGpu) {
  using std::chrono::milliseconds;
  const PoolEvent event{PoolEvent::Kind::allocate, 512, "fill", milliseconds(1)};
  const PoolTimeline pools[] = {{{DeviceKind::cuda, 0}, milliseconds(5), {event}, 512, 1024},
                                {{DeviceKind::cuda, 1}, milliseconds(7), {event}, 2048, 4096}};
  const json trace = written(pools);
  EXPECT_EQ(events_of(trace, "M", 2)[0]["args"]["name"], "memory of cuda:1");
  EXPECT_EQ(events_of(trace, "C", 1)[0]["ts"], 1000.0);
  EXPECT_EQ(events_of(trace, "C", 2)[0]["ts"], 3000.0);
  EXPECT_EQ(events_of(trace, "C", 2)[0]["args"]["cached"], 2048);
  EXPECT_EQ(written({})["traceEvents"], json::array());
}

TEST_F(PoolTrace, AFolderThatIsNotThereIsAnError) {
  EXPECT_THROW(write_pool_trace(folder_ / "no" / "memory.json", {}), IoError);
}

TEST(CudaMemoryTrace, ShowsTheTensorsOfAProgram) {
  if (cuda_device_count() == 0) GTEST_SKIP() << cuda_unavailable_reason();
  Cuda gpu;
  const testing::ScratchFolder folder;
  {
    const CudaMemoryLog log(gpu);
    const auto x = ones(gpu, {1 << 20});
    const auto y = exp(x);
    log.write_trace(folder / "memory.json");
  }
  const json trace = json::parse(std::ifstream(folder / "memory.json"));
  std::size_t large = 0;
  for (const json& mark : events_of(trace, "i"))
    large += mark["cat"] == "allocate" && mark["args"]["bytes"] == 4 * MiB;
  EXPECT_EQ(large, 2u);
  EXPECT_GE(events_of(trace, "C").back()["args"]["in use"].get<std::size_t>(), 8 * MiB);
}

}  // namespace
}  // namespace ferrite::cuda
