// Data sets: rows, CSV files, splits, standardisation.
#include "ferrite/data/dataset.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "ferrite/io/safetensors.hpp"
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
  expect_error<ValueError>([&] { Dataset::from_csv(folder / "flowers.csv"); },
                           {"flowers.csv: no column 'target' among a, kind, b", "with_target"});
}

TEST(Dataset, AValueThatItsDtypeCannotHoldIsNamedByFileLineAndRemedy) {
  const ScratchFolder folder;
  // A quoted name over two lines and an empty line: rows are not lines.
  spill(folder / "houses.csv", "\"price\nin euros\",rooms\n100000,3\n\n99.5,4\n");
  const auto config = CsvDatasetConfig{}.with_target("price\nin euros");
  expect_error<ParseError>(
      [&] { Dataset::from_csv(folder / "houses.csv", config); },
      {"houses.csv:5:1", "value 99.5: i64 cannot hold it", "with_target_dtype(DType::f32)"});
  spill(folder / "plain.csv", "1,0.5\n2,1\n");
  expect_error<ParseError>(
      [&] { Dataset::from_csv(folder / "plain.csv", CsvDatasetConfig{}.with_target("c1")); },
      {"plain.csv:1:3", "column 'c1', value 0.5", "with_target_dtype"});
  expect_error<ParseError>(
      [&] {
        Dataset::from_csv(folder / "plain.csv",
                          CsvDatasetConfig{}.with_target("c0").with_feature_dtype(DType::i32));
      },
      {"plain.csv:1:3", "i32", "with_feature_dtype"});
}

TEST(Dataset, SeveralInputsStayRowForRow) {
  std::vector<float> values(10);
  std::iota(values.begin(), values.end(), 100.0f);
  const Dataset data = counting(10).with_input(floats(values, {10, 1}));
  const auto expect_aligned = [](const HostBatch& batch) {
    ASSERT_EQ(batch.more.size(), 1u);
    for (std::int64_t i = 0; i < batch.size(); ++i)
      EXPECT_EQ(batch.more[0].as<float>()[static_cast<std::size_t>(i)],
                100.0f + static_cast<float>(batch.y.as<std::int64_t>()[static_cast<std::size_t>(i)]));
  };
  const auto [first, second] = data.split(0.5, 3);
  expect_aligned(first.all());
  expect_aligned(second.with_row_shape({2, 1}).all());
  Reference backend;
  const auto batch = to_batch(backend, data.all());
  EXPECT_EQ(batch.more[0].shape(), (Shape{10, 1}));
  const auto [x, y] = batch;  // the first two
  EXPECT_EQ(x.shape(), (Shape{10, 2}));
  EXPECT_EQ(y.shape(), (Shape{10}));
  expect_error<ShapeError>(
      [&] {
        counting(10).with_input(floats({1, 2}, {2}));
      },
      {"input [2]", "10 examples"});
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

TEST(Standardizer, OnlyCentresWhatNeverChanges) {
  // Sums of these are rounded.
  for (const float value : {0.1f, 0.3f, 3.14159f, 1e6f})
    for (const std::int64_t rows : {7, 10, 100}) {
      const std::vector<float> same(static_cast<std::size_t>(rows), value);
      const Standardizer s = Standardizer::fit(HostTensor::from(std::span<const float>(same), {rows, 1}));
      EXPECT_EQ(s.deviation()[0], 1) << value << ", " << rows;
      EXPECT_EQ(s.apply(floats({value}, {1, 1})).as<float>()[0], 0) << value << ", " << rows;
    }
}

TEST(Standardizer, GoesThroughAFile) {
  const ScratchFolder folder;
  const HostTensor x = floats({1, 5, 3, 5, 5, 5}, {3, 2});
  const Standardizer fitted = Standardizer::fit(x);
  write_safetensors(folder / "s.safetensors", {{}, fitted.state()});
  const Standardizer read = Standardizer::from_state(read_safetensors(folder / "s.safetensors").tensors);
  EXPECT_EQ(read.mean(), fitted.mean());
  EXPECT_EQ(read.deviation(), fitted.deviation());
  testing::expect_equal(read.apply(x), fitted.apply(x));
  NamedTensors state = fitted.state();
  state["deviation"] = HostTensor::from(std::span<const double>({1.0, 0.0}), {2});
  expect_error<ValueError>([&] { Standardizer::from_state(state); },
                           {"[standardizer] feature 1", "positive"});
  state.erase("deviation");
  expect_error<ValueError>([&] { Standardizer::from_state(state); }, {"missing 'deviation'"});
  expect_error<ValueError>([&] { Standardizer::from_state({}); }, {"missing 'mean'"});
}

}  // namespace
}  // namespace ferrite::data
