// Where a tensor in host memory holds NaN or inf.
#include "ferrite/data/finite.hpp"

#include <cmath>

#include "ferrite/core/scalar.hpp"

namespace ferrite {
namespace {

template <class Bad>
std::int64_t first(const HostTensor& tensor, Bad bad) {
  if (!is_floating(tensor.dtype())) return -1;
  std::int64_t found = -1;
  visit_dtype(tensor.dtype(), [&]<class T>() {
    const std::span<const T> values = tensor.as<T>();
    for (std::size_t i = 0; i < values.size() && found < 0; ++i)
      if (bad(convert<double>(values[i]))) found = static_cast<std::int64_t>(i);
  });
  return found;
}

}  // namespace

std::int64_t first_nan(const HostTensor& tensor) {
  return first(tensor, [](double v) { return std::isnan(v); });
}
std::int64_t first_non_finite(const HostTensor& tensor) {
  return first(tensor, [](double v) { return !std::isfinite(v); });
}

}  // namespace ferrite
