// Predicts a quarter of a table's rows from the others, by the network that ferrite ships, and shows its
// score beside logistic regression:
//
//   table [FILE.csv TARGET]
#include <chrono>
#include <cstdio>

#include "common.hpp"
#include "ferrite/models/pfn/baselines.hpp"
#include "ferrite/models/pfn/classifier.hpp"
#include "ferrite/models/pfn/metrics.hpp"
#include "ferrite/models/pfn/splits.hpp"

using namespace ferrite;

namespace {

void show(const char* model, std::span<const double> p, const pfn::EncodedTable& rows, double seconds) {
  std::printf("  %-22s %.4f   %.4f     %5.1f %%    %.2f s\n", model,
              pfn::auc(p, rows.classes, rows.class_count()),
              pfn::log_loss(p, rows.classes, rows.class_count()),
              100 * pfn::accuracy(p, rows.classes, rows.class_count()), seconds);
}

/// Only rows whose class the encoder knows.
pfn::Table with_labels(const pfn::Table& table, const pfn::TableEncoder& encoder) {
  const std::vector<std::int32_t> classes = encoder.transform(table).classes;
  std::vector<std::int64_t> rows;
  for (std::size_t i = 0; i < classes.size(); ++i)
    if (classes[i] >= 0) rows.push_back(static_cast<std::int64_t>(i));
  return table.take(rows);
}

void predict(const std::string& path, const std::string& target) {
  const auto task = pfn::EncoderConfig{}.with_task(pfn::Task::classification);
  const pfn::Table all = pfn::read_table(path);
  const pfn::Table table = with_labels(all, pfn::TableEncoder::fit(all, target, task));
  const auto fold = pfn::folds_of(pfn::TableEncoder::fit(table, target, task).transform(table), 4, 0)[0];
  const pfn::Table known = table.take(fold.train);
  const auto encoder = pfn::TableEncoder::fit(known, target, task);
  const pfn::Table asked = with_labels(table.take(fold.test), encoder);
  const pfn::EncodedTable train = encoder.transform(known), test = encoder.transform(asked);
  std::printf("%lld rows with a label, %lld to predict, %lld columns, %lld classes\n\n",
              static_cast<long long>(train.rows), static_cast<long long>(test.rows),
              static_cast<long long>(train.columns()), static_cast<long long>(train.class_count()));
  std::printf("  model                  AUC      log loss   accuracy   time\n");

  using Clock = std::chrono::steady_clock;
  const auto since = [](Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  auto start = Clock::now();
  const auto logistic = pfn::linear_model();
  logistic->fit(train);
  const auto simple = logistic->predict(test);
  show("logistic regression", simple, test, since(start));

  start = Clock::now();
  pfn::Classifier network;
  const auto p = network.fit(known, encoder).predict_proba(asked);
  show("prior-fitted network", p, test, since(start));
  std::printf(
      "\nThe network was trained on synthetic tables alone. Reading these rows was all it learned here.\n");
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
