// Logistic and ridge regression: sums of losses of linear scores, with a penalty on the weights.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ferrite/core/error.hpp"
#include "ferrite/core/thread_pool.hpp"
#include "ferrite/models/pfn/baselines.hpp"
#include "models/pfn/design.hpp"
#include "models/pfn/minimise.hpp"
#include "models/pfn/power_scale.hpp"

namespace ferrite::pfn {

namespace {

using detail::Design;

/// Weights are [width + 1, outputs]; the last row is added to every score.
void scores_of(const Design& design, std::size_t row, std::span<const double> weights,
               std::span<double> scores) {
  const std::size_t outputs = scores.size();
  std::copy_n(weights.end() - static_cast<std::ptrdiff_t>(outputs), outputs, scores.begin());
  const double* const dense = design.dense.data() + row * design.dense_width;
  for (std::size_t c = 0; c < design.dense_width; ++c)
    for (std::size_t k = 0; k < outputs; ++k) scores[k] += dense[c] * weights[c * outputs + k];
  const std::int32_t* const active = design.active.data() + row * design.active_width;
  for (std::size_t c = 0; c < design.active_width; ++c) {
    if (active[c] < 0) continue;
    for (std::size_t k = 0; k < outputs; ++k)
      scores[k] += weights[static_cast<std::size_t>(active[c]) * outputs + k];
  }
}

/// Adds to a gradient what the slopes of a row's scores give.
void add_slopes(const Design& design, std::size_t row, std::span<const double> slopes,
                std::span<double> gradient) {
  const std::size_t outputs = slopes.size(), last = gradient.size() - outputs;
  const double* const dense = design.dense.data() + row * design.dense_width;
  for (std::size_t c = 0; c < design.dense_width; ++c)
    for (std::size_t k = 0; k < outputs; ++k) gradient[c * outputs + k] += dense[c] * slopes[k];
  const std::int32_t* const active = design.active.data() + row * design.active_width;
  for (std::size_t c = 0; c < design.active_width; ++c) {
    if (active[c] < 0) continue;
    for (std::size_t k = 0; k < outputs; ++k)
      gradient[static_cast<std::size_t>(active[c]) * outputs + k] += slopes[k];
  }
  for (std::size_t k = 0; k < outputs; ++k) gradient[last + k] += slopes[k];
}

/// log(1 + exp(x))
double softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }

/// Scores become probabilities; gives the logarithm of their sum before.
double softmax(std::span<double> scores) {
  const double highest = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (double& s : scores) sum += s = std::exp(s - highest);
  for (double& s : scores) s /= sum;
  return highest + std::log(sum);
}

class LinearModel final : public Baseline {
 public:
  explicit LinearModel(const LinearConfig& config) : config_(config) {
    if (!(config.penalty > 0) || config.most_steps < 1)
      throw ValueError(fmt::format("[linear_model] penalty {}, {} steps: must be positive", config.penalty,
                                   config.most_steps));
  }
  std::string_view name() const override { return "linear model"; }

 private:
  void learn(const EncodedTable& train) override {
    fit_ = detail::DesignFit(train);
    task_ = train.task;
    classes_ = static_cast<std::size_t>(train.class_count());
    outputs_ = task_ == Task::regression || classes_ == 2 ? 1 : classes_;
    if (task_ == Task::regression) scale_targets(train.targets);
    const Design design = fit_.apply(train);
    const detail::SmoothFunction loss = [&](std::span<const double> weights, std::span<double> gradient) {
      return mean_loss(design, train, weights, gradient);
    };
    constexpr double tolerance = 1e-8;
    std::vector<double> start((fit_.width() + 1) * outputs_);
    weights_ = detail::minimise(loss, std::move(start), config_.most_steps, tolerance).at;
  }

  std::vector<double> answer(const EncodedTable& table) const override {
    const Design design = fit_.apply(table);
    const std::size_t width = task_ == Task::regression ? 1 : classes_;
    std::vector<double> out(design.rows * width), scores(outputs_);
    for (std::size_t r = 0; r < design.rows; ++r) {
      scores_of(design, r, weights_, scores);
      if (task_ == Task::regression) {
        out[r] = (scores[0] * deviation_ + mean_) / scale_;
      } else if (outputs_ == 1) {
        out[2 * r] = std::exp(-softplus(scores[0]));
        out[2 * r + 1] = std::exp(-softplus(-scores[0]));
      } else {
        softmax(scores);
        std::copy(scores.begin(), scores.end(), out.begin() + static_cast<std::ptrdiff_t>(r * width));
      }
    }
    return out;
  }

  void scale_targets(const std::vector<double>& targets) {
    const auto count = static_cast<double>(targets.size());
    scale_ = detail::power_scale(targets);
    double sum = 0, squares = 0;
    for (const double y : targets) sum += y * scale_;
    mean_ = sum / count;
    for (const double y : targets) squares += (y * scale_ - mean_) * (y * scale_ - mean_);
    deviation_ = squares > 0 ? std::sqrt(squares / count) : 1;
  }

  /// The loss of a row; scores become its slopes.
  double row_loss(const EncodedTable& train, std::size_t row, std::span<double> scores) const {
    if (task_ == Task::regression) {
      scores[0] -= (train.targets[row] * scale_ - mean_) / deviation_;
      return scores[0] * scores[0] / 2;
    }
    const auto truth = static_cast<std::size_t>(train.classes[row]);
    if (outputs_ == 1) {
      const double s = scores[0];
      scores[0] = std::exp(-softplus(-s)) - static_cast<double>(truth);
      return softplus(truth == 1 ? -s : s);
    }
    const double own = scores[truth], total = softmax(scores);
    scores[truth] -= 1;
    return total - own;
  }

  /// Loss, penalty and their gradient, divided by the number of rows. The rows are cut into parts by their
  /// number alone, so that any number of threads gives the same bits.
  double mean_loss(const Design& design, const EncodedTable& train, std::span<const double> weights,
                   std::span<double> gradient) const {
    constexpr std::size_t parts = 16;
    std::vector<std::vector<double>> gradients(parts);
    std::vector<double> losses(parts);
    parallel_for(parts, [&](std::int64_t part) {
      const auto p = static_cast<std::size_t>(part);
      gradients[p].assign(gradient.size(), 0.0);
      std::vector<double> scores(outputs_);
      for (std::size_t r = design.rows * p / parts; r < design.rows * (p + 1) / parts; ++r) {
        scores_of(design, r, weights, scores);
        losses[p] += row_loss(train, r, scores);
        add_slopes(design, r, scores, gradients[p]);
      }
    });
    const auto rows = static_cast<double>(design.rows);
    double loss = std::accumulate(losses.begin(), losses.end(), 0.0);
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      double sum = 0;
      for (const auto& part : gradients) sum += part[i];
      if (i + outputs_ < gradient.size()) {  // the last row has no penalty
        sum += config_.penalty * weights[i];
        loss += config_.penalty / 2 * weights[i] * weights[i];
      }
      gradient[i] = sum / rows;
    }
    return loss / rows;
  }

  LinearConfig config_;
  detail::DesignFit fit_;
  Task task_ = Task::classification;
  std::size_t classes_ = 0, outputs_ = 1;
  double scale_ = 1, mean_ = 0, deviation_ = 1;  // of the targets, the last two of scaled ones
  std::vector<double> weights_;
};

}  // namespace

std::unique_ptr<Baseline> linear_model(const LinearConfig& config) {
  return std::make_unique<LinearModel>(config);
}

}  // namespace ferrite::pfn
