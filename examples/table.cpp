// Predicts a quarter of a table's rows from the others, by a network that ferrite ships, and shows its score
// beside that of a linear model. The target may have classes or numbers:
//
//   table [FILE.csv TARGET]
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>

#include "common.hpp"
#include "ferrite/models/pfn/baselines.hpp"
#include "ferrite/models/pfn/classifier.hpp"
#include "ferrite/models/pfn/metrics.hpp"
#include "ferrite/models/pfn/regressor.hpp"
#include "ferrite/models/pfn/splits.hpp"

using namespace ferrite;

namespace {

using Clock = std::chrono::steady_clock;
using Notices = std::vector<std::string>;

/// Only rows whose target the encoder knows.
pfn::Table with_targets(const pfn::Table& table, const pfn::TableEncoder& encoder) {
  const pfn::EncodedTable encoded = encoder.transform(table);
  std::vector<std::int64_t> rows;
  for (std::int64_t i = 0; i < encoded.rows; ++i) {
    const auto row = static_cast<std::size_t>(i);
    if (encoded.classes.empty() ? !std::isnan(encoded.targets[row]) : encoded.classes[row] >= 0)
      rows.push_back(i);
  }
  return table.take(rows);
}

/// Probabilities of the classes, or a number for each row.
std::vector<double> by_network(const pfn::Table& known, const pfn::Table& asked,
                               const pfn::TableEncoder& encoder, Notices& notices) {
  if (encoder.task() == pfn::Task::classification) {
    pfn::Classifier model;
    const auto probabilities = model.fit(known, encoder).predict_proba(asked);
    notices = model.notices();
    return probabilities;
  }
  pfn::Regressor model;
  const auto means = model.fit(known, encoder).predict(asked).mean();
  notices = model.notices();
  return means;
}

void show(const char* model, std::span<const double> said, const pfn::EncodedTable& rows,
          Clock::time_point start) {
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  const std::int64_t classes = rows.class_count();
  if (classes > 0)
    std::printf("  %-22s %.4f   %.4f     %5.1f %%    %.2f s\n", model, pfn::auc(said, rows.classes, classes),
                pfn::log_loss(said, rows.classes, classes), 100 * pfn::accuracy(said, rows.classes, classes),
                seconds);
  else
    std::printf("  %-22s %7.4f  %-10.4g %.2f s\n", model, pfn::r2(said, rows.targets),
                pfn::rmse(said, rows.targets), seconds);
}

void predict(const std::string& path, const std::string& target) {
  const pfn::Table all = pfn::read_table(path);
  const auto guessed = pfn::TableEncoder::fit(all, target);  // classes or numbers
  const auto task = pfn::EncoderConfig{}.with_task(guessed.task());
  const pfn::Table table = with_targets(all, guessed);
  const auto fold = pfn::folds_of(guessed.transform(table), 4, 0)[0];
  const pfn::Table known = table.take(fold.train);
  const auto encoder = pfn::TableEncoder::fit(known, target, task);
  const pfn::Table asked = with_targets(table.take(fold.test), encoder);
  const pfn::EncodedTable train = encoder.transform(known), test = encoder.transform(asked);
  const bool has_classes = train.class_count() > 0;
  const std::string kind =
      has_classes ? std::to_string(train.class_count()) + " classes" : "a target of numbers";
  std::printf("%lld rows with a target, %lld to predict, %lld columns, %s\n\n",
              static_cast<long long>(train.rows), static_cast<long long>(test.rows),
              static_cast<long long>(train.columns()), kind.c_str());
  std::printf("  model                  %s   time\n",
              has_classes ? "AUC      log loss   accuracy" : "     R2  RMSE    ");

  auto start = Clock::now();
  const auto linear = pfn::linear_model();
  linear->fit(train);
  const auto simple = linear->predict(test);
  show(has_classes ? "logistic regression" : "ridge regression", simple, test, start);

  start = Clock::now();
  Notices notices;
  const auto said = by_network(known, asked, encoder, notices);
  show("prior-fitted network", said, test, start);
  std::printf(
      "\nThe network was trained on synthetic tables alone. Reading these rows was all it learned here.\n");

  notices.insert(notices.begin(), guessed.notices().begin(), guessed.notices().end());
  for (auto notice = notices.begin(); notice != notices.end(); ++notice)
    if (std::find(notices.begin(), notice, *notice) == notice) std::printf("notice: %s\n", notice->c_str());
  if (!notices.empty())
    std::printf("To decide otherwise: ./dev ferrite pfn eval FILE --target COLUMN (--help shows options)\n");
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc != 1 && argc != 3) throw ValueError("usage: table [FILE.csv TARGET]");
    predict(argc == 3 ? argv[1] : examples::data_file("breast_cancer.csv"), argc == 3 ? argv[2] : "target");
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
