// iota: element i is start + i * step. arange.
#pragma once

#include "ferrite/core/scalar.hpp"
#include "ferrite/ops/op.hpp"

namespace ferrite {
namespace op {

/// Computed as start + i * step in f64 (i64 for integer dtypes) and converted once, so that every backend
/// rounds alike.
struct FERRITE_API Iota {
  static constexpr LibraryName type_name = "iota";
  std::int64_t count = 0;
  DType dtype = DType::i64;
  Scalar start = 0;
  Scalar step = 1;
  /// The function that was called (a literal), for messages and reports; not an attribute.
  std::string_view called = type_name;

  std::string_view name() const { return called; }
  Metas infer(MetaSpan in) const;
  Metas example(DType d) {
    dtype = d;
    return {};
  }
  static void attributes(auto& self, auto&& visit) {
    visit("count", self.count);
    visit("dtype", self.dtype);
    visit("start", self.start);
    visit("step", self.step);
  }
};

/// The number of elements in [start, stop) at this step; throws ValueError for a step of 0 or a non-finite
/// bound.
FERRITE_API std::int64_t arange_count(Scalar start, Scalar stop, Scalar step);

}  // namespace op

// Kernels (backend/concept.hpp).
FERRITE_API void run(Cpu&, const op::Iota& op, Ins in, Outs out);
FERRITE_API void run(Cuda&, const op::Iota& op, Ins in, Outs out);

/// 0, 1, ..., count - 1 as i64.
template <class B>
Tensor<B> arange(B& b, std::int64_t count, DType dtype = DType::i64) {
  return create(b, op::Iota{count, dtype, 0, 1, "arange"});
}
/// Does not compile: a count is an integer. arange(b, 0, 2.7, 1, DType::f32) counts up to any bound.
template <class B, std::floating_point Count>
Tensor<B> arange(B& b, Count count, DType dtype = DType::f32) = delete;
/// start, start + step, ... below stop (above it for a negative step), as NumPy's arange.
template <class B>
Tensor<B> arange(B& b, Scalar start, Scalar stop, Scalar step, DType dtype) {
  return create(b, op::Iota{op::arange_count(start, stop, step), dtype, start, step, "arange"});
}

}  // namespace ferrite
