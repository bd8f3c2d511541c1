// Arrays inside kernels, and Warp's sums over the threads of a block: wp.tile_sum(wp.tile(x)) and its uses.
// Sums become an array of the block, barriers and one thread that acts for all. Tiles of many elements are in
// tile_arrays.cpp.
#include <fmt/format.h>

#include "kernel/check/checker.hpp"
#include "kernel/check/tile_statements.hpp"

namespace ferrite::kernel {

namespace {

Expr first_of(Expr array) {
  std::vector<Expr> index;
  index.push_back(number(0));
  return element(std::move(array), std::move(index));
}

/// wp.tid() % wp.block_dim() == 0
Expr is_first_thread() {
  std::vector<Expr> both, compared;
  both.push_back(apply(Builtin::tid, {}));
  both.push_back(apply(Builtin::block_dim, {}));
  compared.push_back(apply(Builtin::mod, std::move(both)));
  compared.push_back(number(0));
  return apply(Builtin::eq, std::move(compared));
}

}  // namespace

/// The shape of an array inside a kernel: a constant or a tuple of them.
std::vector<std::int64_t> FunctionChecker::extents(const syntax::Expr& shape) {
  const bool several = shape.kind == Kind::tuple;
  const std::size_t dims = several ? shape.args.size() : 1;
  if (dims > 4) fail(shape.place, "arrays have 1 to 4 axes");
  constexpr std::int64_t most = 65536;
  std::int64_t count = 1;
  std::vector<std::int64_t> list;
  for (std::size_t i = 0; i < dims; ++i) {
    const syntax::Expr& e = several ? shape.args[i] : shape;
    const auto extent = constant(e);
    if (!extent) module_.check_bound(e);
    if (!extent || extent->kind != ModuleChecker::Constant::Kind::integer || extent->integer < 1)
      fail(e.place, "the extents are constants, from 1 on");
    if (extent->integer > most || (count *= extent->integer) > most)
      fail(e.place, fmt::format("arrays inside kernels have at most {} elements", most));
    list.push_back(extent->integer);
  }
  return list;
}

/// name = wp.zeros(shape=..., dtype=...) or name = wp.shared_array(shape=..., dtype=...)
std::optional<Stmt> FunctionChecker::declare_array(const syntax::Stmt& s) {
  const syntax::Expr& call = s.values[0];
  if (call.kind != Kind::call) return std::nullopt;
  const auto name = module_.warp_name(call.args[0]);
  if (name != "zeros" && name != "shared_array") return std::nullopt;
  Stmt r;
  r.kind = StmtKind::declare_array;
  r.shared = name == "shared_array";
  if (s.targets.size() != 1 || s.targets[0].kind != Kind::name || names_.contains(s.targets[0].text))
    fail(s.place, fmt::format("wp.{} makes a new variable: assign it to a new name", *name));
  if (r.shared && (!kernel_ || level_ != 1))
    fail(s.place, "arrays of a block are made in kernels, outside of loops and conditions");
  const auto given = arguments(call, {"shape", "dtype"});
  if (given.size() != 2) fail(call.place, fmt::format("wp.{} needs shape and dtype", *name));
  const std::vector<std::int64_t> shape = extents(*given[0]);
  for (const std::int64_t extent : shape) r.values.push_back(literal(ScalarType::i32, extent));
  const Type element = module_.annotation(*given[1]);
  if (element.is_array()) fail(given[1]->place, "dtype is not an array");
  r.targets.push_back(target(s.targets[0], element.array(static_cast<int>(shape.size()))));
  return r;
}

int FunctionChecker::block_variable(std::string_view what, Type type) {
  std::string name;
  for (int k = 1; name.empty() || names_.contains(name); ++k) name = fmt::format("tile_{}_{}", what, k);
  const int index = add_variable(function_, name, type);
  names_.emplace(name, index);
  return index;
}

/// A tile, with the statements that make it added to `out`; nothing if the expression is not a tile.
std::optional<FunctionChecker::Tile> FunctionChecker::tile(const syntax::Expr& e, std::vector<Stmt>& out) {
  if (e.kind == Kind::name) {
    const auto found = names_.find(e.text);
    if (found == names_.end() || !tiles_.contains(found->second)) return std::nullopt;
    return Tile{variable(function_, found->second), tiles_.at(found->second)};
  }
  const auto name = e.kind == Kind::call ? module_.warp_name(e.args[0]) : std::nullopt;
  if (name != "tile" && name != "tile_sum") return std::nullopt;
  if (!kernel_) fail(e.place, fmt::format("wp.{} is for kernels: pass what the function needs", *name));
  const auto given = arguments(e, {*name == "tile" ? "x" : "a"});
  if (given.size() != 1)
    fail(e.place, fmt::format("wp.{} takes one {}", *name, *name == "tile" ? "value" : "tile"));
  if (*name == "tile") {
    Expr x = value(*given[0]);
    if (x.type.is_bool() || !(x.type.is_scalar() || x.type.is_composite()))
      fail(given[0]->place,
           fmt::format("wp.tile of {}: it takes numbers, vectors and matrices", show(x.type)));
    return Tile{std::move(x), TileKind::of_threads};
  }
  auto inner = tile(*given[0], out);
  if (!inner || inner->kind != TileKind::of_threads) fail(given[0]->place, "wp.tile_sum takes a wp.tile(x)");
  const Type type = inner->value.type;
  Stmt declared;
  declared.kind = StmtKind::declare_array;
  declared.shared = true;
  declared.place = e.place;
  declared.values.push_back(number(1));
  const Expr part = variable(function_, block_variable("part", type.array(1)));
  declared.targets.push_back(part);
  block_arrays_.push_back(std::move(declared));

  const Expr total = variable(function_, block_variable("sum", type));
  Stmt adding = store(first_of(part), std::move(inner->value));
  adding.kind = StmtKind::update;
  adding.builtin = Builtin::add;
  out.push_back(std::move(adding));
  out.push_back(barrier());
  out.push_back(store(total, first_of(part)));
  if (loops_ > 0) {  // the next round begins at zero
    out.push_back(barrier());
    out.push_back(store(first_of(part),
                        type.is_scalar() ? literal(type.scalar, std::int64_t{0}) : construct(type, {})));
    out.push_back(barrier());
  }
  return Tile{total, TileKind::of_block};
}

/// s[0] of a sum
std::optional<Expr> FunctionChecker::tile_element(const syntax::Expr& e) {
  std::vector<Stmt> none;
  const auto held = e.args[0].kind == Kind::name ? tile(e.args[0], none) : std::nullopt;
  if (!held || held->kind != TileKind::of_block) return std::nullopt;
  const auto index = constant(e.args[1]);
  if (e.args.size() != 2 || !index || index->integer != 0)
    fail(e.place, "a wp.tile_sum has one element, [0]");
  return held->value;
}

/// Puts the arrays that sums need before the first statement, and their variables after the parameters, as if
/// the text had declared them.
void FunctionChecker::declare_block_arrays() {
  if (block_arrays_.empty()) return;
  auto& body = function_.body;
  body.insert(body.begin(), std::make_move_iterator(block_arrays_.begin()),
              std::make_move_iterator(block_arrays_.end()));
  const std::size_t count = function_.variables.size();
  std::vector<int> order, place(count);
  const auto is_block_array = [&](int v) {
    for (std::size_t i = 0; i < block_arrays_.size(); ++i)
      if (body[i].targets[0].index == v) return true;
    return false;
  };
  for (int v = 0; v < function_.parameters; ++v) order.push_back(v);
  for (const bool arrays : {true, false})
    for (int v = function_.parameters; v < static_cast<int>(count); ++v)
      if (is_block_array(v) == arrays) order.push_back(v);
  std::vector<Variable> sorted;
  for (std::size_t i = 0; i < count; ++i) {
    place[static_cast<std::size_t>(order[i])] = static_cast<int>(i);
    sorted.push_back(std::move(function_.variables[static_cast<std::size_t>(order[i])]));
  }
  function_.variables = std::move(sorted);
  for_each_expr(body, [&](Expr& e) {
    if (e.kind == ExprKind::variable) e.index = place[static_cast<std::size_t>(e.index)];
  });
}

/// Fails unless elements of the array can be added to.
void FunctionChecker::check_sums(Type array, Place place) const {
  std::vector<Type> types(static_cast<std::size_t>(array.dims) + 2, int_type);
  types.front() = array;
  types.back() = array.element();
  if (!info(Builtin::atomic_add).result(types))
    fail(place, fmt::format("wp.tile_atomic_add to {}: it adds numbers, vectors and matrices", show(array)));
}

/// t = wp.tile(...), wp.tile_atomic_add(...), and the same for tiles of many elements: true if the statement
/// was about tiles.
bool FunctionChecker::tile_statement(const syntax::Stmt& s, std::vector<Stmt>& out) {
  const bool called = !s.values.empty() && s.values[0].kind == Kind::call;
  const auto name = called ? module_.warp_name(s.values[0].args[0]) : std::nullopt;
  if (s.kind == syntax::StmtKind::assign && s.targets.size() == 1 && s.targets[0].kind == Kind::name) {
    if (const auto source = tile_source(s.values[0], out)) return fill_tile(s.targets[0], *source, out), true;
    if (name == "tile_matmul") return multiply_tiles(s.values[0], &s.targets[0], out), true;
    auto made = tile(s.values[0], out);
    if (!made) return false;
    const Expr held = target(s.targets[0], made->value.type);
    const auto [found, is_new] = tiles_.emplace(held.index, made->kind);
    if (!is_new && found->second != made->kind)
      fail(s.place, "a tile of threads cannot become one of the block");
    out.push_back(store(held, std::move(made->value)));
    return true;
  }
  if (s.kind != syntax::StmtKind::expression || !called) return false;
  const syntax::Expr& call = s.values[0];
  if (name == "tile_matmul") return multiply_tiles(call, nullptr, out), true;
  if (name != "tile_atomic_add" && name != "tile_store") return false;
  const auto given = tile_arguments(call, {"a", "t", "offset", "bounds_check", "aligned"});
  if (given[0] == nullptr || given[1] == nullptr)
    fail(call.place, fmt::format("wp.{} needs an array, a tile and, perhaps, an offset", *name));
  if (const auto source = tile_source(*given[1], out))
    return store_tile(*source, *given[0], given[2], *name == "tile_atomic_add", out), true;
  Expr array = value(*given[0]);
  auto sum = tile(*given[1], out);
  if (!sum || sum->kind != TileKind::of_block)
    fail(given[1]->place, "only a wp.tile_sum can be stored, or a tile of the block");
  if (!array.type.is_array() || array.type.element() != sum->value.type)
    fail(given[0]->place, fmt::format("{} takes no {}", show(array.type), show(sum->value.type)));
  std::vector<Expr> indices;
  for (std::size_t axis = 0; axis < array.type.dims; ++axis) {
    if (given[2] == nullptr) {
      indices.push_back(number(0));
      continue;
    }
    const bool several = given[2]->kind == Kind::tuple;
    if ((several ? given[2]->args.size() : 1) != array.type.dims)
      fail(given[2]->place, "the offset has an integer for each axis");
    indices.push_back(value(several ? given[2]->args[axis] : *given[2]));
    if (!indices.back().type.is_int()) fail(given[2]->place, "the offset has an integer for each axis");
  }
  if (*name == "tile_atomic_add") check_sums(array.type, given[0]->place);
  Stmt once, inside;
  once.kind = StmtKind::if_;
  once.values.push_back(is_first_thread());
  if (*name == "tile_store") {
    inside = store(element(std::move(array), std::move(indices)), std::move(sum->value));
  } else {
    std::vector<Expr> args;
    args.push_back(std::move(array));
    for (Expr& i : indices) args.push_back(std::move(i));
    args.push_back(std::move(sum->value));
    inside.kind = StmtKind::evaluate;
    inside.values.push_back(apply(Builtin::atomic_add, std::move(args)));
  }
  once.body.push_back(std::move(inside));
  out.push_back(std::move(once));
  return true;
}

}  // namespace ferrite::kernel
