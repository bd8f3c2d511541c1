// Functions of floats beside the kernel, and calls of them.
#include "models/irsynth/sketch.hpp"

namespace ferrite::irsynth {

namespace {

constexpr double reach = 3;  // of arguments

}  // namespace

Term Sketch::fitted(Term x, double size) {
  if (x.range.within(size)) return x;
  switch (draw.weighted({2, functions && size >= 1 ? 2 : 0, 2})) {
    case 0: {
      const double limit = size >= 1 ? std::floor(size) : std::floor(size * 100) / 100;
      return {irsynth::apply(Builtin::clamp, std::move(x.expr), number(-limit), number(limit)),
              symmetric(limit)};
    }
    case 1:
      return {irsynth::apply(Builtin::tanh, std::move(x.expr)), symmetric(1)};
    default:
      return scaled(std::move(x), size);
  }
}

Sketch::Callable Sketch::made_function(int results) {
  kernel::Function f;
  f.name = fresh({"shape_fn", "falloff", "weight_fn", "response", "profile", "blend_fn", "flux", "kernel_fn",
                  "energy", "activation", "damping", "potential"});
  f.parameters = draw.between(1, 3);
  const std::vector<Live> outer_live = std::exchange(live_, {});
  const std::vector<Index> outer_cursor = std::exchange(cursor, {});
  const auto outer_names = std::exchange(names_, {});
  kernel::Function* const outer = std::exchange(function_, &f);
  std::vector<Stmt>* const block = std::exchange(block_, &f.body);
  const std::set<int> unrolled = std::exchange(unrolled_, {});
  const int nested = std::exchange(nested_, 0);
  const std::size_t loop_mark = std::exchange(loop_mark_, 0);
  for (int i = 0; i < f.parameters; ++i)
    alive(declare(real_type(), fresh({"x", "y", "a", "b", "r", "t", "u", "w"})), symmetric(reach), false);
  const auto give = [&](Term value) {
    Stmt s;
    s.kind = kernel::StmtKind::return_;
    s.values.push_back(std::move(value.expr));
    Range range = value.range;
    for (int i = 1; i < results; ++i) {
      Term second = kept(expression(1));
      range = join(range, second.range);
      s.values.push_back(std::move(second.expr));
    }
    emit(std::move(s));
    return range;
  };
  Range result{0, 0};
  bool early = false;
  if (level >= 2 && draw.chance(0.3)) {
    early = true;
    if_else(condition(0), [&] { result = give(kept(expression(1))); });
  }
  for (int k = draw.below(3); k > 0; --k) let(expression(1));
  if (level >= 3 && draw.chance(0.2)) accumulate();
  const Range last = give(kept(conclusion()));
  result = early ? join(result, last) : last;
  f.results.assign(static_cast<std::size_t>(results), real_type());
  const int parameters = f.parameters;
  function_ = outer;
  block_ = block;
  live_ = outer_live;
  cursor = outer_cursor;
  names_ = outer_names;
  unrolled_ = unrolled;
  nested_ = nested;
  loop_mark_ = loop_mark;
  module_.functions.push_back(std::move(f));
  return {static_cast<int>(module_.functions.size()) - 1, parameters, result};
}

Expr Sketch::call_of(const Callable& f, int depth) {
  Expr e;
  e.kind = kernel::ExprKind::call;
  e.type = real_type();
  e.index = f.index;
  for (int i = 0; i < f.parameters; ++i) e.args.push_back(fitted(expression(depth), reach).expr);
  return e;
}

Term Sketch::call(int depth) {
  const Callable f = functions_[static_cast<std::size_t>(draw.below(static_cast<int>(functions_.size())))];
  return {call_of(f, depth), f.result};
}

void Sketch::unpack_pair() {
  const Callable f = made_function(2);
  Stmt s;
  s.values.push_back(call_of(f, 1));
  s.values[0].type = Type::tuple(2);
  for (int i = 0; i < 2; ++i) {
    const int v = declare(real_type());
    s.targets.push_back(kernel::variable(*function_, v));
    alive(v, f.result, false);
  }
  emit(std::move(s));
}

}  // namespace ferrite::irsynth
