// Random numbers: Warp's generator, so that kernels give Warp's numbers. The state is a u32 variable; each
// draw replaces it by its PCG hash (Jarzynski and Olano, 2020).
#include <fmt/format.h>

#include <numbers>

#include "kernel/builtins/rules.hpp"

namespace ferrite::kernel {

namespace {

constexpr std::string_view group = "Random numbers";
constexpr Effect draws = Effect::updates_first;
constexpr Type state_type = Type::of(ScalarType::u32);
constexpr double two_pi = 2 * std::numbers::pi;

Result states(Types t) {
  return (t.size() == 1 || t.size() == 2) && all_same(t) && t[0] == int_type ? Result(state_type)
                                                                             : std::nullopt;
}
/// (state), or (state, low, high) if the result has a range; low and high have its type.
template <class Make, bool ranged>
Result drawn(Types t) {
  const Type type = Make::type;
  const bool fits = !t.empty() && t[0] == state_type &&
                    (t.size() == 1 || (ranged && t.size() == 3 && t[1] == type && t[2] == type));
  return fits ? Result(type) : std::nullopt;
}
struct Integer {
  static constexpr Type type = int_type;
};
struct Word {
  static constexpr Type type = state_type;
};
struct Real {
  static constexpr Type type = float_type;
};
struct Plane {
  static constexpr Type type = Type::vector(2);
};
struct Space {
  static constexpr Type type = Type::vector(3);
};

std::uint32_t hash(std::uint32_t x) {
  const std::uint32_t b = x * 747796405u + 2891336453u;
  const std::uint32_t c = ((b >> ((b >> 28) + 4)) ^ b) * 277803737u;
  return (c >> 22) ^ c;
}
void init(BuiltinCall& c) {
  const auto seed = static_cast<std::uint32_t>(c.integer(0));
  c.out[0].integer =
      c.count() == 1 ? hash(seed) : hash(seed + hash(static_cast<std::uint32_t>(c.integer(1))));
}
std::uint32_t draw(BuiltinCall& c) {
  const std::uint32_t next = hash(static_cast<std::uint32_t>(c.values[0][0].integer));
  c.values[0][0].integer = next;
  return next;
}
/// Uniform in [0, 1), a multiple of 2^-24.
double uniform(BuiltinCall& c) { return (draw(c) >> 8) * 0x1p-24; }
double angle(BuiltinCall& c) { return two_pi * uniform(c); }

template <bool is_signed>
void integers(BuiltinCall& c) {
  const std::uint32_t x = draw(c);
  if (c.count() == 1) return c.store_integer(0, x);
  const auto low = static_cast<std::uint32_t>(c.integer(1)),
             width = static_cast<std::uint32_t>(c.integer(2)) - low;
  if (width == 0)
    c.machine.fail(fmt::format("there is no number between {} and {}", c.integer(1), c.integer(2)));
  c.store_integer(0, x % width + low);
}
void real(BuiltinCall& c) {
  const double u = uniform(c);
  c.store(0, c.count() == 1 ? u : (c.real(2) - c.real(1)) * u + c.real(1));
}
/// Box-Muller; 5.96e-8 keeps the logarithm finite.
void normal(BuiltinCall& c) {
  const double radius =
      std::sqrt(-2 * std::log(round_to(ScalarType::f32, Precision::native, uniform(c) + 5.96e-8f)));
  c.store(0, radius * std::cos(angle(c)));
}
void store(BuiltinCall& c, double x, double y, double z = 0) {
  c.store(0, x);
  c.store(1, y);
  if (c.type.rows == 3) c.store(2, z);
}
void triangle(BuiltinCall& c) {
  const double r = std::sqrt(uniform(c));
  store(c, 1 - r, uniform(c) * r);
}
void ring(BuiltinCall& c) {
  const double t = angle(c);
  store(c, std::cos(t), std::sin(t));
}
void disk(BuiltinCall& c) {
  const double r = std::sqrt(uniform(c)), t = angle(c);
  store(c, r * std::cos(t), r * std::sin(t));
}
void centred(BuiltinCall& c) {  // a square or a cube about 0
  for (int i = 0; i < c.type.rows; ++i) c.store(i, uniform(c) - 0.5);
}
/// On or in the sphere (`span` 2) or its upper half (`span` 1).
template <int span, bool inside>
void sphere(BuiltinCall& c) {
  const double phi = std::acos(1 - span * uniform(c)), theta = angle(c);
  const double r = inside ? std::cbrt(uniform(c)) : 1;
  store(c, r * std::cos(theta) * std::sin(phi), r * std::sin(theta) * std::sin(phi), r * std::cos(phi));
}

template <class Make>
constexpr BuiltinInfo sample(Builtin id, std::string_view name, std::string_view signature,
                             std::string_view doc, EvaluateBuiltin evaluate) {
  return {id, name, "", group, signature, doc, draws, drawn<Make, false>, evaluate};
}

constexpr BuiltinInfo rows[] = {
    {Builtin::rand_init, "rand_init", "", group, "rand_init(seed: int, offset: int) -> wp.uint32",
     "A state from a seed, and from an offset (the thread) if one is given.", Effect::none, states, init},
    {Builtin::randi, "randi", "", group, "randi(state: wp.uint32, low: int, high: int) -> int",
     "An integer: any, or in [low, high). Draws change the variable `state`.", draws, drawn<Integer, true>,
     integers<true>},
    {Builtin::randu, "randu", "", group,
     "randu(state: wp.uint32, low: wp.uint32, high: wp.uint32) -> wp.uint32",
     "An unsigned integer: any, or in [low, high).", draws, drawn<Word, true>, integers<false>},
    {Builtin::randf, "randf", "", group, "randf(state: wp.uint32, low: float, high: float) -> float",
     "A float in [0, 1), or in [low, high).", draws, drawn<Real, true>, real},
    {Builtin::randn, "randn", "", group, "randn(state: wp.uint32) -> float", "A standard normal.", draws,
     drawn<Real, false>, normal},
    sample<Plane>(Builtin::sample_triangle, "sample_triangle", "sample_triangle(state: wp.uint32) -> wp.vec2",
                  "Barycentric coordinates (u, v), uniform in a triangle.", triangle),
    sample<Plane>(Builtin::sample_unit_ring, "sample_unit_ring",
                  "sample_unit_ring(state: wp.uint32) -> wp.vec2", "A point of the unit circle.", ring),
    sample<Plane>(Builtin::sample_unit_disk, "sample_unit_disk",
                  "sample_unit_disk(state: wp.uint32) -> wp.vec2", "A point in the unit circle.", disk),
    sample<Plane>(Builtin::sample_unit_square, "sample_unit_square",
                  "sample_unit_square(state: wp.uint32) -> wp.vec2", "A point in the unit square about 0.",
                  centred),
    sample<Space>(Builtin::sample_unit_cube, "sample_unit_cube",
                  "sample_unit_cube(state: wp.uint32) -> wp.vec3", "A point in the unit cube about 0.",
                  centred),
    sample<Space>(Builtin::sample_unit_sphere_surface, "sample_unit_sphere_surface",
                  "sample_unit_sphere_surface(state: wp.uint32) -> wp.vec3", "A point of the unit sphere.",
                  sphere<2, false>),
    sample<Space>(Builtin::sample_unit_sphere, "sample_unit_sphere",
                  "sample_unit_sphere(state: wp.uint32) -> wp.vec3", "A point in the unit sphere.",
                  sphere<2, true>),
    sample<Space>(Builtin::sample_unit_hemisphere_surface, "sample_unit_hemisphere_surface",
                  "sample_unit_hemisphere_surface(state: wp.uint32) -> wp.vec3",
                  "A point of the upper half sphere.", sphere<1, false>),
    sample<Space>(Builtin::sample_unit_hemisphere, "sample_unit_hemisphere",
                  "sample_unit_hemisphere(state: wp.uint32) -> wp.vec3", "A point in the upper half sphere.",
                  sphere<1, true>),
};

}  // namespace

std::span<const BuiltinInfo> random_builtins() { return rows; }

}  // namespace ferrite::kernel
