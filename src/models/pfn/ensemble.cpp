#include "ferrite/models/pfn/ensemble.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "ferrite/core/error.hpp"
#include "ferrite/core/rng.hpp"
#include "ferrite/core/thread_pool.hpp"

namespace ferrite::pfn {

namespace {

using nlohmann::json;

std::vector<std::int64_t> order_of(std::int64_t count, bool permuted, RandomKey key) {
  if (permuted) return random_permutation(count, key);
  std::vector<std::int64_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  return order;
}

bool is_permutation(const std::vector<std::int64_t>& order) {
  std::vector<bool> seen(order.size());
  for (const std::int64_t place : order) {
    if (place < 0 || place >= static_cast<std::int64_t>(order.size()) ||
        seen[static_cast<std::size_t>(place)])
      return false;
    seen[static_cast<std::size_t>(place)] = true;
  }
  return true;
}

}  // namespace

std::uint64_t member_seed(std::uint64_t seed, std::int64_t index) {
  // Steps that can be undone: seeds that differ stay different, and 0 stays 0 (the last steps of
  // MurmurHash3).
  seed = (seed ^ (seed >> 33)) * 0xFF51AFD7ED558CCDu;
  seed = (seed ^ (seed >> 33)) * 0xC4CEB9FE1A85EC53u;
  return (seed ^ (seed >> 33)) + static_cast<std::uint64_t>(index);
}

MemberConfig member_config(std::uint64_t seed, std::int64_t index) {
  MemberConfig config;
  config.seed = member_seed(seed, index);
  config.permute_columns = config.permute_classes = index > 0;
  config.numbers = index % 2 == 1   ? NumberScale::normal
                   : index % 4 == 2 ? NumberScale::tails
                                    : NumberScale::none;
  return config;
}

EnsembleMember EnsembleMember::fit(const EncodedTable& train, const MemberConfig& config) {
  EnsembleMember member;
  member.columns_ = order_of(train.columns(), config.permute_columns, {config.seed, 0});
  member.classes_ = order_of(train.class_count(), config.permute_classes, {config.seed, 1});
  member.scales_.resize(member.columns_.size());
  parallel_for(train.columns(), [&](std::int64_t i) {
    const auto column = static_cast<std::size_t>(member.columns_[static_cast<std::size_t>(i)]);
    if (train.features[column].is_category || config.numbers == NumberScale::none) return;
    std::vector<double> values;
    for (std::int64_t r = 0; r < train.rows; ++r) values.push_back(static_cast<double>(train.row(r)[column]));
    member.scales_[static_cast<std::size_t>(i)] = FeatureScale::fit(config.numbers, std::move(values));
  });
  return member;
}

EncodedTable EnsembleMember::transform(const EncodedTable& table) const {
  const std::size_t width = columns_.size();
  if (table.features.size() != width || table.class_names.size() != classes_.size())
    throw ValueError(
        fmt::format("[pfn.member] {} features and {} classes: the member was fitted on {} and {}; encode the "
                    "table with the "
                    "encoder of the train table",
                    table.features.size(), table.class_names.size(), width, classes_.size()));
  EncodedTable out;
  out.task = table.task;
  out.rows = table.rows;
  out.notices = table.notices;
  out.targets = table.targets;
  for (const std::int64_t column : columns_)
    out.features.push_back(table.features[static_cast<std::size_t>(column)]);
  std::vector<std::int32_t> code_of(classes_.size());
  for (std::size_t c = 0; c < classes_.size(); ++c) {
    code_of[static_cast<std::size_t>(classes_[c])] = static_cast<std::int32_t>(c);
    out.class_names.push_back(table.class_names[static_cast<std::size_t>(classes_[c])]);
  }
  for (const std::int32_t c : table.classes)
    out.classes.push_back(c < 0 ? -1 : code_of[static_cast<std::size_t>(c)]);
  out.x.resize(table.x.size());
  parallel_ranges(table.rows, 256, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      float* const to = out.x.data() + static_cast<std::size_t>(r) * width;
      for (std::size_t c = 0; c < width; ++c) to[c] = scales_[c](table.row(r)[columns_[c]]);
    }
  });
  return out;
}

std::vector<double> EnsembleMember::restore(std::span<const double> probabilities) const {
  const std::size_t width = classes_.size();
  if (width == 0 || probabilities.size() % width != 0)
    throw ValueError(fmt::format("[pfn.member] {} probabilities: there must be {} for each row",
                                 probabilities.size(), width));
  std::vector<double> out(probabilities.size());
  for (std::size_t row = 0; row < out.size(); row += width)
    for (std::size_t c = 0; c < width; ++c)
      out[row + static_cast<std::size_t>(classes_[c])] = probabilities[row + c];
  return out;
}

std::string EnsembleMember::to_json() const {
  json scales = json::array();
  for (const FeatureScale& scale : scales_)
    scales.push_back({{"kind", static_cast<int>(scale.kind)},
                      {"values", scale.values},
                      {"scores", scale.scores},
                      {"centre", scale.centre},
                      {"deviation", scale.deviation}});
  return json{{"columns", columns_}, {"classes", classes_}, {"scales", scales}}.dump();
}

EnsembleMember EnsembleMember::from_json(std::string_view text) {
  try {
    const json all = json::parse(text);
    EnsembleMember member;
    member.columns_ = all.at("columns").get<std::vector<std::int64_t>>();
    member.classes_ = all.at("classes").get<std::vector<std::int64_t>>();
    for (const json& entry : all.at("scales")) {
      FeatureScale scale;
      const int kind = entry.at("kind").get<int>();
      if (kind < 0 || kind >= count_of(NumberScale{}))
        throw ParseError(fmt::format("[pfn.member] scale {}: there is none of this kind", kind));
      scale.kind = static_cast<NumberScale>(kind);
      scale.values = entry.at("values").get<std::vector<double>>();
      scale.scores = entry.at("scores").get<std::vector<double>>();
      scale.centre = entry.at("centre").get<double>();
      scale.deviation = entry.at("deviation").get<double>();
      member.scales_.push_back(std::move(scale));
    }
    member.check();
    return member;
  } catch (const json::exception& e) {
    throw ParseError(
        fmt::format("[pfn.member] {}: this is not a member of an ensemble; fit again", e.what()));
  }
}

void EnsembleMember::check() const {
  const bool orders =
      is_permutation(columns_) && is_permutation(classes_) && scales_.size() == columns_.size();
  const bool scales = std::all_of(scales_.begin(), scales_.end(), [](const FeatureScale& scale) {
    const bool knots = scale.kind != NumberScale::normal || !scale.values.empty();
    return knots && scale.values.size() == scale.scores.size() && scale.deviation > 0 &&
           std::is_sorted(scale.values.begin(), scale.values.end());
  });
  if (!orders || !scales) throw ParseError("[pfn.member] orders or scales are damaged; fit again");
}

}  // namespace ferrite::pfn
