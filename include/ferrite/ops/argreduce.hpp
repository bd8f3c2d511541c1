// argreduce: the index of the largest or smallest element along one axis, as i64.
#pragma once

#include "ferrite/ops/op.hpp"
#include "ferrite/ops/reduce.hpp"

namespace ferrite {
namespace op {

enum class ArgReduceFn : std::uint8_t { argmax, argmin };
FERRITE_API std::string_view to_string(ArgReduceFn fn);
constexpr int count_of(ArgReduceFn) { return static_cast<int>(ArgReduceFn::argmin) + 1; }

/// The first of equal elements wins; a NaN counts as the extreme, as in NumPy.
struct FERRITE_API ArgReduce {
  static constexpr LibraryName type_name = "argreduce";
  ArgReduceFn fn = ArgReduceFn::argmax;
  int axis = -1;
  bool keepdim = false;

  std::string_view name() const { return to_string(fn); }
  Metas infer(MetaSpan in) const;
  static void attributes(auto& self, auto&& visit) {
    visit("fn", self.fn);
    visit("axis", self.axis);
    visit("keepdim", self.keepdim);
  }
};

}  // namespace op

// Kernels (backend/concept.hpp).
FERRITE_API void run(Cpu&, const op::ArgReduce& op, Ins in, Outs out);
FERRITE_API void run(Cuda&, const op::ArgReduce& op, Ins in, Outs out);

template <class B>
Tensor<B> argmax(const Tensor<B>& x, int axis = -1, KeepDim keep = KeepDim::no) {
  return eval(op::ArgReduce{op::ArgReduceFn::argmax, axis, keep == KeepDim::yes}, x);
}
template <class B>
Tensor<B> argmin(const Tensor<B>& x, int axis = -1, KeepDim keep = KeepDim::no) {
  return eval(op::ArgReduce{op::ArgReduceFn::argmin, axis, keep == KeepDim::yes}, x);
}

}  // namespace ferrite
