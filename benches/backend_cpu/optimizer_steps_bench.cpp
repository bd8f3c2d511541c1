// One optimiser step over a list of parameters, 16M elements in all: adamw, sgd and global_norm.
#include "ferrite/ops/optimizer_steps.hpp"
#include "memory_bound.hpp"

namespace ferrite::bench {
namespace {

/// `lists` lists of a few large and many small tensors, and the clip factor.
TensorList parameters(Cpu& cpu, int lists, std::uint64_t seed) {
  TensorList all;
  for (int list = 0; list < lists; ++list) {
    for (int i = 0; i < 15; ++i) all.push_back(random_tensor(cpu, {1024, 1024}, seed++) * 0.1 + 0.2);
    for (int i = 0; i < 256; ++i) all.push_back(random_tensor(cpu, {4096}, seed++) * 0.1 + 0.2);
  }
  return all;
}

template <class Op>
void step(benchmark::State& state, const Op& op, int lists) {
  Cpu cpu;
  TensorList in = parameters(cpu, lists, 1);
  const std::size_t count = in.size() / static_cast<std::size_t>(lists);
  in.push_back(full(cpu, {}, 1.0));
  std::vector<const Array*> refs;
  std::vector<Array> out;
  double bytes = 0;
  for (const Tensor<Cpu>& t : in) refs.push_back(&t.primitive());
  for (std::size_t i = 0; i + 1 < in.size(); ++i) {
    const bool gradient = i / count == 1;
    if (!gradient) out.push_back(in[i].primitive());
    bytes += static_cast<double>(in[i].meta().bytes()) * (gradient ? 1 : 2);
  }
  const Ins ins(refs.data(), refs.size());
  compare(
      state, cpu, bytes, [&] { run(cpu, op, ins, Outs(out)); }, [&] { composed(cpu, op, in); });
}

void global_norm_of_gradients(benchmark::State& state) {
  Cpu cpu;
  compare(state, cpu, op::GlobalNorm{}, [&](std::uint64_t seed) { return parameters(cpu, 1, seed * 1000); });
}

BENCHMARK_CAPTURE(step, adamw, op::Adam{}, 4)->Apply(setup);
BENCHMARK_CAPTURE(step, sgd_momentum, op::Sgd{0.01, 0.9}, 3)->Apply(setup);
BENCHMARK(global_norm_of_gradients)->Apply(setup);

}  // namespace
}  // namespace ferrite::bench
