// Gradients through kernels, by central differences and against the same formula written in ops.
#include <gtest/gtest.h>

#include "ferrite/stacks.hpp"
#include "ferrite/tensor/launch.hpp"

namespace ferrite {

namespace {

using kernel::Kernel;
using CpuAutodiff = Autodiff<Cpu>;

const char* text = R"(import warp as wp


@wp.kernel
def mix(a: wp.float64, x: wp.array[wp.float64], w: wp.array[wp.float64], y: wp.array[wp.float64], s: wp.array[wp.float64]):
    i = wp.tid()
    v = wp.sin(a * x[i]) * w[i]
    for k in range(3):
        v = v * 0.5 + x[i] * w[0]
    y[i] = v * v
    wp.atomic_add(s, 0, wp.exp(v))
)";

std::string doubled(std::string source) {  // literals of wp.float64
  for (const std::string number : {"0.5"}) {
    const std::size_t at = source.find(number);
    source.replace(at, number.size(), "wp.float64(" + number + ")");
  }
  return source;
}

template <class B>
Tensor<B> loss_of(B& b, const Kernel& k, const Tensor<B>& x, const Tensor<B>& w) {
  Tensor<B> y = zeros(b, x.shape(), DType::f64), s = ones(b, {1}, DType::f64);
  k.launch(b, x.numel(), 0.7, x, w, y, s);
  return sum(y * y) + sum(s * 3);
}

std::vector<double> draws(std::int64_t n, std::uint64_t stream) {
  std::vector<double> list;
  for (std::int64_t i = 0; i < n; ++i)
    list.push_back(normal_at<double>({5, stream}, static_cast<std::uint64_t>(i)));
  return list;
}

/// d f / d values by central differences.
template <class F>
std::vector<double> differences(std::vector<double> values, F f) {
  std::vector<double> slopes;
  for (double& v : values) {
    const double at = v, h = 1e-5;
    v = at + h;
    const double up = f(values);
    v = at - h;
    slopes.push_back((up - f(values)) / (2 * h));
    v = at;
  }
  return slopes;
}

void expect_near(const std::vector<double>& a, const std::vector<double>& b, double tolerance) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], tolerance * (1 + std::fabs(b[i]))) << i;
}

}  // namespace

template <class B>
class LaunchGradients : public testing::Test {};
using Stacks = testing::Types<Autodiff<Reference>, Autodiff<Cpu>, Autodiff<CpuParity>>;
TYPED_TEST_SUITE(LaunchGradients, Stacks);

TYPED_TEST(LaunchGradients, AreThoseOfCentralDifferences) {
  using B = TypeParam;
  B b;
  const Kernel k = Kernel::from_source(doubled(text));
  const std::vector<double> x = draws(9, 1), w = draws(9, 2);
  const auto tensor = [&](const std::vector<double>& v) { return from_vector<B, double>(b, v, {9}); };
  const Tensor<B> px = parameter(tensor(x), "x"), pw = parameter(tensor(w), "w");
  const auto grads = loss_of(b, k, px, pw).backward();
  expect_near(
      grads.of(px).template to_vector<double>(),
      differences(x,
                  [&](const auto& v) { return loss_of(b, k, tensor(v), tensor(w)).template item<double>(); }),
      1e-6);
  expect_near(
      grads.of(pw).template to_vector<double>(),
      differences(w,
                  [&](const auto& v) { return loss_of(b, k, tensor(x), tensor(v)).template item<double>(); }),
      1e-6);
}

TEST(LaunchGradient, FlowsThroughArraysThatAreChangedInPlace) {
  CpuAutodiff b;
  const Kernel k = Kernel::from_source(R"(import warp as wp


@wp.kernel
def step(x: wp.array[wp.float64], y: wp.array[wp.float64]):
    i = wp.tid()
    y[i] = y[i] * y[i] * x[i]
)");
  const std::vector<double> values = draws(5, 3);
  const Tensor<CpuAutodiff> x = parameter(from_vector<CpuAutodiff, double>(b, values, {5}), "x");
  Tensor<CpuAutodiff> y = x * 2;
  for (int round = 0; round < 3; ++round) k.launch(b, 5, x, y);  // (2 x)^8 x^7 in the end
  const std::vector<double> slopes = sum(y).backward().of(x).to_vector<double>();
  for (std::size_t i = 0; i < 5; ++i) {
    const double exact = 256 * 15 * std::pow(values[i], 14);
    EXPECT_NEAR(slopes[i], exact, 1e-13 * exact);
  }
}

TEST(LaunchGradient, OfVectorsAndOfViews) {
  CpuAutodiff b;
  const Kernel k = Kernel::from_source(R"(import warp as wp


@wp.kernel
def lengths(x: wp.array[wp.vec3d], y: wp.array[wp.float64]):
    i = wp.tid()
    y[i] = wp.length(x[i]) * x[i][0]
)");
  const std::vector<double> values = draws(12, 4);
  const auto run = [&](const Tensor<CpuAutodiff>& x) {
    Tensor<CpuAutodiff> y = zeros(b, {4}, DType::f64);
    k.launch(b, 4, permute(reshape(x, {3, 4}), {1, 0}), y);
    return sum(y * y);
  };
  const auto tensor = [&](const std::vector<double>& v) {
    return from_vector<CpuAutodiff, double>(b, v, {12});
  };
  const Tensor<CpuAutodiff> x = parameter(tensor(values), "x");
  expect_near(
      run(x).backward().of(x).to_vector<double>(),
      differences(values, [&](const std::vector<double>& v) { return run(tensor(v)).item<double>(); }), 1e-6);
}

TEST(LaunchGradient, OfSecondOrder) {
  using DD = Autodiff<Autodiff<Cpu>>;
  DD b;
  const Kernel k = Kernel::from_source(R"(import warp as wp


@wp.kernel
def cube(x: wp.array[wp.float64], y: wp.array[wp.float64]):
    i = wp.tid()
    y[i] = x[i] * x[i] * x[i]
)");
  const Tensor<Autodiff<Cpu>> inner =
      parameter(from_vector<Autodiff<Cpu>, double>(b.inner(), {2, 3}, {2}), "x");
  const Tensor<DD> x = parameter(lift(b, inner), "x");
  Tensor<DD> y = zeros(b, {2}, DType::f64);
  k.launch(b, 2, x, y);
  const auto first = sum(y).backward().of(x);  // 3 x^2
  const auto second = sum(first).backward().of(inner);
  expect_near(second.to_vector<double>(), {12, 18}, 1e-12);
}

TEST(LaunchGradient, SaysWhereThereIsNone) {
  CpuAutodiff b;
  const auto message = [&](const std::string& lines, bool temporary = false,
                           bool leaf = false) -> std::string {
    const Kernel k = Kernel::from_source(
        "import warp as wp\n\n\n@wp.kernel\ndef k(x: wp.array[float], y: wp.array[float]):\n"
        "    i = wp.tid()\n    " +
        lines + "\n");
    const Tensor<CpuAutodiff> x = parameter(ones(b, {3}), "x");
    Tensor<CpuAutodiff> y = leaf ? parameter(ones(b, {3}), "y") : ones(b, {3});
    try {
      if (temporary)
        k.launch(b, 3, x, ones(b, {3}));
      else
        k.launch(b, 3, x, y);
    } catch (const GradientError& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_EQ(message("y[i] = x[i]"), "");
  EXPECT_NE(message("y[i] = wp.atomic_exch(x, i, 1.0)").find("has no gradient"), std::string::npos);
  EXPECT_NE(message("y[i] = x[i]", true).find("give it a variable"), std::string::npos);
  EXPECT_NE(message("y[i] = x[i]", false, true).find("would change 'y'"), std::string::npos);
}

Kernel squares() {
  return Kernel::from_source(
      "import warp as wp\n\n\n@wp.kernel\ndef k(x: wp.array[float], y: wp.array[float]):\n"
      "    i = wp.tid()\n    y[i] = x[i] * x[i]\n");
}

TEST(LaunchGradient, APartOfATensorTakesNoHistory) {
  CpuAutodiff b;
  const Kernel k = squares();
  const Tensor<CpuAutodiff> x = parameter(ones(b, {3}), "x");
  Tensor<CpuAutodiff> both = zeros(b, {6}), part = slice(both, 0, 0, 3), own = clone(part);
  EXPECT_THROW(k.launch(b, 3, x, part), GradientError);
  k.launch(b, 3, x, own);
  EXPECT_EQ(sum(own).backward().of(x).to_vector<float>(), (std::vector<float>{2, 2, 2}));
  const NoGrad off;
  k.launch(b, 3, x, part);
  EXPECT_EQ(both.to_vector<float>(), (std::vector<float>{1, 1, 1, 0, 0, 0}));
}

TEST(LaunchGradient, NoticesThatASavedTensorChanged) {
  CpuAutodiff b;
  const Kernel k = squares();
  const Tensor<CpuAutodiff> p = parameter(ones(b, {3}), "p");
  Tensor<CpuAutodiff> x = p * 2, y = zeros(b, {3});
  k.launch(b, 3, x, y);
  k.launch(b, 3, p, x);
  EXPECT_THROW(sum(y).backward(), GradientError);
}

/// Several threads write one element: whose gradient it is depends on their order.
TEST(LaunchGradient, ReferenceRefusesThatOfAKernelThatRaces) {
  Autodiff<Reference> b;
  const Kernel last = Kernel::from_source(
      "import warp as wp\n\n\n@wp.kernel\ndef last(x: wp.array[float], y: wp.array[float]):\n"
      "    i = wp.tid()\n    y[0] = x[i] * x[i]\n");
  const Tensor<Autodiff<Reference>> x = parameter(ones(b, {3}), "x");
  Tensor<Autodiff<Reference>> y = zeros(b, {1});
  last.launch(b, 3, x, y);
  try {
    (void)sum(y).backward();
    FAIL() << "a race has a gradient";
  } catch (const kernel::KernelError& e) {
    EXPECT_NE(std::string(e.what()).find("race in 'last_backward': thread 1"), std::string::npos) << e.what();
  }
}

}  // namespace ferrite
