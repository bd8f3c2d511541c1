// Stencils of 1 to 3 axes: weighted neighbours, Laplacians, gradients, extrema; the border is left out,
// clamped or wrapped around.
#include "models/irsynth/categories/categories.hpp"

namespace ferrite::irsynth {
namespace {

enum class Border { inner, clamped, wrapped };

struct Stencil {
  Sketch& s;
  Expr field;
  Range range;
  Border border;
  std::vector<Expr> extents;

  Expr index(std::size_t axis, int offset) const {
    Expr i = s.at(s.cursor[axis]);
    if (offset == 0) return i;
    const auto shifted = [&] {
      return irsynth::apply(offset < 0 ? Builtin::sub : Builtin::add, std::move(i),
                            s.whole(std::abs(offset)));
    };
    if (border == Border::inner) return shifted();
    if (border == Border::wrapped) {
      Expr moved = offset < 0 ? sub(add(std::move(i), extents[axis]), s.whole(-offset)) : shifted();
      return irsynth::apply(Builtin::mod, std::move(moved), extents[axis]);
    }
    if (offset < 0) return irsynth::apply(Builtin::max, shifted(), s.whole(0));
    return irsynth::apply(Builtin::min, shifted(), sub(extents[axis], s.whole(1)));
  }
  Term at(const std::vector<int>& offsets) const {
    std::vector<Expr> indices;
    for (std::size_t axis = 0; axis < offsets.size(); ++axis) indices.push_back(index(axis, offsets[axis]));
    return {kernel::element(field, std::move(indices)), range};
  }
};

void values(const Stencil& stencil, int dims) {
  Sketch& s = stencil.s;
  const std::vector<int> centre(static_cast<std::size_t>(dims), 0);
  const auto beside = [&](int axis, int offset) {
    std::vector<int> at = centre;
    at[static_cast<std::size_t>(axis)] = offset;
    return stencil.at(at);
  };
  switch (s.draw.below(5)) {
    case 0: {  // Laplacian
      Term total = add(beside(0, -1), beside(0, 1));
      for (int axis = 1; axis < dims; ++axis)
        total = add(add(std::move(total), beside(axis, -1)), beside(axis, 1));
      Term middle = mul({s.number(2 * dims), {2.0 * dims, 2.0 * dims}}, stencil.at(centre));
      s.let(sub(std::move(total), std::move(middle)), s.fresh({"lap", "laplacian", "div", "diffusion"}));
      s.let(stencil.at(centre), s.fresh({"c", "center", "mid", "here"}));
      break;
    }
    case 1:  // central differences
      for (int axis = 0; axis < dims; ++axis) {
        Term half = s.some(0.25, 1);
        s.let(mul(sub(beside(axis, 1), beside(axis, -1)), std::move(half)),
              s.fresh({"dx", "dy", "dz", "gx", "gy", "gz"}));
      }
      break;
    case 2: {  // weighted neighbours
      Term total = mul(s.some(0.1, 0.9), stencil.at(centre));
      for (int axis = 0; axis < dims; ++axis)
        for (const int offset : {-1, 1}) {
          if (!s.draw.chance(0.8)) continue;
          Term weight = s.some(-0.5, 0.5);
          total = add(std::move(total), mul(std::move(weight), beside(axis, offset)));
        }
      if (dims > 1 && s.draw.chance(0.4)) {
        std::vector<int> corner(static_cast<std::size_t>(dims), 1);
        corner[0] = s.draw.of({-1, 1});
        total = add(std::move(total), mul(s.some(0.05, 0.3), stencil.at(corner)));
      }
      s.let(std::move(total));
      break;
    }
    case 3: {  // extrema
      const Builtin f = s.draw.of({Builtin::min, Builtin::max});
      Term best = stencil.at(centre);
      for (int axis = 0; axis < dims; ++axis)
        for (const int offset : {-1, 1})
          best.expr = irsynth::apply(f, std::move(best.expr), beside(axis, offset).expr);
      s.let(std::move(best));
      break;
    }
    default: {  // upwind
      Term speed = s.some(-1, 1);
      const int axis = s.draw.below(dims);
      Expr ahead = irsynth::apply(Builtin::gt, s.input(s.real_type()).expr, s.number(0));
      Term back = sub(stencil.at(centre), beside(axis, -1)), front = sub(beside(axis, 1), stencil.at(centre));
      Term slope{
          irsynth::apply(Builtin::where, std::move(ahead), std::move(back.expr), std::move(front.expr)),
          back.range};
      s.let(mul(std::move(speed), std::move(slope)));
    }
  }
}

void make(Sketch& s) {
  const int dims = s.draw.weighted({1, 4, 2}) + 1;
  s.functions = s.draw.chance(0.3);
  s.axes(dims);
  const Range range = s.draw.of({Range{-1, 1}, Range{0, 1}, Range{0, 2}});
  Expr field = s.array(s.fresh({"u", "field", "temp", "phi", "height", "image", "pressure"}), s.real_type(),
                       s.grid, range);
  const Border border = s.draw.of({Border::inner, Border::clamped, Border::wrapped});
  Stencil stencil{s, field, range, border, {}};
  const bool named = s.draw.chance(0.5);
  for (int axis = 0; axis < dims; ++axis) {
    Expr extent = irsynth::apply(Builtin::shape, field, s.whole(axis));
    if (named) {
      const int v = s.declare(kernel::int_type, s.fresh({"nx", "ny", "nz", "rows", "cols", "width"}));
      s.assign(kernel::variable(s.function(), v), std::move(extent));
      extent = kernel::variable(s.function(), v);
    }
    stencil.extents.push_back(std::move(extent));
  }
  static constexpr std::string_view borders[] = {"inner points only", "clamped at the border",
                                                 "wrapped around"};
  s.description = std::string("stencil over ") + std::to_string(dims) + " axes, " +
                  std::string(borders[static_cast<int>(border)]);
  if (border != Border::inner) {
    values(stencil, dims);
    return s.body(s.real_type());
  }
  Expr inner;
  for (std::size_t axis = 0; axis < s.cursor.size(); ++axis) {
    Expr low = irsynth::apply(Builtin::gt, s.at(s.cursor[axis]), s.whole(0));
    Expr high = irsynth::apply(Builtin::lt, s.at(s.cursor[axis]), sub(stencil.extents[axis], s.whole(1)));
    const auto both = [](Expr a, Expr b) {
      Expr e;
      e.kind = kernel::ExprKind::logical_and;
      e.type = kernel::bool_type;
      e.args = list(std::move(a), std::move(b));
      return e;
    };
    inner = axis == 0 ? both(std::move(low), std::move(high))
                      : both(both(std::move(inner), std::move(low)), std::move(high));
  }
  s.if_else(std::move(inner), [&] {
    values(stencil, dims);
    s.body(s.real_type());
  });
}

}  // namespace
const Category all::stencil{
    "stencil", "neighbours in 1 to 3 axes: Laplacians, gradients, weighted sums, extrema", 4, make};
}  // namespace ferrite::irsynth
