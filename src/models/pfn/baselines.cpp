// What all baselines share, and the two that compare nothing or rows with rows.
#include "ferrite/models/pfn/baselines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ferrite/core/error.hpp"
#include "ferrite/core/thread_pool.hpp"
#include "models/pfn/design.hpp"

namespace ferrite::pfn {

void Baseline::fit(const EncodedTable& train) {
  train.check_targets(name());
  learn(train);
  features_ = train.features;
  fitted_ = true;
}

std::vector<double> Baseline::predict(const EncodedTable& rows) const {
  if (!fitted_) throw ValueError(fmt::format("[{}] it has learned nothing: call fit first", name()));
  if (rows.features != features_)
    throw ValueError(fmt::format(
        "[{}] {} features: they are not the {} of the train table; encode the table with its encoder", name(),
        rows.features.size(), features_.size()));
  return answer(rows);
}

namespace {

/// What some train rows say: a share for each class, or their mean.
class Votes {
 public:
  explicit Votes(const EncodedTable& train)
      : classes_(train.classes), targets_(train.targets), width_(train.class_count()) {}

  std::size_t width() const { return targets_.empty() ? static_cast<std::size_t>(width_) : 1; }
  void count(std::span<const std::int64_t> rows, std::span<double> out) const {
    std::fill(out.begin(), out.end(), 0.0);
    const auto all = static_cast<double>(rows.size());
    for (const std::int64_t row : rows) {
      const auto i = static_cast<std::size_t>(row);
      if (targets_.empty())
        out[static_cast<std::size_t>(classes_[i])] += 1;
      else
        out[0] += targets_[i] / all;
    }
    if (targets_.empty())
      for (double& votes : out) votes /= all;  // at the end, so that all votes are 1
  }

 private:
  std::vector<std::int32_t> classes_;
  std::vector<double> targets_;
  std::int64_t width_;
};

class Majority final : public Baseline {
 public:
  std::string_view name() const override { return "majority"; }

 private:
  void learn(const EncodedTable& train) override {
    const Votes votes(train);
    std::vector<std::int64_t> all(static_cast<std::size_t>(train.rows));
    std::iota(all.begin(), all.end(), std::int64_t{0});
    row_.resize(votes.width());
    votes.count(all, row_);
  }
  std::vector<double> answer(const EncodedTable& rows) const override {
    std::vector<double> out;
    for (std::int64_t r = 0; r < rows.rows; ++r) out.insert(out.end(), row_.begin(), row_.end());
    return out;
  }

  std::vector<double> row_;
};

class NearestNeighbours final : public Baseline {
 public:
  explicit NearestNeighbours(const NeighbourConfig& config) : config_(config) {
    if (config.neighbours < 1)
      throw ValueError(
          fmt::format("[nearest_neighbours] {} neighbours: at least 1 is needed", config.neighbours));
  }
  std::string_view name() const override { return "nearest neighbours"; }

 private:
  void learn(const EncodedTable& train) override {
    scales_ = detail::column_moments(train);
    x_ = scaled(train);
    rows_ = train.rows;
    votes_ = std::make_unique<Votes>(train);
  }

  std::vector<double> answer(const EncodedTable& table) const override {
    const std::vector<float> queries = scaled(table);
    const auto kept = std::min(config_.neighbours, rows_);
    std::vector<double> out(static_cast<std::size_t>(table.rows) * votes_->width());
    parallel_ranges(table.rows, 16, [&](std::int64_t begin, std::int64_t end) {
      std::vector<std::pair<float, std::int64_t>> distances(static_cast<std::size_t>(rows_));
      std::vector<std::int64_t> nearest(static_cast<std::size_t>(kept));
      for (std::int64_t r = begin; r < end; ++r) {
        for (std::int64_t t = 0; t < rows_; ++t)
          distances[static_cast<std::size_t>(t)] = {distance(queries, r, t), t};
        std::partial_sort(distances.begin(), distances.begin() + kept, distances.end());
        for (std::size_t i = 0; i < nearest.size(); ++i) nearest[i] = distances[i].second;
        votes_->count(nearest, {out.data() + static_cast<std::size_t>(r) * votes_->width(), votes_->width()});
      }
    });
    return out;
  }

  std::vector<float> scaled(const EncodedTable& table) const {
    std::vector<float> out = table.x;
    const std::size_t width = scales_.size();
    for (std::size_t i = 0; i < out.size(); ++i) {
      const detail::ColumnMoments& m = scales_[i % width];
      if (!m.is_category) out[i] = static_cast<float>((static_cast<double>(out[i]) - m.mean) / m.deviation);
    }
    return out;
  }

  float distance(const std::vector<float>& queries, std::int64_t r, std::int64_t t) const {
    const std::size_t width = scales_.size();
    const float* const a = queries.data() + static_cast<std::size_t>(r) * width;
    const float* const b = x_.data() + static_cast<std::size_t>(t) * width;
    float sum = 0;
    for (std::size_t c = 0; c < width; ++c) {
      const float d = a[c] - b[c];
      if (scales_[c].is_category || std::isnan(d))
        sum += a[c] == b[c] || (std::isnan(a[c]) && std::isnan(b[c])) ? 0.0f : 1.0f;
      else
        sum += d * d;
    }
    return sum;
  }

  NeighbourConfig config_;
  std::vector<detail::ColumnMoments> scales_;
  std::vector<float> x_;
  std::int64_t rows_ = 0;
  std::unique_ptr<Votes> votes_;
};

}  // namespace

std::unique_ptr<Baseline> majority() { return std::make_unique<Majority>(); }
std::unique_ptr<Baseline> nearest_neighbours(const NeighbourConfig& config) {
  return std::make_unique<NearestNeighbours>(config);
}

}  // namespace ferrite::pfn
