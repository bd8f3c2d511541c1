// Fitted predictors as files: contexts are tensors, all else is JSON in the metadata.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "ferrite/io/safetensors.hpp"
#include "models/pfn/fitted_ensemble.hpp"

namespace ferrite::pfn {

namespace {

using nlohmann::json;

constexpr int fitted_version = 1;
constexpr const char *key = "pfn_fitted", *encoder_key = "pfn_encoder";

const std::string& entry(const SafeTensors& file, const char* name, const std::filesystem::path& path) {
  const auto found = file.metadata.find(name);
  if (found == file.metadata.end())
    throw ParseError(fmt::format(
        "[pfn.load] {}: is not a fitted predictor: its metadata have no '{}'; write one with save",
        path.string(), name));
  return found->second;
}

}  // namespace

namespace detail {

NamedTensors Ensemble::tensors() const {
  const std::scoped_lock lock(network_->one_pass);
  NamedTensors all;
  for (std::size_t i = 0; i < contexts_.size(); ++i)
    for (const auto& [name, tensor] : contexts_[i]->context().state())
      all.emplace(fmt::format("{}.{}", i, name), tensor);
  return all;
}

std::string Ensemble::to_json() const {
  json members = json::array();
  for (const EnsembleMember& member : members_) members.push_back(member.to_json());
  const json all = {
      {"version", fitted_version},    {"weights", network_->fingerprint},
      {"members", members},           {"seed", seed_},
      {"columns", columns_},          {"classes", classes_},
      {"temperature", temperature_},  {"labels", {labels_.magnitude, labels_.mean, labels_.deviation}},
      {"contexts", contexts_.size()}, {"notices", notices_}};
  return all.dump(-1, ' ', false, json::error_handler_t::replace);
}

Ensemble Ensemble::from(std::shared_ptr<LoadedNetwork> network, std::string_view text,
                        const NamedTensors& tensors, const TableEncoder& encoder) {
  try {
    const json all = json::parse(text);
    if (all.at("version").get<int>() != fitted_version)
      throw ParseError(fmt::format("[pfn.load] version {}: this ferrite reads version {}; fit again",
                                   all.at("version").get<int>(), fitted_version));
    if (const auto made = all.at("weights").get<std::string>(); made != network->fingerprint)
      throw ValueError(
          fmt::format("[pfn.load] {}: these weights ({}) are not those that the predictor was fitted with "
                      "({}); give those, or fit again",
                      network->path, network->fingerprint, made));
    Ensemble ensemble;
    ensemble.network_ = std::move(network);
    for (const json& member : all.at("members"))
      ensemble.members_.push_back(EnsembleMember::from_json(member.get<std::string>()));
    if (ensemble.members_.empty()) throw ParseError("[pfn.load] no members; fit again");
    ensemble.seed_ = all.at("seed").get<std::uint64_t>();
    ensemble.temperature_ = all.at("temperature").get<double>();
    if (!(ensemble.temperature_ > 0 && std::isfinite(ensemble.temperature_)))
      throw ParseError(
          fmt::format("[pfn.load] temperature {}: must be above 0 and finite; the file is damaged; fit again",
                      ensemble.temperature_));
    const auto labels = all.at("labels").get<std::array<double, 3>>();
    ensemble.labels_ = {labels[0], labels[1], labels[2]};
    ensemble.notices_ = all.at("notices").get<std::vector<std::string>>();
    const auto check_count = [&](const char* name, std::int64_t least, std::int64_t most) {
      const auto count = all.at(name).get<std::int64_t>();
      if (count < least || count > most)
        throw ParseError(
            fmt::format("[pfn.load] {} {}: there must be {}; the file is damaged; fit again", name, count,
                        least == most ? std::to_string(most) : fmt::format("{} to {}", least, most)));
      return count;
    };
    const auto classes = static_cast<std::int64_t>(encoder.class_names().size());
    const auto columns = static_cast<std::int64_t>(encoder.features().size());
    ensemble.columns_ = check_count("columns", columns, columns);
    ensemble.set_codes(static_cast<std::int64_t>(ensemble.members_.size()),
                       check_count("classes", classes, classes));
    const auto sets = static_cast<std::int64_t>(ensemble.datasets_.size());
    std::vector<NamedTensors> states(static_cast<std::size_t>(check_count("contexts", 1, sets)));
    for (const auto& [name, tensor] : tensors)
      for (std::size_t i = 0; i < states.size(); ++i)
        if (const std::string prefix = fmt::format("{}.", i); name.starts_with(prefix))
          states[i].emplace(name.substr(prefix.size()), tensor);
    // They may have been made with another precision than that of this machine.
    const DType dtype = ensemble.network_->network.config().dtype;
    for (const NamedTensors& state : states) {
      auto context = Context<AnyBackend>::from_state(ensemble.network_->backend, state);
      for (auto& [keys, values] : context.layers) {
        keys = cast(keys, dtype);
        values = cast(values, dtype);
      }
      ensemble.contexts_.push_back(std::make_shared<RecordedContext<AnyBackend>>(
          ensemble.network_->network, std::move(context),
          ensemble.contexts_.size() < most_recorded ? ensemble.network_->recording : Recording::no));
    }
    ensemble.check();
    return ensemble;
  } catch (const json::exception& e) {
    throw ParseError(fmt::format("[pfn.load] {}: this is not a fitted predictor; fit again", e.what()));
  }
}

/// Network::predict checks the rest.
void Ensemble::check() const {
  std::int64_t sets = 0;
  bool fits = true;
  for (const EnsembleMember& member : members_)
    fits = fits && member.columns().size() == static_cast<std::size_t>(columns_) &&
           member.class_places().size() == (codes_ ? width() : 0);
  for (const SharedContext& shared : contexts_) {
    const Context<AnyBackend>& context = shared->context();
    const Shape& shape = context.is_category.shape();
    fits = fits && shape.rank() == 2 && shape[0] > 0 && shape[1] == columns_;
    sets += shape.rank() > 0 ? shape[0] : 0;
    if (task() == Task::classification) continue;
    for (const auto* scale : {&context.labels.magnitude, &context.labels.mean, &context.labels.deviation})
      fits = fits && scale->defined() && scale->numel() == shape[0];
  }
  if (!fits || sets != static_cast<std::int64_t>(datasets_.size()))
    throw ParseError("[pfn.load] members and contexts do not fit each other: the file is damaged; fit again");
}

void save_fitted(const std::filesystem::path& path, const FittedPredictor& fitted) {
  write_safetensors(path, {{{key, fitted.ensemble.to_json()}, {encoder_key, fitted.encoder.to_json()}},
                           fitted.ensemble.tensors()});
}

FittedPredictor load_fitted(const std::filesystem::path& path, const PredictorConfig& config, Task task) {
  const SafeTensors file = read_safetensors(path);
  TableEncoder encoder = TableEncoder::from_json(entry(file, encoder_key, path));
  if (encoder.task() != task)
    throw ValueError(fmt::format("[pfn.load] {}: was fitted for {}; load it as a {}", path.string(),
                                 to_string(encoder.task()),
                                 task == Task::classification ? "Regressor" : "Classifier"));
  Ensemble ensemble =
      Ensemble::from(load_network(config, task), entry(file, key, path), file.tensors, encoder);
  return {std::move(encoder), std::move(ensemble)};
}

}  // namespace detail

Task fitted_task(const std::filesystem::path& path) {
  LazySafeTensors file = open_safetensors(path);
  return TableEncoder::from_json(entry({std::move(file.metadata), {}}, encoder_key, path)).task();
}

}  // namespace ferrite::pfn
