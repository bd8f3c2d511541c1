// The prior-fitted network on any backend: training steps and inference. benches/pfn/torch_rows.py measures
// the same network in PyTorch; rows have the same names up to the last part. Tables are random and the batch
// stays the same: making tables is not measured, except as the difference of two rows pfn_course, of which
// `made` has new tables of the prior in every step and `again` has the same ones.
//
//   pfn_bench --backend cuda --benchmark_repetitions=5 --benchmark_out=ferrite.json
//   pfn_bench --backend cpu --tables 1 --train-rows 112 --query-rows 128 --columns 8
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <filesystem>
#include <random>

#include "ferrite/backend/record.hpp"
#include "ferrite/models/pfn/file.hpp"
#include "ferrite/models/pfn/predictor_config.hpp"
#include "ferrite/models/pfn/prior_batches.hpp"
#include "ferrite/train/stacks.hpp"

namespace ferrite {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int classes = 4;  // that the tables have

struct Sizes {
  std::int64_t tables = 0, train = 0, query = 0, columns = 0;
  std::int64_t rows() const { return train + query; }
  std::string name() const { return fmt::format("{}x{}+{}x{}", tables, train, query, columns); }
};

struct Options {
  std::string backend = "auto", optimizer = "adamw";
  std::vector<std::string> dtypes;
  pfn::Config network;
  Sizes given;
};

/// Some tables on the host, with missing cells.
struct HostTables {
  std::vector<float> x, is_category;
  std::vector<std::int32_t> y;

  explicit HostTables(const Sizes& s) {
    std::mt19937 bits(1);
    std::normal_distribution<float> normal;
    std::uniform_real_distribution<float> uniform;
    for (std::int64_t i = 0; i < s.tables * s.rows() * s.columns; ++i)
      x.push_back(uniform(bits) < 0.03f ? std::nanf("") : normal(bits));
    for (std::int64_t i = 0; i < s.tables * s.columns; ++i) is_category.push_back(uniform(bits) < 0.3f);
    for (std::int64_t i = 0; i < s.tables * s.rows(); ++i)
      y.push_back(static_cast<std::int32_t>(bits() % classes));
  }
};

/// Runs `call` and tells the mean time of one in `calls`, after which the host waits.
template <class Call, class Wait>
void measure(benchmark::State& state, const Call& call, const Wait& wait, int calls) {
  wait();
  for (auto _ : state) {
    const auto start = Clock::now();
    for (int i = 0; i < calls; ++i) call();
    wait();
    state.SetIterationTime(std::chrono::duration<double>(Clock::now() - start).count() / calls);
  }
}

/// The settings of `ferrite pfn train`.
template <class B>
std::unique_ptr<optim::Optimizer<B>> optimizer_of(const std::string& name, nn::Pfn<B>& model) {
  const auto usual = [](auto config, double lr) {
    return config.with_lr(lr)
        .with_betas(0.9, 0.98)
        .with_weight_decay(0.01)
        .with_no_decay(optim::biases_and_norms)
        .with_clip_norm(1);
  };
  if (name == "adamw")
    return std::make_unique<optim::AdamW<B>>(model.parameters(), usual(optim::AdamWConfig{}, 1e-3));
  const auto muon =
      optim::MuonConfig{}.with_scale(optim::MuonScale::adam).with_matrices(optim::under("blocks"));
  return std::make_unique<optim::Muon<B>>(model.parameters(), usual(muon, 2e-3));
}

/// Forward, loss, backward, clipping and the update.
template <class B>
void train(benchmark::State& state, B backend, const Options& o, const Sizes& s, bool recorded) {
  Rng rng(1);
  nn::Pfn<B> model(backend, o.network, rng);
  const auto optimizer = optimizer_of(o.optimizer, model);
  optimizer->keep_schedule_on_device();
  const HostTables host(s);
  const auto x = from_vector(backend, host.x, {s.tables, s.rows(), s.columns}),
             is_category = from_vector(backend, host.is_category, {s.tables, s.columns}),
             y = from_vector(backend, host.y, {s.tables, s.rows()}),
             labels = contiguous(slice(y, 1, 0, s.train)),
             targets = contiguous(slice(y, 1, s.train, s.rows())),
             present =
                 from_vector(backend, std::vector<std::int32_t>(static_cast<std::size_t>(s.tables), classes));
  Tensor<B> loss;
  const auto step = [&] {
    loss = model.loss(x, is_category, labels, targets, present);
    optimizer->step(backward(loss, BackwardConfig<typename B::Inner>{}.with_release()));
  };
  for (int i = 0; i < 3; ++i) step();
  std::unique_ptr<RecordedStep> graph;
  if (recorded) {
    loss = {};
    graph = record(backend, step);
  }
  const bool on_gpu = backend.device().kind == DeviceKind::cuda;
  measure(
      state, [&] { graph ? graph->replay() : step(); }, [&] { backend.synchronize(); }, on_gpu ? 10 : 1);
  const auto cells = static_cast<double>(s.tables * s.rows() * (s.columns + 1));
  std::int64_t parameters = 0;
  for (const auto& p : model.parameters()) parameters += p.tensor.numel();
  state.counters["parameters"] = static_cast<double>(parameters);
  state.counters["cells"] = cells;
  state.counters["steps_per_s"] = {1, benchmark::Counter::kIsIterationInvariantRate};
  state.counters["cells_per_s"] = {cells, benchmark::Counter::kIsIterationInvariantRate};
}

/// Recorded steps on tables of the prior, in a course of one size.
template <class B>
void train_on_course(benchmark::State& state, B backend, const Options& o, const Sizes& s, bool made) {
  pfn::PriorBatches<B> batches(pfn::CourseConfig{}
                                   .with_stages({{0, {{s.train, s.query}}, {s.columns}}})
                                   .with_cells(s.tables * s.rows() * (s.columns + 1)));
  Rng rng(1);
  nn::Pfn<B> model(backend, o.network, rng);
  const auto optimizer = optimizer_of(o.optimizer, model);
  optimizer->keep_schedule_on_device();
  const data::Batch<B> batch = batches.load(backend, *batches.pull());
  const auto step = [&] {
    const Tensor<B> loss = model.loss(batch.x, batch.more[0], batch.more[1], batch.y, batch.more[2]);
    optimizer->step(backward(loss, BackwardConfig<typename B::Inner>{}.with_release()));
  };
  for (int i = 0; i < 3; ++i) step();
  const auto graph = record(backend, step);
  const data::HostBatch same = *batches.pull();
  // Tables are made for 64 batches at most: this many steps have some made several times.
  measure(
      state,
      [&] {
        batches.load_into(made ? *batches.pull() : same, batch);
        graph->replay();
      },
      [&] { backend.synchronize(); }, 512);
}

/// Cells on the host to probabilities on the host, of `together` tables at a time.
void infer(benchmark::State& state, const AnyBackend& on, const Options& o, const Sizes& s, DType dtype,
           std::int64_t together, bool recorded) {
  AnyBackend backend = on;
  Rng rng(1);
  nn::Pfn<AnyBackend> model(backend, o.network.with_dtype(dtype), rng);
  const HostTables host(s);
  std::vector<HostTensor> x, is_category, labels;
  for (std::int64_t first = 0; first < s.tables; first += together) {
    const auto part = [&](const auto& all, std::int64_t of_table, const Shape& shape) {
      return HostTensor::from(std::span(all).subspan(static_cast<std::size_t>(first * of_table),
                                                     static_cast<std::size_t>(together * of_table)),
                              shape);
    };
    x.push_back(part(host.x, s.rows() * s.columns, {together, s.rows(), s.columns}));
    is_category.push_back(part(host.is_category, s.columns, {together, s.columns}));
    labels.push_back(part(host.y, s.train, {together, s.train}));
  }
  const auto x_now = from_host(backend, x[0]), flags_now = from_host(backend, is_category[0]),
             labels_now = from_host(backend, labels[0]);
  Tensor<AnyBackend> p;
  const auto predict = [&] {
    p = softmax(slice(model.forward(x_now, flags_now, labels_now), 2, 0, classes), -1);
  };
  for (int i = 0; i < 3; ++i) predict();
  std::unique_ptr<RecordedStep> graph;
  if (recorded) {
    p = {};
    graph = record(backend, predict);
  }
  const auto run = [&] {
    for (std::size_t i = 0; i < x.size(); ++i) {
      assign(x_now, x[i]);
      assign(flags_now, is_category[i]);
      assign(labels_now, labels[i]);
      graph ? graph->replay() : predict();
      benchmark::DoNotOptimize(p.to_vector<float>());
    }
  };
  measure(
      state, run, [&] { backend.synchronize(); }, 1);
}

/// The same with the predictor around the network: as many members as tables, each with its view of one
/// table.
void infer_by_predictor(benchmark::State& state, const Options& o, const Sizes& s, DType dtype,
                        std::int64_t together) {
  const auto path = std::filesystem::temp_directory_path() /
                    fmt::format("pfn_bench-{}.safetensors", std::random_device{}());
  Cpu cpu;
  Rng rng(1);
  nn::Pfn<Cpu> network(cpu, o.network.with_dtype(dtype), rng);
  pfn::save(path, network);
  const HostTables host({1, s.train, s.query, s.columns});
  pfn::EncodedTable all;
  for (std::int64_t c = 0; c < s.columns; ++c) {
    const bool is_category = host.is_category[static_cast<std::size_t>(c)] > 0;
    all.features.push_back({std::to_string(c), std::to_string(c), is_category, is_category ? 10 : 0});
  }
  for (int c = 0; c < classes; ++c) all.class_names.push_back(std::to_string(c));
  all.rows = s.rows();
  all.x = host.x;
  all.classes = host.y;
  std::vector<std::int64_t> order(static_cast<std::size_t>(s.rows()));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  const auto train_rows = all.take(std::span(order).first(static_cast<std::size_t>(s.train))),
             query_rows = all.take(std::span(order).subspan(static_cast<std::size_t>(s.train)));
  const auto fit_predict =
      pfn::fit_predict(pfn::PredictorConfig{}
                           .with_weights(path.string())
                           .with_backend(o.backend)
                           .with_precision(dtype == DType::f32 ? pfn::Precision::f32 : pfn::Precision::bf16)
                           .with_members(s.tables)
                           .with_records(true)
                           .with_members_together(together));
  fit_predict(train_rows, query_rows);  // reads the weights
  std::filesystem::remove(path);
  measure(
      state, [&] { benchmark::DoNotOptimize(fit_predict(train_rows, query_rows)); }, [] {}, 1);
}

template <class Body>
auto* add(const std::string& name, const Body& body) {
  return benchmark::RegisterBenchmark(
             name.c_str(),
             [body](benchmark::State& state) {
               try {
                 body(state);
               } catch (const std::exception& error) {  // one row must not cost the others
                 state.SkipWithError(error.what());
               }
             })
      ->UseManualTime()
      ->Unit(benchmark::kMillisecond);
}

Sizes given_or(const Sizes& given, const Sizes& usual) {
  const auto either = [](std::int64_t a, std::int64_t b) { return a > 0 ? a : b; };
  Sizes s{either(given.tables, usual.tables), either(given.train, usual.train),
          either(given.query, usual.query), either(given.columns, usual.columns)};
  if (s.tables == 0) s.tables = std::max<std::int64_t>(1, 100'000 / (s.rows() * (s.columns + 1)));
  return s;
}

/// Of the standard course (src/models/pfn/course.cpp); fewer tables for a CPU, where a step takes seconds.
std::vector<Sizes> usual_sizes(bool on_gpu) {
  if (!on_gpu) return {{8, 64, 64, 3}, {2, 112, 128, 8}, {1, 240, 128, 21}};
  return {{195, 64, 64, 3}, {46, 112, 128, 8}, {12, 240, 128, 21}, {2, 1008, 128, 36}};
}

void add_rows(const AnyBackend& backend, const Options& o) {
  const bool on_gpu = backend.device().kind == DeviceKind::cuda, records = can_record(backend);
  const Sizes& g = o.given;
  const std::vector<Sizes> sizes = g.tables + g.train + g.query + g.columns > 0
                                       ? std::vector{given_or(g, {0, 240, 128, 21})}
                                       : usual_sizes(on_gpu);
  const std::vector<bool> modes = records ? std::vector{false, true} : std::vector{false};
  const auto dtypes = [&](std::vector<std::string> usual) { return o.dtypes.empty() ? usual : o.dtypes; };
  for (const Sizes& s : sizes)
    for (const std::string& dtype : dtypes({on_gpu ? "bf16" : "f32"}))
      for (const bool recorded : modes)
        add(fmt::format("pfn_train/{}/{}/{}/{}", s.name(), dtype, o.optimizer, recorded ? "graph" : "eager"),
            [=](benchmark::State& state) {
              if (dtype == "f32") return train(state, Autodiff<AnyBackend>(backend), o, s, recorded);
              train(state, Autodiff<Autocast<AnyBackend>>(Autocast<AnyBackend>(backend)), o, s, recorded);
            });
  if (records)
    for (const Sizes& s : sizes)
      for (const bool made : {true, false})
        add(fmt::format("pfn_course/{}/bf16/{}/{}", s.name(), o.optimizer, made ? "made" : "again"),
            [=](benchmark::State& state) {
              train_on_course(state, Autodiff<Autocast<AnyBackend>>(Autocast<AnyBackend>(backend)), o, s,
                              made);
            })
            ->Iterations(1);  // one is 512 steps already
  const Sizes s = given_or(g, {4, 500, 500, 10});
  for (const std::string& name : dtypes({"f32", "bf16"}))
    for (const bool batch : {true, false}) {
      const std::int64_t together = batch ? s.tables : 1;
      const DType dtype = name == "f32" ? DType::f32 : DType::bf16;
      const std::string row = fmt::format("pfn_infer/{}/{}/{}", s.name(), name, batch ? "batch" : "single");
      for (const bool recorded : modes)
        add(row + (recorded ? "/graph" : "/eager"),
            [=](benchmark::State& state) { infer(state, backend, o, s, dtype, together, recorded); });
      add(row + "/predictor",
          [=](benchmark::State& state) { infer_by_predictor(state, o, s, dtype, together); });
    }
}

}  // namespace
}  // namespace ferrite

int main(int argc, char** argv) {
  using namespace ferrite;
  CLI::App app(
      "The prior-fitted network: training steps and inference. Also takes Google Benchmark's flags.");
  Options o;
  app.add_option("--backend", o.backend, "A name of AnyBackend")->capture_default_str();
  app.add_option("--optimizer", o.optimizer)->check(CLI::IsMember({"adamw", "muon"}))->capture_default_str();
  app.add_option("--dtypes", o.dtypes,
                 "f32, bf16; default: training bf16 (mixed) on a GPU, else f32; inference both")
      ->check(CLI::IsMember({"f32", "bf16"}));
  app.add_option("--tables", o.given.tables, "Of a batch; default: about 100,000 cells, for inference 4");
  app.add_option("--train-rows", o.given.train, "Of a table; with none of these four, sizes of the course");
  app.add_option("--query-rows", o.given.query);
  app.add_option("--columns", o.given.columns);
  app.add_option("--layers", o.network.layers)->capture_default_str();
  app.add_option("--dim", o.network.dim)->capture_default_str();
  app.add_option("--hidden", o.network.hidden)->capture_default_str();
  app.allow_extras();
  CLI11_PARSE(app, argc, argv);
  std::vector<std::string> rest = app.remaining();
  std::vector<char*> flags{argv[0]};
  for (std::string& flag : rest) flags.push_back(flag.data());
  int count = static_cast<int>(flags.size());
  flags.push_back(nullptr);
  benchmark::Initialize(&count, flags.data());
  if (benchmark::ReportUnrecognizedArguments(count, flags.data())) return 1;
  try {
    const AnyBackend backend(o.backend);
    fmt::print(stderr, "{}\n", backend.describe());
    add_rows(backend, o);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
