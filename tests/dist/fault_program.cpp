// One of several processes, of which rank 1 does something wrong: `mpirun -n 3 dist_fault_program hang`.
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <thread>

#include "ferrite/dist/data_parallel.hpp"
#include "ferrite/dist/world.hpp"
#include "ferrite/nn/linear.hpp"
#include "ferrite/stacks.hpp"

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

void train(dist::Group& group, std::string_view fault) {
  Cpu b;
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
  try {
    auto group = dist::world();
    if (fault == "none" || fault == "exit") {
      kept = std::move(group);
      train(*kept, fault);
    } else {
      train(*group, fault);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "caught: %s\n", error.what());
    return 3;
  }
  return 0;
}
