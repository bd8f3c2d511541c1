// scan: running sums along one axis. Integers and bool accumulate in i64, f16 and bf16 in f32.
#pragma once

#include "ferrite/ops/op.hpp"

namespace ferrite {
namespace op {

struct FERRITE_API Scan {
  static constexpr LibraryName type_name = "scan";
  int axis = -1;
  bool reverse = false;

  std::string_view name() const { return "cumsum"; }
  Metas infer(MetaSpan in) const;
  double reduction_length(MetaSpan in) const;
  static void attributes(auto& self, auto&& visit) {
    visit("axis", self.axis);
    visit("reverse", self.reverse);
  }
  template <class B>
  void vjp(Vjp<B>& v) const {
    v.into(0, Scan{axis, !reverse}, v.grad());
  }
};

}  // namespace op

// Kernels (backend/concept.hpp).
FERRITE_API void run(Cpu&, const op::Scan& op, Ins in, Outs out);
FERRITE_API void run(Cuda&, const op::Scan& op, Ins in, Outs out);

/// Element i is the sum of the elements 0 to i along the axis.
template <class B>
Tensor<B> cumsum(const Tensor<B>& x, int axis = -1) {
  return eval(op::Scan{axis, false}, x);
}

}  // namespace ferrite
