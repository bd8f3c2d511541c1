// One of several processes, of which rank 1 does something wrong: `mpirun -n 3 dist_fault_program hang`, or
// `... kill_trainer FOLDER`.
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <thread>

#include "ferrite/dist/trainer_ranks.hpp"
#include "ferrite/dist/world.hpp"
#include "ferrite/nn/linear.hpp"
#include "ferrite/ops/pointwise_loss.hpp"
#include "ferrite/optim/adam.hpp"
#include "ferrite/stacks.hpp"
#include "ferrite/train/trainer.hpp"

using namespace ferrite;
using namespace std::chrono_literals;

namespace {

/// Rank 1 throws after a part of its gradients was sent.
void fail_in_backward(dist::Group& group) {
  Autodiff<Cpu> b;
  Rng rng(1);
  nn::Linear<Autodiff<Cpu>> layer(b, {.in = 2, .out = 3}, rng);
  dist::DataParallel parallel(layer, group, dist::DataParallelConfig{}.with_bucket_bytes(1));
  const auto config = BackwardConfig<Cpu>{}.with_on_ready([&](const std::string& leaf, const auto&) {
    if (group.rank() == 1 && leaf == "weight") throw std::runtime_error("rank 1 has no memory");
  });
  Gradients<Cpu> grads;
  parallel.backward(sum(layer.forward(ones(b, {4, 2}))), grads, 1, config);
  parallel.finish(grads);
}

/// Ten steps, from a checkpoint if there is one. With "kill_trainer", rank 1 is killed after the sixth.
void run_trainer(dist::Group& group, std::string_view fault, const char* folder) {
  using B = Autodiff<Cpu>;
  B b;
  Rng rng(1), rows(7);
  const auto x = randn(b, {96, 4}, rows);
  const data::Dataset all(x, sum(x, {1}, KeepDim::yes));
  data::DataLoader loader(all, data::LoaderConfig{}.with_batch_size(4).with_rank(group.rank(), group.size()));
  nn::Linear<B> model(b, {4, 1}, rng);
  dist::TrainerRanks<B> ranks(model, group);
  optim::AdamW<B> optimizer(model.parameters(), optim::AdamWConfig{}.with_lr(0.05));
  train::Trainer<B> trainer(
      model, optimizer, loader,
      [&](const data::Batch<B>& batch) {
        const auto y = model.forward(batch.x);
        return train::Prediction<B>{mse_loss(y, batch.y), y};
      },
      train::TrainerConfig{}.with_steps(10).with_report_every(1).with_checkpoints(folder, 4));
  trainer.train_with(ranks);
  struct Killer final : train::Observer {
    void on_progress(const train::Progress& progress) override {
      if (progress.step == 6) std::raise(SIGKILL);
    }
  } killer;
  if (fault == "kill_trainer" && group.rank() == 1) trainer.add_observer(killer);
  if (trainer.resume_latest() && group.rank() == 0)
    std::fprintf(stderr, "from step %d\n", static_cast<int>(trainer.step()));
  trainer.fit();
}

void work(dist::Group& group, std::string_view fault, const char* folder) {
  Cpu b;
  if (folder != nullptr) return run_trainer(group, fault, folder);
  group.set_timeout(2s);
  if (fault == "backward") return fail_in_backward(group);
  dist::all_reduce(group, ones(b, {2, 3}));
  if (group.rank() == 1) {
    if (fault == "hang") std::this_thread::sleep_for(120s);
    if (fault == "kill") std::raise(SIGKILL);
    if (fault == "throw") throw std::runtime_error("rank 1 has read a bad file");
    if (fault == "exit") std::exit(0);
    if (fault == "shape") dist::all_reduce(group, ones(b, {2, 4}));
  }
  dist::all_reduce(group, ones(b, {2, 3}));
}

}  // namespace

int main(int argc, char** argv) {
  static std::unique_ptr<dist::Group> kept;  // until the program exits
  const std::string_view fault = argc > 1 ? argv[1] : "none";
  const char* const folder = argc > 2 ? argv[2] : nullptr;  // of a run of a trainer
  try {
    auto group = dist::world();
    if (fault == "none" || fault == "exit") {
      kept = std::move(group);
      work(*kept, fault, folder);
    } else {
      work(*group, fault, folder);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "caught: %s\n", error.what());
    return 3;
  }
  return 0;
}
