#include "ferrite/dist/data_parallel.hpp"

#include <atomic>
#include <functional>

#include "dist/data_parallel_checks.hpp"
#include "dist/on_ranks.hpp"
#include "messages.hpp"

namespace ferrite::testing {
namespace {

using namespace std::chrono_literals;
using dist::DataParallel;
using dist::DataParallelConfig;
using dist::DistError;
using D = Autodiff<Cpu>;

class ParallelRanks : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, ParallelRanks, ::testing::Values(1, 2, 3, 4));

TEST_P(ParallelRanks, WeightsAreThoseOfOneProcessBitForBit) {
  on_ranks(GetParam(), [](Handle& g) { check_data_parallel(*g); });
}
TEST_P(ParallelRanks, OnEveryBackend) {
  on_ranks(GetParam(), [](Handle& g) { check_data_parallel_backends(*g); });
}

/// Counts the sums that are done.
class CountingGroup final : public dist::Group {
 public:
  explicit CountingGroup(dist::Group& group) : group_(group) {}
  int rank() const override { return group_.rank(); }
  int size() const override { return group_.size(); }
  std::string describe() const override { return group_.describe(); }
  bool takes(Device device) const override { return group_.takes(device); }
  bool is_reproducible() const override { return group_.is_reproducible(); }
  std::atomic<int> sums = 0;

 private:
  using Text = const std::string&;
  void run_all_reduce(Text, const Array& in, const Array& out, dist::ReduceOp op) override {
    group_.all_reduce(in, out, op);
    ++sums;
  }
  void run_reduce_scatter(Text, const Array& in, const Array& out, dist::ReduceOp op) override {
    group_.reduce_scatter(in, out, op);
  }
  void run_all_gather(Text, const Array& in, const Array& out) override { group_.all_gather(in, out); }
  void run_broadcast(Text, const Array& array, int root) override { group_.broadcast(array, root); }
  void run_barrier(Text) override { group_.barrier(); }
  void run_send(const Array& array, int to) override { group_.send(array, to); }
  void run_recv(const Array& array, int from) override { group_.recv(array, from); }

  dist::Group& group_;
};

/// The first bucket is reduced before backward has ended, or without overlap after it.
TEST(Parallel, BucketsAreSentWhileBackwardRuns) {
  for (const bool overlap : {true, false})
    on_ranks(2, [&](Handle& g) {
      D b;
      SmallNet<D> net(b, 1);
      CountingGroup group(*g);
      DataParallel parallel(net, group, DataParallelConfig{}.with_bucket_bytes(1).with_overlap(overlap));
      int early = 0;
      // out.bias is the last parameter and so the first bucket; hidden.weight is complete near the end.
      const auto config = BackwardConfig<Cpu>{}.with_on_ready([&](const std::string& leaf, const auto&) {
        if (leaf != "hidden.weight") return;
        for (int i = 0; i < (overlap ? 2000 : 4) && early == 0; ++i) {
          std::this_thread::sleep_for(5ms);
          early = group.sums;
        }
      });
      Gradients<Cpu> grads;
      parallel.backward(Lesson().loss(net, 0, g->rank(), 0), grads, 1, config);
      EXPECT_EQ(early > 0, overlap);
      EXPECT_EQ(parallel.finish(grads), 2);
      EXPECT_EQ(group.sums, static_cast<int>(parallel.plan().buckets.size()) + 1);
    });
}

TEST(Parallel, DifferentModelsAreNamedOnAllRanks) {
  on_ranks(3, [](Handle& g) {
    D b;
    SmallNet<D> net(b, 1, g->rank() == 1 ? 17 : 16);
    const auto before = net.state();
    EXPECT_EQ(
        message_of<DistError>([&] { DataParallel parallel(net, *g); }),
        "[DataParallel] the ranks have different models: rank 1 has the parameter 'hidden.weight' of "
        "f32[17, 6], rank 0 has the parameter 'hidden.weight' of f32[16, 6]: make the same model on every "
        "rank");
    expect_same_bits(net.state(), before, "nothing has changed");
    SmallNet<D> frozen(b, 1);
    if (g->rank() == 2) frozen.out.freeze();
    const std::string text = message_of<DistError>([&] { DataParallel parallel(frozen, *g); });
    EXPECT_NE(
        text.find("rank 2 has the frozen parameter 'out.weight' of f32[3, 16], rank 0 has the parameter"),
        std::string::npos)
        << text;
    const std::string sizes = message_of<DistError>(
        [&] { DataParallel parallel(net, *g, DataParallelConfig{}.with_bucket_bytes(g->rank() + 1)); });
    EXPECT_NE(sizes.find("rank 1 has bucket_bytes 2, rank 0 has bucket_bytes 1"), std::string::npos) << sizes;
    nn::Linear<D> layer = [&] {
      Rng rng(1);
      return nn::Linear<D>(b, {.in = 2, .out = 2, .bias = g->rank() != 2}, rng);
    }();
    const std::string fewer = message_of<DistError>([&] { DataParallel parallel(layer, *g); });
    EXPECT_NE(fewer.find("rank 2 has nothing more, rank 0 has the parameter 'bias' of f32[2]"),
              std::string::npos)
        << fewer;
  });
}

TEST(Parallel, FrozenParametersAndBuffersAreThoseOfTheFirstRank) {
  on_ranks(3, [](Handle& g) {
    D b;
    const auto seed = static_cast<std::uint64_t>(g->rank()) + 1;
    SmallNet<D> net(b, seed), first(b, 1);
    net.hidden.freeze();
    DataParallel parallel(net, *g);
    EXPECT_EQ(parallel.is_first(), g->rank() == 0);
    EXPECT_EQ(parallel.mean(g->rank() + 1.0), 2);
    EXPECT_EQ(parallel.mean(std::vector<double>{7, 1.0 * g->rank()}), (std::vector<double>{7, 1}));
    expect_same_bits(net.state(), first.state(), "after construction");
    assign(net.seen, full(b, {1}, g->rank() + 5.0));
    parallel.broadcast_buffers();
    EXPECT_EQ(net.seen.item(), 5);
    const Lesson lesson;
    Gradients<Cpu> grads;
    parallel.backward(lesson.loss(net, 0, g->rank(), 0), grads);
    parallel.finish(grads);
    EXPECT_EQ(grads.size(), 3u) << "out.weight, out.bias and shift";
  });
}

/// A rank whose error ends it: the others are told its number, and neither side waits for the timeout.
TEST(Parallel, ARankThatThrowsInBackwardEndsTheOthers) {
  for (const bool overlap : {true, false})
    on_ranks(3, [&](Handle& g) {
      D b;
      SmallNet<D> net(b, 1);
      const Lesson lesson;
      const int rank = g->rank();
      const auto run = [&] {
        const Handle handle = std::move(g);
        DataParallel parallel(net, *handle, DataParallelConfig{}.with_bucket_bytes(1).with_overlap(overlap));
        const auto hook = BackwardConfig<Cpu>{}.with_on_ready([&](const std::string& leaf, const auto&) {
          if (rank == 1 && leaf == "hidden.bias") throw std::runtime_error("no memory");
        });
        Gradients<Cpu> grads;
        parallel.backward(lesson.loss(net, 0, rank, 0), grads, 1, hook);
        parallel.finish(grads);
      };
      const std::string text = message_of<std::exception>(run);
      EXPECT_NE(text.find(rank == 1 ? "no memory" : "rank 1 is gone"), std::string::npos) << text;
    });
}

TEST(Parallel, WhatIsWrongWithAStepIsSaid) {
  on_ranks(2, [](Handle& g) {
    D b;
    SmallNet<D> net(b, 1);
    DataParallel parallel(net, *g);
    const Lesson lesson;
    const auto loss = [&] { return lesson.loss(net, 0, g->rank(), 0); };
    Gradients<Cpu> grads;
    EXPECT_THROW(parallel.backward(loss(), grads, 0), ValueError);
    EXPECT_THROW(parallel.accumulate(loss(), grads, -1), ValueError);
    parallel.backward(loss(), grads);
    EXPECT_THROW(parallel.mean(1), ValueError);
    EXPECT_THROW(parallel.backward(loss(), grads), ValueError);
    parallel.finish(grads);
    EXPECT_EQ(
        message_of<GradientError>([&] { parallel.backward(loss(), grads); }),
        "[DataParallel] 'hidden.weight' has a gradient before the first micro-batch of a step: begin every "
        "step with new Gradients");
    Gradients<Cpu> next;
    parallel.backward(loss(), next);
    EXPECT_EQ(parallel.finish(next), 2);
    // A rank that goes on after an error of backward is stopped.
    Gradients<Cpu> last;
    const auto throws = BackwardConfig<Cpu>{}.with_on_ready(
        [](const std::string&, const auto&) { throw std::runtime_error("no memory"); });
    EXPECT_THROW(parallel.backward(loss(), last, 1, throws), std::runtime_error);
    EXPECT_THROW(parallel.finish(last), DistError);
    EXPECT_THROW(parallel.mean(1), DistError);
  });
}

TEST(Parallel, ShardsAreForOneOptimiserOfDenseParameters) {
  on_ranks(2, [](Handle& g) {
    D b;
    SmallNet<D> net(b, 1);
    const auto sharded = DataParallelConfig{}.with_shard_optimizer();
    DataParallel parallel(net, *g, sharded);
    Gradients<Cpu> grads;
    parallel.backward(Lesson{}.loss(net, 0, g->rank(), 0), grads);
    EXPECT_NE(
        message_of<ValueError>([&] { parallel.finish(grads); }).find("no optimiser was made with shards()"),
        std::string::npos);
    {
      auto optimizer = small_optimizer(net, parallel.shards());
      EXPECT_NE(
          message_of<ValueError>([&] { small_optimizer(net, parallel.shards()); }).find("two optimisers"),
          std::string::npos);
      optimizer.step(grads, parallel.finish(grads));
    }
    auto next = small_optimizer(net, parallel.shards());  // the first is gone
    EXPECT_EQ(DataParallel(net, *g).shards(), nullptr);

    struct Turned final : nn::Module<D> {
      Tensor<D> weight;
      explicit Turned(D& backend) : weight(parameter(transpose(ones(backend, {2, 3}), 0, 1), "weight")) {}
      void visit(nn::Visitor<D>& v) override { v.parameter("weight", weight); }
    } turned(b);
    if (!turned.weight.primitive().value.layout().is_contiguous()) {
      EXPECT_NE(message_of<ValueError>([&] { DataParallel(turned, *g, sharded); }).find("contiguous(x)"),
                std::string::npos);
    }
    nn::Linear<D> other = [&] {
      Rng rng(1);
      return nn::Linear<D>(b, {.in = 2, .out = 2}, rng);
    }();
    DataParallel another(other, *g, sharded);
    EXPECT_NE(
        message_of<ValueError>([&] { small_optimizer(net, another.shards()); }).find("there is no parameter"),
        std::string::npos);
  });
}

/// What somebody has changed between two micro-batches counts.
TEST(Parallel, GradientsThatWereSetAreReduced) {
  on_ranks(2, [](Handle& g) {
    D b;
    SmallNet<D> net(b, 1);
    DataParallel parallel(net, *g, DataParallelConfig{}.with_bucket_bytes(1));
    Gradients<Cpu> grads;
    parallel.accumulate(sum(net.gate), grads);
    grads.set(net.gate, grads.of(net.gate) * (g->rank() + 5.0));
    parallel.backward(sum(net.gate), grads);
    EXPECT_EQ(parallel.finish(grads), 4);
    EXPECT_EQ(grads.of(net.gate).to_vector<float>(), std::vector<float>(16, 5 + 6 + 2));
  });
}

}  // namespace
}  // namespace ferrite::testing
