// Functions beside the kernel: with early returns, several results, and calls of each other.
#include "models/irsynth/categories/categories.hpp"

namespace ferrite::irsynth {
namespace {

void make(Sketch& s) {
  s.functions = s.draw.chance(0.6);
  s.axes(s.draw.chance(0.3) ? 2 : 1);
  const int count = s.draw.between(1, 3);
  for (int k = 0; k < count; ++k) s.make_function();
  s.let(s.call(1));
  if (s.draw.chance(0.4)) s.unpack_pair();
  s.body(s.real_type());
  s.description = "a kernel and the functions it calls";
}

}  // namespace
const Category all::functions{"functions", "@wp.func with early returns and several results", 5, make};
}  // namespace ferrite::irsynth
