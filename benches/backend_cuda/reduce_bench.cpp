// sum and max of a square: over rows (one result per row), over columns, over all of it. Elements are
// positive: in a sum around zero the error would measure the cancellation, not the kernel.
#include "suite.hpp"

namespace ferrite::bench {

void add_reduce(Suite& suite) {
  const auto add = [&](DType dtype, const char* size, std::int64_t side, Reach reach) {
    const auto square = [=](auto& b, Rng& rng) {
      return std::vector{rand(b, {side, side}, rng, 0, 1, dtype)};
    };
    const std::pair<const char*, Shape> kinds[] = {{"rows", {1}}, {"columns", {0}}, {"all", {}}};
    for (const op::ReduceFn fn : {op::ReduceFn::sum, op::ReduceFn::max})
      for (const auto& [kind, axes] : kinds)
        suite.add_op(row_name(op::to_string(fn), to_string(dtype), kind) + "/" + size, op::Reduce{fn, axes},
                     square, reach);
  };
  add(DType::f32, "1M", 1 << 10, Reach::naive);
  add(DType::f32, "256M", 1 << 14, Reach::cuda);
  add(DType::bf16, "256M", 1 << 14, Reach::cuda);
}

}  // namespace ferrite::bench
