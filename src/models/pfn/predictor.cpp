#include "ferrite/models/pfn/predictor.hpp"

#include <fmt/format.h>

#include "ferrite/models/pfn/classifier.hpp"
#include "models/pfn/fitted_ensemble.hpp"
#include "models/quantile_tokenizer/table_text.hpp"

namespace ferrite::pfn {

Predictor::Predictor(PredictorConfig config, Task task) : config_(std::move(config)), task_(task) {
  config_.check();
}

const detail::FittedPredictor& Predictor::fitted() const {
  if (!fitted_) throw ValueError("[pfn.predict] nothing was fitted yet: call fit or load first");
  return *fitted_;
}

const TableEncoder& Predictor::encoder() const { return fitted().encoder; }
const detail::Ensemble& Predictor::ensemble() const { return fitted().ensemble; }

void Predictor::learn(const Table& train, const std::string& target) {
  learn(train, TableEncoder::fit(train, target, config_.encoder.with_task(task_)));
}

void Predictor::learn(const Table& train, const TableEncoder& encoder) {
  if (encoder.task() != task_)
    throw ValueError(fmt::format("[pfn.fit] target '{}': the encoder was fitted for {}; use a {}",
                                 quantile_tokenizer::printable(encoder.target()), to_string(encoder.task()),
                                 task_ == Task::classification ? "Regressor" : "Classifier"));
  const EncodedTable rows = encoder.transform_train(train);
  auto network = detail::load_network(config_, task_);
  fitted_ = std::make_shared<detail::FittedPredictor>(
      detail::FittedPredictor{encoder, detail::Ensemble::fit(std::move(network), rows, config_)});
  tell({});
}

void Predictor::tell(const std::vector<std::string>& of_rows) {
  notices_ = fitted().encoder.notices();
  for (const auto& more : {fitted().ensemble.notices(), of_rows})
    notices_.insert(notices_.end(), more.begin(), more.end());
}

EncodedTable Predictor::encoded(const Table& rows) {
  EncodedTable table = encoder().transform(rows);
  tell(table.notices);
  return table;
}

void Predictor::save(const std::filesystem::path& path) const { detail::save_fitted(path, fitted()); }

void Predictor::read(const std::filesystem::path& path) {
  fitted_ = std::make_shared<detail::FittedPredictor>(detail::load_fitted(path, config_, task_));
  tell({});
}

Classifier::Classifier(PredictorConfig config) : Predictor(std::move(config), Task::classification) {}

Classifier& Classifier::fit(const Table& train, const std::string& target) & {
  learn(train, target);
  return *this;
}
Classifier Classifier::fit(const Table& train, const std::string& target) && {
  learn(train, target);
  return std::move(*this);
}
Classifier& Classifier::fit(const Table& train, const TableEncoder& encoder) & {
  learn(train, encoder);
  return *this;
}

const std::vector<std::string>& Classifier::classes() const { return encoder().class_names(); }

std::vector<double> Classifier::predict_proba(const Table& rows) { return predict_proba(encoded(rows)); }
std::vector<double> Classifier::predict_proba(const EncodedTable& rows) {
  return ensemble().probabilities(rows, config());
}

std::vector<std::string> Classifier::predict(const Table& rows) {
  const std::vector<double> p = predict_proba(rows);
  std::vector<std::string> names;
  if (p.empty()) return names;
  for (const std::int32_t c : most_likely(p, static_cast<std::int64_t>(classes().size())))
    names.push_back(classes()[static_cast<std::size_t>(c)]);
  return names;
}

Classifier Classifier::load(const std::filesystem::path& path, const PredictorConfig& config) {
  Classifier model(config);
  model.read(path);
  return model;
}

Regressor::Regressor(PredictorConfig config) : Predictor(std::move(config), Task::regression) {}

Regressor& Regressor::fit(const Table& train, const std::string& target) & {
  learn(train, target);
  return *this;
}
Regressor Regressor::fit(const Table& train, const std::string& target) && {
  learn(train, target);
  return std::move(*this);
}
Regressor& Regressor::fit(const Table& train, const TableEncoder& encoder) & {
  learn(train, encoder);
  return *this;
}

LabelDistributions Regressor::predict(const Table& rows) { return predict(encoded(rows)); }
LabelDistributions Regressor::predict(const EncodedTable& rows) {
  return ensemble().distributions(rows, config());
}

Regressor Regressor::load(const std::filesystem::path& path, const PredictorConfig& config) {
  Regressor model(config);
  model.read(path);
  return model;
}

}  // namespace ferrite::pfn
