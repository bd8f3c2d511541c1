#include "ferrite/models/pfn/cross_validation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "ferrite/core/error.hpp"
#include "models/pfn/encoder_state.hpp"

namespace ferrite::pfn {

namespace {

/// Of each class of a train part, its place among all classes; for regression, the only column.
std::vector<std::size_t> places_of(const std::vector<std::string>& names,
                                   const std::vector<std::string>& all) {
  if (all.empty()) return {0};
  const detail::CategoryCodes codes(all);
  std::vector<std::size_t> places;
  for (const std::string& name : names) places.push_back(static_cast<std::size_t>(codes.of(name)));
  return places;
}

/// ValueError that says of which fold: what holds for its train part need not hold for the table.
TableEncoder fit_fold(const Table& train, const std::string& target, const EncoderConfig& config,
                      std::int64_t fold, std::int64_t folds) {
  try {
    return TableEncoder::fit(train, target, config);
  } catch (const ValueError& error) {
    throw ValueError(
        fmt::format("[cross_validate] fold {} of {}, the rows of all others: {}", fold, folds, error.what()));
  }
}

/// A notice without what differs from fold to fold: the digits after the name of its column.
std::string subject_of(const std::string& notice) {
  const std::size_t name_end = std::min(notice.find("': "), notice.size());
  std::string subject = notice;
  subject.erase(std::remove_if(subject.begin() + static_cast<std::ptrdiff_t>(name_end), subject.end(),
                               [](char c) { return c >= '0' && c <= '9'; }),
                subject.end());
  return subject;
}

Table with_targets(const Table& table, const std::string& target, const TableEncoder& encoder) {
  EncodedTable targets;
  targets.task = encoder.task();
  targets.rows = table.rows();
  detail::set_targets(targets, *table.find(target), {target, encoder.task(), encoder.class_names()});
  return table.take(targets.labelled_rows());
}

}  // namespace

CrossValidation cross_validate(const Table& table, const std::string& target,
                               std::span<const FitPredict> models, std::int64_t folds, std::uint64_t seed,
                               const EncoderConfig& config) {
  const TableEncoder whole = TableEncoder::fit(table, target, config);
  const Table labelled = with_targets(table, target, whole);
  CrossValidation out;
  out.rows = whole.transform(labelled);
  out.notices = whole.notices();
  out.folds = folds_of(out.rows, folds, seed);
  const std::size_t width = std::max<std::size_t>(whole.class_names().size(), 1);
  out.predictions.assign(models.size(), std::vector<double>(static_cast<std::size_t>(out.rows.rows) * width));
  std::set<std::string> told;
  for (const Fold& fold : out.folds) {
    const Table train = labelled.take(fold.train);
    const std::int64_t number = &fold - out.folds.data() + 1;
    const TableEncoder encoder = fit_fold(train, target, config.with_task(whole.task()), number, folds);
    const EncodedTable learned = encoder.transform(train),
                       asked = encoder.transform(labelled.take(fold.test));
    for (const std::string& notice : asked.notices)
      if (told.insert(subject_of(notice)).second)
        out.notices.push_back(
            fmt::format("in fold {} of {}, and perhaps in later ones: {}", number, folds, notice));
    const std::vector<std::size_t> places = places_of(encoder.class_names(), whole.class_names());
    for (std::size_t m = 0; m < models.size(); ++m) {
      const std::vector<double> predicted = models[m](learned, asked);
      if (predicted.size() != fold.test.size() * places.size())
        throw ValueError(fmt::format("[cross_validate] {} predictions of model {}: {} rows need {} for each",
                                     predicted.size(), m, fold.test.size(), places.size()));
      for (std::size_t i = 0; i < predicted.size(); ++i)
        out.predictions[m][static_cast<std::size_t>(fold.test[i / places.size()]) * width +
                           places[i % places.size()]] = predicted[i];
    }
  }
  return out;
}

double mean_score(const CrossValidation& validation, std::size_t model, const Score& score) {
  const std::vector<double>& all = validation.predictions.at(model);
  const std::size_t width = all.size() / static_cast<std::size_t>(validation.rows.rows);
  double sum = 0;
  for (const Fold& fold : validation.folds) {
    std::vector<double> predictions;
    for (const std::int64_t row : fold.test)
      predictions.insert(predictions.end(), all.begin() + row * static_cast<std::ptrdiff_t>(width),
                         all.begin() + (row + 1) * static_cast<std::ptrdiff_t>(width));
    sum += score(validation.rows.take(fold.test), predictions);
  }
  return sum / static_cast<double>(validation.folds.size());
}

}  // namespace ferrite::pfn
