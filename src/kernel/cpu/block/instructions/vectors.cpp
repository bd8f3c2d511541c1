// The frequent builtins of vectors and matrices, on whole registers. Sums are formed in f64 and rounded once,
// in the interpreter's order.
#include <cmath>

#include "kernel/cpu/block/lanes.hpp"

namespace ferrite::kernel {

namespace {

using Sums = std::array<double, 1024>;  // as many as a block has lanes at most

const Call& call_of(const Instruction& i, const Lanes& l) {
  return l.program.calls[static_cast<std::size_t>(i.detail)];
}

/// sum = a * b over pairs of components.
template <class T>
void products(Lanes& l, const Cells& a, const Cells& b, std::size_t from_a, std::size_t step_a,
              std::size_t from_b, std::size_t step_b, std::size_t count, Sums& sum) {
  std::fill_n(sum.begin(), l.width, 0.0);
  for (std::size_t c = 0; c < count; ++c) {
    const T* __restrict x = l.at<T>(a[from_a + c * step_a].reg);
    const T* __restrict y = l.at<T>(b[from_b + c * step_b].reg);
    for (int k = 0; k < l.width; ++k) sum[static_cast<std::size_t>(k)] += static_cast<double>(x[k]) * y[k];
  }
}
template <ScalarType s, class F>
FERRITE_INLINE void put(Lanes& l, Cell out, const Sums& sum, F f) {
  auto* y = l.at<typename Form<s>::Lane>(out.reg);
  for (int k = 0; k < l.width; ++k) y[k] = Form<s>::round(f(sum[static_cast<std::size_t>(k)]));
}
constexpr auto same = [](double x) { return x; };

template <ScalarType s>
void dot(const Instruction& i, Lanes& l) {
  const Call& c = call_of(i, l);
  Sums sum;
  products<typename Form<s>::Lane>(l, c.arguments[0], c.arguments.back(), 0, 1, 0, 1, c.arguments[0].size(),
                                   sum);
  put<s>(l, c.out[0], sum, same);
}
template <ScalarType s>
void length(const Instruction& i, Lanes& l) {
  const Call& c = call_of(i, l);
  Sums sum;
  products<typename Form<s>::Lane>(l, c.arguments[0], c.arguments[0], 0, 1, 0, 1, c.arguments[0].size(), sum);
  put<s>(l, c.out[0], sum, [](double x) { return std::sqrt(x); });
}
template <ScalarType s>
void normalize(const Instruction& i, Lanes& l) {
  using T = typename Form<s>::Lane;
  const Call& c = call_of(i, l);
  const Cells& x = c.arguments[0];
  Sums sum;
  products<T>(l, x, x, 0, 1, 0, 1, x.size(), sum);
  for (std::size_t j = 0; j < x.size(); ++j) {
    const double none = c.type.is_quaternion() && j == 3;
    const T* a = l.at<T>(x[j].reg);
    T* y = l.at<T>(c.out[j].reg);
    for (int k = 0; k < l.width; ++k) {
      const double size = std::sqrt(sum[static_cast<std::size_t>(k)]);
      y[k] = Form<s>::round(size > 0 ? a[k] / size : none);
    }
  }
}
template <ScalarType s>
void cross(const Instruction& i, Lanes& l) {
  using T = typename Form<s>::Lane;
  const Call& c = call_of(i, l);
  for (std::size_t r = 0; r < 3; ++r) {
    const std::size_t p = (r + 1) % 3, q = (r + 2) % 3;
    const T *ap = l.at<T>(c.arguments[0][p].reg), *aq = l.at<T>(c.arguments[0][q].reg);
    const T *bp = l.at<T>(c.arguments[1][p].reg), *bq = l.at<T>(c.arguments[1][q].reg);
    T* __restrict y = l.at<T>(c.out[r].reg);
    for (int k = 0; k < l.width; ++k)
      y[k] = Form<s>::round(static_cast<double>(ap[k]) * bq[k] - static_cast<double>(aq[k]) * bp[k]);
  }
}
/// Matrix and matrix, matrix and vector, vector and matrix: a vector is a row or a column.
template <ScalarType s>
void multiply(const Instruction& i, Lanes& l) {
  const Call& c = call_of(i, l);
  const std::size_t n = c.types[0].rows;
  const std::size_t rows = c.types[0].is_matrix() ? n : 1, columns = c.types[1].is_matrix() ? n : 1;
  Sums sum;
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t j = 0; j < columns; ++j) {
      products<typename Form<s>::Lane>(l, c.arguments[0], c.arguments[1], r * n, 1, j, columns, n, sum);
      put<s>(l, c.out[r * columns + j], sum, same);
    }
}

template <ScalarType s>
Execute find(const Call& call) {
  switch (call.row->id) {
    case Builtin::dot:
    case Builtin::ddot:
    case Builtin::length_sq:
      return dot<s>;
    case Builtin::length:
      return length<s>;
    case Builtin::normalize:
      return normalize<s>;
    case Builtin::cross:
      return cross<s>;
    case Builtin::mul:
      return call.types[0].is_quaternion() ? nullptr : Execute{multiply<s>};
    default:
      return nullptr;
  }
}

}  // namespace

Execute vector_instruction(const Call& call) {
  if (call.types.empty()) return nullptr;
  return visit_scalar(call.types[0].scalar, [&]<ScalarType s>() -> Execute {
    if constexpr (is_float(s))
      return find<s>(call);
    else
      return nullptr;
  });
}

}  // namespace ferrite::kernel
