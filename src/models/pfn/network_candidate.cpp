// The network as a model that can be evaluated: fitted once for a train part, asked as often as needed.
#include <map>

#include "ferrite/models/pfn/evaluation.hpp"
#include "models/pfn/fitted_ensemble.hpp"

namespace ferrite::pfn {

Candidate network_candidate(const PredictorConfig& config) {
  config.check();
  const auto networks = std::make_shared<std::map<Task, std::shared_ptr<detail::LoadedNetwork>>>();
  const auto fit_with = [networks](const PredictorConfig& asked) {
    return [asked, networks](const EncodedTable& train) {
      std::shared_ptr<detail::LoadedNetwork>& network = (*networks)[train.task];
      if (!network) network = detail::load_network(asked, train.task);
      const auto ensemble =
          std::make_shared<const detail::Ensemble>(detail::Ensemble::fit(network, train, asked));
      FittedModel model{{}, {}, ensemble->notices()};
      if (train.task == Task::classification) {
        model.predict = [=](const EncodedTable& rows) { return ensemble->probabilities(rows, asked); };
        return model;
      }
      model.predict = [=](const EncodedTable& rows) { return ensemble->distributions(rows, asked).mean(); };
      model.predict_intervals = [=](const EncodedTable& rows) {
        const LabelDistributions y = ensemble->distributions(rows, asked);
        return IntervalPrediction{y.mean(), {y.quantile(0.05), y.quantile(0.95)}};
      };
      return model;
    };
  };
  return {"network", fit_with(config), fit_with(config.with_members(1))};
}

FitPredict fit_predict(const PredictorConfig& config) {
  return [fit = network_candidate(config).fit](const EncodedTable& train, const EncodedTable& test) {
    return fit(train).predict(test);
  };
}

}  // namespace ferrite::pfn
