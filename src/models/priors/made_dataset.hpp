// One dataset made on the host together with the plans behind it, for descriptions and pictures.
#pragma once

#include "models/priors/cpu_scratch.hpp"
#include "models/priors/team.hpp"

namespace ferrite::priors {

class FERRITE_API MadeDataset {
 public:
  /// Throws ValueError for a config that check() refuses, and if every attempt was rejected.
  MadeDataset(const Config& c, std::uint64_t seed, std::int64_t dataset);

  Config config;
  DatasetKey key;
  DatasetShape shape;

  FamilyPlan& plan() { return scratch_->plan(); }
  Workspace& workspace() { return scratch_->workspace(); }
  int features() const { return features_; }
  int classes() const { return classes_; }
  /// The family's column that feature j is, and its number of levels (0: numeric).
  int column(int j) const { return columns_[static_cast<std::size_t>(j)]; }
  int levels(int j) const { return out_.levels[j]; }
  /// What the dataset holds, finished: feature j, the label or the real target of a row.
  double value(int row, int j) const { return static_cast<double>(out_.x[row * config.features.max + j]); }
  int label(int row) const { return static_cast<int>(out_.y_class[row]); }
  double target(int row) const { return static_cast<double>(out_.y_real[row]); }

 private:
  std::unique_ptr<CpuScratch> scratch_;
  std::vector<std::vector<std::byte>> bytes_;
  DatasetOut out_;
  int features_ = 0, classes_ = 0;
  std::vector<int> columns_;
};

}  // namespace ferrite::priors
