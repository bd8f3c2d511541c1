// Linear algebra. The matrices are made well conditioned inside the call, so that any input will do; einsum
// takes anything.
#pragma once

#include "case.hpp"

namespace ferrite::conformance {

inline const std::vector<DType> reals = {DType::f32, DType::f64};

template <class B>
Tensor<B> apart(const Tensor<B>& x) {  // a dominant diagonal of numbers that differ
  const std::int64_t m = x.size(-2), n = x.size(-1), k = std::min(m, n);
  const Tensor<B> rows = unsqueeze(arange(x.backend(), m), -1), columns = arange(x.backend(), n);
  return x * 0.25 + where(rows == columns, cast(rows, x.dtype()) + 1.5 * static_cast<double>(k), 0);
}
template <class B>
Tensor<B> turned(const Tensor<B>& x) {
  return transpose(x, -1, -2);
}

template <class B>
void add_linear_algebra_cases(Cases<B>& cases) {
  const Input square = real({2, 4, 4}), right = real({2, 4, 3});
  const std::vector<std::vector<Shape>> few = {{{0, 3, 3}}, {{1, 1}}, {{2, 0, 0}}};
  cases.add(Spec{"cholesky", {square}, reals, 64}.also(few),
            [](const auto& in) { return cholesky(apart(in[0] + turned(in[0]))); });
  cases.add(Spec{"lu", {square}, reals, 64}.also(few), [](const auto& in) {
    auto out = lu(apart(in[0]));
    return std::vector{out.lower, out.upper};
  });
  cases.add(Spec{"inverse", {square}, reals, 64}.also(few),
            [](const auto& in) { return inverse(apart(in[0])); });
  cases.add(Spec{"det", {square}, reals, 64}.also(few),
            [](const auto& in) { return det(apart(in[0]) * 0.2); });
  cases.add(Spec{"slogdet", {square}, reals, 64}.also(few),
            [](const auto& in) { return slogdet(apart(in[0])).logarithm; });
  cases.add(Spec{"solve", {square, right}, reals, 64}.also(
                {{{4, 4}, {2, 4, 3}}, {{2, 4, 4}, {4}}, {{0, 0}, {0, 2}}}),
            [](const auto& in) { return solve(apart(in[0]), in[1]); });
  for (const Side side : {Side::lower, Side::upper})
    for (const bool transposed : {false, true})
      for (const bool unit : {false, true})
        cases.add(
            {std::string("triangular_solve/") + (side == Side::lower ? "lower" : "upper") +
                 (transposed ? "_transposed" : "") + (unit ? "_unit" : ""),
             {square, right},
             reals,
             64},
            [=](const auto& in) {
              return triangular_solve(
                  apart(in[0]) * 0.2, in[1],
                  TriangularConfig{}.with_side(side).with_transposed(transposed).with_unit_diagonal(unit));
            });
  cases.add(Spec{"eigh", {square}, reals, 64}.also(few), [](const auto& in) {
    auto out = eigh(apart(in[0] + turned(in[0])));
    return std::vector{out.values, out.vectors};
  });
  for (const Shape& shape : {Shape{2, 5, 3}, Shape{3, 5}, Shape{4, 4}}) {
    const std::string name =
        "/" + std::to_string(shape[shape.rank() - 2]) + "x" + std::to_string(shape.back());
    cases.add({"qr" + name, {real(shape)}, reals, 64}, [](const auto& in) {
      auto out = qr(apart(in[0]));
      return std::vector{out.q, out.r};
    });
    cases.add({"svd" + name, {real(shape)}, reals, 64}, [](const auto& in) {
      auto out = svd(apart(in[0]));
      return std::vector{out.u, out.s, out.vt};
    });
    cases.add({"pinv" + name, {real(shape)}, reals, 64}, [](const auto& in) { return pinv(apart(in[0])); });
    cases.add({"lstsq" + name, {real(shape), real({shape[shape.rank() - 2], 2})}, reals, 64},
              [](const auto& in) { return lstsq(apart(in[0]), in[1]); });
  }
  for (const MatrixNorm norm : {MatrixNorm::frobenius, MatrixNorm::nuclear, MatrixNorm::spectral,
                                MatrixNorm::one, MatrixNorm::infinity})
    cases.add({"matrix_norm/" + std::to_string(static_cast<int>(norm)), {real({2, 4, 3})}, reals, 64},
              [=](const auto& in) { return matrix_norm(apart(in[0]), norm); });
  const auto einsum_case = [&](std::string text, std::vector<Input> inputs) {
    cases.add({"einsum/" + text, std::move(inputs), floats, 12},
              [text](const auto& in) { return einsum(text, in); });
  };
  einsum_case("ij,jk->ik", {real({3, 4}), real({4, 2})});
  einsum_case("bij,bkj->bik", {real({2, 3, 4}), real({2, 5, 4})});
  einsum_case("...ij,...jk", {real({2, 1, 3, 4}), real({3, 4, 2})});
  einsum_case("ii->i", {real({3, 3})});
  einsum_case("ii", {real({3, 3})});
  einsum_case("i,j,k->kji", {real({2}), real({3}), real({4})});
  einsum_case("bhqd,bhkd->bhqk", {real({1, 2, 3, 4}), real({1, 2, 5, 4})});
  einsum_case("ij->", {real({3, 4})});
  einsum_case("ij,ij->j", {real({3, 4}), real({3, 4})});
}

}  // namespace ferrite::conformance
