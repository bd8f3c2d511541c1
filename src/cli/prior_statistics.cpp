// The statistics of generated datasets.
#include "cli/prior_statistics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace ferrite::cli {

using namespace priors;

namespace {
double share(std::int64_t part, std::int64_t whole) {
  return static_cast<double>(part) / static_cast<double>(whole);
}
}  // namespace

void PriorStatistics::Spread::add(std::int64_t value) {
  least = count == 0 ? value : std::min(least, value);
  most = count == 0 ? value : std::max(most, value);
  sum += static_cast<double>(value);
  ++count;
}

void PriorStatistics::add(const NamedTensors& batch) {
  const auto info = batch.find("info")->second.as<std::int32_t>(),
             levels = batch.find("levels")->second.as<std::int32_t>();
  const HostTensor &x = batch.find("x")->second, &y = batch.find("y")->second;
  const auto values = x.as<float>();
  const auto all_rows = static_cast<std::size_t>(x.shape()[1]),
             all_features = static_cast<std::size_t>(x.shape()[2]);
  for (std::size_t i = 0; i < static_cast<std::size_t>(x.shape()[0]); ++i) {
    const std::int32_t* facts = info.data() + i * info_fields;
    ++datasets_;
    attempts_ += facts[info_attempts];
    for (std::size_t f = 0; f < rejected_.size(); ++f)
      rejected_[f] += facts[static_cast<std::size_t>(info_rejected) + f];
    const auto rows = static_cast<std::size_t>(facts[info_rows]),
               features = static_cast<std::size_t>(facts[info_features]);
    if (rows == 0) {
      ++exhausted_;
      continue;
    }
    ++families_[static_cast<std::size_t>(facts[info_family])];
    rows_.add(facts[info_rows]);
    train_rows_.add(facts[info_train_rows]);
    features_.add(facts[info_features]);
    for (std::size_t j = 0; j < features; ++j) categorical_ += levels[i * all_features + j] > 0;
    columns_ += static_cast<std::int64_t>(features);
    cells_ += static_cast<std::int64_t>(rows * features);
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t j = 0; j < features; ++j)
        missing_ += std::isnan(values[(i * all_rows + r) * all_features + j]);
    if (facts[info_classes] == 0) continue;
    classes_.add(facts[info_classes]);
    std::array<std::int64_t, max_classes> sizes{};
    for (std::size_t r = 0; r < rows; ++r)
      ++sizes[static_cast<std::size_t>(y.as<std::int64_t>()[i * all_rows + r])];
    largest_class_ += share(*std::max_element(sizes.begin(), sizes.end()), facts[info_rows]);
  }
}

std::string PriorStatistics::table() const {
  std::string text = fmt::format("{:<24}{}", "datasets", datasets_ + earlier_);
  text += earlier_ > 0 ? fmt::format(" ({} of an earlier run)\n", earlier_) : "\n";
  const auto spread = [&](const char* name, const Spread& s) {
    if (s.count > 0) text += fmt::format("{:<24}{:.1f}  ({} to {})\n", name, s.mean(), s.least, s.most);
  };
  spread("rows", rows_);
  spread("training rows", train_rows_);
  spread("features", features_);
  spread("classes", classes_);
  if (classes_.count > 0)
    text += fmt::format("{:<24}{:.3f} of the rows\n", "largest class",
                        largest_class_ / static_cast<double>(classes_.count));
  if (cells_ > 0) {
    text += fmt::format("{:<24}{:.3f} of the features\n", "categorical", share(categorical_, columns_));
    text += fmt::format("{:<24}{:.3f} of the cells\n", "missing", share(missing_, cells_));
  }
  for (std::size_t f = 0; f < families_.size(); ++f)
    if (families_[f] > 0)
      text += fmt::format("{:<24}{} ({:.3f})\n", fmt::format("family {}", to_string(static_cast<Family>(f))),
                          families_[f], share(families_[f], datasets_));
  if (datasets_ > 0) {
    text += fmt::format("{:<24}{:.2f} per dataset\n", "attempts", share(attempts_, datasets_));
    for (std::size_t f = 0; f < rejected_.size(); ++f)
      text += fmt::format("  {:<22}{} ({:.3f} of the attempts)\n", to_string(static_cast<Filter>(f)),
                          rejected_[f], share(rejected_[f], attempts_));
  }
  if (exhausted_ > 0)
    text += fmt::format("{:<24}{} datasets: no attempt passed the filters\n", "empty", exhausted_);
  return text;
}

nlohmann::ordered_json PriorStatistics::json() const {
  nlohmann::ordered_json json{{"datasets", datasets_ + earlier_},
                              {"of_an_earlier_run", earlier_},
                              {"empty", exhausted_},
                              {"attempts", attempts_}};
  const auto spread = [&](const char* name, const Spread& s) {
    json[name] = nullptr;
    if (s.count > 0) json[name] = {{"mean", s.mean()}, {"min", s.least}, {"max", s.most}};
  };
  spread("rows", rows_);
  spread("train_rows", train_rows_);
  spread("features", features_);
  spread("classes", classes_);
  const auto set_share = [&](const char* name, std::int64_t part, std::int64_t whole) {
    json[name] = nullptr;
    if (whole > 0) json[name] = share(part, whole);
  };
  set_share("categorical_share", categorical_, columns_);
  set_share("missing_share", missing_, cells_);
  for (std::size_t f = 0; f < families_.size(); ++f)
    if (families_[f] > 0) json["families"][std::string(to_string(static_cast<Family>(f)))] = families_[f];
  for (std::size_t f = 0; f < rejected_.size(); ++f)
    json["rejected"][std::string(to_string(static_cast<Filter>(f)))] = rejected_[f];
  return json;
}

}  // namespace ferrite::cli
