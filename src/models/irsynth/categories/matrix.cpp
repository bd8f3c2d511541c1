// Square matrices of 2 to 4 rows: products with matrices and vectors, transposes, traces, determinants.
#include "models/irsynth/categories/categories.hpp"

namespace ferrite::irsynth {
namespace {

void make(Sketch& s) {
  s.composites = true;
  s.axes(s.level >= 4 && s.draw.chance(0.3) ? 2 : 1);
  const int n = s.draw.between(2, 4);
  const Type matrix = Type::matrix(n, s.real), vector = Type::vector(n, s.real);
  s.description = "matrix algebra";
  switch (s.draw.below(3)) {
    case 0:
      return s.body(matrix);
    case 1: {  // matrix times vector
      Term m = s.composite(matrix, s.draw.between(0, 1));
      Term v = s.composite(vector, s.level == 0 ? s.draw.between(0, 2) : 1);
      const double size = n * m.range.size() * v.range.size();
      const double scale = size > 20 ? 0.01 : 1;
      Expr product = mul(std::move(m.expr), std::move(v.expr));
      if (scale < 1) product = mul(s.number(scale), std::move(product));
      if (s.level == 0) return s.store(s.output(vector), std::move(product));
      s.let({std::move(product), symmetric(size * scale)});
      return s.body(vector);
    }
    default: {
      Term m = s.composite(matrix, s.draw.between(1, 2));
      if (s.level > 0) {
        s.let(std::move(m));
        return s.body(s.real_type());
      }
      Term value = s.scalar_of(std::move(m));
      s.store(s.output(s.real_type()), std::move(value.expr));
    }
  }
}

}  // namespace
const Category all::matrix{"matrix", "products, transposes, traces and determinants of 2x2 to 4x4", 0, make};
}  // namespace ferrite::irsynth
