// What DataParallel costs a recorded step of GPT-2 on one GPU: with a group of NCCL that has one rank, and
// how much of the reduction is hidden behind backward, with a group of one rank whose calls take as long as a
// ring of many ranks over a link of 50 GB/s would, on the group's stream.
//
//   data_parallel_steps [gpt2|gpt2-medium|gpt2-large] [rows]
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <optional>

#include "backend_cuda/runtime/side_stream.hpp"
#include "dist/slow_link.hpp"
#include "ferrite/backend/cuda_graph.hpp"
#include "ferrite/dist/data_parallel.hpp"
#include "ferrite/dist/in_process.hpp"
#include "ferrite/dist/nccl.hpp"
#include "ferrite/nn/gpt.hpp"
#include "ferrite/stacks.hpp"
#include "ferrite/train/stacks.hpp"

namespace {

using namespace ferrite;
using B = Autodiff<Autocast<Cuda>>;
using Clock = std::chrono::steady_clock;

constexpr double bytes_per_second = 50e9;

/// A world of one. What other ranks would send is a time without work.
class SlowLink final : public dist::Group {
 public:
  SlowLink(Cuda& cuda, bool is_slow)
      : context_(cuda.context()),
        side_(context_, cuda::SideStream::Priority::before_compute),
        is_slow_(is_slow) {}
  int rank() const override { return 0; }
  int size() const override { return 1; }
  std::string describe() const override { return "an artificial link"; }
  bool takes(Device) const override { return true; }
  bool is_reproducible() const override { return true; }
  bool is_queued(Device device) const override { return device.kind == DeviceKind::cuda; }
  void fork() override {
    side_.after_compute();
    is_forked_ = true;
  }
  void join() override {
    if (is_forked_) side_.before_compute();
    is_forked_ = false;
  }
  double seconds_of_link = 0;

 private:
  void run_all_reduce(const std::string&, const Array& in, const Array& out, dist::ReduceOp) override {
    if (in.data() != out.data()) throw ValueError("[overlap] in place only");
    if (in.device().kind != DeviceKind::cuda || !is_slow_) return;
    const double seconds = 2 * static_cast<double>(in.meta().bytes()) / bytes_per_second;
    seconds_of_link += seconds;
    wait_on(is_forked_ ? side_.get() : context_.stream(), seconds);
  }
  void run_reduce_scatter(const std::string&, const Array&, const Array&, dist::ReduceOp) override {}
  void run_all_gather(const std::string&, const Array&, const Array&) override {}
  void run_broadcast(const std::string&, const Array&, int) override {}
  void run_barrier(const std::string&) override {}
  void run_send(const Array&, int) override {}
  void run_recv(const Array&, int) override {}

  cuda::DeviceContext& context_;
  cuda::SideStream side_;
  bool is_slow_, is_forked_ = false;
};

/// Seconds: the middle of several measurements. Without a group there is no DataParallel.
double measure(const nn::GptConfig& config, std::int64_t rows, dist::Group* group, bool overlaps = true) {
  Cuda cuda;
  B backend{Autocast<Cuda>(cuda)};
  Rng rng(1);
  nn::Gpt<B> model(backend, config, rng);
  std::optional<dist::DataParallel<B>> parallel;
  if (group) parallel.emplace(model, *group, dist::DataParallelConfig{}.with_overlap(overlaps));
  optim::AdamW<B> optimizer(model.parameters(), optim::AdamWConfig{}.with_clip_norm(1));
  optimizer.keep_schedule_on_device();
  const Tensor<B> tokens = randint(backend, {rows, config.context + 1}, rng, 0, config.vocab);
  const Tensor<B> ids = contiguous(slice(tokens, 1, 0, config.context)),
                  targets = contiguous(slice(tokens, 1, 1, config.context + 1));
  const auto release = BackwardConfig<B::Inner>{}.with_release();
  const auto step = [&] {
    const Tensor<B> loss = model.loss(ids, targets);
    if (!parallel) return optimizer.step(backward(loss, release));
    Gradients<B::Inner> grads;
    parallel->backward(loss, grads, 1, release);
    optimizer.step(grads, parallel->finish_recorded(grads));
  };
  step();
  step();
  const auto recorded = record(backend, step);
  recorded->replay();
  std::vector<double> seconds;
  for (int i = 0; i < 9; ++i) {
    backend.synchronize();
    const auto start = Clock::now();
    for (int j = 0; j < 6; ++j) recorded->replay();
    backend.synchronize();
    seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count() / 6);
  }
  std::ranges::nth_element(seconds, seconds.begin() + 4);
  return seconds[4];
}

}  // namespace

int main(int count, char** arguments) {
  const std::string size = count > 1 ? arguments[1] : "gpt2-medium";
  const std::int64_t rows = count > 2 ? std::atoll(arguments[2]) : 16;
  const nn::GptConfig config = size == "gpt2"         ? nn::GptConfig::gpt2()
                               : size == "gpt2-large" ? nn::GptConfig::gpt2_large()
                                                      : nn::GptConfig::gpt2_medium();
  Cuda cuda;
  const double plain = measure(config, rows, nullptr);
  const double nccl = [&] {
    dist::NcclGroup group(std::move(dist::InProcessGroup::create(1)[0]), 0);
    return measure(config, rows, &group);
  }();
  const double again = measure(config, rows, nullptr);
  SlowLink fast(cuda, false), slow(cuda, true);
  // Two measurements, each of which calls the group in two steps and in the one that it records.
  const double without = measure(config, rows, &fast), hidden = measure(config, rows, &slow),
               after = measure(config, rows, &slow, false), link = slow.seconds_of_link / 6;
  fmt::print(
      R"({{"size": "{}", "rows": {}, "step_ms": {:.3f}, "step_nccl_ms": {:.3f}, "step_again_ms": {:.3f}, "link_ms": {:.3f}, )"
      R"("step_without_link_ms": {:.3f}, "step_overlapping_ms": {:.3f}, "step_afterwards_ms": {:.3f}, "hidden": {:.3f}}})"
      "\n",
      size, rows, 1e3 * plain, 1e3 * nccl, 1e3 * again, 1e3 * link, 1e3 * without, 1e3 * hidden, 1e3 * after,
      1 - (hidden - without) / link);
}
