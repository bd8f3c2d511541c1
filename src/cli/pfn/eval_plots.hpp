// Plots of an evaluation as inline SVG, in the classes of io/page_style.hpp.
#pragma once

#include <string>
#include <vector>

#include "ferrite/models/pfn/report.hpp"

namespace ferrite::cli::pfn {

/// A name of a column or class, short enough for a plot.
std::string shown(const std::string& name);

struct Curve {
  std::string name;
  std::vector<ferrite::pfn::CurvePoint> points;
  std::size_t colour = 0;
  bool is_thin = false;  // beside another that matters more
};
/// Curves in the unit square, with its diagonal and their names below.
std::string roc_plot(const std::string& title, const std::vector<Curve>& curves);

/// What was predicted against what happened, above how many rows each of the ten bins has.
std::string calibration_plot(const std::string& title, const std::vector<ferrite::pfn::CalibrationBin>& bins,
                             std::size_t colour, const std::string& predicted, const std::string& observed);

/// Counts [classes, classes], shaded by their share of a row.
std::string confusion_table(const std::vector<std::string>& names, const std::vector<std::int64_t>& counts);

/// Dots for the rows, at most some thousand of them, evenly chosen. With the diagonal both axes are the same;
/// else a line lies at y = 0.
enum class Guide : std::uint8_t { diagonal, zero };
std::string scatter_plot(const std::string& title, const std::vector<double>& x, const std::vector<double>& y,
                         std::size_t colour, const std::string& x_name, Guide guide);

std::string histogram_plot(const std::string& title, const std::vector<ferrite::pfn::HistogramBin>& bins,
                           std::size_t colour, const std::string& x_name);

/// Bars with a line for the deviation.
std::string importance_plot(const std::vector<ferrite::pfn::ColumnImportance>& columns, std::size_t colour);

}  // namespace ferrite::cli::pfn
