// bucketize: finds the interval between a column's edges that each element lies in.
#pragma once

#include <cmath>
#include <limits>

#include "ferrite/core/rng.hpp"
#include "ferrite/ops/op.hpp"
#include "ferrite/ops/where.hpp"

namespace ferrite {

/// Which end belongs to an interval: left is [a, b), NumPy's searchsorted(side="right"); right is (a, b].
enum class Closed : std::uint8_t { left, right };
constexpr std::string_view to_string(Closed closed) { return closed == Closed::left ? "left" : "right"; }
constexpr int count_of(Closed) { return 2; }

/// The edge that divides the floats exactly as `edge` divides them: rounded up for intervals closed on the
/// left (x >= edge), down for the others (x > edge). Plain rounding could move a value to the next interval.
FERRITE_HOST_DEVICE inline float narrow_edge(double edge, Closed closed) {
  const float nearest = static_cast<float>(edge);
  const double difference = static_cast<double>(nearest) - edge;  // NaN for infinities, which are exact
  constexpr float infinity = std::numeric_limits<float>::infinity();
  if (closed == Closed::left && difference < 0) return std::nextafter(nearest, infinity);
  if (closed == Closed::right && difference > 0) return std::nextafter(nearest, -infinity);
  return nearest;
}

namespace op {

/// # Shapes: x [n, c] floating, edges f64 [c, e], each row ascending, with NaN in unused places -> [n, c] of
/// `dtype` (u8, u16, i32, i64): how many edges of its column are <= x (Closed::left) or < x (Closed::right),
/// `missing` for NaN. Comparisons are exact, as if x were f64.
struct FERRITE_API Bucketize {
  static constexpr LibraryName type_name = "bucketize";
  static constexpr bool takes_storage = true;  // as tokens
  Closed closed = Closed::left;
  std::int64_t missing = 0;
  DType dtype = DType::i32;

  Metas infer(MetaSpan in) const;
  Cost cost(MetaSpan in, MetaSpan out) const;
  Metas example(DType d) const { return {{{4, 3}, d}, {{3, 5}, DType::f64}}; }
  static void attributes(auto& self, auto&& visit) {
    visit("closed", self.closed);
    visit("missing", self.missing);
    visit("dtype", self.dtype);
  }
  template <class B>
  Tensors<B> compose(B& b, TensorSpan<B> in) const {
    const Tensor<B> x = cast(in[0], DType::f64);
    Tensor<B> token = zeros(b, x.shape(), DType::i32);
    for (std::int64_t i = 0; i < in[1].size(1); ++i) {
      const Tensor<B> edge = select(in[1], 1, i);
      token = token + cast(closed == Closed::left ? edge <= x : edge < x, DType::i32);
    }
    return {cast(masked_fill(token, isnan(x), missing), dtype)};
  }
};

}  // namespace op

// Kernels (backend/concept.hpp).
FERRITE_API void run(Cpu&, const op::Bucketize& op, Ins in, Outs out);
FERRITE_API void run(Cuda&, const op::Bucketize& op, Ins in, Outs out);
FERRITE_API bool accepts(const Cpu&, const op::Bucketize& op, MetaSpan in);
FERRITE_API bool accepts(const Cuda&, const op::Bucketize& op, MetaSpan in);

/// See op::Bucketize.
template <class B>
Tensor<B> bucketize(const Tensor<B>& x, const Tensor<B>& edges, Closed closed, std::int64_t missing,
                    DType dtype = DType::i32) {
  return eval(op::Bucketize{closed, missing, dtype}, x, edges);
}

}  // namespace ferrite
