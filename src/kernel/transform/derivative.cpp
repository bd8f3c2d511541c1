// Formulas of derivatives. Where a function has none (a corner, the edge of a domain) they follow Warp: abs
// has slope 1 at 0, ties of min and max go to the second argument, clamp passes the gradient at its bounds,
// length and normalize have slope 0 at the zero vector.
#include "kernel/transform/derivative.hpp"

#include <cmath>
#include <functional>
#include <numbers>

namespace ferrite::kernel {

Expr zero_of(Type type) {
  return type.is_scalar() ? literal(type.scalar, std::int64_t{0}) : construct(type, {});
}

Expr inner(Expr a, Expr b) {
  const Builtin product = a.type.is_scalar()   ? Builtin::mul
                          : a.type.is_matrix() ? Builtin::ddot
                                               : Builtin::dot;
  return apply(product, {std::move(a), std::move(b)});
}

namespace {

using List = std::vector<Expr>;
using App = const Application&;

Expr operator+(Expr a, Expr b) { return apply(Builtin::add, {std::move(a), std::move(b)}); }
Expr operator-(Expr a, Expr b) { return apply(Builtin::sub, {std::move(a), std::move(b)}); }
Expr operator*(Expr a, Expr b) { return apply(Builtin::mul, {std::move(a), std::move(b)}); }
Expr operator/(Expr a, Expr b) { return apply(Builtin::div, {std::move(a), std::move(b)}); }
Expr operator-(Expr a) { return apply(Builtin::neg, {std::move(a)}); }
Expr operator>(Expr a, Expr b) { return apply(Builtin::gt, {std::move(a), std::move(b)}); }
Expr operator<(Expr a, Expr b) { return apply(Builtin::lt, {std::move(a), std::move(b)}); }
Expr call(Builtin f, Expr a) { return apply(f, {std::move(a)}); }
Expr call(Builtin f, Expr a, Expr b) { return apply(f, {std::move(a), std::move(b)}); }
Expr choose(Expr condition, Expr yes, Expr no) {
  return apply(Builtin::where, {std::move(condition), std::move(yes), std::move(no)});
}
Expr number(double x, const Expr& like) { return literal(like.type.scalar, x); }
Expr index(int i) { return literal(ScalarType::i32, std::int64_t{i}); }
Expr part(const Expr& e, int i) {  // component i in storage order
  if (e.type.is_scalar()) return e;
  if (e.type.is_matrix()) return component(e, {index(i / e.type.columns), index(i % e.type.columns)});
  return component(e, {index(i)});
}
Expr each(Type type, const std::function<Expr(int)>& make) {
  if (type.is_scalar()) return make(0);
  List parts;
  for (int i = 0; i < type.components(); ++i) parts.push_back(make(i));
  return construct(type, std::move(parts));
}
const Expr nothing{};
const Expr& x(App a) { return a.args[0]; }
const Expr& y(App a) { return a.args[1]; }

/// One float argument: the adjoint times a slope.
template <Expr (*slope)(App)>
List by_slope(App a) {
  return {a.seed * slope(a)};
}
Expr one_minus_square(App a) { return number(1, x(a)) - x(a) * x(a); }
Expr gauss(App a, double scale) { return number(scale, x(a)) * call(Builtin::exp, -(x(a) * x(a))); }
constexpr double two_over_sqrt_pi = 2 * std::numbers::inv_sqrtpi;

/// of asin: nothing beyond its domain, where the function is constant.
List arc(App a, double sign) {
  const Expr inside = call(Builtin::abs, x(a)) < number(1, x(a));
  return {choose(inside, number(sign, x(a)) * a.seed / call(Builtin::sqrt, one_minus_square(a)),
                 number(0, x(a)))};
}

List product(App a) {
  const Type s = x(a).type, t = y(a).type;
  if (s.is_scalar() || t.is_scalar()) {
    return {s.is_scalar() ? inner(a.seed, y(a)) : a.seed * y(a),
            t.is_scalar() ? inner(a.seed, x(a)) : a.seed * x(a)};
  }
  if (s.is_quaternion())
    return {a.seed * call(Builtin::quat_inverse, y(a)), call(Builtin::quat_inverse, x(a)) * a.seed};
  if (s.is_matrix() && t.is_matrix())
    return {a.seed * call(Builtin::transpose, y(a)), call(Builtin::transpose, x(a)) * a.seed};
  if (s.is_matrix()) return {call(Builtin::outer, a.seed, y(a)), a.seed * x(a)};
  return {y(a) * a.seed, call(Builtin::outer, x(a), a.seed)};
}
List quotient(App a) {
  if (y(a).type.is_scalar()) return {a.seed / y(a), -inner(a.seed, a.result) / y(a)};
  return {inner(a.seed, number(1, y(a)) / y(a)),
          each(y(a).type, [&](int i) { return -(part(a.seed, i) * part(a.result, i) / part(y(a), i)); })};
}
List remainder(App a) {
  return {a.seed, each(y(a).type, [&](int i) {
            return -(part(a.seed, i) * call(Builtin::trunc, part(x(a), i) / part(y(a), i)));
          })};
}
List power(App a) {
  return {a.seed * y(a) * call(Builtin::pow, x(a), y(a) - number(1, y(a))),
          choose(x(a) > number(0, x(a)), a.seed * a.result * call(Builtin::log, x(a)), number(0, x(a)))};
}
List absolute(App a) {
  const Expr sign = call(Builtin::sign, x(a));
  return {x(a).type.is_scalar() ? a.seed * sign : call(Builtin::cw_mul, a.seed, sign)};
}
List copied_sign(App a) {
  const Expr one = number(1, x(a));
  return {a.seed * call(Builtin::copysign, one, x(a)) * call(Builtin::copysign, one, y(a)), nothing};
}
template <Builtin relation, Builtin position>
List extremum(App a) {
  const Expr zero = number(0, x(a));
  if (a.args.size() == 1)
    return {each(x(a).type, [&](int i) {
      return choose(call(Builtin::eq, call(position, x(a)), literal(ScalarType::u32, std::int64_t{i})),
                    a.seed, zero);
    })};
  const auto half = [&](bool first) {
    return each(x(a).type, [&](int i) {
      const Expr wins = call(relation, part(x(a), i), part(y(a), i));
      return first ? choose(wins, part(a.seed, i), zero) : choose(wins, zero, part(a.seed, i));
    });
  };
  return {half(true), half(false)};
}
List clamped(App a) {
  const Expr zero = number(0, x(a)), &low = a.args[1], &high = a.args[2];
  const Expr below = x(a)<low, above = x(a)> high;
  return {choose(below, zero, choose(above, zero, a.seed)), choose(below, a.seed, zero),
          choose(below, zero, choose(above, a.seed, zero))};
}
List between(App a) {
  const Expr& t = a.args[2];
  return {a.seed * (number(1, t) - t), a.seed * t, inner(a.seed, y(a) - x(a))};
}
List angle(App a) {  // of (x, y), given as (y, x)
  const Expr square = x(a) * x(a) + y(a) * y(a), scale = a.seed / square;
  const Expr apart = square > number(0, x(a)), zero = number(0, x(a));
  return {choose(apart, y(a) * scale, zero), choose(apart, -(x(a) * scale), zero)};
}
List products(App a) { return {y(a) * a.seed, x(a) * a.seed}; }
List crossed(App a) { return {call(Builtin::cross, y(a), a.seed), call(Builtin::cross, a.seed, x(a))}; }
List length(App a) {
  return {choose(a.result > number(0, a.result), x(a) * (a.seed / a.result), zero_of(x(a).type))};
}
List squared_length(App a) { return {x(a) * (a.seed * number(2, a.seed))}; }
List direction(App a) {
  const Expr size = call(Builtin::length, x(a));
  return {choose(size > number(0, size), (a.seed - a.result * inner(a.result, a.seed)) / size,
                 zero_of(x(a).type))};
}
List outer(App a) { return {a.seed * y(a), x(a) * a.seed}; }
List skew(App a) {
  const auto m = [&](int i, int j) { return component(a.seed, {index(i), index(j)}); };
  return {construct(x(a).type, {m(2, 1) - m(1, 2), m(0, 2) - m(2, 0), m(1, 0) - m(0, 1)})};
}
List componentwise_product(App a) {
  return {call(Builtin::cw_mul, a.seed, y(a)), call(Builtin::cw_mul, a.seed, x(a))};
}
List componentwise_quotient(App a) {
  return {call(Builtin::cw_div, a.seed, y(a)),
          -call(Builtin::cw_mul, a.seed, call(Builtin::cw_div, a.result, y(a)))};
}
List absolute_sum(App a) { return {call(Builtin::sign, x(a)) * a.seed}; }
/// The cofactors, which exist for singular matrices too.
List determinant(App a) {
  const int n = x(a).type.rows;
  return {a.seed * each(x(a).type, [&](int at) {
            List minor;
            for (int i = 0; i < n * n; ++i)
              if (i / n != at / n && i % n != at % n) minor.push_back(part(x(a), i));
            const Expr value =
                n == 2 ? minor[0]
                       : call(Builtin::determinant, construct(Type::matrix(n - 1, x(a).type.scalar), minor));
            return (at / n + at % n) % 2 == 0 ? value : -value;
          })};
}
List inverted(App a) {
  const Expr t = call(Builtin::transpose, a.result);
  return {-(t * a.seed * t)};
}
List trace(App a) {
  return {call(Builtin::diag, construct(Type::vector(x(a).type.rows, x(a).type.scalar), {a.seed}))};
}
template <bool rows>
List lines(App a) {
  List all;
  for (int i = 0; i < static_cast<int>(a.args.size()); ++i)
    all.push_back(component(rows ? a.seed : call(Builtin::transpose, a.seed), {index(i)}));
  return all;
}
template <int yes, int no>
List chosen(App a) {
  List all(3);
  const Expr zero = zero_of(a.seed.type);
  all[yes] = choose(x(a), a.seed, zero);
  all[no] = choose(x(a), zero, a.seed);
  return all;
}
List drawn(App a) {  // low + (high - low) * u
  if (a.args.size() == 1) return {nothing};
  const Expr u = (a.result - a.args[1]) / (a.args[2] - a.args[1]);
  return {nothing, a.seed * (number(1, u) - u), a.seed * u};
}

using Kind = Derivative::Kind;
constexpr Derivative zero(Builtin id) { return {id, Kind::zero}; }
constexpr Derivative by(Builtin id, Partials p) { return {id, Kind::partials, p}; }
template <Expr (*slope)(App)>
constexpr Derivative sloped(Builtin id) {
  return {id, Kind::partials, by_slope<slope>};
}

const Derivative rows[] = {
    by(Builtin::neg, [](App a) { return List{-a.seed}; }),
    by(Builtin::pos, [](App a) { return List{a.seed}; }),
    zero(Builtin::invert),
    zero(Builtin::not_),
    by(Builtin::add,
       [](App a) {
         return List{a.seed, a.seed};
       }),
    by(Builtin::sub,
       [](App a) {
         return List{a.seed, -a.seed};
       }),
    by(Builtin::mul, product),
    by(Builtin::div, quotient),
    zero(Builtin::floordiv),
    by(Builtin::mod, remainder),
    by(Builtin::pow, power),
    zero(Builtin::bit_and),
    zero(Builtin::bit_or),
    zero(Builtin::bit_xor),
    zero(Builtin::lshift),
    zero(Builtin::rshift),
    zero(Builtin::lt),
    zero(Builtin::le),
    zero(Builtin::gt),
    zero(Builtin::ge),
    zero(Builtin::eq),
    zero(Builtin::ne),
    by(Builtin::abs, absolute),
    zero(Builtin::sign),
    by(Builtin::copysign, copied_sign),
    zero(Builtin::step),
    zero(Builtin::nonzero),
    by(Builtin::min, extremum<Builtin::lt, Builtin::argmin>),
    by(Builtin::max, extremum<Builtin::gt, Builtin::argmax>),
    by(Builtin::clamp, clamped),
    by(Builtin::lerp, between),
    {Builtin::smoothstep, Kind::definition},
    by(Builtin::sqrt, [](App a) { return List{a.seed * number(0.5, x(a)) / a.result}; }),
    by(Builtin::cbrt, [](App a) { return List{a.seed / (number(3, x(a)) * a.result * a.result)}; }),
    by(Builtin::exp, [](App a) { return List{a.seed * a.result}; }),
    by(Builtin::log, [](App a) { return List{a.seed / x(a)}; }),
    by(Builtin::log2, [](App a) { return List{a.seed / (x(a) * number(std::numbers::ln2, x(a)))}; }),
    by(Builtin::log10, [](App a) { return List{a.seed / (x(a) * number(std::numbers::ln10, x(a)))}; }),
    sloped<[](App a) { return call(Builtin::cos, x(a)); }>(Builtin::sin),
    sloped<[](App a) { return -call(Builtin::sin, x(a)); }>(Builtin::cos),
    sloped<[](App a) { return number(1, x(a)) + a.result * a.result; }>(Builtin::tan),
    by(Builtin::asin, [](App a) { return arc(a, 1); }),
    by(Builtin::acos, [](App a) { return arc(a, -1); }),
    by(Builtin::atan, [](App a) { return List{a.seed / (number(1, x(a)) + x(a) * x(a))}; }),
    by(Builtin::atan2, angle),
    sloped<[](App a) { return call(Builtin::cosh, x(a)); }>(Builtin::sinh),
    sloped<[](App a) { return call(Builtin::sinh, x(a)); }>(Builtin::cosh),
    sloped<[](App a) { return number(1, x(a)) - a.result * a.result; }>(Builtin::tanh),
    sloped<[](App a) { return gauss(a, two_over_sqrt_pi); }>(Builtin::erf),
    sloped<[](App a) { return gauss(a, -two_over_sqrt_pi); }>(Builtin::erfc),
    by(Builtin::degrees, [](App a) { return List{call(Builtin::degrees, a.seed)}; }),
    by(Builtin::radians, [](App a) { return List{call(Builtin::radians, a.seed)}; }),
    zero(Builtin::floor),
    zero(Builtin::ceil),
    zero(Builtin::trunc),
    zero(Builtin::round),
    zero(Builtin::rint),
    by(Builtin::frac, [](App a) { return List{a.seed}; }),
    zero(Builtin::isfinite),
    zero(Builtin::isnan),
    zero(Builtin::isinf),
    zero(Builtin::bit_count),
    by(Builtin::dot, products),
    by(Builtin::ddot, products),
    by(Builtin::cross, crossed),
    by(Builtin::length, length),
    by(Builtin::length_sq, squared_length),
    by(Builtin::normalize, direction),
    by(Builtin::outer, outer),
    by(Builtin::skew, skew),
    by(Builtin::cw_mul, componentwise_product),
    by(Builtin::cw_div, componentwise_quotient),
    zero(Builtin::argmin),
    zero(Builtin::argmax),
    by(Builtin::norm_l1, absolute_sum),
    by(Builtin::transpose, [](App a) { return List{call(Builtin::transpose, a.seed)}; }),
    by(Builtin::determinant, determinant),
    by(Builtin::inverse, inverted),
    by(Builtin::trace, trace),
    by(Builtin::diag, [](App a) { return List{call(Builtin::get_diag, a.seed)}; }),
    by(Builtin::get_diag, [](App a) { return List{call(Builtin::diag, a.seed)}; }),
    zero(Builtin::identity),
    by(Builtin::matrix_from_rows, lines<true>),
    by(Builtin::matrix_from_cols, lines<false>),
    zero(Builtin::quat_identity),
    {Builtin::quat_from_axis_angle, Kind::definition},
    {Builtin::quat_rpy, Kind::definition},
    by(Builtin::quat_inverse, [](App a) { return List{call(Builtin::quat_inverse, a.seed)}; }),
    {Builtin::quat_rotate, Kind::definition},
    {Builtin::quat_rotate_inv, Kind::definition},
    {Builtin::quat_slerp, Kind::definition},
    {Builtin::quat_to_matrix, Kind::definition},
    {Builtin::quat_from_matrix, Kind::definition},
    zero(Builtin::tid),
    zero(Builtin::block_dim),
    zero(Builtin::sync_threads),
    zero(Builtin::len),
    zero(Builtin::shape),
    by(Builtin::where, chosen<1, 2>),
    {Builtin::atomic_add, Kind::statement},
    {Builtin::atomic_sub, Kind::statement},
    {Builtin::atomic_min, Kind::statement},
    {Builtin::atomic_max, Kind::statement},
    {Builtin::atomic_exch, Kind::refused},
    {Builtin::atomic_cas, Kind::refused},
    zero(Builtin::atomic_and),
    zero(Builtin::atomic_or),
    zero(Builtin::atomic_xor),
    zero(Builtin::expect_eq),
    zero(Builtin::expect_near),
    zero(Builtin::rand_init),
    zero(Builtin::randi),
    zero(Builtin::randu),
    by(Builtin::randf, drawn),
    zero(Builtin::randn),
    zero(Builtin::sample_triangle),
    zero(Builtin::sample_unit_ring),
    zero(Builtin::sample_unit_disk),
    zero(Builtin::sample_unit_square),
    zero(Builtin::sample_unit_cube),
    zero(Builtin::sample_unit_sphere_surface),
    zero(Builtin::sample_unit_sphere),
    zero(Builtin::sample_unit_hemisphere_surface),
    zero(Builtin::sample_unit_hemisphere),
};

}  // namespace

std::span<const Derivative> derivatives() { return rows; }

}  // namespace ferrite::kernel
