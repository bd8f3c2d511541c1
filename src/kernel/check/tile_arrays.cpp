// Tiles of many elements: wp.tile_load, tile_store, tile_zeros, tile_transpose, tile_matmul. A tile is an
// array of the block. Every thread fills its part of the elements, and barriers surround the writes, so the
// rest of a kernel may read any element at any time.
#include <fmt/format.h>

#include "kernel/check/checker.hpp"
#include "kernel/check/tile_statements.hpp"

namespace ferrite::kernel {

namespace {

std::string shown(const std::vector<std::int64_t>& shape) { return fmt::format("{}", fmt::join(shape, "x")); }

Expr zero(Type type) {
  return type.is_scalar() ? literal(type.scalar, std::int64_t{0}) : construct(type, {});
}

Expr both(Builtin builtin, Expr a, Expr b) {
  std::vector<Expr> args;
  args.push_back(std::move(a));
  args.push_back(std::move(b));
  return apply(builtin, std::move(args));
}

}  // namespace

const std::vector<std::int64_t>* FunctionChecker::tile_shape(int variable) const {
  const auto found = tile_arrays_.find(variable);
  return found == tile_arrays_.end() ? nullptr : &found->second;
}

void FunctionChecker::refuse_tile(const Expr& place, Place at) const {
  if (place.kind == ExprKind::variable && tile_shape(place.index) != nullptr)
    fail(at, "the elements of a tile are only read: all threads together write it, as in wp.tile_load");
  if (place.kind != ExprKind::variable) refuse_tile(place.args[0], at);
}

/// Null for arguments that are not given; the storage of a tile (storage=, aligned=) makes no difference
/// here.
std::vector<const syntax::Expr*> FunctionChecker::tile_arguments(const syntax::Expr& e,
                                                                 const std::vector<std::string>& parameters) {
  auto given = optional_arguments(e, parameters);
  if (given.size() > parameters.size())
    fail(e.place, fmt::format("too many arguments: there are {}", fmt::join(parameters, ", ")));
  return given;
}

/// A loop in which each thread takes its share of the elements; `body` gets the index of one.
Stmt FunctionChecker::each_element(const std::vector<std::int64_t>& shape, const TileBody& body) {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) count *= extent;
  const Expr at = variable(function_, block_variable("at", int_type));
  Stmt loop;
  loop.kind = StmtKind::for_;
  loop.targets.push_back(at);
  loop.values.push_back(both(Builtin::mod, apply(Builtin::tid, {}), apply(Builtin::block_dim, {})));
  loop.values.push_back(number(count));
  loop.values.push_back(apply(Builtin::block_dim, {}));
  std::vector<Expr> index(shape.size(), at);
  std::int64_t later = 1;  // elements that share the index of this axis
  for (std::size_t axis = shape.size(); axis-- > 0; later *= shape[axis]) {
    if (later > 1) index[axis] = both(Builtin::div, std::move(index[axis]), number(later));
    if (axis > 0) index[axis] = both(Builtin::mod, std::move(index[axis]), number(shape[axis]));
  }
  body(index, loop.body);
  return loop;
}

/// The place of a tile in an array: the array, and a function from an index in the tile to one in the array.
FunctionChecker::Window FunctionChecker::window(const syntax::Expr& array, const syntax::Expr* offset,
                                                std::size_t dims, std::vector<Stmt>& out) {
  Window w{value(array), {}};
  if (!w.array.type.is_array() || !is_pure(module_.module(), w.array))
    fail(array.place, fmt::format("{} is not an array", show(w.array.type)));
  if (w.array.type.dims != dims)
    fail(array.place,
         fmt::format("{} has {} axes, the tile {}", show(w.array.type), w.array.type.dims, dims));
  const bool several = offset != nullptr && offset->kind == Kind::tuple;
  if (offset != nullptr && (several ? offset->args.size() : 1) != dims)
    fail(offset->place, "the offset has an integer for each axis");
  for (std::size_t axis = 0; axis < dims; ++axis) {
    Expr o = offset == nullptr ? number(0) : value(several ? offset->args[axis] : *offset);
    if (!o.type.is_int()) fail(offset->place, "the offset has an integer for each axis");
    o = cast(ScalarType::i32, std::move(o));
    if (o.kind != ExprKind::literal) {  // once, not for each element
      const Expr kept = variable(function_, block_variable("offset", int_type));
      out.push_back(store(kept, std::move(o)));
      o = kept;
    }
    w.offset.push_back(std::move(o));
  }
  return w;
}

std::vector<Expr> FunctionChecker::index_in(const Window& w, const std::vector<Expr>& index) const {
  std::vector<Expr> moved;
  for (std::size_t axis = 0; axis < index.size(); ++axis) {
    const bool zero_offset = w.offset[axis].kind == ExprKind::literal && w.offset[axis].number.integer == 0;
    moved.push_back(zero_offset ? index[axis] : both(Builtin::add, w.offset[axis], index[axis]));
  }
  return moved;
}

/// Whether an element lies inside the array: a tile may extend beyond its ends. Without the check an index
/// before the first element would count from the last.
Expr FunctionChecker::is_inside(const Window& w, const std::vector<Expr>& index) const {
  std::optional<Expr> all;
  const auto also = [&](Expr one) {
    if (!all) {
      all = std::move(one);
      return;
    }
    Expr and_;
    and_.kind = ExprKind::logical_and;
    and_.type = bool_type;
    and_.args.push_back(std::move(*all));
    and_.args.push_back(std::move(one));
    all = std::move(and_);
  };
  for (std::size_t axis = 0; axis < index.size(); ++axis) {
    const bool from_start = w.offset[axis].kind == ExprKind::literal && w.offset[axis].number.integer >= 0;
    if (!from_start) also(both(Builtin::ge, index[axis], number(0)));
    also(both(Builtin::lt, index[axis],
              both(Builtin::shape, w.array, number(static_cast<std::int64_t>(axis)))));
  }
  return std::move(*all);
}

/// The source of a tile; nothing if the expression is not a tile of this kind.
std::optional<FunctionChecker::TileSource> FunctionChecker::tile_source(const syntax::Expr& e,
                                                                        std::vector<Stmt>& out) {
  if (e.kind == Kind::name) {
    const auto found = names_.find(e.text);
    const auto* shape = found == names_.end() ? nullptr : tile_shape(found->second);
    if (shape == nullptr) return std::nullopt;
    const Expr tile = variable(function_, found->second);
    return TileSource{tile.type.element(), *shape,
                      [tile](std::vector<Expr> index) { return element(tile, std::move(index)); },
                      found->second};
  }
  const auto name = e.kind == Kind::call ? module_.warp_name(e.args[0]) : std::nullopt;
  if (name != "tile_load" && name != "tile_zeros" && name != "tile_transpose") return std::nullopt;
  if (!kernel_) fail(e.place, fmt::format("wp.{} is for kernels: pass what the function needs", *name));
  if (*name == "tile_transpose") {
    const auto given = arguments(e, {"a"});
    auto inner = given.size() == 1 ? tile_source(*given[0], out) : std::nullopt;
    if (!inner || inner->shape.size() != 2) fail(e.place, "wp.tile_transpose takes a tile of two axes");
    std::swap(inner->shape[0], inner->shape[1]);
    inner->at = [at = std::move(inner->at)](std::vector<Expr> index) {
      std::swap(index[0], index[1]);
      return at(std::move(index));
    };
    return inner;
  }
  if (*name == "tile_zeros") {
    const auto given = tile_arguments(e, {"shape", "dtype", "storage"});
    if (given[0] == nullptr) fail(e.place, "wp.tile_zeros needs a shape");
    const Type type = given[1] == nullptr ? float_type : module_.annotation(*given[1]);
    if (type.is_array()) fail(given[1]->place, "dtype is not an array");
    return TileSource{type, extents(*given[0]), [type](std::vector<Expr>) { return zero(type); }, -1};
  }
  const auto given = tile_arguments(e, {"a", "shape", "offset", "storage", "bounds_check", "aligned"});
  if (given[0] == nullptr || given[1] == nullptr) fail(e.place, "wp.tile_load needs an array and a shape");
  std::vector<std::int64_t> shape = extents(*given[1]);
  const Window from = window(*given[0], given[2], shape.size(), out);
  const Type type = from.array.type.element();
  return TileSource{type, std::move(shape),
                    [this, from, type](std::vector<Expr> index) {
                      std::vector<Expr> moved = index_in(from, index);
                      Expr inside;
                      inside.kind = ExprKind::conditional;
                      inside.type = type;
                      inside.args.push_back(is_inside(from, moved));
                      inside.args.push_back(element(from.array, std::move(moved)));
                      inside.args.push_back(zero(type));
                      return inside;
                    },
                    -1};
}

/// The tile that `name` holds from now on, once no thread needs its old elements.
Expr FunctionChecker::tile_target(const syntax::Expr& name, Type type, const std::vector<std::int64_t>& shape,
                                  std::vector<Stmt>& out) {
  if (const auto found = names_.find(name.text); found != names_.end()) {
    const auto* held = tile_shape(found->second);
    const Expr old = variable(function_, found->second);
    if (held == nullptr || *held != shape || old.type.element() != type)
      fail(name.place, fmt::format("'{}' cannot become a tile of {} {}: use another name", name.text,
                                   shown(shape), show(type)));
    out.push_back(barrier());
    return old;
  }
  Stmt declared;
  declared.kind = StmtKind::declare_array;
  declared.shared = true;
  declared.place = name.place;
  for (const std::int64_t extent : shape) declared.values.push_back(number(extent));
  const Expr made = target(name, type.array(static_cast<int>(shape.size())));
  declared.targets.push_back(made);
  block_arrays_.push_back(std::move(declared));
  tile_arrays_.emplace(made.index, shape);
  if (loops_ > 0) out.push_back(barrier());
  return made;
}

void FunctionChecker::fill_tile(const syntax::Expr& name, const TileSource& source, std::vector<Stmt>& out) {
  const auto found = names_.find(name.text);
  if (found != names_.end() && found->second == source.variable)
    fail(name.place, "a tile made of itself: use another name");
  const Expr tile = tile_target(name, source.type, source.shape, out);
  out.push_back(each_element(source.shape, [&](const std::vector<Expr>& index, std::vector<Stmt>& body) {
    body.push_back(store(element(tile, index), source.at(index)));
  }));
  out.push_back(barrier());
}

/// wp.tile_matmul(a, b, c) adds the product to c; the sum of an element is taken in c's type.
void FunctionChecker::multiply_tiles(const syntax::Expr& call, const syntax::Expr* result,
                                     std::vector<Stmt>& out) {
  const auto given = arguments(call, {"a", "b", "out"});
  if (given.size() != (result == nullptr ? 3u : 2u))
    fail(call.place, "write wp.tile_matmul(a, b, out) or c = wp.tile_matmul(a, b)");
  std::optional<TileSource> operands[2];
  for (std::size_t i = 0; i < 2; ++i) {
    operands[i] = tile_source(*given[i], out);
    if (!operands[i] || operands[i]->shape.size() != 2 || !operands[i]->type.is_float())
      fail(given[i]->place, "wp.tile_matmul takes tiles of floats with two axes");
  }
  const TileSource &a = *operands[0], &b = *operands[1];
  const std::vector<std::int64_t> shape{a.shape[0], b.shape[1]};
  const syntax::Expr& into = result != nullptr ? *result : *given[2];
  if (a.shape[1] != b.shape[0])
    fail(call.place, fmt::format("a tile of {} times one of {}", shown(a.shape), shown(b.shape)));
  Type type = a.type;
  if (result == nullptr) {
    const auto sum = into.kind == Kind::name ? tile_source(into, out) : std::nullopt;
    if (!sum || sum->shape != shape || !sum->type.is_float())
      fail(into.place,
           fmt::format("the product goes to a variable that holds a tile of {} floats", shown(shape)));
    type = sum->type;
  }
  if (const auto found = names_.find(into.text);
      found != names_.end() && (found->second == a.variable || found->second == b.variable))
    fail(into.place, "a tile made of itself: use another name");
  const Expr tile = tile_target(into, type, shape, out);
  out.push_back(each_element(shape, [&](const std::vector<Expr>& index, std::vector<Stmt>& body) {
    const Expr sum = variable(function_, block_variable("dot", type));
    body.push_back(store(sum, result == nullptr ? element(tile, index) : zero(type)));
    const Expr k = variable(function_, block_variable("k", int_type));
    Stmt loop, adding;
    loop.kind = StmtKind::for_;
    loop.targets.push_back(k);
    for (const std::int64_t bound : {std::int64_t{0}, a.shape[1], std::int64_t{1}})
      loop.values.push_back(number(bound));
    adding = store(sum, both(Builtin::mul, cast(type.scalar, a.at({index[0], k})),
                             cast(type.scalar, b.at({k, index[1]}))));
    adding.kind = StmtKind::update;
    adding.builtin = Builtin::add;
    loop.body.push_back(std::move(adding));
    body.push_back(std::move(loop));
    body.push_back(store(element(tile, index), sum));
  }));
  out.push_back(barrier());
}

/// wp.tile_store(a, t) and wp.tile_atomic_add(a, t); elements beyond the end of the array are left out.
void FunctionChecker::store_tile(const TileSource& tile, const syntax::Expr& array,
                                 const syntax::Expr* offset, bool add, std::vector<Stmt>& out) {
  const Window to = window(array, offset, tile.shape.size(), out);
  if (to.array.type.element() != tile.type)
    fail(array.place, fmt::format("{} takes no {}", show(to.array.type), show(tile.type)));
  if (add) check_sums(to.array.type, array.place);
  out.push_back(each_element(tile.shape, [&](const std::vector<Expr>& index, std::vector<Stmt>& body) {
    std::vector<Expr> moved = index_in(to, index);
    Stmt inside, storing;
    inside.kind = StmtKind::if_;
    inside.values.push_back(is_inside(to, moved));
    if (add) {
      moved.insert(moved.begin(), to.array);
      moved.push_back(tile.at(index));
      storing.kind = StmtKind::evaluate;
      storing.values.push_back(apply(Builtin::atomic_add, std::move(moved)));
    } else {
      storing = store(element(to.array, std::move(moved)), tile.at(index));
    }
    inside.body.push_back(std::move(storing));
    body.push_back(std::move(inside));
  }));
}

}  // namespace ferrite::kernel
