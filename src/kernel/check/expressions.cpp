// Expressions: every node gets its type, or an error that says what to write instead.
#include <fmt/format.h>

#include "kernel/check/checker.hpp"

namespace ferrite::kernel {

namespace {

std::vector<Expr> single(Expr e) {
  std::vector<Expr> list;
  list.push_back(std::move(e));
  return list;
}

}  // namespace

Expr FunctionChecker::check(const syntax::Expr& e) {
  Expr result = [&] {
    if (constants_only_) {
      if (const auto c = module_.constant(e)) return from_constant(*c, e.place);
      const bool operation = e.kind == Kind::unary || e.kind == Kind::binary || e.kind == Kind::compare ||
                             e.kind == Kind::logical_and || e.kind == Kind::logical_or ||
                             e.kind == Kind::conditional;
      if (operation) return python_value(e);
    }
    switch (e.kind) {
      case Kind::name:
        return name(e);
      case Kind::integer:
      case Kind::real:
      case Kind::boolean: {
        const auto c = module_.constant(e);
        if (!c) fail(e.place, fmt::format("{} does not fit int: write wp.uint64({})", e.integer, e.integer));
        return from_constant(*c, e.place);
      }
      case Kind::attribute:
        return attribute(e);
      case Kind::call:
        return call(e);
      case Kind::subscript:
        return subscript(e);
      case Kind::unary:
        return unary(e);
      case Kind::binary:
        return binary(e);
      case Kind::compare:
        return compare(e);
      case Kind::logical_and:
      case Kind::logical_or:
        return logical(e);
      case Kind::conditional:
        return conditional(e);
      case Kind::tuple:
        fail(e.place, "a tuple has no place here: assign to as many targets");
      case Kind::string:
        fail(e.place, "strings have no place in an expression");
      default:
        fail(e.place, "None has no meaning in a kernel");
    }
  }();
  result.place = e.place;
  return result;
}

Expr FunctionChecker::value(const syntax::Expr& e) {
  Expr v = check(e);
  if (v.type.kind == Type::Kind::none) fail(e.place, "this call gives no value");
  if (v.type.is(Type::Kind::tuple))
    fail(e.place, fmt::format("this call gives {} values: assign them to as many variables", v.type.rows));
  return v;
}

Expr FunctionChecker::condition(const syntax::Expr& e) { return truth(value(e), e.place); }

Expr FunctionChecker::truth(Expr e, Place place) {
  if (!e.type.is_scalar()) fail(place, fmt::format("{} is neither true nor false", show(e.type)));
  return cast(ScalarType::bool_, std::move(e));
}

Expr FunctionChecker::name(const syntax::Expr& e) {
  if (!constants_only_)
    if (const auto found = names_.find(e.text); found != names_.end()) {
      if (tiles_.contains(found->second))
        fail(e.place, fmt::format("'{}' is a tile: take its wp.tile_sum, or element 0 of that", e.text));
      return variable(function_, found->second);
    }
  note_constants(e);
  if (const auto c = module_.constant(e)) return from_constant(*c, e.place);
  module_.check_bound(e);
  std::optional<Expr> composite;
  module_.with_constant(e.text, [&](const syntax::Expr& held) {
    const syntax::Expr* inner = &held;
    if (inner->kind == Kind::call && module_.warp_name(inner->args[0]) == "constant" &&
        inner->args.size() == 2)
      inner = &inner->args[1];
    if (inner->kind != Kind::call || in_composite_)
      fail(e.place,
           fmt::format("'{}' is not a constant that a kernel can use: a number or a wp.vec3(...)", e.text));
    const bool outer = std::exchange(constants_only_, true);
    in_composite_ = true;
    composite = value(*inner);
    in_composite_ = false;
    constants_only_ = outer;
  });
  if (composite) return std::move(*composite);
  if (module_.find_struct(e.text) || module_.find_function(e.text, e.place))
    fail(e.place, fmt::format("'{}' is not a value: call it", e.text));
  fail(e.place,
       fmt::format("unknown name '{}': it is not a parameter, and nothing is assigned to it above", e.text));
}

Expr FunctionChecker::attribute(const syntax::Expr& e) {
  if (e.args[0].kind == Kind::name && !names_.contains(e.args[0].text)) {
    if (const auto c = module_.constant(e)) return from_constant(*c, e.place);
    if (const auto name = module_.warp_name(e)) {
      if (find_builtin(*name) != nullptr || type_from_name(*name))
        fail(e.place, fmt::format("'wp.{}' is not a value: call it", *name));
      fail(e.place, fmt::format("'wp.{}' is not part of the kernel language", *name));
    }
  }
  Expr base = value(e.args[0]);
  if (base.type.is_struct()) {
    const Struct& s = module_.module().structs[base.type.structure];
    std::string list;
    for (std::size_t i = 0; i < s.fields.size(); ++i) {
      if (s.fields[i].name == e.text) return field(module_.module(), std::move(base), static_cast<int>(i));
      list += (i == 0 ? "" : ", ") + s.fields[i].name;
    }
    fail(e.place, fmt::format("struct '{}' has no field '{}': it has {}", s.name, e.text, list));
  }
  const std::size_t axis =
      e.text.size() == 1 ? std::string_view("xyzw").find(e.text) : std::string_view::npos;
  if (axis < base.type.rows && (base.type.is_vector() || base.type.is_quaternion())) {
    return component(std::move(base), single(literal(ScalarType::i32, static_cast<std::int64_t>(axis))));
  }
  if (base.type.is_array() && e.text == "shape")
    fail(e.place, "take one extent of the shape: write .shape[0]");
  fail(e.place, fmt::format("{} has no attribute '{}'", show(base.type), e.text));
}

Expr FunctionChecker::subscript(const syntax::Expr& e) {
  std::vector<Expr> indices;
  const auto check_indices = [&] {
    for (std::size_t i = 1; i < e.args.size(); ++i) {
      Expr index = value(e.args[i]);
      if (!index.type.is_int())
        fail(e.args[i].place,
             fmt::format("an index is an integer, not {}: write int(...)", show(index.type)));
      indices.push_back(std::move(index));
    }
  };
  const syntax::Expr& of = e.args[0];
  if (auto place = adjoint_place(e)) return std::move(*place);
  if (of.kind == Kind::attribute && of.text == "shape" && !module_.warp_name(of)) {
    Expr array = value(of.args[0]);
    if (array.type.is_array()) {
      check_indices();
      if (indices.size() != 1) fail(e.place, "a shape has one index");
      if (indices[0].kind == ExprKind::literal) {
        std::int64_t& axis = indices[0].number.integer;
        if (axis < -array.type.dims || axis >= array.type.dims)
          fail(e.args[1].place, fmt::format("the array has {} axes", array.type.dims));
        if (axis < 0) axis += array.type.dims;  // counted from the end, as in Python
      }
      indices.insert(indices.begin(), std::move(array));
      return apply(Builtin::shape, std::move(indices));
    }
  }
  if (auto only = tile_element(e)) return std::move(*only);
  Expr base = value(of);
  check_indices();
  if (!base.type.is_array()) return component_of(std::move(base), std::move(indices), e.place);
  if (indices.size() != base.type.dims)
    fail(e.place,
         fmt::format("{} has {} axes, but there {}: write all indices in one pair of brackets",
                     show(base.type), base.type.dims,
                     indices.size() == 1 ? "is 1 index" : fmt::format("are {} indices", indices.size())));
  return element(std::move(base), std::move(indices));
}

Expr FunctionChecker::component_of(Expr base, std::vector<Expr> indices, Place place) {
  const Type t = base.type;
  if (!t.is_composite()) fail(place, fmt::format("{} has no elements to index", show(t)));
  if (base.kind == ExprKind::component && indices.size() == 1) {  // m[i][j] is m[i, j]
    indices.insert(indices.begin(), std::move(base.args[1]));
    Expr matrix = std::move(base.args[0]);
    return component_of(std::move(matrix), std::move(indices), place);
  }
  const std::size_t most = t.is_matrix() ? 2 : 1;
  if (indices.size() > most)
    fail(place, fmt::format("{} takes {}, not {}", show(t), most == 2 ? "1 or 2 indices" : "1 index",
                            indices.size()));
  for (std::size_t i = 0; i < indices.size(); ++i) {
    if (indices[i].kind != ExprKind::literal) continue;
    const int extent = i == 0 ? t.rows : t.columns;
    std::int64_t& at = indices[i].number.integer;
    if (at < -extent || at >= extent)
      fail(indices[i].place, fmt::format("index {} is outside {}, which has {} there", at, show(t), extent));
    if (at < 0) at += extent;  // counted from the end, as in Python
  }
  return component(std::move(base), std::move(indices));
}

}  // namespace ferrite::kernel
