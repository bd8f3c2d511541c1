// One op on every backend that works on this machine: how long it takes, and how far it is from the
// reference.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include "ferrite/ops/random.hpp"
#include "ferrite/ops/softmax.hpp"
#include "ferrite/stacks/any_backend.hpp"
#include "ferrite/tensor/tensor_data.hpp"

using namespace ferrite;

namespace {

constexpr std::int64_t rows = 512, columns = 768;

/// Softmax of random rows, the same on every backend; the best time of several calls in ms.
std::vector<float> softmax_on(AnyBackend backend, double& milliseconds) {
  Rng rng(1);
  const auto x = randn(backend, {rows, columns}, rng) * 3;
  std::vector<float> result = softmax(x).to_vector();
  milliseconds = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 5; ++i) {
    backend.synchronize();
    const auto start = std::chrono::steady_clock::now();
    const auto y = softmax(x);
    backend.synchronize();
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    milliseconds = std::min(milliseconds, took.count());
  }
  return result;
}

void compare() {
  double milliseconds = 0;
  const std::vector<float> right = softmax_on(AnyBackend("reference"), milliseconds);
  std::printf("softmax of %lld x %lld numbers\n\n  %-18s %10s   largest difference from reference\n",
              static_cast<long long>(rows), static_cast<long long>(columns), "backend", "ms");
  std::string absent, why;
  for (const auto& [name, meaning] : AnyBackend::names()) {
    if (name == "auto") continue;  // one of the others
    try {
      const std::vector<float> y = softmax_on(AnyBackend(name), milliseconds);
      float difference = 0;
      for (std::size_t i = 0; i < y.size(); ++i) difference = std::max(difference, std::abs(y[i] - right[i]));
      std::printf("  %-18s %10.3f   %.1e\n", name.c_str(), milliseconds, static_cast<double>(difference));
    } catch (const DeviceError& error) {
      absent += (absent.empty() ? "" : ", ") + name;
      why = error.what();
    }
  }
  if (!absent.empty()) std::printf("\n  not here: %s\n  %s\n", absent.c_str(), why.c_str());
}

}  // namespace

int main() {
  try {
    compare();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
