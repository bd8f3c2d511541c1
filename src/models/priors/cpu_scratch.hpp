// Scratch memory of the generator on the host: one block per thread at work, reused from dataset to dataset.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "models/priors/generate.hpp"

namespace ferrite::priors {

class CpuScratch {
 public:
  explicit CpuScratch(const Config& config)
      : memory_(new (std::align_val_t{64})
                    std::byte[static_cast<std::size_t>(place_workspace(config, nullptr, workspace_))]) {
    place_workspace(config, memory_.get(), workspace_);
    workspace_.series = series_.get();
    workspace_.post = post_.get();
  }
  CpuScratch(const CpuScratch&) = delete;
  CpuScratch& operator=(const CpuScratch&) = delete;

  Workspace& workspace() { return workspace_; }
  FamilyPlan& plan() { return *plan_; }

 private:
  struct Free {
    void operator()(std::byte* memory) const { ::operator delete[](memory, std::align_val_t{64}); }
  };

  Workspace workspace_{};
  std::unique_ptr<std::byte[], Free> memory_;
  std::unique_ptr<FourierSeries> series_ = std::make_unique<FourierSeries>();
  std::unique_ptr<PostPlan> post_ = std::make_unique<PostPlan>();
  std::unique_ptr<FamilyPlan> plan_ = std::make_unique<FamilyPlan>();
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
