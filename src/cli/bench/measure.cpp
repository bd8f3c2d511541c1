#include "cli/bench/measure.hpp"

#include <chrono>
#include <thread>

#include "ferrite/ops/optimizer_steps.hpp"
#include "ferrite/tensor/host.hpp"

namespace ferrite::cli::bench {

namespace {

using Any = Tensor<AnyBackend>;

/// Choosing a plan is arithmetic at full power, right after which large products take up to a tenth longer on
/// a GPU: calls of this many operations find one that has rested.
constexpr double heavy_flops = 1e10;
constexpr std::chrono::milliseconds rest{300};

constexpr double most_checked_bytes = 5e8;

/// Plain loops are the better judge, where they take no longer than a moment.
bool is_judged_by_reference(const Cost& cost) { return cost.flops <= 3e8 && cost.bytes <= 5e7; }

double norm(const Any& x) { return global_norm(std::vector<Any>{x}).item<double>(); }

/// A lazy backend computes only what is read.
void settle(AnyBackend& backend, const Tensors<AnyBackend>& results) {
  for (const Any& y : results) backend.settled(y.primitive());
}

}  // namespace

double relative_error(const Any& y, const Any& exact) {
  const double size = norm(exact), off = norm(cast(y, DType::f64) - exact);
  return size > 0 ? off / size : off;
}

const std::vector<Any>& RowRunner::inputs() {
  Rng rng(1);
  if (inputs_.empty())
    for (const Input& input : row_.inputs) {
      const auto& [shape, dtype] = input.meta;
      inputs_.push_back(input.value                   ? from_host(cpu_, *input.value)
                        : input.draw == Draw::normal  ? randn(cpu_, shape, rng, 0, 1, dtype)
                        : input.draw == Draw::uniform ? rand(cpu_, shape, rng, 0, most_uniform, dtype)
                                                      : randint(cpu_, shape, rng, 0, input.classes, dtype));
    }
  return inputs_;
}

std::vector<Any> RowRunner::inputs_on(AnyBackend& backend) {
  std::vector<Any> moved;
  for (const Any& x : inputs()) moved.push_back(to(backend, x));
  return moved;
}

Times RowRunner::time_on(AnyBackend& backend) {
  if (row_.make_step) return time_calls(backend, row_.make_step(backend), timing_, Clock::wall);
  const bool on_gpu = gpu_of(backend) != nullptr;
  std::vector<std::vector<Any>> sets{inputs_on(backend)};
  while (static_cast<int>(sets.size()) < input_sets(row_.cost.bytes, on_gpu)) {
    std::vector<Any> copies;
    for (const Any& x : sets[0]) copies.push_back(clone(x));
    sets.push_back(std::move(copies));
  }
  // Outputs live until their turn comes again, so that they are as cold as inputs.
  std::vector<Tensors<AnyBackend>> results(sets.size());
  std::size_t turn = 0;
  if (on_gpu && row_.cost.flops >= heavy_flops) {
    results[0] = row_.call(sets[0]);
    backend.synchronize();
    std::this_thread::sleep_for(rest);
  }
  return time_calls(
      backend,
      [&] {
        turn = (turn + 1) % sets.size();
        results[turn] = row_.call(sets[turn]);
        settle(backend, results[turn]);
      },
      timing_, Clock::device);
}

bool RowRunner::has_error() const {
  return row_.tolerance > 0 && row_.cost.bytes <= most_checked_bytes &&
         (row_.dtype != "f64" || is_judged_by_reference(row_.cost));
}

const Any& RowRunner::exact() {
  if (exact_) return *exact_;
  AnyBackend judge(is_judged_by_reference(row_.cost) ? "reference" : "cpu");
  std::vector<Any> wide;
  for (const Any& x : inputs_on(judge)) wide.push_back(is_floating(x.dtype()) ? cast(x, DType::f64) : x);
  exact_ = to(cpu_, row_.call(wide)[0]);
  return *exact_;
}

std::optional<double> RowRunner::error_on(AnyBackend& backend) {
  if (!has_error()) return {};
  return relative_error(to(cpu_, row_.call(inputs_on(backend))[0]), exact());
}

}  // namespace ferrite::cli::bench
