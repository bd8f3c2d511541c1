// Names, parameters, variables and statements of a program in the making.
#include "models/irsynth/sketch.hpp"

#include <algorithm>

namespace ferrite::irsynth {

namespace {

constexpr std::string_view input_names[] = {"x", "y", "a",     "b",      "src", "data", "values",  "field",
                                            "u", "v", "input", "signal", "w",   "rho",  "samples", "grid_in"};
constexpr std::string_view output_names[] = {"out", "result", "dst",    "output",
                                             "res", "y_out",  "target", "dest"};
constexpr std::string_view local_names[] = {"t",   "s",    "r",   "p",   "q",    "d", "tmp", "val",
                                            "acc", "term", "mix", "cur", "part", "e", "h",   "g"};
constexpr std::string_view index_names[4][4] = {{"i", "tid", "idx", "n"},
                                                {"j", "col", "k", "m"},
                                                {"k", "z", "depth", "l"},
                                                {"l", "w_idx", "q_idx", "s_idx"}};

}  // namespace

Sketch::Sketch(RandomKey key, int level_of) : draw(key), level(level_of) {
  real = draw.chance(0.15) ? ScalarType::f64 : ScalarType::f32;
  smooth = level == highest_level;
}

std::string Sketch::fresh(std::span<const std::string_view> pool) {
  std::string name(draw.of(pool));
  for (int n = 2; !names_.insert(name).second; ++n) {
    const std::string_view other = draw.of(pool);
    name = n < 4 ? std::string(other) : std::string(other) + std::to_string(n - 3);
  }
  return name;
}

void Sketch::threads(std::vector<std::int64_t> extents) {
  grid = std::move(extents);
  cursor.clear();
  Stmt s;
  for (std::size_t axis = 0; axis < grid.size(); ++axis) {
    const int v = declare(kernel::int_type, fresh(index_names[axis]));
    alive(v, {0, static_cast<double>(grid[axis] - 1)}, true);
    cursor.push_back({v, grid[axis]});
    s.targets.push_back(at(cursor.back()));
  }
  Expr tid = kernel::apply(Builtin::tid, {});
  if (grid.size() > 1) tid.type = Type::tuple(grid.size());
  s.values.push_back(std::move(tid));
  emit(std::move(s));
}

void Sketch::axes(int dims) {
  switch (dims) {
    case 1:
      return threads({draw.of({16, 24, 32, 48})});
    case 2:
      return threads({draw.between(4, 7), draw.between(4, 7)});
    case 3:
      return threads({draw.between(2, 4), draw.between(3, 4), draw.between(3, 4)});
    default:
      return threads({2, draw.between(2, 3), 2, draw.between(2, 4)});
  }
}

Expr Sketch::array(std::string name, Type element, std::vector<std::int64_t> shape, Range range,
                   bool is_output) {
  const int v = kernel::add_variable(kernel_, std::move(name), element.array(static_cast<int>(shape.size())));
  parameters_.push_back({v, {range.low, range.high, std::move(shape), is_output}});
  return kernel::variable(kernel_, v);
}

Expr Sketch::output(Type element, std::vector<std::int64_t> shape) {
  return array(fresh(output_names), element, shape.empty() ? grid : std::move(shape), {}, true);
}

Term Sketch::parameter(std::string name, Type type, Range range) {
  const int v = kernel::add_variable(kernel_, std::move(name), type);
  parameters_.push_back({v, {range.low, range.high, {}, false}});
  return {kernel::variable(kernel_, v), range};
}

Expr Sketch::count(std::int64_t value, std::initializer_list<std::string_view> names) {
  const auto n = static_cast<double>(value);
  return parameter(fresh(names), kernel::int_type, {n, n}).expr;
}

std::vector<Expr> Sketch::cursor_indices() const {
  std::vector<Expr> all;
  for (const Index& i : cursor) all.push_back(at(i));
  return all;
}

Term Sketch::new_input(Type element) {
  // Arrays of the cursor's shape, now and then only of its first or last axes.
  std::size_t first = 0, end = cursor.size();
  if (end > 1 && draw.chance(0.3)) {
    if (draw.chance(0.5))
      first = static_cast<std::size_t>(draw.between(1, static_cast<int>(end) - 1));
    else
      end = static_cast<std::size_t>(draw.between(1, static_cast<int>(end) - 1));
  }
  Input input;
  input.range = draw.of({Range{-1, 1}, Range{-2, 2}, Range{0.5, 2}, Range{0, 1}, Range{-1, 3}});
  if (kernel::is_integer(element.scalar)) input.range = draw.of({Range{-8, 8}, Range{0, 15}, Range{1, 20}});
  std::vector<std::int64_t> shape;
  std::vector<Expr> indices;
  for (std::size_t k = first; k < end; ++k) {
    shape.push_back(cursor[k].extent);
    indices.push_back(at(cursor[k]));
    input.indices.push_back(cursor[k].variable);
  }
  Expr made = array(fresh(input_names), element, std::move(shape), input.range);
  input.variable = made.index;
  inputs_.push_back(input);
  return {kernel::element(std::move(made), std::move(indices)), input.range};
}

Term Sketch::input(Type element) {
  const auto fits = [&](const Input& in) {
    if (kernel_.variables[static_cast<std::size_t>(in.variable)].type.element() != element) return false;
    return std::all_of(in.indices.begin(), in.indices.end(), [&](int v) {
      return std::any_of(cursor.begin(), cursor.end(), [&](const Index& i) { return i.variable == v; });
    });
  };
  const bool in_kernel = function_ == &kernel_;
  if (in_kernel && static_cast<int>(inputs_.size()) < most_inputs && draw.chance(0.6))
    return new_input(element);
  std::vector<const Input*> found;
  for (const Input& in : inputs_)
    if (in_kernel && fits(in)) found.push_back(&in);
  if (!found.empty()) {
    const Input& in = *found[static_cast<std::size_t>(draw.below(static_cast<int>(found.size())))];
    std::vector<Expr> indices;
    for (const int v : in.indices) indices.push_back(kernel::variable(kernel_, v));
    return {kernel::element(kernel::variable(kernel_, in.variable), std::move(indices)), in.range};
  }
  if (auto old = live(element)) return std::move(*old);
  if (in_kernel) return new_input(element);
  if (element.is_int()) return {whole(draw.between(1, 9)), {1, 9}};
  if (element.is_quaternion())
    return {kernel::construct(element, list(number(0.5), number(0.5), number(0.5), number(0.5))), {0.5, 0.5}};
  Term part = leaf();
  return {kernel::construct(element, list(std::move(part.expr))), part.range};
}

int Sketch::declare(Type type, std::string name) {
  return kernel::add_variable(*function_, name.empty() ? fresh(local_names) : std::move(name), type);
}

void Sketch::alive(int variable, Range range, bool used) { live_.push_back({variable, range, used}); }

void Sketch::changed(int variable, Range range) {
  for (Live& l : live_)
    if (l.variable == variable) l.range = range, l.used = false;
}

Term Sketch::let(Term value, std::string name) {
  const int v = declare(value.type(), std::move(name));
  assign(kernel::variable(*function_, v), std::move(value.expr));
  alive(v, value.range, false);
  return {kernel::variable(*function_, v), value.range};
}

Term Sketch::read(int variable) {
  for (Live& l : live_) {
    if (l.variable != variable) continue;
    l.used = true;
    return {kernel::variable(*function_, variable), l.range};
  }
  throw ValueError("[irsynth] a variable that is not alive");
}

std::optional<Term> Sketch::live(Type type, bool unused_only) {
  const auto pick = [&](bool unused) -> std::optional<Term> {
    int found = 0;
    for (const Live& l : live_)
      found += function_->variables[static_cast<std::size_t>(l.variable)].type == type && !(unused && l.used);
    if (found == 0) return {};
    int at = draw.below(found);
    for (const Live& l : live_)
      if (function_->variables[static_cast<std::size_t>(l.variable)].type == type && !(unused && l.used) &&
          at-- == 0)
        return read(l.variable);
    return {};
  };
  if (unused_only || draw.chance(0.7))
    if (auto found = pick(true)) return found;
  return unused_only ? std::nullopt : pick(false);
}

void Sketch::assign(Expr target, Expr value) {
  Stmt s;
  s.targets.push_back(std::move(target));
  s.values.push_back(std::move(value));
  emit(std::move(s));
}

void Sketch::update(Expr target, Builtin builtin, Expr value) {
  Stmt s;
  s.kind = kernel::StmtKind::update;
  s.builtin = builtin;
  s.targets.push_back(std::move(target));
  s.values.push_back(std::move(value));
  emit(std::move(s));
}

void Sketch::evaluate(Expr value) {
  Stmt s;
  s.kind = kernel::StmtKind::evaluate;
  s.values.push_back(std::move(value));
  emit(std::move(s));
}

void Sketch::inside(std::vector<Stmt>& block, const std::function<void()>& make) {
  std::vector<Stmt>* const outer = std::exchange(block_, &block);
  const std::size_t alive_before = live_.size(), axes = cursor.size();
  ++nested_;
  make();
  --nested_;
  live_.resize(alive_before);
  cursor.resize(axes);
  block_ = outer;
}

void Sketch::if_else(Expr condition, const std::function<void()>& then,
                     const std::function<void()>& otherwise) {
  Stmt s;
  s.kind = kernel::StmtKind::if_;
  s.values.push_back(std::move(condition));
  inside(s.body, then);
  if (otherwise) inside(s.orelse, otherwise);
  emit(std::move(s));
}

void Sketch::loop(Expr first, Expr end, Expr step, Range values, const std::function<void(int)>& body) {
  Stmt s;
  s.kind = kernel::StmtKind::for_;
  const int v = declare(kernel::int_type, fresh({"k", "m", "it", "c", "step", "jj", "kk", "l"}));
  s.targets.push_back(kernel::variable(*function_, v));
  if (end.kind == kernel::ExprKind::literal) unrolled_.insert(v);
  s.values = list(std::move(first), std::move(end), std::move(step));
  const std::size_t outer_mark = std::exchange(loop_mark_, mark());
  inside(s.body, [&] {
    alive(v, values, true);
    body(v);
  });
  loop_mark_ = outer_mark;
  emit(std::move(s));
}

void Sketch::loop(Expr end, std::int64_t most, const std::function<void(int)>& body) {
  loop(whole(0), std::move(end), whole(1), {0, static_cast<double>(most - 1)}, body);
}

}  // namespace ferrite::irsynth
