// What the host spends: small eager calls by the wall clock, in a row and waiting for each, and the pool.
#include "suite.hpp"

namespace ferrite::bench {
namespace {

Measurement small_add(Clock clock) {
  Cuda cuda;
  Rng rng(1);
  const auto x = randn(cuda, {1024}, rng), y = randn(cuda, {1024}, rng);
  Tensor<Cuda> sum;
  return time_calls(
      cuda, [&] { sum = x + y; }, clock);
}

Measurement small_matmul(DType dtype, std::int64_t n, Float32Products products, Clock clock) {
  Cuda cuda;
  cuda.set_float32_products(products);
  Rng rng(1);
  const auto x = randn(cuda, {n, n}, rng, 0, 1, dtype), y = randn(cuda, {n, n}, rng, 0, 1, dtype);
  Tensor<Cuda> product;
  return time_calls(
      cuda, [&] { product = matmul(x, y); }, clock);
}

}  // namespace

void add_overhead(Suite& suite) {
  for (const Clock clock : {Clock::wall, Clock::latency}) {
    const std::string kind = clock == Clock::wall ? "eager/" : "latency/";
    const auto add = [&](std::string_view label, DType dtype, std::int64_t n, Float32Products products) {
      suite.add(kind + row_name("matmul", label, std::to_string(n)),
                [=] { return small_matmul(dtype, n, products, clock); });
    };
    suite.add(kind + "add/f32/1024", [=] { return small_add(clock); });
    for (const std::int64_t n : {128, 256, 512, 1024}) {
      add("f32", DType::f32, n, Float32Products::exact);
      add("tf32", DType::f32, n, Float32Products::tf32);
      add("bf16", DType::bf16, n, Float32Products::exact);
    }
  }
  suite.add("pool/allocate_free/1MiB", [] {
    Cuda cuda;
    return time_calls(
        cuda,
        [&] {
          cuda.allocate({{1 << 20}, DType::u8});
        },
        Clock::wall);
  });
}

}  // namespace ferrite::bench
