// random: Philox draws. Element i of a draw depends on (seed, stream, i) alone; see core/rng.hpp.
#pragma once

#include "ferrite/core/rng.hpp"
#include "ferrite/ops/op.hpp"

namespace ferrite {
namespace op {

enum class RandomFn : std::uint8_t { uniform, normal, bernoulli, integer };

/// uniform: [low, high). normal: mean `low`, standard deviation `high`. bernoulli: 1 with probability `low`.
/// integer: [low, high).
struct FERRITE_API Random {
  static constexpr LibraryName type_name = "random";
  RandomFn fn = RandomFn::uniform;
  Shape shape;
  DType dtype = DType::f32;
  std::uint64_t seed = 0;
  std::uint64_t stream = 0;
  double low = 0;
  double high = 1;

  std::string_view name() const;
  Metas infer(MetaSpan in) const;
  Metas example(DType d) {
    dtype = d;
    return {};
  }
  static void attributes(auto& self, auto&& visit) {
    visit("fn", self.fn);
    visit("shape", self.shape);
    visit("dtype", self.dtype);
    visit("seed", self.seed);
    visit("stream", self.stream);
    visit("low", self.low);
    visit("high", self.high);
  }
};

FERRITE_API std::string_view to_string(RandomFn fn);
constexpr int count_of(RandomFn) { return static_cast<int>(RandomFn::integer) + 1; }

}  // namespace op

// Kernels (backend/concept.hpp).
FERRITE_API void run(Cpu&, const op::Random& op, Ins in, Outs out);
FERRITE_API void run(Cuda&, const op::Random& op, Ins in, Outs out);

/// Uniform in [low, high). Each call takes the generator's next stream.
template <class B>
Tensor<B> rand(B& b, const Shape& shape, Rng& rng, double low = 0, double high = 1,
               DType dtype = DType::f32) {
  const RandomKey key = rng.next();
  return create(b, op::Random{op::RandomFn::uniform, shape, dtype, key.seed, key.stream, low, high});
}
/// Normal with this mean and standard deviation.
template <class B>
Tensor<B> randn(B& b, const Shape& shape, Rng& rng, double mean = 0, double stddev = 1,
                DType dtype = DType::f32) {
  const RandomKey key = rng.next();
  return create(b, op::Random{op::RandomFn::normal, shape, dtype, key.seed, key.stream, mean, stddev});
}
/// Integers in [low, high); both must be exact in a double.
template <class B>
Tensor<B> randint(B& b, const Shape& shape, Rng& rng, std::int64_t low, std::int64_t high,
                  DType dtype = DType::i64) {
  const RandomKey key = rng.next();
  return create(b, op::Random{op::RandomFn::integer, shape, dtype, key.seed, key.stream,
                              static_cast<double>(low), static_cast<double>(high)});
}
/// 1 with probability p, else 0.
template <class B>
Tensor<B> bernoulli(B& b, const Shape& shape, Rng& rng, double p, DType dtype = DType::bool_) {
  const RandomKey key = rng.next();
  return create(b, op::Random{op::RandomFn::bernoulli, shape, dtype, key.seed, key.stream, p, 0});
}

}  // namespace ferrite
