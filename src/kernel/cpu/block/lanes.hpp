// The loops that instructions are made of.
#pragma once

#include "kernel/cpu/block/program.hpp"
#include "kernel/ir/scalar_forms.hpp"

namespace ferrite::kernel {

// Loops of pure instructions. `out` may be an operand: lanes are independent of each other, which g++ is
// told. (clang would warn about loops that cannot be vectorised, such as those that call pow; it checks the
// addresses itself.)
#if defined(__clang__)
#define FERRITE_LANES_APART
#else
#define FERRITE_LANES_APART _Pragma("GCC ivdep")
#endif

template <class Out, class A, class F>
FERRITE_INLINE void for_lanes(const Instruction& i, Lanes& l, F f) {
  Out* out = l.at<Out>(i.out);
  const A* a = l.at<A>(i.a);
  const int n = l.width;
  FERRITE_LANES_APART
  for (int k = 0; k < n; ++k) out[k] = f(a[k]);
}
template <class Out, class A, class B, class F>
FERRITE_INLINE void for_lanes(const Instruction& i, Lanes& l, F f) {
  Out* out = l.at<Out>(i.out);
  const A* a = l.at<A>(i.a);
  const B* b = l.at<B>(i.b);
  const int n = l.width;
  if (i.single) {
    const B one = b[0];
    FERRITE_LANES_APART
    for (int k = 0; k < n; ++k) out[k] = f(a[k], one);
  } else {
    FERRITE_LANES_APART
    for (int k = 0; k < n; ++k) out[k] = f(a[k], b[k]);
  }
}
template <class Out, class A, class B, class C, class F>
FERRITE_INLINE void for_lanes(const Instruction& i, Lanes& l, F f) {
  Out* out = l.at<Out>(i.out);
  const A* a = l.at<A>(i.a);
  const B* b = l.at<B>(i.b);
  const C* c = l.at<C>(i.c);
  const int n = l.width;
  FERRITE_LANES_APART
  for (int k = 0; k < n; ++k) out[k] = f(a[k], b[k], c[k]);
}

}  // namespace ferrite::kernel
