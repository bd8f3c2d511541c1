// Captured steps: replays equal eager steps bit for bit, and what cannot be captured is refused with a
// reason.
#include "ferrite/backend/cuda_graph.hpp"

#include <gtest/gtest.h>

#include "ferrite/backend/cuda_device.hpp"
#include "ferrite/stacks.hpp"
#include "ferrite/train/stacks.hpp"

namespace ferrite {
namespace {

using GradCuda = Autodiff<Cuda>;

class CudaGraphs : public ::testing::Test {
 protected:
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << cuda_unavailable_reason();
  }
};

/// A small network with all that changes from step to step: data, random numbers, learning rate, step count.
struct GraphTraining {
  GradCuda backend;
  Rng rng{7};
  nn::Sequential<GradCuda> net;
  std::unique_ptr<optim::AdamW<GradCuda>> optimizer;
  Tensor<GradCuda> x = backend_tensor({64, 20}, DType::f32), y = backend_tensor({64}, DType::i64);
  Tensor<GradCuda> loss;

  GraphTraining() {
    Rng init(3);
    net.add(nn::Linear<GradCuda>(backend, nn::LinearConfig{20, 48}.with_activation(Activation::relu), init));
    net.add(nn::Dropout<GradCuda>(0.3, rng));
    net.add(nn::Apply<GradCuda>(
        [this](const Tensor<GradCuda>& h) { return dropout(dropout(h, 0.1, rng), 0.2, rng); }));
    net.add(nn::Linear<GradCuda>(backend, {48, 5}, init));
    optimizer =
        std::make_unique<optim::AdamW<GradCuda>>(net.parameters(), optim::AdamWConfig{}.with_clip_norm(0.5));
    optimizer->keep_schedule_on_device();
  }
  Tensor<GradCuda> backend_tensor(const Shape& shape, DType dtype) { return zeros(backend, shape, dtype); }

  void load(int step) {
    Rng data(static_cast<std::uint64_t>(100 + step));
    Reference host;
    assign(x, to_host(randn(host, {64, 20}, data)));
    assign(y, to_host(randint(host, {64}, data, 0, 5)));
    optimizer->set_learning_rate(0.01 / (1 + step));
  }
  void step() {
    loss = softmax_cross_entropy(net.forward(x), y);
    optimizer->step(loss.backward());
  }
  std::vector<float> weights() {
    std::vector<float> all;
    for (const auto& p : net.parameters())
      for (const float w : p.tensor.to_vector()) all.push_back(w);
    return all;
  }
};

TEST_F(CudaGraphs, ReplayBitEqualToEagerSteps) {
  GraphTraining eager, captured;
  std::vector<float> losses, late;
  for (int i = 0; i < 12; ++i) {
    eager.load(i);
    eager.step();
    losses.push_back(eager.loss.item());
  }
  for (int i = 0; i < 2; ++i) {  // libraries choose their kernels
    captured.load(i);
    captured.step();
    late.push_back(captured.loss.item());
  }
  captured.load(2);
  Cuda& cuda = captured.backend.inner();
  auto graph = CudaGraph::capture(cuda, [&] { captured.step(); });
  LateReader reader(cuda);
  for (int i = 2; i < 12; ++i) {
    captured.load(i);
    graph.replay();
    reader.push(captured.loss);
    if (reader.pending() > 1) late.push_back(reader.pop());
  }
  late.push_back(reader.pop());
  EXPECT_EQ(losses, late);
  EXPECT_EQ(eager.weights(), captured.weights());
  EXPECT_EQ(eager.rng.position(), captured.rng.position());
  EXPECT_EQ(captured.optimizer->state().at("steps").as<std::int64_t>()[0], 12);
  EXPECT_GT(graph.nodes(), 10u);
  EXPECT_GT(graph.memory(), 0u);
}

TEST_F(CudaGraphs, NumbersDrawnBetweenReplaysAreNotDrawnAgain) {
  GraphTraining eager, captured;
  for (GraphTraining* t : {&eager, &captured}) {
    t->load(0);
    t->step();
  }
  auto graph = CudaGraph::capture(captured.backend.inner(), [&] { captured.step(); });
  for (int i = 1; i < 9; ++i) {
    for (GraphTraining* t : {&eager, &captured}) {
      t->load(i);
      if (i % 3 == 0) static_cast<void>(dropout(t->x, 0.5, t->rng));
      if (i == 7) t->rng.set_position(2);  // as a state that is loaded does
    }
    eager.step();
    if (i % 4 == 0)
      captured.step();
    else
      graph.replay();
  }
  EXPECT_EQ(captured.weights(), eager.weights());
  EXPECT_EQ(captured.rng.position(), eager.rng.position());
}

TEST_F(CudaGraphs, MemoryStaysFlatOverReplays) {
  GraphTraining t;
  t.load(0);
  t.step();
  auto graph = CudaGraph::capture(t.backend.inner(), [&] { t.step(); });
  const std::size_t before = t.backend.inner().memory_stats().in_use;
  for (int i = 0; i < 100; ++i) graph.replay();
  t.backend.inner().synchronize();
  EXPECT_EQ(t.backend.inner().memory_stats().in_use, before);
}

TEST_F(CudaGraphs, GraphsBesideEachOtherShareMemory) {
  GradCuda backend;
  Cuda& cuda = backend.inner();
  const Tensor<GradCuda> x = ones(backend, {4'000'000}), y = ones(backend, {3'000'000});
  Tensor<GradCuda> first, second;
  const auto chain = [](const Tensor<GradCuda>& t) { return sum(exp(log(t * 2.0) * 3.0)); };
  const auto all = CudaGraph::capture(cuda, [&] { first = chain(x); });
  auto large = CudaGraph::capture(cuda, [&] { first = chain(x); });
  auto small = CudaGraph::capture(
      cuda, [&] { second = chain(y); }, &large);
  EXPECT_LE(small.memory(), all.memory() + (1 << 20));
  for (const double scale : {1.0, 2.0}) {
    assign(x, full(backend, {4'000'000}, scale));
    assign(y, full(backend, {3'000'000}, scale));
    large.replay();
    EXPECT_NEAR(first.item(), 4e6 * 8 * scale * scale * scale, 4e6 * scale * 1e-3);
    small.replay();
    EXPECT_NEAR(second.item(), 3e6 * 8 * scale * scale * scale, 3e6 * scale * 1e-3);
    large.replay();
    EXPECT_NEAR(first.item(), 4e6 * 8 * scale * scale * scale, 4e6 * scale * 1e-3);
  }
}

void expect_refused(GraphTraining& t, const std::function<void()>& step, std::string_view reason) {
  try {
    CudaGraph::capture(t.backend.inner(), step);
    FAIL() << "captured";
  } catch (const BackendError& error) {
    EXPECT_NE(std::string_view(error.what()).find(reason), std::string_view::npos) << error.what();
  }
  // The GPU works on as before.
  EXPECT_EQ(sum(ones(t.backend, {1000})).item(), 1000);
}

TEST_F(CudaGraphs, RefuseWhatAReplayWouldNotDoAgain) {
  GraphTraining t;
  t.load(0);
  t.step();
  expect_refused(
      t, [&] { static_cast<void>(sum(t.x).item()); }, "capture");
  expect_refused(
      t,
      [&] {
        static_cast<void>(from_vector(t.backend, std::vector<float>{1, 2}));
      },
      "capture");
  expect_refused(
      t, [&] { t.backend.inner().synchronize(); }, "capture");
  expect_refused(
      t, [&] { CudaGraph::capture(t.backend.inner(), [] {}); }, "one at a time");
}

TEST_F(CudaGraphs, AnExceptionOfTheStepEndsTheCapture) {
  GraphTraining t;
  t.load(0);
  t.step();
  const auto position = t.rng.position();
  EXPECT_THROW(CudaGraph::capture(t.backend.inner(),
                                  [&] {
                                    t.step();
                                    throw std::runtime_error("on the way");
                                  }),
               std::runtime_error);
  EXPECT_EQ(t.rng.position(), position);
  t.step();
  EXPECT_TRUE(std::isfinite(t.loss.item()));
}

TEST_F(CudaGraphs, LateReaderWantsOneElementAndAPush) {
  Cuda cuda;
  LateReader reader(cuda);
  EXPECT_THROW(reader.pop(), ValueError);
  EXPECT_THROW(reader.push(ones(cuda, {2})), ShapeError);
  reader.push(full(cuda, {}, 2.5));
  reader.push(full(cuda, {1}, 3.5, DType::f64));
  EXPECT_EQ(reader.pop(), 2.5f);
  EXPECT_EQ(reader.pop(), 3.5f);
}

}  // namespace
}  // namespace ferrite
