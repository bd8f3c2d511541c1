// Square matrix products. "tf32" is f32 with Float32Products::tf32.
#include "suite.hpp"

namespace ferrite::bench {

void add_matmul(Suite& suite) {
  const auto add = [&](std::string_view label, DType dtype, std::int64_t n, Reach reach,
                       Float32Products products) {
    const auto operands = [=](auto& b, Rng& rng) {
      return std::vector{randn(b, {n, n}, rng, 0, 1, dtype), randn(b, {n, n}, rng, 0, 1, dtype)};
    };
    suite.add_op(row_name("matmul", label, std::to_string(n)), op::Matmul{}, operands, reach, products);
  };
  constexpr auto exact = Float32Products::exact, tf32 = Float32Products::tf32;
  for (const std::int64_t n : {128, 256, 512, 1024, 2048, 4096, 8192}) {
    add("f32", DType::f32, n, n <= 512 ? Reach::naive : n <= 4096 ? Reach::cpu : Reach::cuda, exact);
    add("tf32", DType::f32, n, Reach::cuda, tf32);
    add("bf16", DType::bf16, n, Reach::cuda, exact);
  }
  add("f16", DType::f16, 4096, Reach::cuda, exact);
  add("f64", DType::f64, 4096, Reach::cuda, exact);
  add("bf16", DType::bf16, 16384, Reach::cuda, exact);
}

}  // namespace ferrite::bench
