// Expressions of vectors, matrices and quaternions. A term's range holds every component.
#include "models/irsynth/sketch.hpp"

namespace ferrite::irsynth {

namespace {

constexpr double largest_component = 20;  // of components that go on

}  // namespace

Term Sketch::vector_leaf(Type type) {
  switch (draw.weighted({6, 4, 2})) {
    case 0:
      if (auto old = live(type)) return std::move(*old);
      break;
    case 1:
      break;
    default:
      if (type.is_vector()) {
        Term all{kernel::construct(type, {}), {0, 0}};
        for (int i = 0; i < type.rows; ++i) {
          Term part = leaf();
          all.range = i == 0 ? part.range : join(all.range, part.range);
          all.expr.args.push_back(std::move(part.expr));
        }
        if (all.range.within(largest_component)) return all;
      } else if (type.is_matrix() && draw.chance(0.5)) {
        Expr identity =
            irsynth::apply(Builtin::diag, kernel::construct(Type::vector(type.rows, real), list(number(1))));
        return {std::move(identity), {0, 1}};
      } else if (type.is_quaternion()) {
        Term angle = leaf();
        if (!angle.range.within(16)) angle = some(-1, 1);
        Expr axis = irsynth::apply(
            Builtin::normalize,
            kernel::construct(Type::vector(3, real), list(number(0.3), number(0.5), number(0.8))));
        return {irsynth::apply(Builtin::quat_from_axis_angle, std::move(axis), std::move(angle.expr)),
                symmetric(1)};
      }
  }
  return input(type);
}

Term Sketch::composite(Type type, int depth) {
  if (depth <= 0) return vector_leaf(type);
  Term a = composite(type, depth - 1);
  const double n = type.rows;
  const auto limited = [&](Term made) {
    if (made.range.within(largest_component)) return made;
    return scaled(std::move(made), 5);
  };
  const auto with = [&](Builtin f, Term b, Range range) {
    return limited({irsynth::apply(f, std::move(a.expr), std::move(b.expr)), range});
  };
  if (type.is_quaternion()) {
    if (draw.chance(0.4))
      return {irsynth::apply(Builtin::quat_inverse, std::move(a.expr)), symmetric(a.range.size())};
    Term b = composite(type, depth - 1);
    const double size = 4 * a.range.size() * b.range.size();
    return with(Builtin::mul, std::move(b), symmetric(size));
  }
  const bool three = type.is_vector() && type.rows == 3, matrix = type.is_matrix();
  switch (draw.weighted({4, 4, 4, matrix ? 0 : 2, matrix ? 0 : 2, three ? 3 : 0, matrix ? 5 : 0,
                         matrix ? 2 : 0, matrix ? 0 : 2, 2, matrix ? 0 : 1, matrix ? 1 : 0, three ? 1 : 0})) {
    case 0: {
      Term b = vector_leaf(type);
      const Range range = a.range + b.range;
      return with(Builtin::add, std::move(b), range);
    }
    case 1: {
      Term b = vector_leaf(type);
      const Range range = a.range - b.range;
      return with(Builtin::sub, std::move(b), range);
    }
    case 2: {
      Term b = expression(1);
      const Range range = a.range * b.range;
      if (draw.chance(0.5)) return with(Builtin::mul, std::move(b), range);
      return limited({mul(std::move(b.expr), std::move(a.expr)), range});
    }
    case 3: {
      Term b = vector_leaf(type);
      const Range range = a.range * b.range;
      return with(Builtin::cw_mul, std::move(b), range);
    }
    case 4: {
      const bool least = draw.chance(0.5);
      Term b = vector_leaf(type);
      const Range range = join(a.range, b.range);
      return with(least ? Builtin::min : Builtin::max, std::move(b), range);
    }
    case 5: {
      Term b = vector_leaf(type);
      const double size = 2 * a.range.size() * b.range.size();
      return with(Builtin::cross, std::move(b), symmetric(size));
    }
    case 6: {
      Term b = vector_leaf(type);
      const double size = n * a.range.size() * b.range.size();
      return with(Builtin::mul, std::move(b), symmetric(size));
    }
    case 7:
      return {irsynth::apply(Builtin::transpose, std::move(a.expr)), a.range};
    case 8: {  // away from zero, where it has no direction
      Term shift = some(0.2, 1);
      const double far = a.range.size() + shift.range.high;
      Expr from = kernel::construct(type, list(number(std::ceil(far * 10) / 10)));
      Expr sum = add(std::move(a.expr), std::move(from));
      return {irsynth::apply(Builtin::normalize, std::move(sum)), symmetric(1)};
    }
    case 9: {
      Term b = apart(leaf());
      const Range range = a.range / b.range;
      return with(Builtin::div, std::move(b), range);
    }
    case 10: {
      Term b = vector_leaf(type);
      const Range range = join(a.range, b.range);
      Term t = some(0.1, 0.9);
      return {irsynth::apply(Builtin::lerp, std::move(a.expr), std::move(b.expr), std::move(t.expr)), range};
    }
    case 11: {
      const Type vector = Type::vector(type.rows, real);
      Term u = vector_leaf(vector), v = vector_leaf(vector);
      const Range range = a.range + u.range * v.range;
      return limited(
          {add(std::move(a.expr), irsynth::apply(Builtin::outer, std::move(u.expr), std::move(v.expr))),
           range});
    }
    default: {
      Term q = vector_leaf(Type::quaternion(real));
      const double turn = q.range.size() * q.range.size();
      const double size = 8 * turn * a.range.size();
      return limited(
          {irsynth::apply(Builtin::quat_rotate, std::move(q.expr), std::move(a.expr)), symmetric(size)});
    }
  }
}

Term Sketch::scalar_of(Term c) {
  const double n = c.type().rows, size = c.range.size();
  if (c.type().is_matrix()) {
    switch (draw.below(3)) {
      case 0:
        return kept({irsynth::apply(Builtin::trace, std::move(c.expr)), c.range * Range{n, n}});
      case 1: {
        const int i = draw.below(c.type().rows), j = draw.below(c.type().columns);
        return {kernel::component(std::move(c.expr), list(whole(i), whole(j))), c.range};
      }
      default: {
        const double bound = n == 2   ? 2 * size * size
                             : n == 3 ? 6 * std::pow(size, 3)
                                      : 24 * std::pow(size, 4);
        return kept({irsynth::apply(Builtin::determinant, std::move(c.expr)), symmetric(bound)});
      }
    }
  }
  const Type type = c.type();
  switch (draw.weighted({3, 3, 3, 2})) {
    case 0: {
      Term other = vector_leaf(type);
      if (type.is_quaternion()) break;
      const double bound = n * size * other.range.size();
      return kept({irsynth::apply(Builtin::dot, std::move(c.expr), std::move(other.expr)), symmetric(bound)});
    }
    case 1: {
      if (type.is_quaternion()) break;
      Expr squared = irsynth::apply(Builtin::length_sq, std::move(c.expr));
      Term shift = some(0.2, 1);
      Expr sum = add(std::move(squared), std::move(shift.expr));
      const Range range = Range{0, n * size * size} + shift.range;
      if (draw.chance(0.5)) return kept({std::move(sum), range});
      return {irsynth::apply(Builtin::sqrt, std::move(sum)),
              mapped(range, [](double v) { return std::sqrt(v); })};
    }
    case 2:
      if (type.is_quaternion() || smooth) break;
      return {irsynth::apply(Builtin::length, std::move(c.expr)), {0, std::sqrt(n) * size}};
    default:
      break;
  }
  const int i = draw.below(type.rows);
  return {kernel::component(std::move(c.expr), list(whole(i))), c.range};
}

std::optional<Term> Sketch::composite_scalar() {
  std::vector<int> found;
  for (const Live& l : live_)
    if (function_->variables[static_cast<std::size_t>(l.variable)].type.is_composite())
      found.push_back(l.variable);
  if (found.empty()) return {};
  return scalar_of(read(found[static_cast<std::size_t>(draw.below(static_cast<int>(found.size())))]));
}

}  // namespace ferrite::irsynth
