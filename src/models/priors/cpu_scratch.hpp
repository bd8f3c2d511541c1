// Scratch memory of the generator on the host: one block per thread at work, reused from dataset to dataset.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "models/priors/generate.hpp"

namespace ferrite::priors {

/// Dataset i's part of the outputs of op::PriorDatasets.
inline DatasetOut slice_of(std::span<void* const> out, const Config& config, std::int64_t i) {
  const std::int64_t rows = config.rows.max, features = config.features.max;
  return {
      static_cast<float*>(out[0]) + i * rows * features,   static_cast<float*>(out[1]) + i * rows,
      static_cast<std::int64_t*>(out[1]) + i * rows,       static_cast<bool*>(out[2]) + i * rows,
      static_cast<bool*>(out[3]) + i * features,           static_cast<std::int32_t*>(out[4]) + i * features,
      static_cast<std::int32_t*>(out[5]) + i * info_fields};
}

class CpuScratch {
 public:
  explicit CpuScratch(const Config& config) {
    const auto rows = static_cast<std::size_t>(config.rows.max),
               features = static_cast<std::size_t>(config.features.max),
               width = static_cast<std::size_t>(workspace_width(config));
    const std::size_t sizes[] = {features * rows, rows,  width * rows, width * rows, width * width,
                                 width * width,   width, width * rows, max_leaves};
    float** members[] = {&workspace_.x,    &workspace_.y,       &workspace_.a,
                         &workspace_.b,    &workspace_.weights, &workspace_.mask,
                         &workspace_.bias, &workspace_.noise,   &workspace_.leaves};
    std::size_t total = 0;
    for (const std::size_t size : sizes) total += padded(size);
    floats_.resize(total);
    float* next = floats_.data();
    for (std::size_t i = 0; i < std::size(sizes); ++i) {
      *members[i] = next;
      next += padded(sizes[i]);
    }
    integers_.resize(2 * rows);
    workspace_.order = integers_.data();
    workspace_.labels = integers_.data() + rows;
    workspace_.series = series_.get();
    workspace_.post = post_.get();
  }
  CpuScratch(const CpuScratch&) = delete;
  CpuScratch& operator=(const CpuScratch&) = delete;

  Workspace& workspace() { return workspace_; }
  FamilyPlan& plan() { return *plan_; }

 private:
  static std::size_t padded(std::size_t floats) { return (floats + 15) / 16 * 16; }

  std::vector<float> floats_;
  std::vector<int> integers_;
  std::unique_ptr<FourierSeries> series_ = std::make_unique<FourierSeries>();
  std::unique_ptr<PostPlan> post_ = std::make_unique<PostPlan>();
  std::unique_ptr<FamilyPlan> plan_ = std::make_unique<FamilyPlan>();
  Workspace workspace_{};
};

/// Lends scratch to whoever computes a dataset; makes as many as are in use at once.
class ScratchPool {
 public:
  explicit ScratchPool(const Config& config) : config_(config) {}

  class Lease {
   public:
    Lease(ScratchPool& pool, std::unique_ptr<CpuScratch> scratch)
        : pool_(pool), scratch_(std::move(scratch)) {}
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    ~Lease() {
      const std::lock_guard lock(pool_.mutex_);
      pool_.idle_.push_back(std::move(scratch_));
    }
    CpuScratch& operator*() const { return *scratch_; }

   private:
    ScratchPool& pool_;
    std::unique_ptr<CpuScratch> scratch_;
  };

  Lease lease() {
    {
      const std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        auto scratch = std::move(idle_.back());
        idle_.pop_back();
        return {*this, std::move(scratch)};
      }
    }
    return {*this, std::make_unique<CpuScratch>(config_)};
  }

 private:
  const Config& config_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<CpuScratch>> idle_;
};

}  // namespace ferrite::priors
