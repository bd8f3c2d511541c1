// Bins of labels: their borders, and the distribution that scores stand for.
#include "ferrite/models/pfn/label_bins.hpp"

#include "models/pfn/pfn_test.hpp"

namespace ferrite::pfn {
namespace {

using testing::expect_error;
using testing::expect_values;
using testing::nan;
using testing::tensor_of;

class LabelBinsOn : public testing::OnBackends {};
INSTANTIATE_TEST_SUITE_P(Names, LabelBinsOn, ::testing::Values("reference", "cpu"), testing::name_of);

TEST(LabelBins, BordersAreStudentsQuantiles) {
  const auto borders = bin_borders(100);
  ASSERT_EQ(borders.size(), 99u);
  // Tables of the t distribution with 4 degrees of freedom.
  EXPECT_NEAR(borders[98], 3.747, 1e-3);
  EXPECT_NEAR(borders[94], 2.132, 1e-3);
  EXPECT_NEAR(borders[89], 1.533, 1e-3);
  EXPECT_NEAR(borders[49], 0, 1e-12);
  for (std::size_t i = 0; i < 99; ++i) EXPECT_NEAR(borders[i], -borders[98 - i], 1e-7);
  for (std::size_t i = 1; i < 99; ++i) EXPECT_GT(borders[i], borders[i - 1]);
}

TEST_P(LabelBinsOn, EveryLabelHasABin) {
  const LabelBins<B> bins(backend, 4);  // borders at -0.74, 0 and 0.74
  const auto z = tensor_of(backend, {-50, -0.75, -0.73, -1e-9, 0, 0.5, 0.75, 100, nan}, {3, 3}, DType::f32);
  const auto found = bins.of(z);
  EXPECT_EQ(found.dtype(), DType::i64);
  expect_values(found, {0, 0, 1, 1, 2, 2, 3, 3, 4});
}

TEST_P(LabelBinsOn, MomentsAndQuantilesAreThoseOfTheDistribution) {
  const LabelBins<B> bins(backend, 5);
  const auto b = bin_borders(5);
  const std::vector<double> p = {0.1, 0.2, 0.4, 0.1, 0.2};
  std::vector<double> logs;
  for (const double share : p) logs.push_back(std::log(share) + 7);
  const auto logits = tensor_of(backend, logs, {1, 1, 5}, DType::f32);
  const double low = b[1] - b[0], high = b[3] - b[2];
  expect_values(bins.mean(logits), {0.1 * (b[0] - low) + 0.2 * (b[0] + b[1]) / 2 + 0.4 * (b[1] + b[2]) / 2 +
                                    0.1 * (b[2] + b[3]) / 2 + 0.2 * (b[3] + high)});
  expect_values(bins.median(logits), {b[1] + (b[2] - b[1]) * 0.5});
  expect_values(bins.quantile(logits, 0.2), {b[0] + low * 0.5});
  expect_values(bins.quantile(logits, 0.05), {b[0] + low * std::log(0.5)}, 1e-5);
  expect_values(bins.quantile(logits, 0.9), {b[3] - high * std::log(0.5)}, 1e-5);
  double last = -1e9;
  for (double level = 0.01; level < 1; level += 0.01) {
    const double value = bins.quantile(logits, level).item();
    EXPECT_GE(value, last);
    last = value;
  }
  // A certain prediction, at either end too.
  for (const std::int64_t bin : {0, 2, 4}) {
    std::vector<double> certain(5, -200);
    certain[static_cast<std::size_t>(bin)] = 200;
    for (const double level : {0.001, 0.5, 0.999}) {
      const auto value = bins.quantile(tensor_of(backend, certain, {5}, DType::f32), level);
      EXPECT_TRUE(std::isfinite(value.item()));
      expect_values(bins.of(value), {static_cast<double>(bin)});
    }
  }
  expect_error<ValueError>([&] { bins.quantile(logits, 1); }, {"quantile 1", "between 0 and 1"});
}

}  // namespace
}  // namespace ferrite::pfn
