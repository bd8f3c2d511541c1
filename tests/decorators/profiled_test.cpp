// Profiled counts calls, time, work and memory per op, and writes traces that others can read.
#include "ferrite/decorators/profiled.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "decorators/profiled/launch_note.hpp"
#include "ferrite/autodiff/autodiff.hpp"
#include "ferrite/backend/reference.hpp"
#include "ferrite/ops/cat.hpp"
#include "ferrite/ops/optimizer_steps.hpp"
#include "ferrite/ops/softmax.hpp"
#include "ferrite/ops/sort.hpp"
#include "ferrite/tensor/tensor_data.hpp"
#include "profiled_support.hpp"

namespace ferrite {
namespace {

/// Reference with a clock of its own, by which every measurement takes 1000 ns, and with one fused op that
/// it takes for f32 only.
struct Clocked : Reference {
  std::int64_t now = 0;

  struct Watch {
    Clocked& owner;
    std::int64_t start;
    TimeSpan stop() {
      owner.now += 1000;
      return {start, owner.now - start};
    }
  };
  Watch stopwatch() { return {*this, now}; }

  friend void run(Clocked& b, const op::Softmax& op, Ins in, Outs out) {
    auto y = evaluate(static_cast<Reference&>(b), op, in);
    const Array* source[] = {&y[0]};
    run(static_cast<Reference&>(b), op::Copy{out[0].dtype()}, Ins(source, 1), out);
  }
  friend bool accepts(const Clocked&, const op::Softmax&, MetaSpan in) { return in[0].dtype == DType::f32; }
  friend void run(Clocked& b, const op::Matmul& op, Ins in, Outs out) {
    run(static_cast<Reference&>(b), op, in, out);
  }
  friend void run(Clocked& b, const op::Matmul& op, Ins in, Outs out, Accumulate mask) {
    if (mask == Accumulate::none) return run(static_cast<Reference&>(b), op, in, out);
    const auto y = evaluate(static_cast<Reference&>(b), op, in);
    const Array* operands[] = {&y[0], &out[0]};
    run(static_cast<Reference&>(b), op::Binary{op::BinaryFn::add}, Ins(operands, 2), out);
  }
};

struct File {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() /
      ("ferrite-" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()) + ".json");
  ~File() { std::filesystem::remove(path); }
  nlohmann::json read() const { return nlohmann::json::parse(std::ifstream(path)); }
};

TEST(Profiled, HasExactlyTheKernelsOfTheInnerBackend) {
  static_assert(Backend<Profiled<Clocked>>);
  static_assert(Runs<Profiled<Clocked>, op::Softmax>);
  static_assert(!Runs<Profiled<Reference>, op::Softmax>);
  static_assert(RunsAccumulating<Profiled<Clocked>, op::Matmul>);
  static_assert(!RunsAccumulating<Profiled<Reference>, op::Matmul>);
}

TEST(Profiled, TracesHowAKernelWasStarted) {
  ProfileRecorder recorder(ProfiledConfig{}.with_trace(true));
  detail::note_launch("4 blocks of 256 threads");
  recorder.add("first", OpKind::kernel, TimeSpan{0, 10}, {}, {}, {});
  recorder.add("second", OpKind::kernel, TimeSpan{10, 10}, {}, {}, {});
  const File file;
  recorder.write_trace(file.path, "here");
  const auto events = file.read()["traceEvents"];
  EXPECT_EQ(events[1]["args"]["launch"], "4 blocks of 256 threads");
  EXPECT_FALSE(events[2]["args"].contains("launch"));
}

TEST(Profiled, CountsCallsTimeWorkAndMemoryPerOp) {
  Profiled<Clocked> b;
  const auto x = ones(b, {4, 8}), w = ones(b, {8, 2});
  matmul(x, w);
  matmul(x, w);
  exp(x);
  const Profile profile = b.profile();
  EXPECT_EQ(profile.backend, "reference");
  const OpProfile& product = find(profile, "matmul", OpKind::kernel);
  EXPECT_EQ(product.calls, 2);
  EXPECT_DOUBLE_EQ(product.seconds, 2e-6);
  EXPECT_DOUBLE_EQ(product.min_seconds, 1e-6);
  EXPECT_DOUBLE_EQ(product.max_seconds, 1e-6);
  EXPECT_DOUBLE_EQ(product.mean_seconds(), 1e-6);
  EXPECT_DOUBLE_EQ(product.flops, 2 * (2 * 4 * 8 * 2));
  EXPECT_DOUBLE_EQ(product.flops_per_second(), 128e6);
  EXPECT_DOUBLE_EQ(product.bytes, 2 * 4 * (32 + 16 + 8));
  EXPECT_DOUBLE_EQ(product.bytes_per_second(), 224e6);
  EXPECT_DOUBLE_EQ(product.allocated, 2 * 4 * 8);
  EXPECT_DOUBLE_EQ(find(profile, "exp", OpKind::kernel).allocated, 4 * 32);
  EXPECT_DOUBLE_EQ(find(profile, "ones", OpKind::kernel).allocated, 4 * (32 + 16));
  EXPECT_DOUBLE_EQ(profile.kernel_seconds(), 5e-6);
}

TEST(Profiled, TellsFusedOpsFromComposedOnesAndListsTheKernelsInside) {
  Profiled<Clocked> b;
  softmax(ones(b, {2, 3}));
  softmax(ones(b, {2, 3}, DType::f64));  // not accepted: composed of max, sub, exp, sum, div
  const Profile profile = b.profile();
  EXPECT_EQ(find(profile, "softmax", OpKind::fused).calls, 1);
  const OpProfile& composed = find(profile, "softmax", OpKind::composed);
  EXPECT_EQ(composed.calls, 1);
  EXPECT_DOUBLE_EQ(composed.seconds, 6e-6);  // five kernels and its own watch
  EXPECT_DOUBLE_EQ(composed.allocated, 8 * (2 + 6 + 6 + 2 + 6));
  for (const char* inside : {"max", "sub", "exp", "sum", "div"})
    EXPECT_EQ(find(profile, inside, OpKind::kernel).calls, 1);
  EXPECT_DOUBLE_EQ(profile.kernel_seconds(), 8e-6);  // two fills, the fused softmax, five kernels
  EXPECT_EQ(profile.ops[0].kind, OpKind::composed);  // the slowest first
}

TEST(Profiled, ListsAssembledOpsAroundTheirFillsAndCopies) {
  Profiled<Clocked> b;
  const auto x = ones(b, {2, 3});
  b.reset();
  cat(std::vector{x, x}, 0);
  const Profile joined = b.profile();
  const OpProfile& row = find(joined, "cat", OpKind::composed);
  EXPECT_EQ(row.calls, 1);
  EXPECT_DOUBLE_EQ(row.seconds, 3e-6);  // two copies and its own watch
  EXPECT_DOUBLE_EQ(row.allocated, 4 * 12);
  EXPECT_EQ(find(joined, "copy", OpKind::kernel).calls, 2);
  EXPECT_DOUBLE_EQ(joined.kernel_seconds(), 2e-6);

  pad(x, {1, 1}, {0, 0});
  sort(x);
  eval(op::Fold{0, 4, 1, 1}, x);
  for (const char* name : {"pad", "sort", "fold"})
    EXPECT_EQ(find(b.profile(), name, OpKind::composed).calls, 1);
}

TEST(Profiled, ListsComposedUpdatesInPlaceAroundTheirKernels) {
  Profiled<Clocked> b;
  const auto p = ones(b, {5}), g = ones(b, {5}), v = zeros(b, {5}), clip = ones(b, {});
  const Array* in[] = {&p.primitive(), &g.primitive(), &v.primitive(), &clip.primitive()};
  Array out[] = {p.primitive(), v.primitive()};
  b.reset();
  evaluate_in_place(b, op::Sgd{0.1, 0.9, false, 0.01}, Ins(in, 4), Outs(out, 2));
  const Profile profile = b.profile();
  const OpProfile& row = find(profile, "sgd", OpKind::composed);
  EXPECT_EQ(row.calls, 1);
  EXPECT_EQ(find(profile, "copy", OpKind::kernel).calls, 2);  // of the results into their places
  EXPECT_DOUBLE_EQ(row.seconds, profile.kernel_seconds() + 1e-6);
}

TEST(Profiled, MeasuresBackwardAndAccumulatingKernelsUnderAutodiff) {
  Autodiff<Profiled<Clocked>> b;
  const auto x = ones(b, {3, 4}), w = parameter(ones(b, {4, 2}), "w");
  const auto loss = sum(matmul(x, w) + matmul(x * 2, w));
  b.inner().reset();
  loss.backward();
  const Profile profile = b.inner().profile();
  const OpProfile& products = find(profile, "matmul", OpKind::kernel);
  EXPECT_EQ(products.calls, 2);
  EXPECT_DOUBLE_EQ(products.allocated, 4 * 8);  // the second adds in place
}

TEST(Profiled, UsesAClockWhereTheBackendHasNone) {
  Profiled<Reference> b;
  const auto x = ones(b, {100, 100});
  for (int i = 0; i < 3; ++i) exp(x);
  const Profile profile = b.profile();
  const OpProfile& op = find(profile, "exp", OpKind::kernel);
  EXPECT_GT(op.min_seconds, 0);
  EXPECT_LE(op.min_seconds, op.mean_seconds());
  EXPECT_LE(op.mean_seconds(), op.max_seconds);
  EXPECT_LE(op.max_seconds, op.seconds);
}

TEST(Profiled, PrintsAnAlignedTableWithSharesAndATotal) {
  Profiled<Clocked> b;
  softmax(ones(b, {2, 3}, DType::f64));
  const std::string all = table(b.profile());
  EXPECT_NE(all.find("softmax  composed        1     6.00 us"), std::string::npos) << all;
  EXPECT_NE(all.find("total    kernels         6     6.00 us 100.0 %"), std::string::npos) << all;
  EXPECT_NE(all.find("16.7 %"), std::string::npos) << all;
  const std::string top = table(b.profile(), 2);
  EXPECT_NE(top.find("... 5 more"), std::string::npos) << top;
  EXPECT_EQ(std::count(top.begin(), top.end(), '\n'), 6);
}

TEST(Profiled, WritesItselfAsJson) {
  Profiled<Clocked> b;
  exp(ones(b, {5}));
  const auto json = nlohmann::json::parse(to_json(b.profile()));
  EXPECT_EQ(json["backend"], "reference");
  EXPECT_EQ(json["ops"].size(), 2u);
  EXPECT_EQ(json["ops"][0]["name"], "exp");
  EXPECT_EQ(json["ops"][0]["kind"], "kernel");
  EXPECT_EQ(json["ops"][0]["calls"], 1);
  EXPECT_EQ(json["ops"][0]["seconds"], 1e-6);
  EXPECT_EQ(json["devices"][0]["device"], "cpu");
  EXPECT_EQ(json["devices"][0]["name"], "reference");
  EXPECT_TRUE(json["transfers"].empty());
  EXPECT_TRUE(json["compile_times"].empty());
}

/// What a backend with a pool and a compiler tells of itself.
struct Telling : Clocked {
  BackendFacts facts() const {
    return {"a device",
            {{"multiprocessors", 132}, {"clock_mhz", 1980.5}},
            {{"reserved_bytes", 1 << 20}, {"fragmentation", 0.25}},
            {{"choose gemm", 2, 1.5}, {"load a library", 1, 0.5}}};
  }
  Ceilings ceilings() const { return {448e6, 256e6}; }
  Array copy_from_device(const Array& array) { return array; }
};

TEST(Profiled, ReportsWhatTheBackendTellsOfItselfAndTransfersByDirection) {
  Profiled<Telling> b;
  const auto x = from_vector(b, std::vector<float>(32), {4, 8}), w = ones(b, {8, 2});
  matmul(x, w).to_vector();
  b.copy_from_device(x.primitive());
  const Profile profile = b.profile();
  EXPECT_DOUBLE_EQ(profile.compile_seconds(), 2);
  EXPECT_NE(table(profile).find("choosing plans: 2.000 s\n"), std::string::npos) << table(profile);
  const auto json = nlohmann::json::parse(to_json(profile));
  EXPECT_EQ(json["devices"], nlohmann::json::parse(R"([{"device": "cpu", "name": "a device",
                                                        "multiprocessors": 132, "clock_mhz": 1980.5}])"));
  EXPECT_EQ(json["memory"]["reserved_bytes"], 1 << 20);
  EXPECT_EQ(json["memory"]["fragmentation"], 0.25);
  EXPECT_TRUE(json["memory"].contains("peak_bytes"));
  EXPECT_EQ(json["compile_seconds"], 2);
  EXPECT_EQ(json["compile_times"],
            nlohmann::json::parse(R"([{"what": "choose gemm", "count": 2, "seconds": 1.5},
                                      {"what": "load a library", "count": 1, "seconds": 0.5}])"));
  const auto& transfers = json["transfers"];
  EXPECT_EQ(transfers.size(), 3u);
  EXPECT_EQ(transfers["host_to_device"]["calls"], 1);
  EXPECT_EQ(transfers["host_to_device"]["bytes"], 4 * 32);
  EXPECT_EQ(transfers["device_to_host"]["bytes"], 4 * 8);
  EXPECT_EQ(transfers["device_to_host"]["seconds"], 1e-6);
  EXPECT_EQ(transfers["device_to_device"]["bytes_per_second"], 128e6);
  const auto product = std::find_if(json["ops"].begin(), json["ops"].end(),
                                    [](const auto& op) { return op["name"] == "matmul"; });
  ASSERT_NE(product, json["ops"].end());
  EXPECT_DOUBLE_EQ((*product)["share_of_product_rate"], 0.5);
  EXPECT_DOUBLE_EQ((*product)["share_of_copy_bandwidth"], 0.5);
}

TEST(Profiled, WritesATraceWithComposedOpsAroundTheirKernels) {
  File file;
  Profiled<Clocked> b(ProfiledConfig{}.with_trace(true));
  const auto x = ones(b, {2, 3}, DType::f64);
  softmax(x);
  b.write_trace(file.path);
  const auto json = file.read();
  std::map<std::string, nlohmann::json> events;
  for (const auto& event : json["traceEvents"])
    if (event["ph"] == "X") events[event["name"]] = event;
  ASSERT_EQ(events.size(), 7u);
  EXPECT_EQ(events["ones"]["ts"], 0);
  EXPECT_EQ(events["ones"]["dur"], 1);
  EXPECT_EQ(events["exp"]["cat"], "kernel");
  EXPECT_EQ(events["exp"]["args"]["shapes"], "f64[2, 3] -> f64[2, 3]");
  EXPECT_EQ(events["exp"]["args"]["bytes"], 96);
  const auto begin = [&](const char* name) { return events[name]["ts"].get<double>(); };
  const auto end = [&](const char* name) { return begin(name) + events[name]["dur"].get<double>(); };
  EXPECT_EQ(events["softmax"]["cat"], "composed");
  for (const char* inside : {"max", "sub", "exp", "sum", "div"}) {
    EXPECT_LE(begin("softmax"), begin(inside));
    EXPECT_GE(end("softmax"), end(inside));
    EXPECT_EQ(events[inside]["tid"], events["softmax"]["tid"]);
  }
}

TEST(Profiled, BoundsTheTraceAndCountsWhatItDrops) {
  File file;
  Profiled<Clocked> b(ProfiledConfig{}.with_trace(true).with_max_events(3));
  for (int i = 0; i < 10; ++i) ones(b, {1});
  EXPECT_EQ(b.profile().dropped_events, 7u);
  EXPECT_EQ(find(b.profile(), "ones", OpKind::kernel).calls, 10);
  b.write_trace(file.path);
  EXPECT_EQ(file.read()["traceEvents"].size(), 4u);  // one names the process
  EXPECT_EQ(file.read()["otherData"]["dropped_events"], 7);
  b.reset();
  EXPECT_EQ(b.profile().dropped_events, 0u);
  EXPECT_TRUE(b.profile().ops.empty());
}

TEST(Profiled, KeepsNoEventsUnlessAsked) {
  File file;
  Profiled<Clocked> b;
  ones(b, {1});
  b.write_trace(file.path);
  EXPECT_EQ(file.read()["traceEvents"].size(), 1u);
}

TEST(Profiled, MayBeUsedBySeveralThreads) {
  File file;
  Profiled<Reference> b(ProfiledConfig{}.with_trace(true));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) exp(ones(b, {8}));
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(find(b.profile(), "exp", OpKind::kernel).calls, 200);
  b.write_trace(file.path);
  EXPECT_EQ(file.read()["traceEvents"].size(), 401u);
}

}  // namespace
}  // namespace ferrite
