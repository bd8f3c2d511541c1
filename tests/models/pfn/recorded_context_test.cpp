// A context with recordings predicts what the network predicts, whatever came before, and records only where
// that can be of use.
#include "ferrite/models/pfn/recorded_context.hpp"

#include "io/io_test.hpp"
#include "models/pfn/pfn_test.hpp"
#include "train/tape.hpp"

namespace ferrite::pfn {
namespace {

using testing::both_tasks;
using testing::Tape;

template <class B>
struct Recorded {
  static constexpr std::int64_t sets = 2, columns = 3;
  B backend;
  Task task;
  Network<B> network;

  explicit Recorded(Task t) : task(t), network(testing::lively_pfn(backend, testing::small_pfn(t))) {}

  HostTensor cells(std::int64_t rows, std::uint64_t seed) const {
    Reference host;
    Rng rng(seed);
    return to_host(randn(host, {sets, rows, columns}, rng));
  }
  TrainRows rows(std::int64_t count, std::uint64_t seed) const {
    Reference host;
    Rng rng(seed + 100);
    const auto labels = task == Task::classification ? randint(host, {sets, count}, rng, 0, 3)
                                                     : randn(host, {sets, count}, rng) * 3;
    return {cells(count, seed), to_host(cast(randint(host, {sets, columns}, rng, 0, 2), DType::f32)),
            to_host(labels)};
  }
  std::vector<float> expected(const TrainRows& train, const HostTensor& x) {
    const auto context = network.forward_context(
        from_host(backend, train.x), from_host(backend, train.is_category), from_host(backend, train.labels));
    return network.predict(context, from_host(backend, x)).template to_vector<float>();
  }
};

TEST(PfnRecordedContext, PredictsAsTheNetworkFromAnyRowsInAnyOrder) {
  for (const Task task : both_tasks) {
    Recorded<Tape<Cpu>> r(task);
    const int& replays = r.backend.state().replays;
    const TrainRows first = r.rows(7, 1), second = r.rows(7, 2);
    RecordedContext<Tape<Cpu>> context(r.network, first);
    const auto check = [&](const TrainRows& train, std::int64_t rows, std::uint64_t seed, int replayed) {
      const HostTensor x = r.cells(rows, seed);
      const int before = replays;
      EXPECT_EQ(context.predict(x).to_vector<float>(), r.expected(train, x)) << rows << ", " << seed;
      EXPECT_EQ(replays - before, replayed) << rows << ", " << seed;
    };
    check(first, 5, 3, 0);
    check(first, 5, 4, 1);
    check(first, 5, 5, 1);
    check(first, 4, 6, 0);  // of another size
    check(first, 4, 7, 1);
    for (int again = 0; again < 2; ++again)
      for (const TrainRows* train : {&second, &first}) {
        const int before = replays;
        context.read(*train);
        EXPECT_EQ(replays - before, 1);
        check(*train, 4, 8, 1);
        check(*train, 4, 9, 1);
      }
  }
}

TEST(PfnRecordedContext, KeepsWhatItReadAsANewOneWould) {
  Recorded<Tape<Cpu>> r(Task::regression);
  RecordedContext<Tape<Cpu>> used(r.network, r.rows(6, 1)), fresh(r.network, r.rows(6, 3));
  for (const std::uint64_t seed : {2, 3}) used.read(r.rows(6, seed));
  const NamedTensors a = used.context().state(), b = fresh.context().state();
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [name, tensor] : a)
    EXPECT_EQ(std::vector<float>(tensor.as<float>().begin(), tensor.as<float>().end()),
              std::vector<float>(b.at(name).as<float>().begin(), b.at(name).as<float>().end()))
        << name;
}

TEST(PfnRecordedContext, ReadsOnlyRowsOfTheSameSizes) {
  Recorded<Tape<Cpu>> r(Task::classification);
  RecordedContext<Tape<Cpu>> context(r.network, r.rows(6, 1));
  EXPECT_TRUE(context.can_read(r.rows(6, 2)));
  EXPECT_FALSE(context.can_read(r.rows(7, 2)));
  testing::expect_error<ShapeError>([&] { context.read(r.rows(7, 2)); }, {"[2, 7, 3]", "[2, 6, 3]"});
}

TEST(PfnRecordedContext, RecordsNothingForLargeTables) {
  Recorded<Tape<Cpu>> r(Task::classification);
  const TrainRows train = r.rows(6, 1);
  RecordedContext<Tape<Cpu>> context(r.network, train);
  const std::int64_t many = RecordedContext<Tape<Cpu>>::most_cells / (r.sets * (r.columns + 1)) + 1;
  for (const std::uint64_t seed : {2, 3}) {
    const HostTensor x = r.cells(many, seed);
    EXPECT_EQ(context.predict(x).to_vector<float>(), r.expected(train, x));
  }
  EXPECT_EQ(r.backend.state().replays, 0);
  EXPECT_FALSE(RecordedContext<Tape<Cpu>>(r.network, r.rows(many, 1)).can_read(r.rows(many, 2)));
}

TEST(PfnRecordedContext, RecordsNothingUnlessItMay) {
  Recorded<Tape<Cpu>> r(Task::regression);
  const TrainRows train = r.rows(6, 1);
  RecordedContext<Tape<Cpu>> context(r.network, train, Recording::no);
  for (const std::uint64_t seed : {2, 3, 4})
    EXPECT_EQ(context.predict(r.cells(5, seed)).to_vector<float>(), r.expected(train, r.cells(5, seed)));
  EXPECT_EQ(r.backend.state().replays, 0);
  EXPECT_FALSE(context.can_read(train));
}

TEST(PfnRecordedContext, ReadsAgainAfterARecordingThatFailed) {
  Recorded<Tape<Cpu>> r(Task::classification);
  const TrainRows train = r.rows(6, 1);
  RecordedContext<Tape<Cpu>> context(r.network, train);
  const std::vector<float> before = context.predict(r.cells(5, 2)).to_vector<float>();
  TrainRows others = r.rows(6, 3);
  const Tensor<Tape<Cpu>> unknown = r.network.register_cells;
  r.network.register_cells = zeros(r.backend, {2, 7});  // of a shape that no pass takes
  EXPECT_THROW(context.read(others), ShapeError);
  r.network.register_cells = unknown;
  context.read(train);
  EXPECT_EQ(context.predict(r.cells(5, 2)).to_vector<float>(), before);
  others.labels = others.x;
  EXPECT_FALSE(context.can_read(others));
}

TEST(PfnRecordedContext, WorksWhereNothingIsRecorded) {
  Recorded<Cpu> r(Task::classification);
  const TrainRows train = r.rows(6, 1);
  RecordedContext<Cpu> context(r.network, train);
  for (const std::uint64_t seed : {2, 3})
    EXPECT_EQ(context.predict(r.cells(4, seed)).to_vector<float>(), r.expected(train, r.cells(4, seed)));
  testing::expect_error<ShapeError>([&] { context.read(train); }, {"does not record"});
}

}  // namespace
}  // namespace ferrite::pfn
