#include "kernel/builtins/library.hpp"

#include "kernel/parse/parser.hpp"

namespace ferrite::kernel {

namespace {

/// Perlin's gradient noise with Warp's gradients: drawn from the state and the corner of the cell, of
/// length 1.
constexpr std::string_view noise_text = R"(
@wp.func
def warp_noise_blend(a: float, b: float, t: float) -> float:
    return (b - a) * (t * t * t * (t * (t * 6.0 - 15.0) + 10.0)) + a

@wp.func
def warp_noise_corner_1d(state: wp.uint32, x: int, d: float) -> float:
    corner = wp.uint32(x) * wp.uint32(73856093) + state
    return d * wp.randf(corner, -1.0, 1.0)

@wp.func
def warp_noise_1d(state: wp.uint32, x: float) -> float:
    k = int(wp.floor(x))
    d = x - float(k)
    return warp_noise_blend(warp_noise_corner_1d(state, k, d), warp_noise_corner_1d(state, k + 1, d - 1.0), d)

@wp.func
def warp_noise_corner_2d(state: wp.uint32, x: int, y: int, d: wp.vec2) -> float:
    corner = wp.uint32(x) * wp.uint32(73856093) ^ wp.uint32(y) * wp.uint32(19349663) + state
    return wp.dot(d, wp.normalize(wp.sample_unit_square(corner)))

@wp.func
def warp_noise_2d(state: wp.uint32, xy: wp.vec2) -> float:
    x = int(wp.floor(xy[0]))
    y = int(wp.floor(xy[1]))
    d = xy - wp.vec2(float(x), float(y))
    low = warp_noise_blend(warp_noise_corner_2d(state, x, y, d), warp_noise_corner_2d(state, x + 1, y, d - wp.vec2(1.0, 0.0)), d[0])
    up = d - wp.vec2(0.0, 1.0)
    high = warp_noise_blend(warp_noise_corner_2d(state, x, y + 1, up), warp_noise_corner_2d(state, x + 1, y + 1, up - wp.vec2(1.0, 0.0)), d[0])
    return warp_noise_blend(low, high, d[1])

@wp.func
def warp_noise_corner_3d(state: wp.uint32, x: int, y: int, z: int, d: wp.vec3) -> float:
    corner = wp.uint32(x) * wp.uint32(73856093) ^ wp.uint32(y) * wp.uint32(19349663) ^ wp.uint32(z) * wp.uint32(53471161) + state
    return wp.dot(d, wp.normalize(wp.sample_unit_cube(corner)))

@wp.func
def warp_noise_edge_3d(state: wp.uint32, x: int, y: int, z: int, d: wp.vec3) -> float:
    return warp_noise_blend(warp_noise_corner_3d(state, x, y, z, d), warp_noise_corner_3d(state, x + 1, y, z, d - wp.vec3(1.0, 0.0, 0.0)), d[0])

@wp.func
def warp_noise_face_3d(state: wp.uint32, x: int, y: int, z: int, d: wp.vec3) -> float:
    return warp_noise_blend(warp_noise_edge_3d(state, x, y, z, d), warp_noise_edge_3d(state, x, y + 1, z, d - wp.vec3(0.0, 1.0, 0.0)), d[1])

@wp.func
def warp_noise_3d(state: wp.uint32, xyz: wp.vec3) -> float:
    x = int(wp.floor(xyz[0]))
    y = int(wp.floor(xyz[1]))
    z = int(wp.floor(xyz[2]))
    d = xyz - wp.vec3(float(x), float(y), float(z))
    return warp_noise_blend(warp_noise_face_3d(state, x, y, z, d), warp_noise_face_3d(state, x, y, z + 1, d - wp.vec3(0.0, 0.0, 1.0)), d[2])
)";

/// Has no place in the text that messages show.
void forget_places(syntax::Expr& e) {
  e.place = e.parenthesis = {};
  for (syntax::Expr& arg : e.args) forget_places(arg);
}
void forget_places(std::vector<syntax::Stmt>& body) {
  for (syntax::Stmt& s : body) {
    s.place = {};
    for (syntax::Expr& e : s.targets) forget_places(e);
    for (syntax::Expr& e : s.values) forget_places(e);
    for (auto& branch : s.branches) forget_places(branch);
  }
}

}  // namespace

void add_library(syntax::File& file, std::string_view text) {
  if (text.find(".noise(") == std::string_view::npos) return;
  std::vector<KernelError> none;
  const Source source{"library.py", std::string(noise_text)};
  for (syntax::Definition& d : Parser(source).file(none).definitions) {
    d.is_library = true;
    d.place = d.head = {};
    for (syntax::Parameter& p : d.parameters) p.place = {};
    forget_places(d.body);
    file.definitions.push_back(std::move(d));
  }
}

bool is_library_function(std::string_view name) { return name == "noise"; }

std::optional<std::string_view> library_function(std::string_view name, Type x) {
  if (name != "noise" || (x.scalar != ScalarType::f32)) return std::nullopt;
  if (x.is_scalar()) return "warp_noise_1d";
  if (!x.is_vector() || x.rows > 3) return std::nullopt;
  return x.rows == 2 ? "warp_noise_2d" : "warp_noise_3d";
}

}  // namespace ferrite::kernel
