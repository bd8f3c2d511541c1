// Vectors of 2 to 4 components and quaternions: products, lengths, rotations.
#include "models/irsynth/categories/categories.hpp"

namespace ferrite::irsynth {
namespace {

void make(Sketch& s) {
  s.functions = s.draw.chance(0.5);
  s.composites = true;
  s.axes(s.level >= 4 && s.draw.chance(0.4) ? 2 : 1);
  const Type type =
      s.draw.chance(0.1) ? Type::quaternion(s.real) : Type::vector(s.draw.between(2, 4), s.real);
  s.description = "vector algebra";
  if (s.draw.chance(0.6)) return s.body(type);
  if (s.level == 0) {
    Term v = s.composite(type, s.draw.between(1, 2));
    v = s.scalar_of(std::move(v));
    return s.store(s.output(s.real_type()), std::move(v.expr));
  }
  s.let(s.composite(type, 1));
  s.body(s.real_type());
}

}  // namespace
const Category all::vector{"vector", "dot cross length normalize and sums of vectors and quaternions", 0,
                           make};
}  // namespace ferrite::irsynth
