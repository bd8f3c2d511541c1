// Thousands of random programs: the GPU leaves what the interpreter leaves.
#include <gtest/gtest.h>

#include "ferrite/backend/cuda_device.hpp"
#include "ferrite/core/thread_pool.hpp"
#include "ferrite/models/irsynth/record.hpp"

namespace ferrite::irsynth {
namespace {

std::vector<Record> records_of(const Config& config, std::uint64_t seed, std::int64_t count) {
  std::vector<Record> records(static_cast<std::size_t>(count));
  parallel_ranges(count, 16, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      records[static_cast<std::size_t>(i)] = make_record(config, seed, i);
  });
  return records;
}

TEST(CudaIrsynth, AgreesWithTheInterpreter) {
  if (cuda_device_count() == 0) GTEST_SKIP() << cuda_unavailable_reason();
  Config config;
  config.verify = Verify::gpu;
  std::vector<Record> records = records_of(config, 77, 3000);
  run_records_on_gpu(config, records);
  for (const Record& r : records) {
    ASSERT_EQ(r.failure, "") << r.index << " " << r.program.category << "\n" << r.python << r.forward;
    ASSERT_FALSE(r.checks.gpu.empty());
  }
}

TEST(CudaIrsynth, RunsOnTheGpuThatIsAskedFor) {
  if (cuda_device_count() == 0) GTEST_SKIP() << cuda_unavailable_reason();
  Config config;
  config.verify = Verify::gpu;
  std::vector<Record> records = records_of(config, 9, 10);
  config.gpu = cuda_device_count() - 1;
  run_records_on_gpu(config, records);
  for (const Record& r : records) EXPECT_EQ(r.failure, "");
  config.gpu = cuda_device_count();
  EXPECT_THROW(run_records_on_gpu(config, records), DeviceError);
}

TEST(CudaIrsynth, AWrongOutputIsFound) {
  if (cuda_device_count() == 0) GTEST_SKIP() << cuda_unavailable_reason();
  Config config;
  config.categories = {"arithmetic"};
  config.verify = Verify::gpu;
  std::vector<Record> records = records_of(config, 5, 20);
  for (kernel::Value& v : records[3].outputs)
    for (kernel::Number& n : v.numbers)
      if (v.type.is_array() && kernel::is_float(v.type.scalar))
        n.real += 1;
      else if (v.type.is_array())
        n.integer += 1;
  records[5].forward += "\nnot a kernel;\n";
  run_records_on_gpu(config, records);
  for (std::size_t i = 0; i < records.size(); ++i)
    EXPECT_EQ(records[i].failure.empty(), i != 3 && i != 5) << records[i].failure;
}

}  // namespace
}  // namespace ferrite::irsynth
