// Fused memory-bound ops beside their composition and beside their ceiling, a copy of as many bytes by the
// same threads. Each of the three walks through more data than the caches hold.
#pragma once

#include <cstring>
#include <functional>
#include <vector>

#include "ferrite/core/thread_pool.hpp"
#include "random_tensor.hpp"
#include "side_by_side.hpp"

namespace ferrite::bench {

inline constexpr double beyond_caches = 256e6;  // bytes

/// Copies `bytes` / 2, which moves `bytes`, from the next part of one buffer to that of another.
class Copier {
 public:
  Copier(Cpu& cpu, double bytes)
      : size_(static_cast<std::int64_t>(bytes / 2)),
        parts_(static_cast<std::int64_t>(beyond_caches / bytes) + 1),
        source_(random_tensor(cpu, {size_ * parts_ / 4 + 1}, 1)),
        target_(random_tensor(cpu, {size_ * parts_ / 4 + 1}, 2)) {}

  void operator()() {
    const std::int64_t from = next_++ % parts_ * size_;
    const std::byte* source = source_.primitive().data() + from;
    std::byte* target = target_.primitive().data() + from;
    parallel_ranges(size_, 1 << 17, [=](std::int64_t begin, std::int64_t end) {
      std::memcpy(target + begin, source + begin, static_cast<std::size_t>(end - begin));
    });
  }

 private:
  std::int64_t size_, parts_, next_ = 0;
  Tensor<Cpu> source_, target_;
};

/// Times `ours`, `composition` and the copy in turn. Counters: the medians in microseconds, of_copy (the
/// share of the copy's rate that `ours` reaches) and over_composed (above 1: faster than composed).
inline void compare(benchmark::State& state, Cpu& cpu, double bytes, const std::function<void()>& ours,
                    const std::function<void()>& composition) {
  Copier copy(cpu, bytes);
  ours(), composition(), copy();
  std::vector<double> our_times, composed_times, copy_times;
  for (auto _ : state) {
    our_times.push_back(seconds(ours, 10));
    composed_times.push_back(seconds(composition, 2));
    copy_times.push_back(seconds([&] { copy(); }, 10));
    state.SetIterationTime(our_times.back());
  }
  state.counters["fused_us"] = 1e6 * median(our_times);
  state.counters["composed_us"] = 1e6 * median(composed_times);
  state.counters["copy_us"] = 1e6 * median(copy_times);
  state.counters["GB/s"] = bytes / median(our_times) / 1e9;
  state.counters["of_copy"] = median(copy_times) / median(our_times);
  state.counters["over_composed"] = median(composed_times) / median(our_times);
}

/// The same for an op on several sets of inputs; make(seed) gives one set. Results are kept until their turn
/// comes again, so that outputs are as cold as inputs.
template <class Op>
void compare(benchmark::State& state, Cpu& cpu, const Op& op,
             const std::function<TensorList(std::uint64_t)>& make) {
  std::vector<TensorList> sets{make(1)};
  Metas in, out;
  for (const Tensor<Cpu>& t : sets[0]) in.push_back(t.meta());
  for (const Tensor<Cpu>& t : fused(op, sets[0])) out.push_back(t.meta());
  const double bytes = op_cost(op, in, out).bytes;
  while (static_cast<double>(sets.size()) * bytes < beyond_caches) sets.push_back(make(sets.size() + 1));
  std::vector<Tensors<Cpu>> results(sets.size());
  std::size_t next = 0;
  const auto turn = [&](const auto& f) {
    next = (next + 1) % sets.size();
    results[next] = f(sets[next]);
  };
  compare(
      state, cpu, bytes, [&] { turn([&](const TensorList& list) { return fused(op, list); }); },
      [&] { turn([&](const TensorList& list) { return composed(cpu, op, list); }); });
}

inline void setup(benchmark::internal::Benchmark* b) {
  b->Iterations(rounds)->UseManualTime()->Unit(benchmark::kMicrosecond);
}

inline constexpr std::int64_t rows = 4096, columns = 1024;

}  // namespace ferrite::bench
