#include "ferrite/models/pfn/ensemble.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
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

bool is_sound(const FeatureScale& scale) {
  const bool knots = scale.kind != NumberScale::normal || !scale.values.empty();
  return knots && scale.values.size() == scale.scores.size() && scale.deviation > 0 &&
         std::is_sorted(scale.values.begin(), scale.values.end());
}

constexpr const char* damaged = "[pfn.member] orders or scales are damaged; fit again";

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

std::vector<EnsembleMember> EnsembleMember::fit(const EncodedTable& train,
                                                std::span<const MemberConfig> configs, std::int64_t classes) {
  std::vector<EnsembleMember> members(configs.size());
  std::array<std::shared_ptr<std::vector<FeatureScale>>, count_of(NumberScale{})> scales;  // by kind
  for (std::size_t m = 0; m < configs.size(); ++m) {
    const MemberConfig& config = configs[m];
    members[m].columns_ = order_of(train.columns(), config.permute_columns, {config.seed, 0});
    members[m].classes_ = order_of(classes, config.permute_classes, {config.seed, 1});
    auto& of_kind = scales[static_cast<std::size_t>(config.numbers)];
    if (!of_kind) of_kind = std::make_shared<std::vector<FeatureScale>>(train.features.size());
    members[m].scales_ = of_kind;
  }
  const auto& normal = scales[static_cast<std::size_t>(NumberScale::normal)];
  const auto& tails = scales[static_cast<std::size_t>(NumberScale::tails)];
  if (!normal && !tails) return members;
  parallel_for(train.columns(), [&](std::int64_t column) {
    const auto c = static_cast<std::size_t>(column);
    if (train.features[c].is_category) return;
    std::vector<double> sorted;
    sorted.reserve(static_cast<std::size_t>(train.rows));
    for (std::int64_t r = 0; r < train.rows; ++r)
      if (const float v = train.row(r)[c]; !std::isnan(v)) sorted.push_back(static_cast<double>(v));
    std::sort(sorted.begin(), sorted.end());
    if (normal) (*normal)[c] = FeatureScale::fit(NumberScale::normal, sorted);
    if (tails) (*tails)[c] = FeatureScale::fit(NumberScale::tails, sorted);
  });
  return members;
}

std::vector<std::int32_t> EnsembleMember::class_places() const {
  std::vector<std::int32_t> places(classes_.size());
  for (std::size_t c = 0; c < classes_.size(); ++c)
    places[static_cast<std::size_t>(classes_[c])] = static_cast<std::int32_t>(c);
  return places;
}

void EnsembleMember::write_cells(const EncodedTable& table, std::span<const std::int64_t> rows,
                                 float* to) const {
  const std::size_t width = columns_.size();
  for (std::size_t c = 0; c < width; ++c) {
    const std::int64_t column = columns_[c];
    const FeatureScale& scale = (*scales_)[static_cast<std::size_t>(column)];
    for (std::size_t r = 0; r < rows.size(); ++r) to[r * width + c] = scale(table.row(rows[r])[column]);
  }
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
  for (const std::int64_t column : columns_) {
    const FeatureScale& scale = (*scales_)[static_cast<std::size_t>(column)];
    scales.push_back({{"kind", static_cast<int>(scale.kind)},
                      {"values", scale.values},
                      {"scores", scale.scores},
                      {"centre", scale.centre},
                      {"deviation", scale.deviation}});
  }
  return json{{"columns", columns_}, {"classes", classes_}, {"scales", scales}}.dump();
}

EnsembleMember EnsembleMember::from_json(std::string_view text) {
  try {
    const json all = json::parse(text);
    EnsembleMember member;
    member.columns_ = all.at("columns").get<std::vector<std::int64_t>>();
    member.classes_ = all.at("classes").get<std::vector<std::int64_t>>();
    const json& scales = all.at("scales");
    if (!is_permutation(member.columns_) || !is_permutation(member.classes_) ||
        scales.size() != member.columns_.size())
      throw ParseError(damaged);
    const auto of_table = std::make_shared<std::vector<FeatureScale>>(scales.size());
    for (std::size_t i = 0; i < scales.size(); ++i) {
      const json& entry = scales[i];
      FeatureScale& scale = (*of_table)[static_cast<std::size_t>(member.columns_[i])];
      const int kind = entry.at("kind").get<int>();
      if (kind < 0 || kind >= count_of(NumberScale{}))
        throw ParseError(fmt::format("[pfn.member] scale {}: there is none of this kind", kind));
      scale.kind = static_cast<NumberScale>(kind);
      scale.values = entry.at("values").get<std::vector<double>>();
      scale.scores = entry.at("scores").get<std::vector<double>>();
      scale.centre = entry.at("centre").get<double>();
      scale.deviation = entry.at("deviation").get<double>();
      if (!is_sound(scale)) throw ParseError(damaged);
    }
    member.scales_ = of_table;
    return member;
  } catch (const json::exception& e) {
    throw ParseError(
        fmt::format("[pfn.member] {}: this is not a member of an ensemble; fit again", e.what()));
  }
}

}  // namespace ferrite::pfn
