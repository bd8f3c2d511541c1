// Gather through index arrays and computed indices, scatter by atomics.
#include "models/irsynth/categories/categories.hpp"

namespace ferrite::irsynth {
namespace {

void make(Sketch& s) {
  s.functions = s.draw.chance(0.4);
  s.composites = s.draw.chance(0.3);
  s.axes(1);
  const std::int64_t n = s.draw.between(8, 24);
  const Type element = s.draw.chance(0.25) ? Type::vector(s.draw.between(2, 3), s.real) : s.real_type();
  const Range range = s.draw.of({Range{-1, 1}, Range{0, 2}});
  const std::string table_name = s.fresh({"table", "nodes", "lookup", "points", "pool"});
  Expr table = s.array(table_name, element, {n}, range);
  const int reads = s.draw.between(1, 3);
  const bool rows = s.draw.chance(0.4);  // one row of indices for each thread
  const std::string index_name = s.fresh({"idx", "index", "ids", "neighbors", "map"});
  const Range indices{0, static_cast<double>(n - 1)};
  Expr index = s.array(
      index_name, kernel::int_type,
      rows ? std::vector<std::int64_t>{s.grid[0], reads} : std::vector<std::int64_t>{s.grid[0]}, indices);
  const auto place = [&](int k) {
    Expr i = rows ? kernel::element(index, list(s.at(s.cursor[0]), s.whole(k)))
                  : kernel::element(index, list(s.at(s.cursor[0])));
    if (rows || k == 0) return i;
    Expr moved = add(std::move(i), s.whole(k));
    return irsynth::apply(Builtin::mod, std::move(moved),
                          s.draw.chance(0.5) ? s.whole(n) : irsynth::apply(Builtin::len, table));
  };
  for (int k = 0; k < reads; ++k) {
    Term at{place(k), indices};
    if (s.draw.chance(0.5))
      at = s.let(std::move(at), s.fresh({"at", "id", "slot", "node"})), at = s.read(at.expr.index);
    s.let({kernel::element(table, list(std::move(at.expr))), range});
  }
  s.description = "gather through an index array";
  if (s.draw.chance(0.6)) return s.body(s.draw.chance(0.5) ? element : s.real_type());
  s.elaborate(s.draw.between(1, 3));
  Term value = s.conclusion(s.draw.chance(0.5) ? element : s.real_type());
  Expr out = s.output(value.type(), {n});
  Expr to = place(0);
  s.description = "gather, compute and scatter by atomic additions";
  if (s.draw.chance(0.5))
    s.update(kernel::element(std::move(out), list(std::move(to))), Builtin::add, std::move(value.expr));
  else
    s.evaluate(irsynth::apply(Builtin::atomic_add, std::move(out), std::move(to), std::move(value.expr)));
}

}  // namespace
const Category all::gather_scatter{"gather_scatter", "indices from arrays, scatter by atomics", 4, make};
}  // namespace ferrite::irsynth
