// Parts of plots as inline SVG, for pages that need no network. Classes and colours are those of the page.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace ferrite::svg {

/// For text inside HTML.
inline std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text)
    result += c == '<'   ? "&lt;"
              : c == '>' ? "&gt;"
              : c == '&' ? "&amp;"
              : c == '"' ? "&quot;"
                         : std::string(1, c);
  return result;
}

/// Three digits; powers of ten only where the number would be long: "0.25", "1500", "3e-7".
inline std::string short_text(double value) {
  if (value == 0) return "0";
  const double size = std::abs(value);
  if (size >= 1e-3 && size < 999.5) return fmt::format("{:.3g}", value);
  if (size >= 999.5 && size < 1e5) return fmt::format("{:.0f}", value);
  const int power = static_cast<int>(std::floor(std::log10(size)));
  return fmt::format("{:.2g}e{}", value / std::pow(10, power), power);
}

inline std::string words(double x, double y, const std::string& text, const char* kind, const char* anchor) {
  return fmt::format(R"(<text x="{:.1f}" y="{:.1f}" class="{}" text-anchor="{}">{}</text>)", x, y, kind,
                     anchor, escaped(text));
}

inline std::string line(double x1, double y1, double x2, double y2, const std::string& kind) {
  return fmt::format(R"(<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}" class="{}"/>)", x1, y1, x2, y2,
                     kind);
}

inline std::string image(double width, double height, const std::string& body) {
  return fmt::format(
      R"(<svg width="{0:.0f}" height="{1:.0f}" viewBox="0 0 {0:.0f} {1:.0f}" role="img">{2}</svg>)", width,
      height, body);
}

/// A linear axis of pixels.
struct Scale {
  double low, high, from, to;

  double at(double value) const { return from + (to - from) * (value - low) / (high - low); }
  /// Round numbers, four to eight of them.
  std::vector<double> ticks() const {
    const double rough = (high - low) / 5, power = std::pow(10, std::floor(std::log10(rough)));
    const double share = rough / power, step = power * (share < 1.5   ? 1
                                                        : share < 3.5 ? 2
                                                        : share < 7.5 ? 5
                                                                      : 10);
    std::vector<double> all;
    for (double tick = std::ceil(low / step); tick * step <= high; ++tick) all.push_back(tick * step);
    return all;
  }
};

/// From the least to the largest value. A range of one value would have no scale.
inline Scale scale_of(const std::vector<double>& values, double from, double to) {
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  double low = *least, high = *most;
  if (high - low < 1e-9 * std::max(std::abs(high), 1e-9)) {
    const double room = high == 0 ? 1 : 0.1 * std::abs(high);
    low -= room, high += room;
  }
  return {low, high, from, to};
}

}  // namespace ferrite::svg
