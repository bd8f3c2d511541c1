// Eigen has threads of its own only with OpenMP, and only for products: here ranges of rows or elements go to
// ferrite's threads, and Eigen computes each.
#include "cli/bench/eigen_calls.hpp"

#include <Eigen/Core>
#include <vector>

#include "core/isa_table.hpp"
#include "ferrite/core/thread_pool.hpp"

namespace ferrite::cli::bench {

namespace {

template <class T>
using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class T>
using Vector = Eigen::Array<T, Eigen::Dynamic, 1>;

constexpr std::int64_t grain = 1 << 16;  // elements that are worth a thread

template <class T>
void multiply(const T* a, const T* b, T* c, std::int64_t n) {
  const Eigen::Map<const Matrix<T>> left(a, n, n), right(b, n, n);
  Eigen::Map<Matrix<T>> product(c, n, n);
  const std::int64_t rows = (n + num_threads() - 1) / num_threads();
  parallel_ranges(n, rows, [&](std::int64_t begin, std::int64_t end) {
    product.middleRows(begin, end - begin).noalias() = left.middleRows(begin, end - begin) * right;
  });
}

template <class T>
void add_up(const T* x, T* out, std::int64_t n) {
  std::vector<T> parts(static_cast<std::size_t>((n + grain - 1) / grain));
  parallel_ranges(n, grain, [&](std::int64_t begin, std::int64_t end) {
    parts[static_cast<std::size_t>(begin / grain)] =
        Eigen::Map<const Vector<T>>(x + begin, end - begin).sum();
  });
  *out = Eigen::Map<const Vector<T>>(parts.data(), static_cast<std::int64_t>(parts.size())).sum();
}

/// f(y, x...) on ranges of the arrays.
template <class T, class F, class... In>
std::function<void()> elementwise(T* out, std::int64_t n, F f, const In*... in) {
  return [=] {
    parallel_ranges(n, grain, [&](std::int64_t begin, std::int64_t end) {
      Eigen::Map<Vector<T>> y(out + begin, end - begin);
      f(y, Eigen::Map<const Vector<T>>(in + begin, end - begin)...);
    });
  };
}

template <class T>
std::function<void()> eigen_call(const std::string& op, const T* const* in, T* out, std::int64_t n) {
  const T* const x = in[0];
  if (op == "matmul") return [=, w = in[1]] { multiply(x, w, out, n); };
  if (op == "sum") return [=] { add_up(x, out, n); };
  if (op == "add")
    return elementwise(
        out, n, [](auto& y, const auto& a, const auto& b) { y = a + b; }, x, in[1]);
  if (op == "mul")
    return elementwise(
        out, n, [](auto& y, const auto& a, const auto& b) { y = a * b; }, x, in[1]);
  if (op == "copy")
    return elementwise(
        out, n, [](auto& y, const auto& a) { y = a; }, x);
  if (op == "relu")
    return elementwise(
        out, n, [](auto& y, const auto& a) { y = a.max(T(0)); }, x);
  if (op == "sigmoid")
    return elementwise(
        out, n, [](auto& y, const auto& a) { y = a.logistic(); }, x);
  if (op == "gelu")
    return elementwise(
        out, n,
        [](auto& y, const auto& a) {
          y = T(0.5) * a * (T(1) + (T(0.7978845608028654) * (a + T(0.044715) * a.cube())).tanh());
        },
        x);
  return {};
}

std::string version() {
  return "Eigen " + std::to_string(EIGEN_WORLD_VERSION) + "." + std::to_string(EIGEN_MAJOR_VERSION) + "." +
         std::to_string(EIGEN_MINOR_VERSION);
}

}  // namespace

FERRITE_ISA_TABLE(commands, EigenCalls) = {eigen_call<float>, eigen_call<double>, version};

}  // namespace ferrite::cli::bench
