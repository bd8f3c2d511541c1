// Steps of simulations: particles under forces, springs, pair sums, rays, smoothing kernels.
#include "models/irsynth/categories/categories.hpp"

namespace ferrite::irsynth {
namespace {

struct Particles {
  Sketch& s;
  Type vec;
  Expr positions, velocities;
  Expr at(const Expr& array) const { return kernel::element(array, list(s.at(s.cursor[0]))); }
};

/// Combines the statements drawn so far into a factor for forces.
Expr factor(Sketch& s) {
  Term value = s.fitted(s.used_up(0, s.operand(1)), 3);
  return s.variable(std::move(value), {"coef", "mass_inv", "gain", "modulation"});
}

Expr force_of(Sketch& s, const Particles& p, const Expr& x, const Expr& v) {
  switch (s.draw.below(5)) {
    case 0:  // drag
      return mul(s.some(-2, -0.2).expr, v);
    case 1: {  // gravity, along any axis
      Expr g = kernel::construct(p.vec, {});
      for (int i = 0; i < p.vec.rows; ++i) g.args.push_back(s.some(-2, 2).expr);
      return g;
    }
    case 2: {  // a spring to the origin
      Expr stiffness = s.parameter(s.fresh({"stiffness", "ks", "k_spring"}), s.real_type(), {0.5, 4}).expr;
      return mul(irsynth::apply(Builtin::neg, std::move(stiffness)), x);
    }
    case 3: {  // central attraction, softened
      Expr r2 = add(irsynth::apply(Builtin::dot, x, x), s.some(0.3, 1).expr);
      Expr d = s.variable({std::move(r2), {0.3, 17}}, {"r2", "dist2", "rr"});
      return div(mul(s.some(-3, -0.5).expr, x), mul(d, irsynth::apply(Builtin::sqrt, d)));
    }
    default: {  // a force drawn freely
      Term scale = s.fitted(s.expression(2), 4);
      Expr along = s.draw.chance(0.5) ? sub(x, v) : irsynth::apply(Builtin::cw_mul, x, v);
      return mul(std::move(scale.expr), std::move(along));
    }
  }
}

/// v += a dt; x += v dt, with forces drawn from several.
void integrate(const Particles& p) {
  Sketch& s = p.s;
  Expr dt = s.parameter(s.fresh({"dt", "h", "time_step"}), s.real_type(), {0.01, 0.05}).expr;
  Expr x = s.variable({p.at(p.positions), symmetric(2)}, {"x0", "pos_i", "xi", "r0"});
  Expr v = s.variable({p.at(p.velocities), symmetric(1)}, {"v0", "vel_i", "vi", "w0"});
  if (s.draw.chance(0.7)) s.elaborate(s.draw.between(1, 2));
  Expr force = force_of(s, p, x, v);
  for (int more = s.draw.below(3); more > 0; --more) force = add(std::move(force), force_of(s, p, x, v));
  if (s.draw.chance(0.7)) force = mul(factor(s), std::move(force));
  const int moved = s.declare(p.vec, s.fresh({"v1", "v_new", "vn"}));
  Expr v1 = kernel::variable(s.function(), moved);
  s.assign(v1, add(v, mul(std::move(force), dt)));
  const bool ground = s.draw.chance(0.4);
  const int place = s.declare(p.vec, s.fresh({"x1", "x_new", "xn"}));
  Expr x1 = kernel::variable(s.function(), place);
  s.assign(x1, add(x, mul(v1, dt)));
  if (ground) {  // bounce
    Expr height = kernel::component(x1, list(s.whole(1)));
    s.if_else(irsynth::apply(Builtin::lt, height, s.some(-1, -0.2).expr), [&] {
      Term loss = s.some(0.3, 0.9);
      s.assign(v1, mul(std::move(loss.expr), irsynth::apply(Builtin::neg, v1)));
    });
  }
  s.assign(p.at(s.output(p.vec)), std::move(x1));
  s.assign(p.at(s.output(p.vec)), std::move(v1));
  s.description = "one time step of particles";
}

/// A sum over all others: gravity, or a smoothing kernel's density.
void pairs(const Particles& p) {
  Sketch& s = p.s;
  const auto n = s.grid[0];
  Expr xi = s.variable({p.at(p.positions), symmetric(2)}, {"xi", "pos_i", "here"});
  Expr vi = s.variable({p.at(p.velocities), symmetric(1)}, {"vi", "vel_i"});
  if (s.draw.chance(0.6)) s.elaborate(s.draw.between(1, 2));
  Expr coefficient = factor(s);
  const bool density = s.draw.chance(0.5);
  const Type type = density ? s.real_type() : p.vec;
  const int sum = s.declare(type, s.fresh({"total", "acc", "force", "density"}));
  Expr total = kernel::variable(s.function(), sum);
  s.assign(total, density ? s.number(0) : kernel::construct(type, {}));
  Expr end = s.draw.chance(0.5) ? irsynth::apply(Builtin::len, p.positions) : s.count(n);
  Term soft = s.some(0.3, 1), strength = s.some(0.1, 1);
  const int kind = s.draw.below(3);
  s.loop(std::move(end), n, [&](int j) {
    Expr other = kernel::element(p.positions, list(kernel::variable(s.function(), j)));
    Expr d = s.variable({sub(std::move(other), xi), symmetric(4)}, {"d", "delta", "dx", "rij"});
    Expr r2 = add(irsynth::apply(Builtin::dot, d, d), soft.expr);
    if (!density) {
      if (s.draw.chance(0.5)) {
        Expr r = s.variable({std::move(r2), {0.3, 50}}, {"r2", "q", "dist2"});
        return s.update(total, Builtin::add,
                        mul(div(strength.expr, mul(r, irsynth::apply(Builtin::sqrt, r))), d));
      }
      return s.update(total, Builtin::add, div(mul(strength.expr, d), std::move(r2)));
    }
    Expr r = s.variable({std::move(r2), {0.3, 50}}, {"r2", "q", "dist2"});
    Expr w = kind == 0   ? irsynth::apply(Builtin::exp, irsynth::apply(Builtin::neg, mul(strength.expr, r)))
             : kind == 1 ? div(strength.expr, add(s.number(1), r))
                         : irsynth::apply(Builtin::max, sub(s.number(1), mul(strength.expr, r)), s.number(0));
    s.update(total, Builtin::add, kind == 2 ? mul(w, w) : std::move(w));
  });
  s.description = density ? "density from all particles" : "pair forces of all particles";
  const auto count = static_cast<double>(n);
  if (density) {
    s.alive(sum, {0, count}, false);
    s.let({mul(std::move(coefficient), irsynth::apply(Builtin::dot, vi, vi)), {0, 12}});
    return s.body(s.real_type());
  }
  Expr dt = s.parameter(s.fresh({"dt", "h"}), s.real_type(), {0.01, 0.05}).expr;
  Expr change = mul(mul(std::move(coefficient), std::move(dt)), std::move(total));
  s.assign(p.at(s.output(p.vec)), add(std::move(vi), std::move(change)));
}

/// The nearest hit of a ray with a sphere, or a miss.
void ray(const Particles& p) {
  Sketch& s = p.s;
  Expr o = s.variable({p.at(p.positions), symmetric(2)}, {"o", "origin", "ro"});
  Expr w = s.variable({p.at(p.velocities), symmetric(1)}, {"dir", "w", "rd"});
  Expr c = s.parameter(s.fresh({"center", "c0"}), p.vec, {-0.5, 0.5}).expr;
  Expr radius = s.some(0.8, 2).expr;
  Expr oc = s.variable({sub(std::move(o), std::move(c)), symmetric(3)}, {"oc", "rel"});
  Expr a = s.variable({add(irsynth::apply(Builtin::dot, w, w), s.number(0.1)), {0.1, 4}}, {"a", "qa"});
  Expr b = s.variable({irsynth::apply(Builtin::dot, oc, w), symmetric(12)}, {"b", "qb"});
  Expr q =
      s.variable({sub(irsynth::apply(Builtin::dot, oc, oc), mul(radius, radius)), {-4, 30}}, {"c", "qc"});
  Expr disc = s.variable({sub(mul(b, b), mul(a, std::move(q))), {-120, 144}}, {"disc", "h2", "det"});
  const int hit = s.declare(s.real_type(), s.fresh({"t", "t_hit", "depth"}));
  Expr t = kernel::variable(s.function(), hit);
  s.assign(t, s.number(-1));
  Term least = s.some(0.05, 0.3);
  s.if_else(irsynth::apply(Builtin::gt, disc, std::move(least.expr)), [&] {
    Expr root = irsynth::apply(Builtin::sqrt, disc);
    s.assign(t, div(sub(irsynth::apply(Builtin::neg, b), std::move(root)), a));
  });
  s.alive(hit, symmetric(50), false);
  s.description = "rays and a sphere";
  s.body(s.real_type());
}

void make(Sketch& s) {
  s.functions = true;
  s.threads(std::vector<std::int64_t>{s.draw.between(8, 20)});
  Particles p{s, Type::vector(s.draw.between(2, 3), s.real), {}, {}};
  const std::string x = s.fresh({"pos", "x", "positions", "points"}),
                    v = s.fresh({"vel", "v", "velocities", "dirs"});
  p.positions = s.array(x, p.vec, s.grid, symmetric(2));
  p.velocities = s.array(v, p.vec, s.grid, symmetric(1));
  switch (s.draw.below(3)) {
    case 0:
      return integrate(p);
    case 1:
      return pairs(p);
    default:
      return ray(p);
  }
}

}  // namespace
const Category all::physics{"physics", "time steps of particles, pair forces, densities, rays", 5, make};
}  // namespace ferrite::irsynth
