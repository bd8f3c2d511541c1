// Sums, products, quotients, minima and maxima, of floats or integers.
#include "models/irsynth/categories/categories.hpp"

namespace ferrite::irsynth {
namespace {

void make(Sketch& s) {
  s.axes(s.level >= 4 && s.draw.chance(0.4) ? s.draw.between(2, 4) : 1);
  const bool whole = !s.smooth && s.draw.chance(0.2);
  s.body(whole ? kernel::int_type : s.real_type());
  s.description = whole ? "integer arithmetic, element by element" : "arithmetic, element by element";
}

}  // namespace
const Category all::arithmetic{"arithmetic", "+ - * / min max abs of floats and integers", 0, make};
}  // namespace ferrite::irsynth
