// Operators: one type on both sides, with a hint if the types differ.
#include <fmt/format.h>

#include <array>

#include "kernel/check/checker.hpp"

namespace ferrite::kernel {

namespace {

std::vector<Expr> pair(Expr a, Expr b) {
  std::vector<Expr> list;
  list.push_back(std::move(a));
  list.push_back(std::move(b));
  return list;
}

/// How to write the operand in another type; uses its name if it has one.
std::string conversion(const syntax::Expr* operand, Type to) {
  std::string inner = "...";
  if (operand != nullptr && operand->kind == syntax::ExprKind::name) inner = operand->text;
  if (operand != nullptr && operand->kind == syntax::ExprKind::integer) {
    if (to == float_type) return fmt::format("{}.0", operand->integer);
    inner = std::to_string(operand->integer);
  }
  return fmt::format("{}({})", to_string(to), inner);
}

}  // namespace

Expr FunctionChecker::unary(const syntax::Expr& e) {
  if (e.builtin == Builtin::not_) {
    std::vector<Expr> args;
    args.push_back(condition(e.args[0]));
    return apply(Builtin::not_, std::move(args));
  }
  if (e.builtin == Builtin::neg && e.args[0].kind == Kind::integer)  // -2147483648 fits, 2147483648 does not
    if (const auto c = module_.constant(e)) return from_constant(*c, e.place);
  Expr x = value(e.args[0]);
  const Type t = x.type;
  if (!info(e.builtin).result({&t, 1}))
    fail(e.place, fmt::format("'{}' has no meaning for {}", info(e.builtin).symbol, show(t)));
  std::vector<Expr> args;
  args.push_back(std::move(x));
  return apply(e.builtin, std::move(args));
}

Expr FunctionChecker::binary(const syntax::Expr& e) {
  Expr a = value(e.args[0]);
  Expr b = value(e.args[1]);
  if (auto call = user_operation(e.builtin, a, b, e.place)) return std::move(*call);
  return operation(e.builtin, std::move(a), std::move(b), e.args.data(), e.place);
}

std::optional<Expr> FunctionChecker::user_operation(Builtin builtin, const Expr& a, const Expr& b,
                                                    Place place) {
  if (constants_only_) return std::nullopt;  // Python knows of none
  const auto function = module_.find_operator(builtin, a.type, b.type, place);
  if (!function) return std::nullopt;
  const Function& callee = module_.module().functions[static_cast<std::size_t>(*function)];
  if (callee.results.size() != 1)
    fail(place, fmt::format("'{}' is the function '{}' here, which gives no value, or several",
                            info(builtin).symbol, callee.name));
  Expr r;
  r.kind = ExprKind::call;
  r.index = *function;
  r.type = callee.results[0];
  r.args = pair(a, b);
  return r;
}

Expr FunctionChecker::operation(Builtin builtin, Expr a, Expr b, const syntax::Expr* operands, Place place) {
  const std::array types{a.type, b.type};
  if (info(builtin).result(types)) return apply(builtin, pair(std::move(a), std::move(b)));
  const auto operand = [&](int i) { return operands == nullptr ? nullptr : operands + i; };
  std::string hint;
  const bool first = a.type.is_scalar(), second = b.type.is_scalar();
  const bool numbers = !a.type.is_array() && !b.type.is_array() && !a.type.is_struct() && !b.type.is_struct();
  if (builtin == Builtin::pow && a.type.is_int()) {
    hint = ": ** takes floats of one type";
  } else if (first && second && (a.type.is_bool() || b.type.is_bool())) {
    hint = fmt::format(": a bool is not a number, write {}",
                       conversion(operand(a.type.is_bool() ? 0 : 1), int_type));
  } else if (numbers && a.type.scalar != b.type.scalar && (first || second)) {
    // Towards the float, the wider or the composite.
    const auto rank = [](Type t) { return (t.is_scalar() ? 0 : 100) + static_cast<int>(t.scalar); };
    const bool to_first = rank(a.type) >= rank(b.type);
    const Type to = Type::of(to_first ? a.type.scalar : b.type.scalar);
    if (to_first ? second : first)
      hint = fmt::format(": types never mix silently, write {}", conversion(operand(to_first ? 1 : 0), to));
  }
  fail(place, fmt::format("'{}' of {} and {}{}", info(builtin).symbol, show(a.type), show(b.type), hint));
}

Expr FunctionChecker::compare(const syntax::Expr& e) {
  Expr left = value(e.args[0]);
  std::optional<Expr> all;
  for (std::size_t i = 0; i < e.comparisons.size(); ++i) {
    Expr right = value(e.args[i + 1]);
    const bool more = i + 1 < e.comparisons.size();
    if (more && !is_pure(module_.module(), right))
      fail(e.args[i + 1].place,
           "the middle of a chained comparison is evaluated twice: store it in a variable first");
    Expr next = more ? right : Expr{};
    Expr one = relation(e.comparisons[i], std::move(left), std::move(right), e.place);
    if (all) {
      Expr both;
      both.kind = ExprKind::logical_and;
      both.type = bool_type;
      both.place = e.place;
      both.args = pair(std::move(*all), std::move(one));
      all = std::move(both);
    } else {
      all = std::move(one);
    }
    left = std::move(next);
  }
  return std::move(*all);
}

/// Numbers of different types are compared in the wider type, or as floats if one is a float. This is C's
/// rule without its conversion of negative numbers to unsigned ones.
Expr FunctionChecker::relation(Builtin builtin, Expr a, Expr b, Place place) {
  if (a.type != b.type && a.type.is_scalar() && b.type.is_scalar() && !a.type.is_bool() &&
      !b.type.is_bool()) {
    const ScalarType x = a.type.scalar, y = b.type.scalar;
    const bool literal_first = a.kind == ExprKind::literal, literal_second = b.kind == ExprKind::literal;
    if (is_float(x) || is_float(y) || is_unsigned(x) == is_unsigned(y)) {
      const bool to_first = is_float(x) != is_float(y) ? is_float(x) : bits_of(x) >= bits_of(y);
      if (to_first)
        b = cast(x, std::move(b));
      else
        a = cast(y, std::move(a));
    } else if (literal_second && b.number.integer >= 0) {
      b = cast(x, std::move(b));
    } else if (literal_first && a.number.integer >= 0) {
      a = cast(y, std::move(a));
    } else {
      fail(place, fmt::format("'{}' of {} and {}: cast one of them, signed and unsigned do not compare",
                              info(builtin).symbol, show(a.type), show(b.type)));
    }
  }
  Expr e = operation(builtin, std::move(a), std::move(b), nullptr, place);
  e.place = place;
  return e;
}

Expr FunctionChecker::logical(const syntax::Expr& e) {
  Expr r;
  r.kind = e.kind == Kind::logical_and ? ExprKind::logical_and : ExprKind::logical_or;
  r.type = bool_type;
  Expr a = condition(e.args[0]);
  r.args = pair(std::move(a), condition(e.args[1]));
  return r;
}

Expr FunctionChecker::conditional(const syntax::Expr& e) {
  Expr r;
  r.kind = ExprKind::conditional;
  r.args.push_back(condition(e.args[0]));
  r.args.push_back(value(e.args[1]));
  r.args.push_back(value(e.args[2]));
  if (r.args[1].type != r.args[2].type)
    fail(e.place, fmt::format("one branch is {}, the other {}: both must have one type", show(r.args[1].type),
                              show(r.args[2].type)));
  if (r.args[1].type.is_array()) fail(e.place, "arrays cannot be chosen by a condition");
  r.type = r.args[1].type;
  return r;
}

}  // namespace ferrite::kernel
