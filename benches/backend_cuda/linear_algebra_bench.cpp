// Factorisations of one large matrix and of batches of small ones. They wait for the GPU, to say which matrix
// has none.
#include "ferrite/ops/cholesky.hpp"
#include "ferrite/ops/svd.hpp"
#include "suite.hpp"

namespace ferrite::bench {
namespace {

template <class F>
void add(Suite& suite, const char* op, DType dtype, std::int64_t batch, std::int64_t n, F call) {
  suite.add(row_name(op, to_string(dtype), extents({batch, n, n})), [=] {
    Cuda cuda;
    Rng rng(1);
    const Tensor<Cuda> any = randn(cuda, {batch, n, n}, rng, 0, 1, dtype),
                       right = randn(cuda, {batch, n, 1}, rng, 0, 1, dtype);
    return time_calls(cuda, call(any, right), Clock::latency);
  });
}

Tensor<Cuda> turned(const Tensor<Cuda>& x) { return transpose(x, -1, -2); }

}  // namespace

void add_linear_algebra(Suite& suite) {
  constexpr std::int64_t sizes[][2] = {{1, 64},   {1, 256},  {1, 512},  {1, 1024},
                                       {1, 2048}, {256, 64}, {4096, 16}};
  using T = Tensor<Cuda>;
  for (const DType dtype : {DType::f32, DType::f64}) {
    for (const auto& [batch, n] : sizes) {
      add(suite, "cholesky", dtype, batch, n, [n = n, dtype](const T& any, const T&) {
        const T a = matmul(any, turned(any)) + eye(any.backend(), n, dtype) * static_cast<double>(n);
        return [=] { cholesky(a); };
      });
      add(suite, "solve", dtype, batch, n, [](const T& a, const T& b) { return [=] { solve(a, b); }; });
      add(suite, "qr", dtype, batch, n, [](const T& a, const T&) { return [=] { qr(a); }; });
      add(suite, "eigh", dtype, batch, n, [](const T& any, const T&) {
        const T a = any + turned(any);
        return [=] { eigh(a); };
      });
      add(suite, "svd", dtype, batch, n, [](const T& a, const T&) { return [=] { svd(a); }; });
    }
  }
}

}  // namespace ferrite::bench
