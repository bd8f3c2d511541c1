// Unary functions and their derivatives: one block kernel per function and compute type.
#include <array>
#include <utility>

#include "backend_cpu/kit/elementwise.hpp"
#include "backend_cpu/math/element_math.hpp"
#include "ferrite/backend/cpu.hpp"
#include "ferrite/cpu/blocks.hpp"
#include "ferrite/ops/unary.hpp"

namespace ferrite {
namespace cpu {
namespace {

using op::UnaryFn;

constexpr bool gives_bool(UnaryFn fn) { return fn >= UnaryFn::logical_not; }
constexpr bool is_trigonometric(UnaryFn fn) {
  return fn == UnaryFn::sin || fn == UnaryFn::cos || fn == UnaryFn::tan;
}

/// Elementary functions of f64 come from the standard library, which has no vector code for them.
template <class T, UnaryFn fn>
constexpr Loop loop_of =
    std::is_same_v<T, double>&& fn >= UnaryFn::exp&& fn <= UnaryFn::elu ? Loop::scalar : Loop::vector;

bool exceeds_trig_limit(const float* x, std::int64_t n) {
  std::uint32_t largest = 0;
  for (std::int64_t i = 0; i < n; ++i) largest = std::max(largest, fast::magnitude_bits(x[i]));
  return largest > fast::bits_of(fast::trig_limit);
}

/// Also for infinity and NaN.
bool is_beyond_trig(float x) { return fast::magnitude_bits(x) > fast::bits_of(fast::trig_limit); }

template <class T, UnaryFn fn>
[[gnu::flatten]] void unary_kernel(const void* const* in, void* out, std::int64_t n, double parameter) {
  const auto* x = static_cast<const T*>(in[0]);
  const auto alpha = convert<T>(parameter);  // of integers nobody reads it
  if constexpr (std::is_same_v<T, float> && is_trigonometric(fn)) {
    if (exceeds_trig_limit(x, n)) {
      auto* y = static_cast<T*>(out);
      for (std::int64_t i = 0; i < n; ++i)
        y[i] = is_beyond_trig(x[i]) ? formulas::unary(formulas::Standard<T>{}, fn, x[i], alpha)
                                    : formulas::unary(Math<T>{}, fn, x[i], alpha);
      return;
    }
  }
  auto* y = static_cast<std::conditional_t<gives_bool(fn), bool, T>*>(out);
  for_each_index<loop_of<T, fn>>(n,
                                 [=](std::int64_t i) { y[i] = formulas::unary(Math<T>{}, fn, x[i], alpha); });
}

[[gnu::flatten]] void logical_not_kernel(const void* const* in, void* out, std::int64_t n, double) {
  const auto* x = static_cast<const std::uint8_t*>(in[0]);
  auto* y = static_cast<bool*>(out);
  for_each_index(n, [=](std::int64_t i) { y[i] = x[i] == 0; });
}

template <class T, UnaryFn fn>
[[gnu::flatten]] void backward_kernel(const void* const* in, void* out, std::int64_t n, double parameter) {
  const auto *s = static_cast<const T*>(in[0]), *dy = static_cast<const T*>(in[1]);
  auto* dx = static_cast<T*>(out);
  const auto alpha = convert<T>(parameter);  // of integers nobody reads it
  if constexpr (std::is_same_v<T, float> && is_trigonometric(fn)) {
    if (exceeds_trig_limit(s, n)) {
      for (std::int64_t i = 0; i < n; ++i)
        dx[i] = is_beyond_trig(s[i]) ? formulas::backward(formulas::Standard<T>{}, fn, s[i], dy[i], alpha)
                                     : formulas::backward(Math<T>{}, fn, s[i], dy[i], alpha);
      return;
    }
  }
  for_each_index<loop_of<T, fn>>(
      n, [=](std::int64_t i) { dx[i] = formulas::backward(Math<T>{}, fn, s[i], dy[i], alpha); });
}

using UnaryKernels = std::array<BlockKernel, op::unary_fn_count>;
template <class T, std::size_t... i>
constexpr UnaryKernels unary_kernels(std::index_sequence<i...>) {
  return {&unary_kernel<T, static_cast<UnaryFn>(i)>...};
}
template <class T, std::size_t... i>
constexpr UnaryKernels backward_kernels(std::index_sequence<i...>) {
  return {&backward_kernel<T, static_cast<UnaryFn>(i)>...};
}
using AllFunctions = std::make_index_sequence<op::unary_fn_count>;

}  // namespace
}  // namespace cpu

void run(Cpu&, const op::Unary& op, Ins in, Outs out, Accumulate mask) {
  const bool accumulate = accumulates(mask, 0);
  if (op.fn == op::UnaryFn::logical_not) {
    const cpu::Source source{&in[0], nullptr, DType::bool_};
    return cpu::run_elementwise({cpu::logical_not_kernel, DType::bool_}, {&source, 1}, out[0], accumulate);
  }
  // Real functions of integers have float results; all others are computed in the input's kind.
  const DType dtype = compute_dtype(is_floating(out[0].dtype()) ? out[0].dtype() : in[0].dtype());
  visit_compute(dtype, [&]<class T>() {
    static constexpr cpu::UnaryKernels kernels = cpu::unary_kernels<T>(cpu::AllFunctions{});
    const cpu::Source source{&in[0], nullptr, dtype};
    const DType result = cpu::gives_bool(op.fn) ? DType::bool_ : dtype;
    cpu::run_elementwise({kernels[static_cast<std::size_t>(op.fn)], result, op.alpha}, {&source, 1}, out[0],
                         accumulate);
  });
}

void run(Cpu&, const op::UnaryBackward& op, Ins in, Outs out, Accumulate mask) {
  const DType dtype = compute_dtype(out[0].dtype());
  const auto run_in = [&]<class T>() {
    static constexpr cpu::UnaryKernels kernels = cpu::backward_kernels<T>(cpu::AllFunctions{});
    const cpu::Source sources[] = {{&in[0], nullptr, dtype}, {&in[1], nullptr, dtype}};
    cpu::run_elementwise({kernels[static_cast<std::size_t>(op.fn)], dtype, op.alpha}, sources, out[0],
                         accumulates(mask, 0));
  };
  if (dtype == DType::f64)
    run_in.template operator()<double>();
  else
    run_in.template operator()<float>();
}

}  // namespace ferrite
