// A GPU that is none: segments and stream marks for pools under test on the host.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <set>

#include "backend_cuda/runtime/pool.hpp"
#include "ferrite/core/error.hpp"

namespace ferrite::cuda {
constexpr std::size_t KiB = 1024, MiB = 1024 * KiB, GiB = 1024 * MiB;

/// A device of `capacity` bytes. Its addresses are numbers only, unless `real` memory is asked for.
class FakeDevice final : public SegmentSource {
 public:
  explicit FakeDevice(std::size_t capacity = 64 * GiB, bool real = false)
      : capacity_(capacity), real_(real) {}
  ~FakeDevice() override { EXPECT_TRUE(segments_.empty()) << "segments not given back"; }

  void* allocate(std::size_t bytes) override {
    ++allocations;
    if (bytes > free_bytes()) return nullptr;
    void* const data = real_ ? std::aligned_alloc(512, bytes) : reinterpret_cast<void*>(next_);
    next_ += bytes + 2 * MiB;
    segments_[data] = bytes;
    used_ += bytes;
    return data;
  }
  void free(void* segment) noexcept override {
    ++frees;
    const auto found = segments_.find(segment);
    ASSERT_NE(found, segments_.end());
    used_ -= found->second;
    segments_.erase(found);
    if (real_) std::free(segment);
  }
  std::size_t free_bytes() override { return capacity_ - used_; }
  void fill(void* data, std::size_t bytes, int value) override { std::memset(data, value, bytes); }

  std::size_t used() const { return used_; }
  int allocations = 0, frees = 0;

 private:
  std::size_t capacity_, used_ = 0;
  bool real_;
  std::uintptr_t next_ = std::uintptr_t{1} << 32;
  std::map<void*, std::size_t> segments_;
};

/// Marks that pass when the test says so. An event is the number of the stream's work before it.
class FakeStreams final : public StreamEvents {
 public:
  ~FakeStreams() override { EXPECT_TRUE(pending_.empty()) << "marks neither passed nor waited for"; }
  void* record(void* stream) noexcept override {
    pending_[++last_] = stream;
    return reinterpret_cast<void*>(last_);
  }
  bool passed(void* event) noexcept override {
    ++polls;
    const auto found = pending_.find(reinterpret_cast<std::uintptr_t>(event));
    if (busy.count(found->second)) return false;
    pending_.erase(found);
    return true;
  }
  void wait(void* event) noexcept override {
    ++waits;
    pending_.erase(reinterpret_cast<std::uintptr_t>(event));
  }
  std::set<void*> busy;
  int polls = 0, waits = 0;

 private:
  std::uintptr_t last_ = 0;
  std::map<std::uintptr_t, void*> pending_;
};

inline const Device gpu{DeviceKind::cuda, 0};

struct PoolTest : ::testing::Test {
  void restart(std::size_t capacity, PoolOptions options = {}, bool real = false) {
    pool.reset();
    device.emplace(capacity, real);
    pool = Pool::make(gpu, *device, streams, options);
  }
  void SetUp() override { restart(64 * GiB); }
  void TearDown() override { pool.reset(); }

  std::string out_of_memory_text(std::size_t bytes) {
    try {
      pool->allocate(bytes);
    } catch (const OutOfMemory& error) {
      return error.what();
    }
    return "nothing was thrown";
  }

  FakeStreams streams;
  std::optional<FakeDevice> device;
  PoolHandle pool;
};

inline std::byte* address(const std::shared_ptr<Buffer>& buffer) {
  return static_cast<std::byte*>(buffer->data());
}

}  // namespace ferrite::cuda
