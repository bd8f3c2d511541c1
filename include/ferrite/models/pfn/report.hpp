// What a report of an evaluation shows, as plain numbers: curves, counts and spreads. They complete those of
// metrics.hpp, whose roc and calibration are of one class, and take the same probabilities and classes. The
// numbers are those of scikit-learn and NumPy. Each function throws ValueError for sizes that do not fit, for
// no rows, for classes outside the range and for NaN.
#pragma once

#include "ferrite/models/pfn/metrics.hpp"

namespace ferrite::pfn {

/// Of figures such as the scores of folds. The deviation is that of a sample (n - 1), 0 for one figure.
struct Spread {
  double mean = 0, deviation = 0;
};
FERRITE_API Spread spread_of(std::span<const double> figures);

/// The probabilities of one class. ValueError for a class that there is not.
FERRITE_API std::vector<double> column_of(std::span<const double> probabilities, std::int64_t class_count,
                                          std::int64_t which);

struct CurvePoint {
  double x = 0, y = 0;
};
/// For two classes, roc of the second; for more, the mean true rate of every class against the rest at each
/// false rate. From (0, 0) to (1, 1). Classes that no row or every row has are left out; ValueError if none
/// is left.
FERRITE_API std::vector<CurvePoint> average_roc(std::span<const double> probabilities,
                                                std::span<const std::int32_t> classes,
                                                std::int64_t class_count);
/// By trapezoids.
FERRITE_API double area_under(std::span<const CurvePoint> curve);
/// Without the points that lie nearer than `distance` to the last one kept, in both directions; the first and
/// the last stay. For plots.
FERRITE_API std::vector<CurvePoint> thinned(std::span<const CurvePoint> curve, double distance);

/// For two classes, calibration of the second; for more, of the most likely class: how often it is right.
FERRITE_API std::vector<CalibrationBin> reliability(std::span<const double> probabilities,
                                                    std::span<const std::int32_t> classes,
                                                    std::int64_t class_count, std::int64_t bins = 10);

/// How many rows of each class (first index) were taken for which (second).
/// # Shapes: [classes, classes]
FERRITE_API std::vector<std::int64_t> confusion(std::span<const double> probabilities,
                                                std::span<const std::int32_t> classes,
                                                std::int64_t class_count);

/// Numbers from `low` to below `high`; the last bin has its end too.
struct HistogramBin {
  double low = 0, high = 0;
  std::int64_t rows = 0;
};
/// Bins of one width from the least to the largest number; around a single number they are 1 wide together.
FERRITE_API std::vector<HistogramBin> histogram(std::span<const double> numbers, std::int64_t bins = 20);

/// Of each row the ends of an interval that its target should lie in.
struct Intervals {
  std::vector<double> low, high;
};
/// The share of rows whose target lies in its interval, ends included.
FERRITE_API double coverage(const Intervals& intervals, std::span<const double> targets);
FERRITE_API double mean_width(const Intervals& intervals);

/// A table as it came, the target apart. Infinite numbers are missing, as they are for TableEncoder.
struct TableSummary {
  std::int64_t rows = 0, numbers = 0, texts = 0, dates = 0;  // columns by their kind
  std::int64_t missing_cells = 0, missing_targets = 0;
  std::vector<std::pair<std::string, std::int64_t>> missing;  // of each column that has any

  std::int64_t columns() const { return numbers + texts + dates; }
};
FERRITE_API TableSummary summary_of(const Table& table, const std::string& target);

}  // namespace ferrite::pfn
