// Shared arrays and barriers: the threads of a block exchange values or reduce them together. An extension of
// Warp's language, which has no shared memory outside of tiles.
#include "models/irsynth/categories/categories.hpp"

namespace ferrite::irsynth {
namespace {

void barrier(Sketch& s) { s.evaluate(kernel::apply(Builtin::sync_threads, {})); }

void make(Sketch& s) {
  s.functions = s.draw.chance(0.4);
  const int size = s.draw.of({8, 16});
  s.block_dim = size;
  s.threads(std::vector<std::int64_t>{size * s.draw.between(2, 3)});
  const int tile =
      s.declare(s.real_type().array(1), s.fresh({"tile", "cache", "shared_buf", "scratch", "block_mem"}));
  const auto shared = [&](Expr index) {
    return kernel::element(kernel::variable(s.function(), tile), list(std::move(index)));
  };
  Stmt declaration;
  declaration.kind = kernel::StmtKind::declare_array;
  declaration.shared = true;
  declaration.targets = list(kernel::variable(s.function(), tile));
  declaration.values = list(s.whole(size));
  s.emit(std::move(declaration));
  const int lane = s.declare(kernel::int_type, s.fresh({"lane", "local", "t_id", "slot"}));
  const auto at = [&] { return kernel::variable(s.function(), lane); };
  s.assign(at(), irsynth::apply(Builtin::mod, s.at(s.cursor[0]), s.whole(size)));
  Term mine = s.fitted(s.expression(s.draw.between(1, 2)), 4);
  const Range range = mine.range;
  s.assign(shared(at()), std::move(mine.expr));
  barrier(s);
  const int way = s.draw.below(4);
  static constexpr std::string_view words[] = {"a tree reduction of each block", "neighbours in the block",
                                               "the block reversed", "every thread reads all of the block"};
  s.description = words[way];
  if (way == 0) {
    const Builtin f = s.draw.of({Builtin::add, Builtin::add, Builtin::max, Builtin::min});
    const int half = s.declare(kernel::int_type, s.fresh({"half", "stride", "reach", "width"}));
    const auto stride = [&] { return kernel::variable(s.function(), half); };
    s.assign(stride(), s.whole(size / 2));
    Stmt loop;
    loop.kind = kernel::StmtKind::while_;
    loop.values = list(irsynth::apply(Builtin::gt, stride(), s.whole(0)));
    s.inside(loop.body, [&] {
      s.if_else(irsynth::apply(Builtin::lt, at(), stride()), [&] {
        Expr other = shared(add(at(), stride()));
        s.assign(shared(at()), irsynth::apply(f, shared(at()), std::move(other)));
      });
      barrier(s);
      s.assign(stride(), irsynth::apply(Builtin::floordiv, stride(), s.whole(2)));
    });
    s.emit(std::move(loop));
    const auto n = static_cast<double>(size);
    const Range total = f == Builtin::add ? range * Range{n, n} : range;
    if (s.draw.chance(0.5)) {  // the first thread writes for its block
      Expr out = s.output(s.real_type(), {s.grid[0] / size});
      Expr block = irsynth::apply(Builtin::floordiv, s.at(s.cursor[0]), s.whole(size));
      return s.if_else(irsynth::apply(Builtin::eq, at(), s.whole(0)), [&] {
        s.assign(kernel::element(std::move(out), list(std::move(block))), shared(s.whole(0)));
      });
    }
    s.let({shared(s.whole(0)), total});
  } else if (way == 1) {
    const int offset = s.draw.between(1, 3);
    const auto neighbour = [&](int by) {
      return shared(irsynth::apply(Builtin::mod, add(at(), s.whole(by)), s.whole(size)));
    };
    s.let({neighbour(offset), range});
    s.let({neighbour(size - offset), range});
    s.let({shared(at()), range});
  } else if (way == 2) {
    s.let({shared(sub(s.whole(size - 1), at())), range});
  } else {
    const int sum = s.declare(s.real_type(), s.fresh({"total", "acc", "mixed"}));
    s.assign(kernel::variable(s.function(), sum), s.number(0));
    s.loop(s.whole(size), size, [&](int k) {
      Expr weight = mul(s.some(0.05, 0.3).expr, shared(kernel::variable(s.function(), k)));
      s.update(kernel::variable(s.function(), sum), Builtin::add, std::move(weight));
    });
    s.alive(sum, symmetric(range.size() * 0.3 * size), false);
  }
  s.body(s.real_type());
}

}  // namespace
const Category all::shared_memory{
    "shared_memory", "shared arrays and barriers: block reductions and exchanges", 6, make, 6, false};
}  // namespace ferrite::irsynth
