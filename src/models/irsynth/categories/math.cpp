// Functions: sin, exp, log, sqrt, pow and the others, nested and chained.
#include "models/irsynth/categories/categories.hpp"

namespace ferrite::irsynth {
namespace {

void make(Sketch& s) {
  s.functions = true;
  s.axes(s.level >= 4 && s.draw.chance(0.4) ? s.draw.between(2, 4) : 1);
  s.body(s.real_type());
  s.description = "math functions, element by element";
}

}  // namespace
const Category all::math{"math", "sin cos exp log sqrt pow tanh erf and others", 0, make};
}  // namespace ferrite::irsynth
