// Members of ensembles see the same table in other orders and scales, and give probabilities back in its own.
#include "ferrite/models/pfn/ensemble.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <set>

#include "ferrite/core/error.hpp"
#include "ferrite/core/rng.hpp"
#include "pfn_members.hpp"
#include "sklearn_reference.hpp"

namespace ferrite::testing {
namespace {

using pfn::EnsembleMember;
using pfn::FeatureScale;
using pfn::MemberConfig;
using pfn::NumberScale;

FeatureScale fit_scale(NumberScale kind, std::vector<double> values) {
  std::erase_if(values, [](double v) { return std::isnan(v); });
  std::sort(values.begin(), values.end());
  return FeatureScale::fit(kind, values);
}

TEST(EnsembleMember, PermutesColumnsAndClassesTogether) {
  const ReferenceTable table("wine");
  const EnsembleMember member = fit_member(table.train, {.seed = 3});
  const pfn::EncodedTable seen = seen_by(member, table.test);
  EXPECT_NE(seen.features, table.test.features);
  for (std::size_t c = 0; c < seen.features.size(); ++c)
    for (std::size_t old = 0; old < seen.features.size(); ++old)
      if (table.test.features[old] == seen.features[c]) {
        EXPECT_EQ(seen.row(5)[c], table.test.row(5)[old]);
      }
  std::vector<double> certain(static_cast<std::size_t>(3 * seen.rows));
  for (std::size_t r = 0; r < seen.classes.size(); ++r) {
    EXPECT_EQ(seen.class_names[static_cast<std::size_t>(seen.classes[r])],
              table.test.class_names[static_cast<std::size_t>(table.test.classes[r])]);
    certain[3 * r + static_cast<std::size_t>(seen.classes[r])] = 1;
  }
  const std::vector<double> back = member.restore(certain);
  for (std::size_t r = 0; r < seen.classes.size(); ++r)
    EXPECT_EQ(back[3 * r + static_cast<std::size_t>(table.test.classes[r])], 1);
  EXPECT_EQ(seen_by(fit_member(table.train, {.seed = 3}), table.test).x, seen.x);
  EXPECT_THROW(member.restore(std::vector<double>(4)), ValueError);
}

TEST(EnsembleMember, TheFirstSeesTheTableAsItIs) {
  const ReferenceTable table("mixed");
  const EnsembleMember member = fit_member(table.train, pfn::member_config(5, 0));
  const pfn::EncodedTable seen = seen_by(member, table.test);
  EXPECT_EQ(seen.features, table.test.features);
  EXPECT_EQ(seen.classes, table.test.classes);
  EXPECT_EQ(std::memcmp(seen.x.data(), table.test.x.data(), 4 * seen.x.size()), 0);  // NaN included
  int scales[3] = {};
  for (int i = 0; i < 8; ++i) ++scales[static_cast<int>(pfn::member_config(5, i).numbers)];
  EXPECT_EQ(scales[0], 2);
  EXPECT_EQ(scales[1], 4);
  EXPECT_EQ(scales[2], 2);
}

TEST(EnsembleMember, SeedsShareNoMembers) {
  std::set<std::uint64_t> seen;
  for (std::uint64_t seed = 0; seed < 100; ++seed)
    for (std::int64_t index = 0; index < 100; ++index) seen.insert(pfn::member_seed(seed, index));
  EXPECT_EQ(seen.size(), 10'000u);
  // What is known of seed 0 stands.
  for (std::int64_t index = 0; index < 4; ++index)
    EXPECT_EQ(pfn::member_config(0, index).seed, static_cast<std::uint64_t>(index));
  const ReferenceTable table("wine");
  std::set<std::vector<std::string>> orders;
  for (std::uint64_t seed = 0; seed < 3; ++seed)
    for (std::int64_t index = 1; index < 4; ++index) {
      std::vector<std::string> names;
      const EnsembleMember member = fit_member(table.train, pfn::member_config(seed, index));
      for (const pfn::Feature& feature : seen_by(member, table.test).features) names.push_back(feature.name);
      orders.insert(std::move(names));
    }
  EXPECT_EQ(orders.size(), 9u);
}

TEST(EnsembleMember, ManyAreFittedTogetherAsAlone) {
  const ReferenceTable table("mixed");
  std::vector<MemberConfig> configs;
  for (std::int64_t m = 0; m < 6; ++m) configs.push_back(pfn::member_config(2, m));
  const auto members = EnsembleMember::fit(table.train, configs, table.train.class_count());
  ASSERT_EQ(members.size(), configs.size());
  const std::vector<std::int64_t> rows{7, 0, 7};
  for (std::size_t m = 0; m < members.size(); ++m) {
    const EnsembleMember alone = fit_member(table.train, configs[m]);
    EXPECT_EQ(members[m].to_json(), alone.to_json());
    const pfn::EncodedTable all = seen_by(alone, table.test), some = all.take(rows);
    std::vector<float> cells(some.x.size());
    members[m].write_cells(table.test, rows, cells.data());
    EXPECT_EQ(std::memcmp(cells.data(), some.x.data(), 4 * cells.size()), 0);
    for (std::size_t c = 0; c < all.features.size(); ++c)
      EXPECT_EQ(all.features[c], table.test.features[static_cast<std::size_t>(members[m].columns()[c])]);
    const auto places = members[m].class_places();
    for (std::size_t r = 0; r < all.classes.size(); ++r)
      EXPECT_EQ(all.classes[r], places[static_cast<std::size_t>(table.test.classes[r])]);
    // Every cell by the scale of its own column.
    for (std::size_t c = 0; c < all.features.size(); ++c) {
      const auto column = static_cast<std::size_t>(members[m].columns()[c]);
      std::vector<double> values;
      for (std::int64_t r = 0; r < table.train.rows; ++r)
        values.push_back(static_cast<double>(table.train.row(r)[column]));
      const bool scaled = !table.train.features[column].is_category;
      const auto scale = fit_scale(scaled ? configs[m].numbers : NumberScale::none, values);
      for (std::size_t r = 0; r < rows.size(); ++r) {
        const float want = scale(table.test.row(rows[r])[column]), got = cells[r * all.features.size() + c];
        EXPECT_TRUE(got == want || (std::isnan(got) && std::isnan(want))) << got << " and " << want;
      }
    }
  }
  // Of codes, members put the symbols in order.
  auto symbols = EnsembleMember::fit(table.train, configs, 10)[3].class_places();
  std::sort(symbols.begin(), symbols.end());
  EXPECT_EQ(symbols, (std::vector<std::int32_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

TEST(EnsembleMember, ScalesNumbersAloneAndComesBackFromItsText) {
  const ReferenceTable table("mixed");
  for (const NumberScale scale : {NumberScale::normal, NumberScale::tails}) {
    const EnsembleMember member =
        fit_member(table.train, {.seed = 1, .permute_columns = false, .numbers = scale});
    const pfn::EncodedTable seen = seen_by(member, table.test);
    for (std::int64_t r = 0; r < seen.rows; ++r)
      for (std::size_t c = 0; c < seen.features.size(); ++c) {
        const float before = table.test.row(r)[c], after = seen.row(r)[c];
        EXPECT_EQ(std::isnan(before), std::isnan(after));
        if (std::isnan(before)) continue;
        if (seen.features[c].is_category)
          EXPECT_EQ(before, after);
        else
          EXPECT_LT(std::abs(after), 6);
      }
    const EnsembleMember back = EnsembleMember::from_json(member.to_json());
    EXPECT_EQ(std::memcmp(seen_by(back, table.test).x.data(), seen.x.data(), 4 * seen.x.size()), 0);
  }
  for (const char* text : {"", "{}", "{\"columns\": [1], \"classes\": [], \"scales\": []}"})
    EXPECT_THROW(EnsembleMember::from_json(text), ParseError) << text;
}

TEST(FeatureScale, QuantilesBecomeNormal) {
  std::vector<double> values;
  for (std::uint64_t i = 0; i < 5000; ++i) values.push_back(std::exp(3 * normal_at<double>({1, 1}, i)));
  const FeatureScale scale = fit_scale(NumberScale::normal, values);
  EXPECT_LE(scale.values.size(), 1000u);
  double sum = 0, squares = 0;
  for (const double v : values) {
    const auto z = static_cast<double>(scale(static_cast<float>(v)));
    sum += z;
    squares += z * z;
  }
  EXPECT_NEAR(sum / 5000, 0, 0.01);
  EXPECT_NEAR(squares / 5000, 1, 0.02);
  EXPECT_EQ(scale(-5), scale(0));  // outside, the ends
  EXPECT_LT(scale(1e30f), 5);
  EXPECT_TRUE(std::isnan(scale(NAN)));
  // Values that are equal share the middle of their ranks.
  const FeatureScale half = fit_scale(NumberScale::normal, {0, 0, 1, 1});
  EXPECT_NEAR(half(0), pfn::normal_quantile(0.25), 1e-6);
  EXPECT_NEAR(half(0.5f), 0, 1e-6);
  EXPECT_EQ(fit_scale(NumberScale::normal, {NAN, NAN})(3), 3);
  EXPECT_EQ(fit_scale(NumberScale::normal, {2, 2})(3), 0);
}

TEST(FeatureScale, TailsGrowByTheirLogarithm) {
  std::vector<double> values(101);
  std::iota(values.begin(), values.end(), 0.0);
  const FeatureScale scale = fit_scale(NumberScale::tails, values);
  EXPECT_NEAR(scale(50), 0, 1e-6);
  EXPECT_NEAR(scale(75), 1.349 / 2, 1e-3);
  const double far = (1e6 - 50) / (50 / 1.349);
  EXPECT_NEAR(scale(1e6f), 3 + std::log1p(far - 3), 1e-4);
  EXPECT_LT(scale(-1e6f), -3);
  EXPECT_EQ(fit_scale(NumberScale::tails, {4, 4, 4})(5), 1);
}

TEST(FeatureScale, QuantilesAreThoseOfScipy) {
  const auto& expected = sklearn_reference()["normal_quantiles"];
  for (std::size_t i = 0; i < expected["levels"].size(); ++i) {
    const double value = expected["values"][i].get<double>();
    EXPECT_NEAR(pfn::normal_quantile(expected["levels"][i].get<double>()), value,
                1e-14 * std::max(1.0, std::abs(value)))
        << expected["levels"][i];
  }
  EXPECT_TRUE(std::isnan(pfn::normal_quantile(0)));
}

}  // namespace
}  // namespace ferrite::testing
