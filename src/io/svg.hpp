// Parts of plots as inline SVG, for pages that need no network. Classes and colours are those of the page.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <string>

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

}  // namespace ferrite::svg
