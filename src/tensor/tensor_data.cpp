// Host-side conversion and printing of tensor elements.
#include "ferrite/tensor/tensor_data.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <ostream>

namespace ferrite::detail {

void convert_elements(DType from, const void* source, DType to, void* target, std::int64_t count) {
  visit_any_dtype(from, [&]<class From>() {
    visit_any_dtype(to, [&]<class To>() {
      const auto* x = static_cast<const From*>(source);
      auto* y = static_cast<To*>(target);
      for (std::int64_t i = 0; i < count; ++i) y[i] = convert<To>(x[i]);
    });
  });
}

void check_count(std::string_view function, std::size_t values, const Shape& shape) {
  if (static_cast<std::int64_t>(values) != shape.numel())
    throw ShapeError(fmt::format("[{}] {} values for shape {}: needs {}", function, values, to_string(shape),
                                 shape.numel()));
}

std::ostream& write(std::ostream& out, std::string_view text) { return out << text; }

namespace {

constexpr std::int64_t summarize_above = 1000;  // NumPy's threshold
constexpr std::int64_t edge_items = 3;

/// Formats one element; floats with at most `digits` decimals, or in scientific form.
struct ElementFormat {
  DType dtype;
  bool scientific = false;
  int digits = 0;

  std::string operator()(double x, std::int64_t i) const {
    if (dtype == DType::bool_) return i ? "true" : "false";
    if (!is_floating(dtype)) return fmt::format("{}", i);
    if (std::isnan(x)) return "nan";
    if (std::isinf(x)) return x > 0 ? "inf" : "-inf";
    if (scientific) return fmt::format("{:.4e}", x);
    return digits == 0 ? fmt::format("{:.0f}.", x) : fmt::format("{:.{}f}", x, digits);
  }
};

/// Indices along an axis that are shown; -1 stands for the ellipsis.
std::vector<std::int64_t> shown(std::int64_t extent, bool summarize) {
  std::vector<std::int64_t> result;
  for (std::int64_t i = 0; i < extent; ++i) {
    if (summarize && extent > 2 * edge_items && i == edge_items) {
      result.push_back(-1);
      i = extent - edge_items;
    }
    result.push_back(i);
  }
  return result;
}

/// Visits the elements that will be shown, in order.
void visit_shown(const Shape& shape, bool summarize, const std::function<void(std::int64_t)>& f, int axis = 0,
                 std::int64_t base = 0) {
  if (axis == shape.rank()) return f(base);
  for (std::int64_t i : shown(shape[axis], summarize))
    if (i >= 0) visit_shown(shape, summarize, f, axis + 1, base * shape[axis] + i);
}

}  // namespace

std::string format_elements(const Meta& meta, const void* data) {
  const std::int64_t n = meta.shape.numel();
  std::vector<double> real(static_cast<std::size_t>(n));
  std::vector<std::int64_t> integer(static_cast<std::size_t>(n));
  convert_elements(meta.dtype, data, DType::f64, real.data(), n);
  convert_elements(meta.dtype, data, DType::i64, integer.data(), n);
  const bool summarize = n > summarize_above;

  ElementFormat format{meta.dtype};
  double largest = 0, smallest = HUGE_VAL;
  const auto at = [&](std::int64_t i) { return real[static_cast<std::size_t>(i)]; };
  visit_shown(meta.shape, summarize, [&](std::int64_t i) {
    const double x = std::abs(at(i));
    if (!std::isfinite(x) || x == 0) return;
    largest = std::max(largest, x);
    smallest = std::min(smallest, x);
  });
  format.scientific = largest >= 1e8 || (largest > 0 && (smallest < 1e-4 || largest / smallest > 1e6));
  visit_shown(meta.shape, summarize, [&](std::int64_t i) {
    const double x = at(i);
    while (std::isfinite(x) && format.digits < 4 &&
           std::abs(std::round(x * std::pow(10, format.digits)) / std::pow(10, format.digits) - x) >
               5e-5 * std::max(1.0, std::abs(x) * 1e-3))
      ++format.digits;
  });

  std::size_t width = 0;
  visit_shown(meta.shape, summarize, [&](std::int64_t i) {
    width = std::max(width, format(at(i), integer[static_cast<std::size_t>(i)]).size());
  });

  std::string out;
  const std::function<void(int, std::int64_t)> print = [&](int axis, std::int64_t base) {
    if (axis == meta.shape.rank()) {
      out += fmt::format("{:>{}}", format(at(base), integer[static_cast<std::size_t>(base)]), width);
      return;
    }
    out += '[';
    bool first = true;
    const int below = meta.shape.rank() - axis - 1;
    for (std::int64_t i : shown(meta.shape[axis], summarize)) {
      if (!first && below == 0) out += ", ";
      if (!first && below > 0)
        out += "," + std::string(static_cast<std::size_t>(below), '\n') +
               std::string(static_cast<std::size_t>(axis + 1), ' ');
      first = false;
      if (i < 0)
        out += "...";
      else
        print(axis + 1, base * meta.shape[axis] + i);
    }
    out += ']';
  };
  print(0, 0);
  return out;
}

}  // namespace ferrite::detail
