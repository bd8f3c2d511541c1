// Data sets: rows, CSV files, splits, standardisation.
#include "ferrite/data/dataset.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "ferrite/stacks.hpp"
#include "io/io_test.hpp"

namespace ferrite::data {
namespace {

using testing::expect_error;
using testing::ScratchFolder;
using testing::spill;

HostTensor floats(std::vector<float> values, const Shape& shape) {
  return HostTensor::from(std::span<const float>(values), shape);
}

/// Row i holds (i, 10 i), its target is i.
Dataset counting(std::int64_t rows) {
  std::vector<float> x;
  std::vector<std::int64_t> y;
  for (std::int64_t i = 0; i < rows; ++i) {
    x.push_back(static_cast<float>(i));
    x.push_back(static_cast<float>(10 * i));
    y.push_back(i);
  }
  return {floats(x, {rows, 2}), HostTensor::from(std::span<const std::int64_t>(y), {rows})};
}

std::vector<std::int64_t> targets(const Dataset& data) {
  const auto y = data.y().as<std::int64_t>();
  return {y.begin(), y.end()};
}

TEST(Dataset, PicksRowsInTheGivenOrder) {
  const std::int64_t numbers[] = {3, 0, 3};
  const HostBatch batch = counting(5).rows(numbers);
  EXPECT_EQ(batch.size(), 3);
  EXPECT_EQ(batch.x.shape(), (Shape{3, 2}));
  EXPECT_TRUE(std::ranges::equal(batch.x.as<float>(), std::vector<float>{3, 30, 0, 0, 3, 30}));
  const std::int64_t outside[] = {5};
  expect_error<ValueError>([&] { counting(5).rows(outside); }, {"[dataset] row 5", "[0, 5)"});
}

TEST(Dataset, ComesFromTensorsAndGoesBackToABackend) {
  Reference backend;
  const Dataset data(ones(backend, {3, 2}), arange(backend, 3));
  const Batch<Reference> batch = to_batch(backend, data.all());
  EXPECT_EQ(batch.x.to_vector(), std::vector<float>(6, 1));
  EXPECT_EQ(batch.y.to_vector<std::int64_t>(), (std::vector<std::int64_t>{0, 1, 2}));
  expect_error<ShapeError>(
      [&] {
        Dataset(ones(backend, {3, 2}), arange(backend, 4));
      },
      {"x [3, 2] and y [4]"});
}

TEST(Dataset, ReadsCsvFilesWithATargetColumn) {
  const ScratchFolder folder;
  spill(folder / "flowers.csv", "a,kind,b\n1.5,0,2\n3,1,4\n");
  const Dataset data = Dataset::from_csv(folder / "flowers.csv", CsvDatasetConfig{}.with_target("kind"));
  EXPECT_TRUE(std::ranges::equal(data.x().as<float>(), std::vector<float>{1.5, 2, 3, 4}));
  EXPECT_EQ(targets(data), (std::vector<std::int64_t>{0, 1}));
  const auto regression =
      CsvDatasetConfig{}.with_target("b").with_target_dtype(DType::f32).with_feature_dtype(DType::f64);
  EXPECT_EQ(Dataset::from_csv(folder / "flowers.csv", regression).y().dtype(), DType::f32);
  EXPECT_EQ(Dataset::from_csv(folder / "flowers.csv", regression).x().dtype(), DType::f64);
  expect_error<ValueError>([&] { Dataset::from_csv(folder / "flowers.csv"); }, {"target", "kind"});
}

TEST(Dataset, SplitsIntoPartsThatDependOnTheSeedAlone) {
  const auto [train, test] = counting(10).split(0.7, 1);
  EXPECT_EQ(train.size(), 7);
  EXPECT_EQ(test.size(), 3);
  std::vector<std::int64_t> all = targets(train);
  const auto rest = targets(test);
  all.insert(all.end(), rest.begin(), rest.end());
  EXPECT_FALSE(std::ranges::is_sorted(all));
  EXPECT_EQ(targets(counting(10).split(0.7, 1).first), targets(train));
  EXPECT_NE(targets(counting(10).split(0.7, 2).first), targets(train));
  std::ranges::sort(all);
  EXPECT_EQ(all, targets(counting(10)));
  EXPECT_EQ(counting(10).split(1, 0).second.size(), 0);
  expect_error<ValueError>([] { counting(10).split(1.5, 0); }, {"[split] fraction 1.5"});
}

TEST(Dataset, RowsCanTakeAnotherShape) {
  EXPECT_EQ(counting(4).with_row_shape({1, 2, 1}).x().shape(), (Shape{4, 1, 2, 1}));
  expect_error<ShapeError>([] { counting(4).with_row_shape({3}); }, {"rows of shape [2] as [3]"});
}

TEST(Standardizer, MovesFeaturesToZeroMeanAndUnitVariance) {
  const HostTensor x = floats({1, 5, 3, 5, 5, 5}, {3, 2});
  const Standardizer s = Standardizer::fit(x);
  EXPECT_EQ(s.mean(), (std::vector<double>{3, 5}));
  EXPECT_NEAR(s.deviation()[0], std::sqrt(8.0 / 3), 1e-12);
  EXPECT_EQ(s.deviation()[1], 1);
  const HostTensor y = s.apply(x);
  EXPECT_NEAR(y.as<float>()[0], -2 / std::sqrt(8.0 / 3), 1e-6);
  EXPECT_EQ(y.as<float>()[1], 0);
  // What was measured on one tensor is applied to another.
  EXPECT_NEAR(s.apply(floats({7, 6}, {1, 2})).as<float>()[0], 4 / std::sqrt(8.0 / 3), 1e-6);
  expect_error<ShapeError>([&] { s.apply(floats({1}, {1, 1})); }, {"[standardize]", "2 features"});
  expect_error<ShapeError>([] { Standardizer::fit(HostTensor()); }, {"at least one row"});
}

}  // namespace
}  // namespace ferrite::data
