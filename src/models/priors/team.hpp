// Who computes one dataset. The generator is written once, as steps over elements and columns; a team runs
// the steps. On the CPU it is one thread; a CUDA kernel brings a team that is a block of threads, with the
// same members:
//
//   each(n, f)        f(0) ... f(n - 1), independent of each other; done when it returns
//   columns(n, f)     f(column, team) for each column, where the inner team may use each, sum, count, once,
//                     normals and uniforms
//   sum(n, f)         f(0) + ... + f(n - 1) in float, in the order below; every member gets the result
//   count(n, f)       how many f(i) are true
//   once(f)           f() by one member
//   normals(...)      bulk random numbers: f(i, number i) for numbers 0 to n - 1 of the stream from block
//   uniforms(...)     `first` on; or an array that takes them
//   product(...)      out[u] = bias[u] + sum over k of weights[u][k] in[k], columns of `rows` elements
//   fourier(...)      fourier_value of n values, in place
//
// The order of a sum is part of the contract: number i goes to partial sum i % 32 in turn; then the partial
// sums are added as a tree, 16 apart, 8, 4, 2, 1. That is what a warp does, and what vector code does. In a
// product the terms are fused multiply-adds in the order of k, beginning with the bias.
#pragma once

#include <type_traits>

#include "backend_cpu/math/random_words.hpp"
#include "models/priors/cpu_vectors.hpp"

namespace ferrite::priors {

inline constexpr int sum_lanes = 32;

class SerialTeam {
 public:
  template <class F>
  void each(int n, F&& f) {
    for (int i = 0; i < n; ++i) f(i);
  }
  template <class F>
  void columns(int n, F&& f) {
    for (int i = 0; i < n; ++i) f(i, *this);
  }
  template <class F>
  float sum(int n, F&& f) {
    float lanes[sum_lanes] = {};
    int i = 0;
    for (; i + sum_lanes <= n; i += sum_lanes)
      for (int lane = 0; lane < sum_lanes; ++lane) lanes[lane] += f(i + lane);
    for (int lane = 0; i + lane < n; ++lane) lanes[lane] += f(i + lane);
    for (int width = sum_lanes / 2; width > 0; width /= 2)
      for (int lane = 0; lane < width; ++lane) lanes[lane] += lanes[lane + width];
    return lanes[0];
  }
  template <class F>
  int count(int n, F&& f) {
    int found = 0;
    for (int i = 0; i < n; ++i) found += f(i) ? 1 : 0;
    return found;
  }
  template <class F>
  void once(F&& f) {
    f();
  }

  template <class F>
  void normals(Stream stream, std::uint64_t first, int n, F&& f) {
    words(stream, first, n, [&](const std::uint32_t* word, int begin, int size) {
      float values[cpu::words_per_draw];
      for (int i = 0; i < cpu::words_per_draw / 2; ++i) {
        const NormalPair<float> pair = portable_normals(word[2 * i], word[2 * i + 1]);
        values[2 * i] = pair.even;
        values[2 * i + 1] = pair.odd;
      }
      for (int i = 0; i < size; ++i) f(begin + i, values[i]);
    });
  }
  template <class F>
  void uniforms(Stream stream, std::uint64_t first, int n, F&& f) {
    words(stream, first, n, [&](const std::uint32_t* word, int begin, int size) {
      for (int i = 0; i < size; ++i) f(begin + i, static_cast<float>(word[i] >> 8) * 0x1p-24f);
    });
  }
  void normals(Stream stream, std::uint64_t first, int n, float* out) {
    normals(stream, first, n, [=](int i, float z) { out[i] = z; });
  }
  void uniforms(Stream stream, std::uint64_t first, int n, float* out) {
    uniforms(stream, first, n, [=](int i, float u) { out[i] = u; });
  }

  void product(const float* weights, const float* bias, const float* in, int from, float* out, int to,
               int rows) {
    vector_product(weights, bias, in, from, out, to, rows);
  }
  void fourier(const FourierSeries& series, float* x, int n) { vector_fourier(series, x, n); }

 private:
  template <class F>
  static void words(Stream stream, std::uint64_t first, int n, F&& f) {
    std::uint32_t word[cpu::words_per_draw];
    for (int begin = 0; begin < n; begin += cpu::words_per_draw) {
      cpu::draw_words(stream.key, static_cast<std::int64_t>(4 * (stream.base + first)) + begin, word);
      f(word, begin, lesser(n - begin, static_cast<int>(cpu::words_per_draw)));
    }
  }
};

}  // namespace ferrite::priors
