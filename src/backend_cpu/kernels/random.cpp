// random: every element from its index alone, in chunks that begin at fixed elements.
#include "ferrite/ops/random.hpp"

#include <algorithm>

#include "backend_cpu/kit/elementwise.hpp"
#include "backend_cpu/math/random_words.hpp"
#include "backend_cpu/math/scalar_functions.hpp"
#include "ferrite/cpu/rows.hpp"
#include "math/fast_math.hpp"

namespace ferrite {
namespace cpu {
namespace {

// Words come in batches; every chunk of elements begins where a batch does.
static_assert(chunk_size % words_per_draw == 0);
using Words = std::uint32_t[words_per_draw];

std::uint64_t wide_word(const Words& words, std::int64_t i) {
  return words[2 * i] | std::uint64_t{words[2 * i + 1]} << 32;
}

/// Box-Muller as in normals_from_words: a pair of words gives a pair of elements.
[[gnu::flatten]] void normals(const Words& words, std::int64_t pairs, float* y) {
  for_each_index(pairs, [&](std::int64_t i) {
    const auto u =
        static_cast<float>(static_cast<double>(words[2 * i]) + 1) * 0x1p-32f;  // in double: no overflow
    const float theta =
        static_cast<float>(words[2 * i + 1]) * static_cast<float>(6.283185307179586476925 * 0x1p-32);
    const float r = std::sqrt(-2.0f * fast::log(u));
    const fast::SinCos direction = fast::sincos(theta);
    y[2 * i] = r * static_cast<float>(direction.cos);
    y[2 * i + 1] = r * static_cast<float>(direction.sin);
  });
}
void normals(const Words& words, std::int64_t pairs, double* y) {
  for (std::int64_t i = 0; i < pairs; ++i) {
    const NormalPair<double> pair = normals_from_words<double>(words[2 * i], words[2 * i + 1]);
    y[2 * i] = pair.even;
    y[2 * i + 1] = pair.odd;
  }
}

/// u in [0, 1) of type T, exact.
template <class T>
void uniforms(const Words& words, std::int64_t n, double* u) {
  for (std::int64_t i = 0; i < n; ++i) {
    if constexpr (std::is_same_v<T, double>)
      u[i] = uniform_from_wide_word(wide_word(words, i));
    else
      u[i] = uniform_from_word<T>(words[i]);
  }
}

/// u * factor and then u + low, each rounded. Two functions, so that no compiler fuses them into one
/// rounding.
[[gnu::noinline]] void multiply(double* u, std::int64_t n, double factor) {
  for (std::int64_t i = 0; i < n; ++i) u[i] *= factor;
}
[[gnu::noinline]] void add(double* u, std::int64_t n, double low) {
  for (std::int64_t i = 0; i < n; ++i) u[i] += low;
}

/// As scalar::uniform_between, for a batch.
template <class T>
void fill_uniform(const op::Random& op, const Words& words, T* y, std::int64_t n) {
  double u[words_per_draw];
  uniforms<T>(words, n, u);
  if (op.low != 0 || op.high != 1) {
    multiply(u, n, op.high - op.low);
    add(u, n, op.low);
  }
  const T low = convert<T>(op.low);
  for (std::int64_t i = 0; i < n; ++i) {
    const T value = convert<T>(u[i]);
    y[i] = convert<double>(value) < op.high ? value : low;
  }
}

/// The elements that one batch yields, n of them wanted.
template <class T>
void fill_batch(const op::Random& op, const Words& words, T* y, std::int64_t n) {
  using Computed = std::conditional_t<std::is_same_v<T, double>, double, float>;
  switch (op.fn) {
    case op::RandomFn::uniform:
      if constexpr (!std::is_integral_v<T>)
        fill_uniform(op, words, y, n);  // the op's rule excludes the others
      return;
    case op::RandomFn::normal: {
      Computed z[words_per_draw];
      normals(words, (n + 1) / 2, z);
      for (std::int64_t i = 0; i < n; ++i) y[i] = convert<T>(op.high * static_cast<double>(z[i]) + op.low);
      return;
    }
    case op::RandomFn::bernoulli: {
      const auto p = static_cast<float>(op.low);
      for (std::int64_t i = 0; i < n; ++i) y[i] = convert<T>(uniform_from_word<float>(words[i]) < p);
      return;
    }
    case op::RandomFn::integer: {
      const auto low = convert<std::int64_t>(op.low), high = convert<std::int64_t>(op.high);
      for (std::int64_t i = 0; i < n; ++i)
        y[i] = convert<T>(integer_from_wide_word(wide_word(words, i), low, high));
      return;
    }
  }
}

}  // namespace
}  // namespace cpu

void run(Cpu& cpu, const op::Random& op, Ins, Outs out) {
  cpu::Destination target(cpu, out[0], false);
  visit_dtype(out[0].dtype(), [&]<class T>() {
    const bool wide =
        op.fn == op::RandomFn::integer || (op.fn == op::RandomFn::uniform && std::is_same_v<T, double>);
    const std::int64_t words_each = wide ? 2 : 1, per_batch = cpu::words_per_draw / words_each;
    T* y = target.array().data<T>();
    parallel_ranges(out[0].shape().numel(), cpu::chunk_size, [&](std::int64_t begin, std::int64_t end) {
      cpu::Words words;
      for (std::int64_t i = begin; i < end; i += per_batch) {
        cpu::draw_words({op.seed, op.stream}, i * words_each, words);
        cpu::fill_batch<T>(op, words, y + i, std::min(per_batch, end - i));
      }
    });
  });
  target.commit();
}

}  // namespace ferrite
