// What tests of predictors share: small weights in a file, and small tables.
#pragma once

#include "ferrite/core/rng.hpp"
#include "ferrite/models/pfn/classifier.hpp"
#include "ferrite/models/pfn/regressor.hpp"
#include "models/pfn/pfn_tables.hpp"
#include "models/pfn/pfn_test.hpp"

namespace ferrite::testing {

/// Files of networks with random weights, which predict nonsense, but by all that they are given.
struct SmallWeights {
  ScratchFolder folder;

  SmallWeights() {
    Cpu cpu;
    for (const pfn::Task task : both_tasks) {
      auto model = lively_pfn(cpu, small_pfn(task));
      pfn::save(path(task), model);
    }
  }
  std::filesystem::path path(pfn::Task task) const {
    return folder / (std::string(to_string(task)) + ".safetensors");
  }
  pfn::PredictorConfig config(pfn::Task task = pfn::Task::classification) const {
    return pfn::PredictorConfig{}.with_weights(path(task).string()).with_backend("cpu");
  }
};

/// Numbers, a text, missing cells and a target of `classes` classes, or of numbers if there are none.
inline pfn::Table mixed_table(std::int64_t rows, std::int64_t classes, std::uint64_t seed = 1) {
  std::vector<double> a, b, numbers;
  std::vector<std::string> c, names;
  for (std::int64_t r = 0; r < rows; ++r) {
    const auto i = static_cast<std::uint64_t>(r);
    a.push_back(normal_at<double>({seed, 1}, i));
    b.push_back(r % 7 == 3 ? nan : 50 + 10 * normal_at<double>({seed, 2}, i));
    c.emplace_back(1, static_cast<char>('p' + integer_at({seed, 3}, i, 0, 3)));
    numbers.push_back(1000 + 20 * a.back() + normal_at<double>({seed, 4}, i));
    names.push_back("k" + std::to_string(classes > 0 ? r % classes : 0));
  }
  pfn::Table table;
  table.add_numbers("a", a).add_numbers("b", b).add_texts("c", c);
  return classes > 0 ? table.add_texts("y", names) : table.add_numbers("y", numbers);
}

inline void expect_near(const std::vector<double>& a, const std::vector<double>& b, double tolerance) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], tolerance) << "at " << i;
}

inline double difference(const std::vector<double>& a, const std::vector<double>& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

}  // namespace ferrite::testing
