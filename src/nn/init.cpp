// How the named initialisations are defined.
#include "ferrite/nn/init.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ferrite/core/error.hpp"

namespace ferrite::nn {

Fans fans_of(const Shape& weight) {
  if (weight.rank() < 2) {
    throw ShapeError(
        fmt::format("[init] weight {}: fans need at least two axes, [out, in, ...]", to_string(weight)));
  }
  double field = 1;
  for (int i = 2; i < weight.rank(); ++i) field *= static_cast<double>(weight[i]);
  const auto fan = [&](int axis) { return std::max(1.0, static_cast<double>(weight[axis]) * field); };
  return {fan(1), fan(0)};
}

Initializer Initializer::trunc_normal(double mean, double stddev, double low, double high) {
  const auto below = [&](double x) { return 0.5 * std::erfc((mean - x) / (stddev * std::sqrt(2.0))); };
  if (!(stddev > 0) || !(low < high) || below(high) - below(low) < 0.01) {
    throw ValueError(
        fmt::format("[trunc_normal] mean {}, stddev {}, interval [{}, {}]: the interval must hold 1 % of the "
                    "distribution",
                    mean, stddev, low, high));
  }
  Initializer init(Kind::trunc_normal, mean, stddev);
  init.low_ = low;
  init.high_ = high;
  return init;
}

Initializer Initializer::resolve(const Shape& shape) const {
  const auto kaiming = [&](double Fans::*fan) {
    return std::sqrt(2 / (1 + a_ * a_) / (fans_of(shape).*fan));
  };
  const auto xavier = [&] {
    const Fans fans = fans_of(shape);
    return a_ * std::sqrt(2 / (fans.in + fans.out));
  };
  // A uniform on [-sqrt(3) s, sqrt(3) s] has standard deviation s.
  const auto spread = [](double stddev) {
    return uniform(-std::sqrt(3.0) * stddev, std::sqrt(3.0) * stddev);
  };
  switch (kind_) {
    case Kind::kaiming_uniform_in:
      return spread(kaiming(&Fans::in));
    case Kind::kaiming_uniform_out:
      return spread(kaiming(&Fans::out));
    case Kind::kaiming_normal_in:
      return normal(0, kaiming(&Fans::in));
    case Kind::kaiming_normal_out:
      return normal(0, kaiming(&Fans::out));
    case Kind::xavier_uniform:
      return spread(xavier());
    case Kind::xavier_normal:
      return normal(0, xavier());
    default:
      return *this;
  }
}

std::vector<double> Initializer::truncated(std::int64_t count, RandomKey key) const {
  std::vector<double> values(static_cast<std::size_t>(count));
  const auto n = static_cast<std::uint64_t>(count);
  for (std::uint64_t i = 0; i < n; ++i) {
    double x;
    // Element i draws numbers i, i + n, i + 2 n, ... of its sequence until one lies inside.
    for (std::uint64_t draw = i;; draw += n) {
      x = a_ + b_ * normal_at<double>(key, draw);
      if (x >= low_ && x <= high_) break;
    }
    values[i] = x;
  }
  return values;
}

Rng fork(Rng& rng) { return Rng(wide_word(random_block(rng.next(), 0), 0)); }

}  // namespace ferrite::nn
