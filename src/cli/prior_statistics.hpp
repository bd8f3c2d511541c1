// What a run of `ferrite priors` made, summed up over its batches.
#pragma once

#include <array>
#include <nlohmann/json.hpp>
#include <string>

#include "ferrite/io/host_tensor.hpp"
#include "ferrite/models/priors/ops.hpp"

namespace ferrite::cli {

class PriorStatistics {
 public:
  /// The tensors of priors::to_host.
  void add(const NamedTensors& batch);
  /// Datasets that an earlier run wrote: nothing else is known of them.
  void add_earlier(std::int64_t datasets) { earlier_ += datasets; }
  std::int64_t made() const { return datasets_; }
  std::string table() const;
  nlohmann::ordered_json json() const;

 private:
  struct Spread {
    double sum = 0;
    std::int64_t count = 0, least = 0, most = 0;
    void add(std::int64_t value);
    double mean() const { return sum / static_cast<double>(count); }
  };

  std::int64_t datasets_ = 0, earlier_ = 0, exhausted_ = 0, attempts_ = 0, cells_ = 0, missing_ = 0,
               columns_ = 0, categorical_ = 0;
  Spread rows_, train_rows_, features_, classes_;
  double largest_class_ = 0;  // summed shares
  std::array<std::int64_t, 6> families_{};
  std::array<std::int64_t, priors::filters> rejected_{};
};

}  // namespace ferrite::cli
