// Prior-fitted networks: what rows may know of each other, contexts, gradients, training.
#include "ferrite/models/pfn/network.hpp"

#include "ferrite/decorators/autocast.hpp"
#include "ferrite/models/priors/priors.hpp"
#include "ferrite/optim/adam.hpp"
#include "models/pfn/pfn_test.hpp"

namespace ferrite::pfn {
namespace {

using testing::both_tasks;
using testing::expect_gradients;
using testing::expect_values;
using testing::lively_pfn;
using testing::nan;
using testing::reordered;
using testing::small_pfn;
using testing::Tables;

class PfnOn : public testing::OnBackends {};
INSTANTIATE_TEST_SUITE_P(Names, PfnOn,
                         ::testing::Values("reference", "cpu", "parity", "lazy-cpu", "lazy-parity"),
                         testing::name_of);

template <class B>
double difference(const Tensor<B>& a, const Tensor<B>& b) {
  return max(abs(a - b)).item();
}

TEST_P(PfnOn, ScoresDependOnEverythingThatTheyShould) {
  for (const Task task : both_tasks) {
    Network<B> model = lively_pfn(backend, small_pfn(task));
    const Tables<B> tables(backend, task);
    const auto scores = [&](const Tensor<B>& x, const Tensor<B>& flags, const Tensor<B>& labels) {
      return model.forward(x, flags, labels);
    };
    const auto whole = scores(tables.x, tables.is_category, tables.labels);
    EXPECT_EQ(whole.shape(), (Shape{2, 4, model.config().outputs()}));
    EXPECT_TRUE(all(isfinite(whole)).item() != 0);
    // A cell of a train row, a label, a category flag.
    const auto moved = cat(
        std::vector{slice(tables.x, 1, 0, 6), slice(tables.x, 1, 6, 7) * -1, slice(tables.x, 1, 7, 11)}, 1);
    EXPECT_GT(difference(scores(moved, tables.is_category, tables.labels), whole), 1e-3);
    EXPECT_GT(difference(scores(tables.x, 1 - tables.is_category, tables.labels), whole), 1e-3);
    EXPECT_GT(difference(scores(tables.x, tables.is_category, flip(tables.labels, {1})), whole), 1e-3);
  }
}

TEST_P(PfnOn, TheOrderOfTrainRowsDoesNotMatter) {
  for (const Task task : both_tasks) {
    Network<B> model = lively_pfn(backend, small_pfn(task));
    const Tables<B> tables(backend, task);
    const auto whole = model.forward(tables.x, tables.is_category, tables.labels);
    const auto x = reordered(tables.x, 1, {4, 0, 6, 2, 1, 5, 3, 7, 8, 9, 10});
    const auto labels = reordered(tables.labels, 1, {4, 0, 6, 2, 1, 5, 3});
    EXPECT_LT(difference(model.forward(x, tables.is_category, labels), whole), 2e-5);
  }
}

TEST_P(PfnOn, AQueryRowIsPredictedTheSameInAnyCompany) {
  Network<B> model = lively_pfn(backend, small_pfn());
  const Tables<B> tables(backend, Task::classification);
  const auto whole = model.forward(tables.x, tables.is_category, tables.labels);
  for (std::int64_t row = 7; row < 11; ++row) {
    const auto x = cat(std::vector{tables.x_train(), slice(tables.x, 1, row, row + 1)}, 1);
    const auto alone = model.forward(x, tables.is_category, tables.labels);
    EXPECT_LT(difference(alone, slice(whole, 1, row - 7, row - 6)), 1e-5);
  }
  // Datasets do not see each other either.
  const auto second = model.forward(slice(tables.x, 0, 1, 2), slice(tables.is_category, 0, 1, 2),
                                    slice(tables.labels, 0, 1, 2));
  EXPECT_LT(difference(second, slice(whole, 0, 1, 2)), 1e-5);
}

TEST_P(PfnOn, ColumnsHaveNoOrderWithoutOffsets) {
  Network<B> model = lively_pfn(backend, small_pfn().with_offsets({0}));
  const Tables<B> tables(backend, Task::classification);
  const auto whole = model.forward(tables.x, tables.is_category, tables.labels);
  const std::vector<std::int64_t> order{3, 1, 4, 0, 2};
  const auto turned =
      model.forward(reordered(tables.x, 2, order), reordered(tables.is_category, 1, order), tables.labels);
  EXPECT_LT(difference(turned, whole), 2e-5);
}

TEST_P(PfnOn, AContextPredictsAsTheWholePass) {
  for (const Task task : both_tasks) {
    Network<B> model = lively_pfn(backend, small_pfn(task));
    const Tables<B> tables(backend, task);
    const auto whole = model.forward(tables.x, tables.is_category, tables.labels);
    const NoGrad no_grad;
    const auto context = model.forward_context(tables.x_train(), tables.is_category, tables.labels);
    EXPECT_EQ(model.predict(context, tables.x_query()).to_vector(), whole.to_vector());
    const auto loaded = Context<B>::from_state(backend, context.state());
    EXPECT_EQ(model.predict(loaded, tables.x_query()).to_vector(), whole.to_vector());
  }
}

TEST_P(PfnOn, MissingAndConstantColumnsGiveFiniteScoresAndGradients) {
  const double huge = 3e38, tiny = 1e-38, inf = std::numeric_limits<double>::infinity();
  // Columns: constant with other values in the queries, all missing, missing in the train rows, extreme.
  const std::vector<double> cells = {1e-20, nan, nan, huge,  0,     //
                                     1e-20, nan, nan, -huge, tiny,  //
                                     1e-20, nan, nan, inf,   0,     //
                                     1e30,  nan, 5,   huge,  huge,  //
                                     nan,   nan, nan, -inf,  -huge};
  for (const Task task : both_tasks) {
    Network<B> model = lively_pfn(backend, small_pfn(task));
    const auto x = testing::tensor_of(backend, cells, {1, 5, 5}, DType::f32);
    const DType dtype = task == Task::classification ? DType::i32 : DType::f32;
    const auto labels = testing::tensor_of(backend, {1, 1, 1}, {1, 3}, dtype);
    const auto targets = testing::tensor_of(backend, {1, 1}, {1, 2}, dtype);
    const auto loss = model.loss(x, zeros(backend, {1, 5}), labels, targets);
    EXPECT_TRUE(std::isfinite(loss.item()));
    const auto gradients = loss.backward();
    for (const auto& p : model.parameters())
      EXPECT_TRUE(std::isfinite(max(abs(gradients.of(p.tensor))).item())) << p.name;
    const auto scale = ColumnScale<B>::of(slice(x, 1, 0, 3));
    const auto z = scale.standardise(x);
    expect_values(select(z, 2, 0), {0, 0, 0, 0, 0});
    expect_values(select(z, 2, 1), {0, 0, 0, 0, 0});
    expect_values(select(z, 2, 3), {1, -1, 0, 1, 0});
  }
}

TEST_P(PfnOn, OneColumnAndOneTrainRowAreEnough) {
  Network<B> model = lively_pfn(backend, small_pfn());
  const Tables<B> tables(backend, Task::classification);
  const auto scores = model.forward(slice(slice(tables.x, 2, 0, 1), 1, 0, 2),
                                    slice(tables.is_category, 1, 0, 1), slice(tables.labels, 1, 0, 1));
  EXPECT_EQ(scores.shape(), (Shape{2, 1, 4}));
  EXPECT_TRUE(all(isfinite(scores)).item() != 0);
}

TEST_P(PfnOn, AbsentClassesHaveNoProbability) {
  Network<B> model = lively_pfn(backend, small_pfn());
  const Tables<B> tables(backend, Task::classification);
  const auto scores = model.forward(tables.x, tables.is_category, tables.labels);
  const auto p = softmax(without_absent_classes(scores, tables.classes));
  EXPECT_EQ(max(slice(p, 2, 3, 4)).item(), 0);
  EXPECT_GT(min(slice(p, 2, 0, 3)).item(), 0);
  EXPECT_LT(tables.loss(model).item(),
            model.loss(tables.x, tables.is_category, tables.labels, tables.targets).item());
}

TEST_P(PfnOn, LabelsOfRegressionHaveAnyScale) {
  Network<B> model = lively_pfn(backend, small_pfn(Task::regression));
  const Tables<B> tables(backend, Task::regression);
  const NoGrad no_grad;
  const auto context = model.forward_context(tables.x_train(), tables.is_category, tables.labels);
  const auto scores = model.predict(context, tables.x_query());
  const auto shifted = model.forward_context(tables.x_train(), tables.is_category, tables.labels * 8 - 64);
  EXPECT_LT(difference(model.predict(shifted, tables.x_query()), scores), 1e-3);
  const auto mean = context.in_units(model.bins().mean(scores));
  EXPECT_EQ(mean.shape(), tables.targets.shape());
  EXPECT_LT(difference(shifted.in_units(model.bins().mean(scores)), mean * 8 - 64), 0.1);
  EXPECT_LT(
      difference(model.loss(tables.x, tables.is_category, tables.labels * 8 - 64, tables.targets * 8 - 64),
                 tables.loss(model)),
      1e-3);
  // Targets that are not known do not count.
  const auto some = cat(std::vector{slice(tables.targets, 1, 0, 1), full(backend, {2, 3}, nan)}, 1);
  const auto first =
      model.loss(slice(tables.x, 1, 0, 8), tables.is_category, tables.labels, slice(tables.targets, 1, 0, 1));
  EXPECT_NEAR(model.loss(tables.x, tables.is_category, tables.labels, some).item(), first.item(), 1e-5);
}

TEST(Pfn, WithoutATargetThatCountsTheLossIsZero) {
  using B = Autodiff<Cpu>;
  B backend;
  for (const pfn::Task task : {pfn::Task::classification, pfn::Task::regression}) {
    auto model = lively_pfn(backend, small_pfn(task));
    const Tables<B> tables(backend, task);
    const auto none = task == pfn::Task::classification
                          ? full(backend, tables.targets.shape(), -100, DType::i32)
                          : full(backend, tables.targets.shape(), nan);
    const auto loss = model.loss(tables.x, tables.is_category, tables.labels, none, tables.classes);
    EXPECT_EQ(loss.item(), 0);
    const auto gradients = loss.backward();
    for (const auto& p : model.parameters()) {
      const auto gradient = gradients.find(p.tensor);
      if (!gradient.defined()) continue;
      EXPECT_EQ(max(abs(gradient)).item<double>(), 0) << p.name;
    }
  }
}

/// Without gradients the last block is computed for the labels alone.
TEST(Pfn, ScoresWithoutGradientsAreThoseOfTraining) {
  for (const Task task : both_tasks) {
    Autodiff<Cpu> trains;
    Cpu cpu;
    Rng rng(1);
    Network<Autodiff<Cpu>> trained = lively_pfn(trains, small_pfn(task));
    Network<Cpu> plain(cpu, small_pfn(task), rng);
    plain.load_state(trained.state());
    const Tables<Autodiff<Cpu>> a(trains, task);
    const Tables<Cpu> b(cpu, task);
    const auto expected = trained.forward(a.x, a.is_category, a.labels).to_vector(),
               got = plain.forward(b.x, b.is_category, b.labels).to_vector();
    ASSERT_EQ(got.size(), expected.size());
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 2e-5);
  }
}

TEST(Pfn, GradientsAreThoseOfDifferences) {
  using B = testing::Exact;
  B backend;
  for (const Task task : both_tasks) {
    const Config config = small_pfn(task).with_dim(4).with_head_width(2).with_layers(2).with_hidden(5);
    Network<B> model = lively_pfn(backend, config.with_dtype(DType::f64));
    const Tables<B> tables(backend, task, DType::f64);
    expect_gradients<B>(model, [&] { return tables.loss(model); });
  }
}

TEST(Pfn, LossesAndGradientsOfTheCpuAreThoseOfTheReference) {
  for (const Task task : both_tasks) {
    std::vector<std::vector<double>> results;
    for (const char* name : {"cpu", "reference"}) {
      using B = Autodiff<AnyBackend>;
      B backend(name);
      Network<B> model = lively_pfn(backend, small_pfn(task));
      const auto loss = Tables<B>(backend, task).loss(model);
      const auto gradients = loss.backward();
      std::vector<double> all{loss.item<double>()};
      for (const auto& p : model.parameters())
        for (const double g : gradients.of(p.tensor).to_vector<double>()) all.push_back(g);
      results.push_back(all);
    }
    for (std::size_t i = 0; i < results[0].size(); ++i)
      ASSERT_NEAR(results[0][i], results[1][i], 1e-5 + 1e-4 * std::abs(results[1][i])) << i;
  }
}

TEST(Pfn, MixedPrecisionIsCloseToSingle) {
  Autodiff<Cpu> single;
  Autodiff<Autocast<Cpu>> mixed;
  for (const Task task : both_tasks) {
    auto a = lively_pfn(single, small_pfn(task));
    auto b = lively_pfn(mixed, small_pfn(task));
    const Tables<Autodiff<Cpu>> tables(single, task);
    const Tables<Autodiff<Autocast<Cpu>>> same(mixed, task);
    const auto x = a.forward(tables.x, tables.is_category, tables.labels);
    const auto y = b.forward(same.x, same.is_category, same.labels);
    EXPECT_EQ(y.dtype(), DType::f32);
    const auto p = x.to_vector<double>(), q = y.to_vector<double>();
    double error = 0, size = 0;
    for (std::size_t i = 0; i < p.size(); ++i) error += std::pow(p[i] - q[i], 2), size += p[i] * p[i];
    EXPECT_LT(std::sqrt(error / size), 0.03);
    EXPECT_GT(error, 0);
    EXPECT_EQ(b.forward_context(same.x_train(), same.is_category, same.labels).layers[0].key.dtype(),
              DType::bf16);
    EXPECT_NEAR(same.loss(b).item(), tables.loss(a).item(), 0.05 * tables.loss(a).item());
  }
}

/// Datasets of one shape from the priors: x, is_category, labels, targets, classes.
template <class B>
struct Drawn {
  Tensor<B> x, is_category, labels, targets, classes;
  Drawn(B& backend, Task task, std::int64_t count) {
    Cpu cpu;
    priors::Config config;
    config.task = task;
    config.family = priors::Family::mlp_scm;
    config.rows = {48, 48};
    config.features = {4, 4};
    config.post.classes = {2, 4};
    const auto batch = priors::generate(cpu, config, 1, 0, count);
    x = from_host(backend, to_host(batch.x));
    is_category = cast(from_host(backend, to_host(batch.levels)) > 0, DType::f32);
    const auto y = from_host(backend, to_host(batch.y));
    labels = slice(y, 1, 0, 32);
    targets = slice(y, 1, 32, 48);
    if (task == Task::classification)
      classes = select(from_host(backend, to_host(batch.info)), 1, priors::info_classes);
  }
};

TEST(Pfn, LearnsAFewDatasetsOfThePriors) {
  using B = Autodiff<Cpu>;
  B backend;
  for (const Task task : both_tasks) {
    const Drawn<B> drawn(backend, task, 4);
    Rng rng(1);
    Network<B> model(backend, small_pfn(task).with_dim(32).with_head_width(16).with_layers(2), rng);
    optim::AdamW<B> optimizer(model.parameters(), optim::AdamWConfig{}.with_lr(5e-3).with_clip_norm(1));
    double first = 0, last = 0;
    for (int step = 0; step < 60; ++step) {
      const auto loss = model.loss(drawn.x, drawn.is_category, drawn.labels, drawn.targets, drawn.classes);
      optimizer.step(loss.backward());
      (step == 0 ? first : last) = loss.item();
    }
    EXPECT_LT(last, 0.5 * first) << to_string(task) << ' ' << first << " -> " << last;
  }
}

}  // namespace
}  // namespace ferrite::pfn
