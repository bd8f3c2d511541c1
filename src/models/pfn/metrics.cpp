#include "ferrite/models/pfn/metrics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "ferrite/core/error.hpp"
#include "models/pfn/power_scale.hpp"

namespace ferrite::pfn {

namespace {

/// Two lists of one element per row, without NaN.
template <class T>
void check_rows(std::string_view who, std::span<const double> predictions, std::span<const T> truth) {
  if (truth.empty()) throw ValueError(fmt::format("[{}] no rows: at least one is needed", who));
  if (predictions.size() != truth.size())
    throw ValueError(fmt::format("[{}] {} predictions and {} targets: there must be one for each row", who,
                                 predictions.size(), truth.size()));
  const auto is_nan = [](auto v) { return v != v; };
  if (std::any_of(predictions.begin(), predictions.end(), is_nan) ||
      std::any_of(truth.begin(), truth.end(), is_nan))
    throw ValueError(fmt::format("[{}] a prediction or target is NaN: leave out rows without one", who));
}

void check_classes(std::string_view who, std::span<const double> probabilities,
                   std::span<const std::int32_t> classes, std::int64_t class_count) {
  if (class_count < 2)
    throw ValueError(fmt::format("[{}] {} classes: at least 2 are needed", who, class_count));
  if (classes.empty()) throw ValueError(fmt::format("[{}] no rows: at least one is needed", who));
  if (probabilities.size() != classes.size() * static_cast<std::size_t>(class_count))
    throw ValueError(fmt::format("[{}] {} probabilities: {} rows of {} classes need {}", who,
                                 probabilities.size(), classes.size(), class_count,
                                 classes.size() * static_cast<std::size_t>(class_count)));
  for (const std::int32_t c : classes)
    if (c < 0 || c >= class_count)
      throw ValueError(fmt::format("[{}] class {}: must lie between 0 and {}; leave out rows without a class",
                                   who, c, class_count - 1));
  if (std::any_of(probabilities.begin(), probabilities.end(), [](double p) { return p != p; }))
    throw ValueError(fmt::format("[{}] a probability is NaN", who));
}

/// The rows with the highest scores first, and how many of them are positive.
struct Ranking {
  std::vector<std::size_t> order;
  double positives = 0, negatives = 0;
};

Ranking ranked(std::string_view who, std::span<const double> scores, std::span<const std::uint8_t> positive) {
  check_rows(who, scores, positive);
  Ranking ranking;
  ranking.order.resize(scores.size());
  std::iota(ranking.order.begin(), ranking.order.end(), std::size_t{0});
  std::sort(ranking.order.begin(), ranking.order.end(),
            [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
  for (const std::uint8_t is : positive) ++(is ? ranking.positives : ranking.negatives);
  if (ranking.positives == 0 || ranking.negatives == 0)
    throw ValueError(fmt::format("[{}] {} rows are all {}: rows of both kinds are needed", who,
                                 positive.size(), ranking.positives == 0 ? "negative" : "positive"));
  return ranking;
}

}  // namespace

std::vector<std::uint8_t> is_class(std::span<const std::int32_t> classes, std::int32_t which) {
  std::vector<std::uint8_t> out;
  for (const std::int32_t c : classes) out.push_back(c == which);
  return out;
}

double binary_auc(std::span<const double> scores, std::span<const std::uint8_t> positive) {
  const Ranking ranking = ranked("auc", scores, positive);
  double wins = 0, above = 0;  // positives above the current score
  for (std::size_t begin = 0, end = 0; begin < scores.size(); begin = end) {
    double here = 0, others = 0;
    for (end = begin; end < scores.size() && scores[ranking.order[end]] == scores[ranking.order[begin]];
         ++end)
      ++(positive[ranking.order[end]] ? here : others);
    wins += others * (above + here / 2);
    above += here;
  }
  return wins / (ranking.positives * ranking.negatives);
}

double auc(std::span<const double> probabilities, std::span<const std::int32_t> classes,
           std::int64_t class_count) {
  check_classes("auc", probabilities, classes, class_count);
  const auto width = static_cast<std::size_t>(class_count);
  double sum = 0;
  std::int64_t counted = 0;
  std::vector<double> scores(classes.size());
  for (std::size_t c = class_count == 2 ? 1 : 0; c < width; ++c) {
    const std::vector<std::uint8_t> positive = is_class(classes, static_cast<std::int32_t>(c));
    const auto present = std::count(positive.begin(), positive.end(), 1);
    if (present == 0 || present == static_cast<std::ptrdiff_t>(positive.size())) continue;
    for (std::size_t r = 0; r < scores.size(); ++r) scores[r] = probabilities[r * width + c];
    sum += binary_auc(scores, positive);
    ++counted;
  }
  if (counted == 0)
    throw ValueError(fmt::format("[auc] {} rows have one class: rows of two are needed", classes.size()));
  return sum / static_cast<double>(counted);
}

double log_loss(std::span<const double> probabilities, std::span<const std::int32_t> classes,
                std::int64_t class_count) {
  check_classes("log_loss", probabilities, classes, class_count);
  constexpr double least = std::numeric_limits<double>::epsilon();
  double sum = 0;
  for (std::size_t r = 0; r < classes.size(); ++r) {
    const double p =
        probabilities[r * static_cast<std::size_t>(class_count) + static_cast<std::size_t>(classes[r])];
    sum -= std::log(std::clamp(p, least, 1 - least));
  }
  return sum / static_cast<double>(classes.size());
}

std::vector<std::int32_t> most_likely(std::span<const double> probabilities, std::int64_t class_count) {
  const auto width = static_cast<std::size_t>(std::max<std::int64_t>(class_count, 1));
  std::vector<std::int32_t> out;
  for (std::size_t i = 0; i + width <= probabilities.size(); i += width) {
    const auto row = probabilities.subspan(i, width);
    out.push_back(static_cast<std::int32_t>(std::max_element(row.begin(), row.end()) - row.begin()));
  }
  return out;
}

double accuracy(std::span<const double> probabilities, std::span<const std::int32_t> classes,
                std::int64_t class_count) {
  check_classes("accuracy", probabilities, classes, class_count);
  const std::vector<std::int32_t> likely = most_likely(probabilities, class_count);
  double right = 0;
  for (std::size_t r = 0; r < classes.size(); ++r) right += likely[r] == classes[r];
  return right / static_cast<double>(classes.size());
}

double rmse(std::span<const double> predictions, std::span<const double> targets) {
  check_rows("rmse", predictions, targets);
  const double scale = detail::power_scale(predictions, targets);
  double sum = 0;
  for (std::size_t r = 0; r < targets.size(); ++r) {
    const double error = predictions[r] * scale - targets[r] * scale;
    sum += error * error;
  }
  return std::sqrt(sum / static_cast<double>(targets.size())) / scale;
}

double mae(std::span<const double> predictions, std::span<const double> targets) {
  check_rows("mae", predictions, targets);
  const double scale = detail::power_scale(predictions, targets);
  double sum = 0;
  for (std::size_t r = 0; r < targets.size(); ++r)
    sum += std::abs(predictions[r] * scale - targets[r] * scale);
  return sum / static_cast<double>(targets.size()) / scale;
}

double r2(std::span<const double> predictions, std::span<const double> targets) {
  check_rows("r2", predictions, targets);
  const double scale = detail::power_scale(targets);
  double mean = 0, errors = 0, deviations = 0;
  for (const double y : targets) mean += y * scale;
  mean /= static_cast<double>(targets.size());
  for (std::size_t r = 0; r < targets.size(); ++r) {
    const double y = targets[r] * scale, error = predictions[r] * scale - y;
    errors += error * error;
    deviations += (y - mean) * (y - mean);
  }
  if (deviations == 0) return errors == 0 ? 1 : 0;
  return 1 - errors / deviations;
}

double pinball(std::span<const double> predictions, std::span<const double> targets, double level) {
  check_rows("pinball", predictions, targets);
  if (!(level >= 0 && level <= 1))
    throw ValueError(fmt::format("[pinball] level {}: must lie between 0 and 1", level));
  double sum = 0;
  for (std::size_t r = 0; r < targets.size(); ++r) {
    const double above = targets[r] - predictions[r];
    sum += above >= 0 ? level * above : (level - 1) * above;
  }
  return sum / static_cast<double>(targets.size());
}

std::vector<RocPoint> roc(std::span<const double> scores, std::span<const std::uint8_t> positive) {
  const Ranking ranking = ranked("roc", scores, positive);
  std::vector<RocPoint> all{{0, 0, std::numeric_limits<double>::infinity()}};
  double hits = 0, alarms = 0;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const std::size_t row = ranking.order[i];
    ++(positive[row] ? hits : alarms);
    if (i + 1 == scores.size() || scores[ranking.order[i + 1]] != scores[row])
      all.push_back({alarms, hits, scores[row]});
  }
  std::vector<RocPoint> corners;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool inside = i > 1 && i + 1 < all.size();  // the first threshold is always shown
    if (inside && all[i + 1].false_rate - all[i].false_rate == all[i].false_rate - all[i - 1].false_rate &&
        all[i + 1].true_rate - all[i].true_rate == all[i].true_rate - all[i - 1].true_rate)
      continue;
    corners.push_back(
        {all[i].false_rate / ranking.negatives, all[i].true_rate / ranking.positives, all[i].threshold});
  }
  return corners;
}

std::vector<CalibrationBin> calibration(std::span<const double> probabilities,
                                        std::span<const std::uint8_t> positive, std::int64_t bins) {
  check_rows("calibration", probabilities, positive);
  if (bins < 1) throw ValueError(fmt::format("[calibration] {} bins: at least 1 is needed", bins));
  std::vector<CalibrationBin> all(static_cast<std::size_t>(bins));
  for (std::size_t r = 0; r < positive.size(); ++r) {
    const double p = probabilities[r];
    if (!(p >= 0 && p <= 1))
      throw ValueError(fmt::format("[calibration] probability {}: must lie between 0 and 1", p));
    const double place = std::ceil(p * static_cast<double>(bins)) - 1;  // an edge belongs to the bin below
    const auto bin = static_cast<std::size_t>(std::max(place, 0.0));
    all[bin].predicted += p;
    all[bin].observed += positive[r];
    ++all[bin].rows;
  }
  std::erase_if(all, [](const CalibrationBin& bin) { return bin.rows == 0; });
  for (CalibrationBin& bin : all) {
    bin.predicted /= static_cast<double>(bin.rows);
    bin.observed /= static_cast<double>(bin.rows);
  }
  return all;
}

double calibration_error(std::span<const CalibrationBin> bins) {
  double sum = 0, rows = 0;
  for (const CalibrationBin& bin : bins) {
    sum += static_cast<double>(bin.rows) * std::abs(bin.predicted - bin.observed);
    rows += static_cast<double>(bin.rows);
  }
  return rows > 0 ? sum / rows : 0;
}

}  // namespace ferrite::pfn
