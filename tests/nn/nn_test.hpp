// What the tests of layers, optimisers and training share: comparisons with literals, and gradients against
// central differences.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "ferrite/nn/module.hpp"
#include "ferrite/train/stacks.hpp"
#include "io/io_test.hpp"

namespace ferrite::testing {

/// Training on the backend that is right before anything else.
using Exact = Autodiff<Reference>;

/// Tests that run on several backends, given by name, so that they are compiled once.
class OnBackends : public ::testing::TestWithParam<const char*> {
 protected:
  using B = Autodiff<AnyBackend>;
  B backend{GetParam()};
};
/// Ends the name of a test by that of its backend.
inline std::string name_of(const ::testing::TestParamInfo<const char*>& test) {
  std::string name = test.param;
  std::ranges::replace(name, '-', '_');
  return name;
}

template <class B>
void expect_values(const Tensor<B>& x, const std::vector<double>& expected, double tolerance = 1e-6) {
  const std::vector<double> given = x.template to_vector<double>();
  ASSERT_EQ(given.size(), expected.size()) << to_string(x.shape());
  for (std::size_t i = 0; i < given.size(); ++i)
    EXPECT_NEAR(given[i], expected[i], tolerance * std::max(1.0, std::abs(expected[i]))) << "element " << i;
}

template <class B>
Tensor<B> tensor_of(B& backend, std::vector<double> values, const Shape& shape, DType dtype = DType::f64) {
  return cast(from_vector(backend, values, shape), dtype);
}

/// Every parameter's gradient of sum(forward() * w), for a fixed random w, against central differences. The
/// module's parameters must be f64 and forward() must give the same result each time.
template <class B>
void expect_gradients(nn::Module<B>& module, const std::function<Tensor<B>()>& forward,
                      double tolerance = 1e-6) {
  Rng rng(99);
  const Tensor<B> first = forward();
  const Tensor<B> weights = rand(first.backend(), first.shape(), rng, -1, 1, DType::f64);
  const auto loss = [&] { return sum(forward() * weights); };
  const auto grads = loss().backward();
  for (const auto& parameter : module.parameters()) {
    const Tensor<B>& tensor = parameter.tensor;
    const std::vector<double> values = tensor.template to_vector<double>();
    const std::vector<double> gradient = grads.of(tensor).template to_vector<double>();
    for (std::size_t i = 0; i < values.size(); i += 1 + values.size() / 16) {
      const double h = 1e-5;
      const auto loss_at = [&](double x) {
        std::vector<double> moved = values;
        moved[i] = x;
        assign(tensor, HostTensor::from(std::span<const double>(moved), tensor.shape()));
        const NoGrad no_grad;
        return loss().template item<double>();
      };
      const double numeric = (loss_at(values[i] + h) - loss_at(values[i] - h)) / (2 * h);
      loss_at(values[i]);
      EXPECT_NEAR(gradient[i], numeric, tolerance * std::max(1.0, std::abs(numeric)))
          << parameter.name << " element " << i;
    }
  }
}

}  // namespace ferrite::testing
