// Elementwise ops from a thousand elements to 256M, in a row and as single calls, and the copy whose rate is
// the ceiling of them all.
#include "suite.hpp"

namespace ferrite::bench {
namespace {

struct Size {
  const char* label;
  std::int64_t count;
};

}  // namespace

void add_elementwise(Suite& suite) {
  const auto add = [&](DType dtype, Size size) {
    const Reach reach = dtype != DType::f32 || size.count > 10'000'000 ? Reach::cuda
                        : size.count > 1 << 20                         ? Reach::cpu
                                                                       : Reach::naive;
    const auto draw = [=](auto& b, Rng& rng) { return randn(b, {size.count}, rng, 0, 1, dtype); };
    const auto one = [=](auto& b, Rng& rng) { return std::vector{draw(b, rng)}; };
    const auto two = [=](auto& b, Rng& rng) { return std::vector{draw(b, rng), draw(b, rng)}; };
    const auto name = [&](const char* op) { return row_name(op, to_string(dtype), size.label); };
    const auto both = [&](const char* op_name, const auto& op, const auto& make) {
      suite.add_op(name(op_name), op, make, reach);
      if (size.count < 1 << 20 || size.count > 10'000'000) return;
      suite.add("call/" + name(op_name), [=] {
        Cuda cuda;
        return measure_op(cuda, op, make, Clock::call);
      });
    };
    both("add", op::Binary{op::BinaryFn::add}, two);
    both("relu", op::Unary{op::UnaryFn::relu}, one);
    both("gelu", op::Unary{op::UnaryFn::gelu_tanh}, one);
    both("sigmoid", op::Unary{op::UnaryFn::sigmoid}, one);
  };
  suite.add_op("copy/f32/1G", op::Copy{DType::f32},
               [](auto& b, Rng& rng) { return std::vector{randn(b, {1 << 30}, rng)}; });
  for (const Size size : {Size{"1K", 1'000}, {"10K", 10'000}, {"100K", 100'000}}) add(DType::f32, size);
  for (const Size size : {Size{"1M", 1 << 20}, {"10M", 10'000'000}, {"256M", 1 << 28}}) {
    add(DType::f32, size);
    add(DType::bf16, size);
  }
}

}  // namespace ferrite::bench
