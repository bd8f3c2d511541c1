// A chain of ops by Lazy<Cpu>, as one kernel, beside the same ops of Cpu one by one.
#pragma once

#include "ferrite/stacks.hpp"
#include "side_by_side.hpp"

namespace ferrite::bench {

/// f(inputs) on both; `make(backend, rng)` gives the inputs.
template <class Make, class F>
void bench_fused(benchmark::State& state, const Make& make, const F& f) {
  Lazy<Cpu> lazy;
  Cpu plain;
  Rng rng(1), same(1);
  const auto in = make(lazy, rng);
  const auto copies = make(plain, same);
  Tensor<Lazy<Cpu>> y = f(in);
  Tensor<Cpu> z = f(copies);
  if (to_bytes(y).size() != to_bytes(z).size()) state.SkipWithError("results differ");
  side_by_side(
      state,
      [&] {
        y = f(in);
        lazy.flush();
      },
      [&] { z = f(copies); });
  const auto a = y.template to_vector<double>(), b = z.template to_vector<double>();
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!(std::abs(a[i] - b[i]) <= 1e-5 * (1 + std::abs(b[i])))) return state.SkipWithError("results differ");
}

inline void rounds_of(benchmark::internal::Benchmark* b) {
  b->Iterations(rounds)->UseManualTime()->Unit(benchmark::kMillisecond);
}

}  // namespace ferrite::bench
