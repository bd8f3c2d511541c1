// Finite elements: triangles and tetrahedra over indexed nodes, element values gathered, computed and
// assembled by atomics.
#include "models/irsynth/categories/categories.hpp"

namespace ferrite::irsynth {
namespace {

/// Twice the area of a triangle, or six times the volume of a tetrahedron, signed.
Term measure(Sketch& s, const std::vector<Expr>& corners) {
  std::vector<Expr> edges;
  for (std::size_t k = 1; k < corners.size(); ++k)
    edges.push_back(
        s.variable({sub(corners[k], corners[0]), symmetric(4)}, {"e1", "e2", "e3", "d1", "d2", "ea", "eb"}));
  const auto part = [&](const Expr& e, int i) { return kernel::component(e, list(s.whole(i))); };
  if (edges.size() == 2)
    return {sub(mul(part(edges[0], 0), part(edges[1], 1)), mul(part(edges[0], 1), part(edges[1], 0))),
            symmetric(32)};
  return {irsynth::apply(Builtin::dot, edges[0], irsynth::apply(Builtin::cross, edges[1], edges[2])),
          symmetric(400)};
}

void make(Sketch& s) {
  s.functions = s.draw.chance(0.5);
  s.threads(std::vector<std::int64_t>{s.draw.between(8, 16)});
  const bool solid = s.draw.chance(0.4);
  const int corners = solid ? 4 : 3;
  const Type vec = Type::vector(solid ? 3 : 2, s.real);
  const std::int64_t nodes = s.draw.between(8, 16);
  const Range nodal = s.draw.of({Range{-1, 1}, Range{0, 1}});
  const std::string x_name = s.fresh({"nodes", "x", "verts", "coords"}),
                    cell_name = s.fresh({"tri", "elems", "cells", "conn"}),
                    u_name = s.fresh({"u", "temp", "phi", "disp"});
  const Expr x = s.array(x_name, vec, {nodes}, symmetric(2));
  const Expr cells = s.array(cell_name, kernel::int_type, {s.grid[0], corners}, {0, nodes - 1.0});
  const Expr u = s.array(u_name, s.real_type(), {nodes}, nodal);
  std::vector<Expr> ids, places;
  for (int k = 0; k < corners; ++k)
    ids.push_back(s.variable({kernel::element(cells, list(s.at(s.cursor[0]), s.whole(k))), {0, nodes - 1.0}},
                             {"n0", "n1", "n2", "n3", "ia", "ib", "ic", "id0"}));
  for (const Expr& id : ids)
    places.push_back(s.variable({kernel::element(x, list(id)), symmetric(2)},
                                {"p0", "p1", "p2", "p3", "xa", "xb", "xc", "xd"}));
  Term size = measure(s, places);
  const double bound = size.range.size();
  Expr area = add(irsynth::apply(Builtin::abs, std::move(size.expr)), s.some(0.1, 0.4).expr);
  area = mul(s.number(solid ? 1.0 / 6 : 0.5), std::move(area));
  Term volume = s.let({std::move(area), {0.01, bound}}, s.fresh({"area", "vol", "measure", "weight"}));
  const auto at_node = [&](std::size_t k) { return kernel::element(u, list(ids[k])); };
  // The mean of the nodes' values, or one of their differences.
  Expr mean = at_node(0);
  for (std::size_t k = 1; k < ids.size(); ++k) mean = add(std::move(mean), at_node(k));
  Term value{mul(std::move(mean), s.number(std::round(100.0 / corners) / 100)), symmetric(1)};
  if (s.draw.chance(0.4)) value = {sub(at_node(1), at_node(0)), symmetric(2)};
  s.let(std::move(value), s.fresh({"mean_u", "um", "grad", "ue"}));
  if (s.draw.chance(0.85)) s.elaborate(s.draw.between(1, 3));
  Term share = s.fitted(s.conclusion(), 20);
  s.description = solid ? "tetrahedra" : "triangles";
  if (s.draw.chance(0.3)) {
    s.description += ", a value for each";
    return s.store(s.output(s.real_type()), std::move(share.expr));
  }
  s.description += ", assembled at the nodes";
  Expr part = s.variable(std::move(share), {"share", "contrib", "load", "part"});
  Expr out = s.output(s.real_type(), {nodes});
  const bool method = s.draw.chance(0.5);
  for (int k = 0; k < corners; ++k) {
    Expr value_at = s.draw.chance(0.3) ? mul(part, s.some(0.2, 1).expr) : part;
    if (method)
      s.evaluate(
          irsynth::apply(Builtin::atomic_add, out, ids[static_cast<std::size_t>(k)], std::move(value_at)));
    else
      s.update(kernel::element(out, list(ids[static_cast<std::size_t>(k)])), Builtin::add,
               std::move(value_at));
  }
}

}  // namespace
const Category all::fem{"fem", "areas and volumes of indexed elements, assembly by atomics", 6, make};
}  // namespace ferrite::irsynth
