// Recorded steps of several ranks, on a stand-in for GPUs (train/tape.hpp) whose group is queued as NCCL's
// is.
#include "dist/on_ranks.hpp"
#include "ferrite/dist/trainer_ranks.hpp"
#include "ferrite/ops/pointwise_loss.hpp"
#include "train/tape.hpp"
#include "train/train_test.hpp"

namespace ferrite::testing {
namespace {

using B = Autodiff<Tape<Cpu>>;

/// Notes its calls on the tape while that records.
class TapeGroup final : public dist::Group {
 public:
  TapeGroup(dist::Group& threads, const Tape<Cpu>& tape) : threads_(threads), tape_(tape) {}
  int rank() const override { return threads_.rank(); }
  int size() const override { return threads_.size(); }
  std::string describe() const override { return "a tape"; }
  bool takes(Device device) const override { return threads_.takes(device); }
  bool is_reproducible() const override { return true; }
  bool is_queued(Device) const override { return true; }

 private:
  template <class Call>
  void run(const Call& call) {
    if (tape_.state().recording)
      tape_.state().kernels.push_back([this, call] { call(threads_); });
    else
      call(threads_);
  }
  void run_all_reduce(const std::string&, const Array& in, const Array& out, dist::ReduceOp op) override {
    run([=](Group& g) { g.all_reduce(in, out, op); });
  }
  void run_reduce_scatter(const std::string&, const Array& in, const Array& out, dist::ReduceOp op) override {
    run([=](Group& g) { g.reduce_scatter(in, out, op); });
  }
  void run_all_gather(const std::string&, const Array& in, const Array& out) override {
    run([=](Group& g) { g.all_gather(in, out); });
  }
  void run_broadcast(const std::string&, const Array& array, int root) override {
    run([=](Group& g) { g.broadcast(array, root); });
  }
  void run_barrier(const std::string&) override { threads_.barrier(); }
  void run_send(const Array&, int) override {}
  void run_recv(const Array&, int) override {}

  dist::Group& threads_;
  Tape<Cpu> tape_;
};

/// What is odd about a rank's batches or steps.
struct Oddity {
  int rank = -1;
  std::int64_t batch = -1;    // one of fewer rows
  bool reads_a_loss = false;  // which cannot be recorded
  bool leaves_out = false;    // a parameter, in recorded steps
};

struct RecordedRun {
  B backend;
  nn::Linear<B> first, second;
  nn::Sequential<B> net;
  TapeGroup group;
  dist::TrainerRanks<B> ranks;
  optim::AdamW<B> optimizer;
  data::Generated source;
  Recorder seen;
  train::Trainer<B> trainer;

  static nn::Linear<B> layer(B& b, std::int64_t in, std::int64_t out, std::uint64_t seed) {
    Rng rng(seed);
    return nn::Linear<B>(b, {in, out}, rng);
  }
  static nn::Sequential<B> both(const nn::Linear<B>& a, const nn::Linear<B>& b) {
    nn::Sequential<B> all;
    all.add(a);
    all.add(b);
    return all;
  }

  RecordedRun(dist::Group& threads, train::Capture capture, bool sharded, const Oddity& odd = {})
      : first(layer(backend, 4, 6, 1)),
        second(layer(backend, 6, 2, 2)),
        net(both(first, second)),
        group(threads, backend.inner()),
        ranks(net, group, dist::DataParallelConfig{}.with_bucket_bytes(100).with_shard_optimizer(sharded)),
        optimizer(net.parameters(), optim::AdamWConfig{}.with_lr(0.01).with_clip_norm(1), ranks.shards()),
        source(
            "rows",
            [rank = threads.rank(), odd](std::int64_t number) {
              const std::int64_t rows = rank == odd.rank && number == odd.batch ? 2 : 4;
              std::vector<float> x, y;
              for (std::int64_t i = 0; i < 4 * rows; ++i)
                x.push_back(static_cast<float>((7 * i + 3 * number + 5 * rank) % 11) / 11);
              for (std::int64_t i = 0; i < 2 * rows; ++i)
                y.push_back(static_cast<float>((5 * i + number) % 7) / 7);
              return std::optional(data::HostBatch{HostTensor::from(std::span<const float>(x), {rows, 4}),
                                                   HostTensor::from(std::span<const float>(y), {rows, 2})});
            }),
        trainer(
            net, optimizer, source,
            [this, odd, rank = threads.rank()](const data::Batch<B>& batch) {
              const bool is_odd = rank == odd.rank && backend.inner().state().recording;
              const auto hidden = first.forward(batch.x);
              const auto y = is_odd && odd.leaves_out ? slice(hidden, 1, 0, 2) : second.forward(hidden);
              const auto loss = mse_loss(y, batch.y);
              if (is_odd && odd.reads_a_loss) static_cast<void>(loss.item());
              return train::Prediction<B>{loss, y};
            },
            train::TrainerConfig{}.with_steps(10).with_report_every(5).with_capture(capture)) {
    trainer.train_with(ranks);
    trainer.add_observer(seen);
  }
  int replays() { return backend.inner().state().replays; }
};

/// Of the weights of all ranks, which are the same.
NamedTensors trained(int ranks, train::Capture capture, bool sharded, const Oddity& odd,
                     int* replays = nullptr, std::vector<std::string>* notices = nullptr) {
  std::mutex mutex;
  std::vector<NamedTensors> states;
  on_ranks(ranks, [&](Handle& handle) {
    RecordedRun run(*handle, capture, sharded, odd);
    EXPECT_EQ(run.trainer.fit(), train::Outcome::finished);
    const std::lock_guard lock(mutex);
    states.push_back(run.net.state());
    if (replays) *replays = run.replays();
    if (notices) notices->insert(notices->end(), run.seen.notices.begin(), run.seen.notices.end());
  });
  EXPECT_EQ(states.size(), static_cast<std::size_t>(ranks));
  for (const NamedTensors& state : states) EXPECT_TRUE(same_bits(state, states[0]));
  return states.empty() ? NamedTensors{} : states[0];
}

TEST(RecordedRanks, ReplayTheReductionToo) {
  for (const int ranks : {1, 2, 3})
    for (const bool sharded : {false, true}) {
      int replays = 0;
      const NamedTensors eager = trained(ranks, train::Capture::never, sharded, {}),
                         recorded = trained(ranks, train::Capture::required, sharded, {}, &replays);
      EXPECT_TRUE(same_bits(eager, recorded)) << ranks << " ranks";
      EXPECT_EQ(replays, 8) << "after two steps op by op";
    }
}

TEST(RecordedRanks, ABatchOfAnotherKindOnOneRankIsNoneForAll) {
  const Oddity odd{.rank = 1, .batch = 5};
  int replays = 0;
  const NamedTensors eager = trained(2, train::Capture::never, false, odd),
                     recorded = trained(2, train::Capture::required, false, odd, &replays);
  EXPECT_TRUE(same_bits(eager, recorded));
  EXPECT_EQ(replays, 7);
}

TEST(RecordedRanks, ARecordingThatFailsOnOneRankIsNoneForAll) {
  const Oddity odd{.rank = 1, .reads_a_loss = true};
  int replays = -1;
  std::vector<std::string> notices;
  const NamedTensors eager = trained(2, train::Capture::never, true, {}),
                     other = trained(2, train::Capture::if_possible, true, odd, &replays, &notices);
  EXPECT_TRUE(same_bits(eager, other));
  EXPECT_EQ(replays, 0);
  const auto says = [&](const std::string& text) {
    return std::ranges::any_of(notices,
                               [&](const std::string& n) { return n.find(text) != std::string::npos; });
  };
  EXPECT_TRUE(says("a copy to the host"));
  EXPECT_TRUE(says("cannot be recorded: on another rank"));
}

TEST(RecordedRanks, AParameterThatOneRankDoesNotUseIsNamed) {
  std::atomic<int> refused = 0;
  on_ranks(2, [&](Handle& handle) {
    RecordedRun run(*handle, train::Capture::required, false, {.rank = 1, .leaves_out = true});
    try {
      run.trainer.fit();
    } catch (const dist::DistError& error) {
      refused += std::string(error.what()).find("rank 1 has no gradient for '1.weight'") != std::string::npos;
      EXPECT_EQ(refused > 0, true) << error.what();
    }
  });
  EXPECT_EQ(refused, 2);
}

}  // namespace
}  // namespace ferrite::testing
