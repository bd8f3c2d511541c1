// A TableEncoder as JSON, and back.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "ferrite/core/error.hpp"
#include "models/pfn/encoder_state.hpp"

namespace ferrite::pfn {

namespace {

using nlohmann::json;

constexpr int encoder_version = 1;

json json_of(const detail::FeatureFit& fit) {
  return {{"column", fit.column},         {"kind", static_cast<int>(fit.kind)},
          {"offset", fit.offset},         {"scale", fit.scale},
          {"categories", fit.categories}, {"date_order", static_cast<int>(fit.date_order)},
          {"has_others", fit.has_others}};
}

int place_in(const json& value, int count) {
  const int place = value.get<int>();
  if (place < 0 || place >= count)
    throw ParseError(fmt::format("[pfn.encoder] value {}: must lie between 0 and {}", place, count - 1));
  return place;
}

detail::FeatureFit fit_of(const json& object) {
  detail::FeatureFit fit;
  fit.column = object.at("column").get<std::string>();
  fit.kind = static_cast<detail::FeatureKind>(place_in(object.at("kind"), detail::feature_kinds));
  fit.offset = object.at("offset").get<double>();
  fit.scale = object.at("scale").get<double>();
  fit.categories = object.at("categories").get<std::vector<std::string>>();
  fit.date_order = static_cast<detail::DateOrder>(place_in(object.at("date_order"), detail::date_orders));
  fit.has_others = object.at("has_others").get<bool>();
  if (!std::isfinite(fit.offset) || !std::isfinite(fit.scale) || fit.scale <= 0)
    throw ParseError(fmt::format("[pfn.encoder] offset {}, scale {}: must be finite, the scale positive",
                                 fit.offset, fit.scale));
  return fit;
}

}  // namespace

std::string TableEncoder::to_json() const {
  json fits = json::array();
  for (const detail::FeatureFit& fit : state_->fits) fits.push_back(json_of(fit));
  const json all = {{"version", encoder_version}, {"target", state_->target.name},
                    {"task", to_string(task())},  {"classes", class_names()},
                    {"features", fits},           {"unused", state_->unused},
                    {"notices", notices()},       {"missing", missing()}};
  return all.dump(-1, ' ', false, json::error_handler_t::replace);
}

TableEncoder TableEncoder::from_json(std::string_view text) {
  try {
    const json all = json::parse(text);
    if (all.at("version").get<int>() != encoder_version)
      throw ParseError(fmt::format("[pfn.encoder] version {}: this ferrite reads version {}; fit again",
                                   all.at("version").get<int>(), encoder_version));
    auto state = std::make_shared<detail::EncoderState>();
    state->target.name = all.at("target").get<std::string>();
    const auto task = all.at("task").get<std::string>();
    if (task != to_string(Task::classification) && task != to_string(Task::regression))
      throw ParseError(fmt::format("[pfn.encoder] task '{}': must be classification or regression", task));
    state->target.task = task == to_string(Task::regression) ? Task::regression : Task::classification;
    state->target.class_names = all.at("classes").get<std::vector<std::string>>();
    for (const json& fit : all.at("features")) state->fits.push_back(fit_of(fit));
    state->unused = all.at("unused").get<std::vector<std::string>>();
    state->notices = all.at("notices").get<std::vector<std::string>>();
    // Files of earlier versions do not have it.
    if (all.contains("missing")) state->missing = all["missing"].get<std::vector<std::string>>();
    for (const detail::FeatureFit& fit : state->fits) state->features.push_back(fit.feature());
    if (state->fits.empty()) throw ParseError("[pfn.encoder] no features: the file is not one of a fit");
    return TableEncoder(std::move(state));
  } catch (const json::exception& e) {
    throw ParseError(fmt::format("[pfn.encoder] {}: this is not a fit of a table; fit again", e.what()));
  }
}

}  // namespace ferrite::pfn
