// Plots as inline SVG. Colours are those of the page: the class c0 is that of the first column, and so on.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "io/svg.hpp"

namespace ferrite::cli::bench {

/// Positive numbers on a logarithmic axis of pixels.
class LogScale {
 public:
  /// All values lie inside, with a little room at the ends; a single value lies in the middle.
  LogScale(const std::vector<double>& values, double from, double to);

  double at(double value) const;
  /// Powers of ten, and numbers between them where the axis is short.
  std::vector<double> ticks() const;

 private:
  double low_, high_, from_, to_;
};

using svg::escaped;
using svg::short_text;

/// One line of a dot plot. Values are by column; those that are missing or not positive have no dot.
struct Dots {
  std::string name;
  std::vector<std::optional<double>> values;
};
/// A line across a plot, in the colour of a column, or dark without one.
struct Mark {
  double value = 0;
  std::string label;
  std::optional<std::size_t> column;
};
/// Lines of dots on a common axis, in the order given. A name "add/f32/1K" stands under a heading "add".
std::string dot_plot(const std::vector<Dots>& lines, const std::vector<std::string>& columns,
                     const std::string& unit, const std::vector<Mark>& marks);

/// A value per label and column, joined by a line for each column. Marks lie across.
std::string line_plot(const std::string& title, const std::vector<std::string>& labels,
                      const std::vector<Dots>& by_label, const std::vector<std::string>& columns,
                      const std::string& unit, const std::vector<Mark>& marks);

}  // namespace ferrite::cli::bench
