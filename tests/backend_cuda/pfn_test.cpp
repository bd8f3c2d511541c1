// Prior-fitted networks on the GPU: scores and every op as on the CPU, and steps in mixed precision with
// Muon, which give the same bits captured as eager.
#include "ferrite/models/pfn/network.hpp"

#include "ferrite/backend/cuda_device.hpp"
#include "ferrite/backend/cuda_graph.hpp"
#include "ferrite/decorators/autocast.hpp"
#include "ferrite/optim/muon.hpp"
#include "models/pfn/pfn_predictors.hpp"

namespace ferrite::pfn {
namespace {

using testing::both_tasks;
using testing::lively_pfn;
using testing::small_pfn;
using testing::Tables;

class CudaPfn : public ::testing::Test {
 protected:
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << cuda_unavailable_reason();
  }
};

TEST_F(CudaPfn, ScoresAreThoseOfTheCpu) {
  Cuda cuda;
  Cpu cpu;
  for (const Task task : both_tasks) {
    const Config config = small_pfn(task).with_dim(64).with_head_width(32);
    auto ours = lively_pfn(cuda, config);
    auto theirs = lively_pfn(cpu, config);
    const Tables<Cuda> a(cuda, task);
    const Tables<Cpu> b(cpu, task);
    testing::expect_values(ours.forward(a.x, a.is_category, a.labels),
                           theirs.forward(b.x, b.is_category, b.labels).to_vector<double>(), 2e-3);
    EXPECT_NEAR(a.loss(ours).item(), b.loss(theirs).item(), 1e-3);
  }
}

/// Every op of a pass and its gradients, against the CPU: a mismatch throws.
TEST_F(CudaPfn, EveryOpOfAPassAndItsGradientsIsThatOfTheCpu) {
  using B = Autodiff<AnyBackend>;
  B backend("cuda-parity");
  for (const Task task : both_tasks) {
    Network<B> model = lively_pfn(backend, small_pfn(task));
    const Tables<B> tables(backend, task);
    const auto scores = model.forward(tables.x, tables.is_category, tables.labels);
    EXPECT_EQ(scores.shape(), (Shape{2, 4, model.config().outputs()}));
    EXPECT_TRUE(all(isfinite(scores)).item() != 0);
    const auto loss = tables.loss(model);
    EXPECT_TRUE(std::isfinite(loss.item()));
    const auto gradients = loss.backward();
    for (const auto& p : model.parameters())
      EXPECT_TRUE(all(isfinite(gradients.of(p.tensor))).item() != 0) << p.name;
  }
}

struct Training {
  using B = Autodiff<Autocast<Cuda>>;
  B backend;
  Rng rng{1};
  Network<B> model;
  optim::Muon<B> muon;
  Tables<B> tables;
  Tensor<B> loss;

  explicit Training(Task task)
      : model(backend, small_pfn(task).with_dim(64).with_head_width(32), rng),
        muon(model.parameters(),
             optim::MuonConfig{}.with_lr(0.02).with_clip_norm(1).with_matrices(optim::under("blocks"))),
        tables(backend, task) {
    muon.keep_schedule_on_device();
  }
  void step() {
    loss = tables.loss(model);
    muon.step(loss.backward());
  }
  std::vector<float> weights() {
    std::vector<float> all;
    for (const auto& p : model.parameters())
      for (const float w : p.tensor.to_vector()) all.push_back(w);
    return all;
  }
};

TEST_F(CudaPfn, ReplaysGiveTheBitsOfEagerStepsAndLearn) {
  for (const Task task : both_tasks) {
    Training eager(task), captured(task);
    eager.step();
    const float first = eager.loss.item();
    for (int i = 1; i < 30; ++i) eager.step();
    captured.step();
    captured.step();
    auto graph = CudaGraph::capture(captured.backend.inner().inner(), [&] { captured.step(); });
    for (int i = 2; i < 30; ++i) graph.replay();
    EXPECT_EQ(captured.weights(), eager.weights());
    EXPECT_LT(eager.loss.item(), 0.7f * first) << to_string(task);
  }
}

/// Fitted and asked again and again, in sizes that come back, a predictor replays what it has recorded.
TEST_F(CudaPfn, RecordedPredictionsAreThoseOfANewPredictor) {
  const testing::SmallWeights weights;
  for (const Task task : both_tasks)
    for (const Precision precision : {Precision::f32, Precision::bf16}) {
      const PredictorConfig config = weights.config(task).with_backend("cuda").with_precision(precision);
      const FitPredict used = fit_predict(config.with_records(true));
      const std::int64_t classes = task == Task::classification ? 3 : 0;
      for (const std::int64_t rows : {40, 40, 40, 30, 40, 40, 30, 30}) {
        static std::uint64_t seed = 0;
        const Table train = testing::mixed_table(rows, classes, ++seed),
                    test = testing::mixed_table(rows - 9, classes, ++seed);
        const TableEncoder encoder = TableEncoder::fit(train, "y", config.encoder.with_task(task));
        const EncodedTable learned = encoder.transform(train), asked = encoder.transform(test);
        EXPECT_EQ(used(learned, asked), fit_predict(config)(learned, asked)) << rows << ", seed " << seed;
      }
    }
}

TEST_F(CudaPfn, CopiesOfAPredictorDoNotDisturbEachOther) {
  const testing::SmallWeights weights;
  Classifier a(weights.config().with_backend("cuda").with_records(true));
  a.fit(testing::mixed_table(50, 3, 1), "y");
  Classifier b = a;
  const Table first = testing::mixed_table(20, 3, 2), second = testing::mixed_table(20, 3, 3);
  const std::vector<double> of_first = a.predict_proba(first), of_second = a.predict_proba(second);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(b.predict_proba(first), of_first);
    EXPECT_EQ(a.predict_proba(second), of_second);
  }
}

}  // namespace
}  // namespace ferrite::pfn
