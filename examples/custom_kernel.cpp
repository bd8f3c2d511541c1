// A user-written kernel, given as text: a thousand masses on springs, one time step per launch. It runs on
// every backend, and gradients flow through all steps: the program finds the stiffness of the springs from
// the final positions of the masses.
#include "common.hpp"
#include "ferrite/ops/pointwise_loss.hpp"
#include "ferrite/ops/random.hpp"
#include "ferrite/tensor/launch.hpp"

using namespace ferrite;

constexpr const char* text = R"(
import warp as wp

@wp.kernel
def step(dt: float, stiffness: wp.array[float], x: wp.array[wp.vec2], v: wp.array[wp.vec2],
         new_x: wp.array[wp.vec2], new_v: wp.array[wp.vec2]):
    i = wp.tid()
    force = -stiffness[0] * x[i] - 0.1 * v[i]
    u = v[i] + dt * force
    new_v[i] = u
    new_x[i] = x[i] + dt * u
)";

/// Positions after some steps from the given ones, at rest.
template <class B>
Tensor<B> simulate(B& backend, const kernel::Kernel& step, const Tensor<B>& stiffness,
                   const Tensor<B>& start) {
  Tensor<B> x = start, v = zeros(backend, start.shape());
  for (int i = 0; i < 20; ++i) {
    Tensor<B> next_x = zeros(backend, start.shape()), next_v = zeros(backend, start.shape());
    step.launch(backend, start.size(0), 0.05f, stiffness, x, v, next_x, next_v);
    x = next_x;
    v = next_v;
  }
  return x;
}

template <class B>
void show(B& backend, const examples::Options& options) {
  const auto step = kernel::Kernel::from_source(text);
  Rng rng(options.seed);
  const auto start = randn(backend, {1000, 2}, rng);
  const auto goal = simulate(backend, step, full(backend, {1}, 7.0), start).detach();
  Tensor<B> stiffness = full(backend, {1}, 2.0);
  for (std::int64_t round = 0; round < options.steps; ++round) {
    const auto guess = parameter(stiffness, "stiffness");
    const auto loss = mse_loss(simulate(backend, step, guess, start), goal);
    const auto slope = lift(backend, loss.backward().of(guess));
    stiffness = stiffness - slope * 4.0;
    if (round % 10 == 0 || round + 1 == options.steps)
      std::printf("round %3lld: stiffness %.4f, mean squared error %.2e\n", static_cast<long long>(round),
                  guess.item(), loss.item());
  }
  std::printf("the masses were moved with 7\n");
}

int main(int argc, char** argv) {
  return examples::run(argc, argv, "A kernel of one's own", {}, show<examples::Backend>);
}
