#include "ferrite/models/pfn/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ferrite/core/error.hpp"
#include "models/pfn/power_scale.hpp"

namespace ferrite::pfn {

namespace {

void check_numbers(std::string_view who, std::span<const double> numbers) {
  if (numbers.empty()) throw ValueError(fmt::format("[{}] no rows: at least one is needed", who));
  for (const double v : numbers)
    if (!std::isfinite(v)) throw ValueError(fmt::format("[{}] {}: numbers must be finite", who, v));
}

void check_intervals(std::string_view who, const Intervals& intervals) {
  if (intervals.low.size() != intervals.high.size())
    throw ValueError(fmt::format("[{}] {} lower and {} upper ends: there must be one of each for every row",
                                 who, intervals.low.size(), intervals.high.size()));
  check_numbers(who, intervals.low);
  check_numbers(who, intervals.high);
}

/// Linear between the points, whose x ascend; of several at one x the last counts.
double height_at(std::span<const RocPoint> curve, double x) {
  const auto above = std::upper_bound(curve.begin(), curve.end(), x,
                                      [](double v, const RocPoint& point) { return v < point.false_rate; });
  if (above == curve.end()) return curve.back().true_rate;
  const RocPoint &b = *above, &a = *(above - 1);  // the first point has x 0
  return a.true_rate + (b.true_rate - a.true_rate) * (x - a.false_rate) / (b.false_rate - a.false_rate);
}

/// The curves of all classes, or of the second of two, as far as they have one.
std::vector<std::vector<RocPoint>> all_rocs(std::span<const double> probabilities,
                                            std::span<const std::int32_t> classes, std::int64_t class_count) {
  std::vector<std::vector<RocPoint>> curves;
  for (std::int64_t c = class_count == 2 ? 1 : 0; c < class_count; ++c) {
    const std::vector<std::uint8_t> positive = is_class(classes, static_cast<std::int32_t>(c));
    const auto present = std::count(positive.begin(), positive.end(), 1);
    if (present > 0 && present < static_cast<std::ptrdiff_t>(positive.size()))
      curves.push_back(roc(column_of(probabilities, class_count, c), positive));
  }
  return curves;
}

}  // namespace

Spread spread_of(std::span<const double> figures) {
  check_numbers("spread_of", figures);
  const auto count = static_cast<double>(figures.size());
  const double scale = detail::power_scale(figures);
  double mean = 0, squares = 0;
  for (const double v : figures) mean += v * scale;
  mean /= count;
  for (const double v : figures) squares += (v * scale - mean) * (v * scale - mean);
  return {mean / scale, figures.size() > 1 ? std::sqrt(squares / (count - 1)) / scale : 0};
}

std::vector<double> column_of(std::span<const double> probabilities, std::int64_t class_count,
                              std::int64_t which) {
  if (which < 0 || which >= class_count)
    throw ValueError(fmt::format("[column_of] class {}: must lie between 0 and {}", which, class_count - 1));
  if (probabilities.size() % static_cast<std::size_t>(class_count) != 0)
    throw ValueError(fmt::format("[column_of] {} probabilities: they are not rows of {} classes",
                                 probabilities.size(), class_count));
  std::vector<double> out;
  for (std::size_t i = static_cast<std::size_t>(which); i < probabilities.size();
       i += static_cast<std::size_t>(class_count))
    out.push_back(probabilities[i]);
  return out;
}

std::vector<CurvePoint> average_roc(std::span<const double> probabilities,
                                    std::span<const std::int32_t> classes, std::int64_t class_count) {
  auc(probabilities, classes, class_count);  // checks the same
  const auto curves = all_rocs(probabilities, classes, class_count);
  std::vector<CurvePoint> out{{0, 0}};
  if (curves.size() == 1) {
    for (const RocPoint& point : curves[0])
      if (point.true_rate > 0 || point.false_rate > 0) out.push_back({point.false_rate, point.true_rate});
    return out;
  }
  std::vector<double> places;
  for (const auto& curve : curves)
    for (const RocPoint& point : curve) places.push_back(point.false_rate);
  std::sort(places.begin(), places.end());
  places.erase(std::unique(places.begin(), places.end()), places.end());
  for (const double x : places) {
    double sum = 0;
    for (const auto& curve : curves) sum += height_at(curve, x);
    out.push_back({x, sum / static_cast<double>(curves.size())});
  }
  return out;
}

double area_under(std::span<const CurvePoint> curve) {
  double area = 0;
  for (std::size_t i = 1; i < curve.size(); ++i)
    area += (curve[i].x - curve[i - 1].x) * (curve[i].y + curve[i - 1].y) / 2;
  return area;
}

std::vector<CurvePoint> thinned(std::span<const CurvePoint> curve, double distance) {
  std::vector<CurvePoint> out;
  for (std::size_t i = 0; i < curve.size(); ++i) {
    const bool near = !out.empty() && std::abs(curve[i].x - out.back().x) < distance &&
                      std::abs(curve[i].y - out.back().y) < distance;
    if (!near || i + 1 == curve.size()) out.push_back(curve[i]);
  }
  return out;
}

std::vector<CalibrationBin> reliability(std::span<const double> probabilities,
                                        std::span<const std::int32_t> classes, std::int64_t class_count,
                                        std::int64_t bins) {
  log_loss(probabilities, classes, class_count);  // checks the same
  if (class_count == 2)
    return calibration(column_of(probabilities, class_count, 1), is_class(classes, 1), bins);
  const std::vector<std::int32_t> likely = most_likely(probabilities, class_count);
  std::vector<double> largest;
  std::vector<std::uint8_t> right;
  for (std::size_t r = 0; r < classes.size(); ++r) {
    largest.push_back(
        probabilities[r * static_cast<std::size_t>(class_count) + static_cast<std::size_t>(likely[r])]);
    right.push_back(likely[r] == classes[r]);
  }
  return calibration(largest, right, bins);
}

std::vector<std::int64_t> confusion(std::span<const double> probabilities,
                                    std::span<const std::int32_t> classes, std::int64_t class_count) {
  accuracy(probabilities, classes, class_count);  // checks the same
  const std::vector<std::int32_t> likely = most_likely(probabilities, class_count);
  const auto width = static_cast<std::size_t>(class_count);
  std::vector<std::int64_t> counts(width * width);
  for (std::size_t r = 0; r < classes.size(); ++r)
    ++counts[static_cast<std::size_t>(classes[r]) * width + static_cast<std::size_t>(likely[r])];
  return counts;
}

std::vector<HistogramBin> histogram(std::span<const double> numbers, std::int64_t bins) {
  check_numbers("histogram", numbers);
  if (bins < 1) throw ValueError(fmt::format("[histogram] {} bins: at least 1 is needed", bins));
  auto [least, most] = std::minmax_element(numbers.begin(), numbers.end());
  double low = *least, high = *most;
  if (low == high) {
    low -= 0.5;
    high += 0.5;
  }
  const double width = (high - low) / static_cast<double>(bins);
  const auto edge = [&](std::int64_t i) { return i == bins ? high : low + static_cast<double>(i) * width; };
  std::vector<HistogramBin> out;
  for (std::int64_t i = 0; i < bins; ++i) out.push_back({edge(i), edge(i + 1), 0});
  for (const double v : numbers) {
    const auto above = std::upper_bound(out.begin(), out.end() - 1, v,
                                        [](double x, const HistogramBin& bin) { return x < bin.high; });
    ++above->rows;
  }
  return out;
}

double coverage(const Intervals& intervals, std::span<const double> targets) {
  check_intervals("coverage", intervals);
  check_numbers("coverage", targets);
  if (targets.size() != intervals.low.size())
    throw ValueError(fmt::format("[coverage] {} intervals and {} targets: there must be one for each row",
                                 intervals.low.size(), targets.size()));
  double inside = 0;
  for (std::size_t r = 0; r < targets.size(); ++r)
    inside += intervals.low[r] <= targets[r] && targets[r] <= intervals.high[r];
  return inside / static_cast<double>(targets.size());
}

double mean_width(const Intervals& intervals) {
  check_intervals("mean_width", intervals);
  double sum = 0;
  for (std::size_t r = 0; r < intervals.low.size(); ++r) sum += intervals.high[r] - intervals.low[r];
  return sum / static_cast<double>(intervals.low.size());
}

TableSummary summary_of(const Table& table, const std::string& target) {
  TableSummary out;
  out.rows = table.rows();
  for (const RawColumn& column : table.columns()) {
    const auto missing = static_cast<std::int64_t>(
        column.is_text() ? std::count(column.text.codes.begin(), column.text.codes.end(), -1)
                         : std::count_if(column.numbers.begin(), column.numbers.end(),
                                         [](double v) { return !std::isfinite(v); }));
    if (column.name == target) {
      out.missing_targets = missing;
      continue;
    }
    ++(column.is_text() ? out.texts : column.kind == FieldKind::number ? out.numbers : out.dates);
    out.missing_cells += missing;
    if (missing > 0) out.missing.emplace_back(column.name, missing);
  }
  return out;
}

}  // namespace ferrite::pfn
