// ferrite gpt bench: how fast a model trains here, and how fast it writes.
#include "cli/gpt/bench.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/backend_option.hpp"
#include "cli/bench/report.hpp"
#include "cli/gpt/gpt.hpp"
#include "cli/gpt/train.hpp"
#include "cli/show_json.hpp"
#include "ferrite/backend/cuda_device.hpp"
#include "ferrite/core/error.hpp"

namespace ferrite::cli {
namespace {

using namespace gpt;

struct GptBenchOptions {
  BenchOptions bench;
  std::string size = "gpt2", backend = "auto", precision = "auto";
  bool json = false, decode = false, fastest = false, data_parallel = false;
};

/// Of a token: six for every parameter that multiplies, and the scores and weighted sums of attention.
double flops_per_token(const nn::GptConfig& config, std::int64_t length) {
  const auto dim = static_cast<double>(config.dim), layers = static_cast<double>(config.layers);
  const double products = 12 * layers * dim * dim + static_cast<double>(config.padded_vocab()) * dim;
  return 6 * products + 6 * layers * dim * static_cast<double>(length);  // half of the scores are hidden
}

/// ", up to 1980 MHz" of a GPU. --json has its clock right after the steps.
std::string clock_text(const Device& device) {
  if (device.kind != DeviceKind::cuda) return "";
  for (const CudaDeviceInfo& gpu : cuda_devices())
    if (gpu.index == device.index) return fmt::format(", up to {} MHz", gpu.clock_mhz);
  return "";
}

nlohmann::json training_row(const GptBenchOptions& o, const BenchResult& r, const AnyBackend& backend,
                            bool bf16, double product_rate) {
  const double tokens = static_cast<double>(r.batch * o.bench.length * r.steps) / r.seconds;
  const double rate = tokens * flops_per_token(o.bench.model, o.bench.length);
  nlohmann::json row = {{"size", o.size},
                        {"batch", r.batch},
                        {"length", o.bench.length},
                        {"precision", bf16 ? "bf16" : "f32"},
                        {"fastest", o.fastest},
                        {"backend", backend.describe()},
                        {"steps", r.steps},
                        {"seconds", r.seconds},
                        {"warmup_seconds", r.warmup_seconds},
                        {"milliseconds_per_step", 1e3 * r.seconds / static_cast<double>(r.steps)},
                        {"tokens_per_second", tokens},
                        {"flops_per_second", rate},
                        {"peak_bytes", r.peak_bytes},
                        {"loss", r.loss}};
  if (product_rate > 0) row["share_of_product_rate"] = rate / product_rate;
  if (!o.bench.data.empty()) row["data"] = o.bench.data;
  return row;
}

int run_decode(const GptBenchOptions& o, AnyBackend& backend, bool bf16) {
  const std::string precision =
      std::string(bf16 ? "bf16" : "f32") + (o.bench.int8 ? " with int8 weights" : "");
  if (!o.json)
    fmt::print(
        "{} ({:.1f}M parameters) on {}, {}, prompts of {} tokens, texts of {}\n{:>6} {:>14} {:>12} {:>10}\n",
        o.size, static_cast<double>(o.bench.model.parameter_count()) / 1e6, backend.describe(), precision,
        o.bench.prompt_length, o.bench.length, "batch", "us / step", "tokens / s", "memory");
  for (const std::int64_t batch : o.bench.batches) {
    const DecodeResult r = bench_decode(backend, o.bench, batch, bf16 ? DType::bf16 : DType::f32);
    const double rate = static_cast<double>(r.measured) / r.seconds;
    const double step = 1e6 * static_cast<double>(batch) / rate;
    const nlohmann::json row = {
        {"size", o.size},
        {"batch", batch},
        {"prompt_length", o.bench.prompt_length},
        {"length", o.bench.length},
        {"precision", precision},
        {"backend", backend.describe()},
        {"tokens", r.measured},
        {"seconds", r.seconds},
        {"text_seconds", r.text_seconds},
        {"microseconds_per_step", step},
        {"tokens_per_second", rate},
        {"peak_bytes", r.peak_bytes},
        {"hardware", o.json ? bench::hardware_here() : nullptr}};  // clocks after work
    if (o.json)
      show_json(row, -1);
    else
      fmt::print("{:>6} {:>14.1f} {:>12.0f} {:>6.2f} GiB\n", batch, step, rate, r.peak_bytes / (1 << 30));
  }
  return success;
}

int run_bench(GptBenchOptions o) {
  o.bench.model = o.bench.model.with_context(std::max(o.bench.model.context, o.bench.length));
  if (o.bench.length == 0) o.bench.length = o.bench.model.context;
  std::unique_ptr<dist::Group> group;
  AnyBackend backend(o.data_parallel ? TrainingRanks().backend(o.backend) : o.backend);
  if (o.data_parallel) group = dist::world(backend.device());
  o.bench.group = group.get();
  const bool is_silent = group && group->rank() > 0;
  const bool bf16 = precision_on(backend, o.precision) == "bf16";
  Cuda* const gpu = backend.get_if<Cuda>();
  o.fastest = o.fastest && gpu;  // the CPU knows no other gradients
  if (o.fastest) gpu->set_determinism(Determinism::fastest);
  if (o.decode) return run_decode(o, backend, bf16);
  double product_rate = 0;
  if (const Cuda* cuda = backend.get_if<Cuda>(); cuda && bf16)
    product_rate = cuda->ceilings().flops_per_second;
  if (!o.json && !is_silent)
    fmt::print(
        "{} ({:.1f}M parameters) on {}{}, {}, rows of {} tokens{}\n{:>6} {:>12} {:>12} {:>12} {:>10} "
        "{:>10}\n",
        o.size, static_cast<double>(o.bench.model.parameter_count()) / 1e6, backend.describe(),
        clock_text(backend.device()), bf16 ? "bf16" : "f32", o.bench.length,
        group ? fmt::format(", on each of {} ranks ({})", group->size(), group->describe()) : "", "batch",
        "ms / step", "tokens / s", "TFLOP/s", "of peak", "memory");
  for (const std::int64_t batch : o.bench.batches) {
    BenchResult result;
    try {
      result = bf16 ? bench_bf16(backend, o.bench, batch) : bench_f32(backend, o.bench, batch);
    } catch (const OutOfMemory& error) {
      TrainOptions like;
      like.model = o.bench.model, like.batch = batch, like.length = o.bench.length;
      throw OutOfMemory(too_large("gpt bench", like, backend, bf16, error.what()));
    }
    nlohmann::json row = training_row(o, result, backend, bf16, product_rate);
    if (group) row["group"] = group->describe(), row["shard_optimizer"] = o.bench.shard_optimizer;
    if (is_silent) continue;
    if (o.json) {
      row["hardware"] = bench::hardware_here();  // after the steps: an idle machine has lower clocks
      show_json(row, -1);
      continue;
    }
    const double share = row.value("share_of_product_rate", 0.0);
    fmt::print("{:>6} {:>12.2f} {:>12.0f} {:>12.2f} {:>10} {:>6.2f} GiB\n", batch,
               row["milliseconds_per_step"].get<double>(), row["tokens_per_second"].get<double>(),
               row["flops_per_second"].get<double>() / 1e12,
               share > 0 ? fmt::format("{:.0f} %", 100 * share) : "", result.peak_bytes / (1 << 30));
  }
  return success;
}

}  // namespace

void add_gpt_bench(CLI::App& gpt, Action& action) {
  auto o = std::make_shared<GptBenchOptions>();
  CLI::App* command = gpt.add_subcommand("bench", "Measure how fast a model trains or writes");
  add_checked(*command, "--size", o->size, "Sizes of the model",
              CLI::IsMember({"gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl"}));
  as_list(command->add_option("--batch", o->bench.batches,
                              "Rows of a batch; several, as in 64,4, are measured in turn"))
      ->check(positive_number)
      ->capture_default_str();
  add_checked(*command, "--length", o->bench.length, "Tokens of a row; 0: the model's context", whole_number);
  auto* decode =
      command->add_flag("--decode", o->decode, "Measure how fast texts are written, not trained on");
  add_checked(*command, "--prompt-length", o->bench.prompt_length, "With --decode: tokens of a prompt",
              positive_number);
  auto* data = command->add_option("--data", o->bench.data,
                                   "Token files to train on, in turn; without: one batch of random tokens");
  data->excludes(decode);
  command->add_option("--dtype", o->bench.dtype, "u16 or u32, if --data has bare tokens without a header")
      ->check(CLI::IsMember({"u16", "u32"}))
      ->needs(data);
  add_checked(*command, "--seconds", o->bench.seconds, "At least this long for each batch", positive_number);
  add_backend_option(command, o->backend, "Where to run");
  add_checked(*command, "--precision", o->precision, "Of products: bf16 or f32; auto: bf16 on a GPU",
              CLI::IsMember({"auto", "bf16", "f32"}));
  command->add_flag("--int8", o->bench.int8, "With --decode: weights of 8 bits (ferrite gpt quantize)")
      ->needs(decode);
  command->add_flag("--fastest", o->fastest, "Gradients whose last bits may change from run to run, on a GPU")
      ->excludes(decode);
  auto* parallel = command->add_flag("--data-parallel", o->data_parallel,
                                     "With the sums over ranks of mpirun or torchrun; alone, a world of one");
  parallel->excludes(decode);
  command
      ->add_flag("--shard-optimizer", o->bench.shard_optimizer,
                 "Each rank keeps a share of the optimiser's state")
      ->needs(parallel);
  command->add_flag("--json", o->json, "One JSON object for each batch");
  command->footer(
      "A step is what `ferrite gpt train` runs: forward, backward, clipping, AdamW; captured into a graph on "
      "a\n"
      "GPU. `of peak` is the share of the rate at which this GPU multiplies large bf16 matrices, measured.\n"
      "With --decode a text goes on until it has --length positions; tokens are drawn from the 50 "
      "likeliest.\n"
      "Examples:\n"
      "  ferrite gpt bench --batch 64,4\n"
      "  ferrite gpt bench --batch 64 --data 'train_*.bin' --seconds 20 --json\n"
      "  ferrite gpt bench --decode --batch 1,64 --prompt-length 128 --json\n"
      "  ferrite gpt bench --size gpt2-medium --batch 32 --seconds 20 --json\n"
      "  mpirun -n 8 ferrite gpt bench --batch 64 --data-parallel");
  command->callback([&action, o] {
    action = [o] {
      GptBenchOptions options = *o;
      options.bench.model = config_of_size(options.size);
      return run_bench(options);
    };
  });
}

}  // namespace ferrite::cli
