// Gradients of every builtin and every form of statement against central differences; what is refused; and
// gradients of gradients.
#include "kernel/adjoint_test.hpp"

#include "kernel/kernel_test.hpp"
#include "kernel/transform/derivative.hpp"

namespace ferrite::kernel {

namespace {

/// A kernel of `lines` over x and y, arrays of six floats, run by four threads.
std::string text_of(const std::string& lines) {
  return kernel_of("i = wp.tid()\n" + lines, "x: wp.array[float], y: wp.array[float], a: float, n: int");
}
void expect_lines(const std::string& lines, const std::vector<int>& extrema = {}) {
  SCOPED_TRACE(lines);
  const Module module = parse(text_of(lines), "k.py");
  std::mt19937 random(11);
  const Type array = float_type.array(1);
  const Arguments arguments{reals_value(array, {6}, random), reals_value(array, {6}, random),
                            scalar_value(ScalarType::f64, 0.7), scalar_value(ScalarType::i32, 3)};
  Arguments fitting = arguments;
  fitting[2].type = float_type;
  expect_gradients(module, module.kernel(), {4}, fitting, extrema);
}
std::string refusal(const std::string& lines) {
  const Module module = parse(text_of(lines), "k.py");
  try {
    adjoint(module, module.kernel());
  } catch (const KernelError& e) {
    return e.what();
  }
  return "";
}

/// An expression of each differentiable builtin over p, q and r (floats away from corners), v and w (vec3),
/// m and k (mat33) and c and d (quaternions of length 1); each is a function of x.
const std::map<Builtin, std::vector<std::string>> expressions = {
    {Builtin::neg, {"-p", "wp.length_sq(-v)"}},
    {Builtin::pos, {"+p"}},
    {Builtin::add, {"p + q", "wp.length_sq(v + w)", "wp.ddot(m + k, m)"}},
    {Builtin::sub, {"p - q * q", "wp.length_sq(v - w)"}},
    {Builtin::mul,
     {"p * q", "wp.length_sq(v * p)", "wp.length_sq(p * v)", "wp.ddot(m * k, k)", "wp.dot(m * v, w)",
      "wp.dot(v * m, w)", "wp.dot(c * d, wp.quat(p, 1.0, q, 2.0))", "wp.ddot(m * p, k)"}},
    {Builtin::div, {"p / q", "wp.dot(v / p, w)", "wp.dot(p / v, w)", "wp.ddot(m / q, k)"}},
    {Builtin::mod, {"(5.0 * p) % q"}},
    {Builtin::pow, {"p ** q", "p ** 3.0"}},
    {Builtin::abs, {"wp.abs(-p)", "wp.dot(wp.abs(-v), w)"}},
    {Builtin::copysign, {"wp.copysign(p, -q)"}},
    {Builtin::min, {"wp.min(p, q)", "wp.min(v)", "wp.dot(wp.min(v, w), w)"}},
    {Builtin::max, {"wp.max(p, q)", "wp.max(v)", "wp.dot(wp.max(v, w), w)"}},
    {Builtin::clamp, {"wp.clamp(p, 0.0, 9.0)", "wp.clamp(p, q + 2.0, 9.0)", "wp.clamp(p, -1.0, r - 2.0)"}},
    {Builtin::lerp, {"wp.lerp(p, q, r)", "wp.dot(wp.lerp(v, w, r), w)"}},
    {Builtin::smoothstep, {"wp.smoothstep(-q, 2.0 + r, p)"}},
    {Builtin::sqrt, {"wp.sqrt(p)"}},
    {Builtin::cbrt, {"wp.cbrt(p)"}},
    {Builtin::exp, {"wp.exp(p)"}},
    {Builtin::log, {"wp.log(p)"}},
    {Builtin::log2, {"wp.log2(p)"}},
    {Builtin::log10, {"wp.log10(p)"}},
    {Builtin::sin, {"wp.sin(p)"}},
    {Builtin::cos, {"wp.cos(p)"}},
    {Builtin::tan, {"wp.tan(p)"}},
    {Builtin::asin, {"wp.asin(wp.sin(p))", "wp.asin(p + 3.0)"}},
    {Builtin::acos, {"wp.acos(wp.sin(p))"}},
    {Builtin::atan, {"wp.atan(p)"}},
    {Builtin::atan2, {"wp.atan2(p, -q)"}},
    {Builtin::sinh, {"wp.sinh(p)"}},
    {Builtin::cosh, {"wp.cosh(p)"}},
    {Builtin::tanh, {"wp.tanh(p)"}},
    {Builtin::erf, {"wp.erf(p)"}},
    {Builtin::erfc, {"wp.erfc(p)"}},
    {Builtin::degrees, {"wp.degrees(p)"}},
    {Builtin::radians, {"wp.radians(p)"}},
    {Builtin::frac, {"wp.frac(p)"}},
    {Builtin::dot, {"wp.dot(v, w)", "wp.dot(c, d)"}},
    {Builtin::ddot, {"wp.ddot(m, k)"}},
    {Builtin::cross, {"wp.dot(wp.cross(v, w), wp.vec3(p, q, r))"}},
    {Builtin::length, {"wp.length(v)", "wp.length(c * p)"}},
    {Builtin::length_sq, {"wp.length_sq(v)"}},
    {Builtin::normalize, {"wp.dot(wp.normalize(v), w)", "wp.dot(wp.normalize(c * p + d), d)"}},
    {Builtin::outer, {"wp.ddot(wp.outer(v, w), m)"}},
    {Builtin::skew, {"wp.ddot(wp.skew(v), m)"}},
    {Builtin::cw_mul, {"wp.dot(wp.cw_mul(v, w), w)", "wp.ddot(wp.cw_mul(m, k), k)"}},
    {Builtin::cw_div, {"wp.dot(wp.cw_div(v, w), w)"}},
    {Builtin::norm_l1, {"wp.norm_l1(v)"}},
    {Builtin::transpose, {"wp.ddot(wp.transpose(m), k)"}},
    {Builtin::determinant,
     {"wp.determinant(m)", "wp.determinant(wp.mat22(p, q, r, p * q))",
      "wp.determinant(wp.diag(wp.vec4(p, q, r, p)) + wp.outer(wp.vec4(q, p, r, r), wp.vec4(p, p, q, r)))"}},
    {Builtin::inverse, {"wp.ddot(wp.inverse(m), k)"}},
    {Builtin::trace, {"wp.trace(m * m)"}},
    {Builtin::diag, {"wp.ddot(wp.diag(v), m)"}},
    {Builtin::get_diag, {"wp.dot(wp.get_diag(m), v)"}},
    {Builtin::matrix_from_rows, {"wp.ddot(wp.matrix_from_rows(v, w, v), m)"}},
    {Builtin::matrix_from_cols, {"wp.ddot(wp.matrix_from_cols(v, w, v), m)"}},
    {Builtin::quat_from_axis_angle, {"wp.dot(wp.quat_from_axis_angle(wp.normalize(v), p), d)"}},
    {Builtin::quat_rpy, {"wp.dot(wp.quat_rpy(p, q, r), d)"}},
    {Builtin::quat_inverse, {"wp.dot(wp.quat_inverse(c), d)"}},
    {Builtin::quat_rotate, {"wp.dot(wp.quat_rotate(c, v), w)"}},
    {Builtin::quat_rotate_inv, {"wp.dot(wp.quat_rotate_inv(c, v), w)"}},
    {Builtin::quat_slerp, {"wp.dot(wp.quat_slerp(c, d, 0.1 * r), wp.quat(p, q, 1.0, 2.0))"}},
    {Builtin::quat_to_matrix, {"wp.ddot(wp.quat_to_matrix(c), m)"}},
    {Builtin::quat_from_matrix,
     {"wp.dot(wp.quat_from_matrix(wp.quat_to_matrix(c)), d)",
      "wp.dot(wp.quat_from_matrix(wp.diag(wp.vec3(0.2 * p, -3.0, -2.0 * q)) + 0.1 * m), d)"}},
    {Builtin::where, {"wp.where(p > 1.0, p * q, q)", "wp.dot(wp.where(i > 1, v, w), v)"}},
    {Builtin::randf, {"wp.randf(s, p, p + q)"}},
};

TEST(Derivatives, OneRowForEachBuiltin) {
  ASSERT_EQ(derivatives().size(), builtins().size());
  for (std::size_t i = 0; i < builtins().size(); ++i) {
    const Derivative& row = derivatives()[i];
    EXPECT_EQ(row.id, builtins()[i].id);
    EXPECT_EQ(row.partials != nullptr, row.kind == Derivative::Kind::partials) << builtins()[i].name;
    const bool changes_array = builtins()[i].effect == Effect::writes_array;
    if (row.kind == Derivative::Kind::statement || row.kind == Derivative::Kind::refused) {
      EXPECT_TRUE(changes_array) << builtins()[i].name;
    }
    const bool smooth = row.kind == Derivative::Kind::partials || row.kind == Derivative::Kind::definition;
    EXPECT_EQ(expressions.contains(row.id), smooth) << builtins()[i].name;
  }
}

TEST(Derivatives, AgreeWithDifferences) {
  const std::string setup =
      "p = wp.abs(x[i]) + 0.5\n"
      "q = wp.abs(x[i + 1]) + 0.25 + p * 0.3\n"
      "r = wp.exp(0.2 * x[i + 2])\n"
      "v = wp.vec3(p, q * r, 1.0 + r)\n"
      "w = wp.vec3(r + 0.3, p + 0.2, q * p)\n"
      "m = wp.mat33(p, q, r, 1.0, p * 2.0, q, r * r, p, 3.0)\n"
      "k = wp.mat33(r, p * q, 2.0, q, 1.0, p, p, r, q)\n"
      "c = wp.normalize(wp.quat(p, q, -r, 1.0))\n"
      "d = wp.normalize(wp.quat(r, 1.0, p, q))\n"
      "s = wp.rand_init(42, i)\n";
  for (const auto& [id, list] : expressions)
    for (const std::string& e : list) expect_lines(setup + "y[i] = " + e);
}

TEST(Derivatives, CornersFollowWarp) {
  const auto slope = [](const std::string& expression, double at) {
    const Module module =
        parse(kernel_of("out[0] = " + expression, "x: wp.array[float], out: wp.array[float]"));
    const Module back = adjoint(module, module.kernel());
    Arguments all{real_array({at}), real_array({0}), real_array({0}), real_array({1})};
    interpret(back, back.kernel(), Extents{1}, all);
    return reals(all[2])[0];
  };
  EXPECT_EQ(slope("wp.abs(x[0])", 0), 1);
  EXPECT_EQ(slope("wp.min(x[0], 0.0)", 0), 0);
  EXPECT_EQ(slope("wp.max(0.0, x[0])", 0), 1);
  EXPECT_EQ(slope("wp.clamp(x[0], 0.0, 1.0)", 1), 1);
  EXPECT_EQ(slope("wp.length(wp.vec3(x[0], x[0], 0.0))", 0), 0);
  EXPECT_EQ(slope("wp.normalize(wp.vec2(x[0], 0.0))[0]", 0), 0);
  EXPECT_EQ(slope("wp.acos(x[0])", 1), 0);
  EXPECT_EQ(slope("wp.floor(x[0])", 0.5), 0);
}

TEST(Adjoint, Assignments) {
  expect_lines("v = x[i]\nv = v * v\nv = wp.sin(v) * a\ny[i] = v");
  expect_lines("u = x[i]\nv = x[i + 1]\nu, v = v * u, u + v\nu, v = v, u * a\ny[i] = u - v * v");
  expect_lines("v = x[i]\nv += a * v\nv *= v\nv /= 2.0 + a\nv -= x[0]\ny[i] = v");
  expect_lines(
      "v = wp.vec3(x[i], a, 1.0)\nv.y = v.x * v.z\nv[i % 3] += v[1]\nv *= v.x\ny[i] = wp.length_sq(v)");
  expect_lines(
      "m = wp.mat22(x[i], a, 1.0, 2.0)\nm[0] = m[1] * m[0, 0]\nm[1, 0] *= m[0, 1]\ny[i] = m[0, 1] * m[1, 0]");
  expect_lines("y[i] = float(wp.float64(x[i]) * wp.float64(a)) + float(int(x[i]))");
  expect_lines("a = a * x[i]\na = a * a\ny[i] = a");
  expect_lines("y[i] = wp.vec3(wp.vec3d(wp.vec3(x[i])) * wp.float64(a)).z");
}

TEST(Adjoint, Arrays) {
  expect_lines("y[i] = y[i] * x[i]");            // in place
  expect_lines("y[i] = 1.0\nx[i] = a");          // overwritten: nothing of the old elements is left
  expect_lines("y[i] = x[i] * a\ny[i] = x[i]");  // twice: the first is lost
  expect_lines(
      "y[i] = x[i] * a\nx[i] = y[i] * 2.0");  // what was written is read, but its value is not needed
  expect_lines("y[i % 2] += x[i] * x[i]\ny[0] -= a * x[i]\nwp.atomic_sub(y, 1, a)");
  expect_lines("y[i] *= x[i]\nx[i] = 0.5");
  expect_lines("if i == 0:\n    y[i] = x[i]\nelse:\n    y[5] += x[i] * x[i]");
  expect_lines("wp.atomic_max(y, 0, x[i] * x[i] * 10.0)", {1});
  expect_lines("wp.atomic_min(y, i % 2, x[i] - 20.0)", {1});
  expect_lines(
      "t = wp.zeros(shape=(2, 3), dtype=float)\nfor k in range(6):\n    t[k % 2, k / 2] = x[k] * x[k]\n"
      "    t[0, 0] += t[k % 2, k / 2] * a\ny[i] = t[0, 0] * t[1, 2]");
  expect_lines(
      "s = float(0.0)\nfor k in range(n):\n    t = wp.zeros(shape=2, dtype=wp.vec2)\n"
      "    t[k % 2].x = x[k]\n    t[1].y += x[i] * x[k]\n    s += wp.dot(t[0], t[1]) + wp.length_sq(t[k % "
      "2])\ny[i] = s");
}

TEST(Adjoint, AtomicsOfLocalArrays) {
  expect_lines(
      "t = wp.zeros(shape=2, dtype=float)\nfor k in range(n):\n    wp.atomic_add(t, k % 2, x[k] * a)\n"
      "    wp.atomic_max(t, 0, x[i] * x[k])\ny[i] = t[0] * t[1]");
}

TEST(Adjoint, Branches) {
  expect_lines(
      "v = x[i]\nif v > 0.0:\n    v = v * v\nelif v > -0.5:\n    v = v * a\nelse:\n    v = -v * v\ny[i] = v "
      "* v");
  expect_lines("v = x[i]\nif v > 0.0 and x[i + 1] > 0.0 or i == 2:\n    v *= x[i + 1]\ny[i] = v");
  expect_lines("y[i] = x[i] * x[i] if x[i] > 0.0 else a * x[i + 1]");
  expect_lines("y[i] = (x[i] if i % 2 == 0 else a) * (x[0] if x[1] > 0.0 else x[2])");
  expect_lines("if i == 1:\n    return\nv = x[i] * a\nif i == 2:\n    y[i] = v\n    return\ny[i] = v * v");
}

TEST(Adjoint, Loops) {
  expect_lines("s = float(1.0)\nfor k in range(n):\n    s = s * x[k] + a\ny[i] = s");
  expect_lines("s = float(1.0)\nfor k in range(i, -1, -1):\n    s = s * x[k] + a\ny[i] = s");
  expect_lines("s = float(1.0)\nfor k in range(0, 6, 2):\n    s = s * x[k] + float(k)\ny[i] = s");
  expect_lines("s = float(1.0)\nfor k in range(5, 0, -2):\n    s = s * x[k] + float(k)\ny[i] = s");
  expect_lines("s = float(1.0)\nfor k in range(3, 3):\n    s = s * x[k]\ny[i] = s * x[i]");
  expect_lines(
      "s = float(1.0)\nh = n - 1\nfor k in range(0, 6, h):\n    h += 1\n    s = s * x[k] + a\ny[i] = s");
  expect_lines(
      "s = float(1.0)\nfor k in range(wp.uint32(1), wp.uint32(4)):\n    s = s * x[int(k)] + a\ny[i] = s");
  expect_lines(
      "s = x[i]\nfor k in range(n):\n    for j in range(k + 1):\n        s = wp.sin(s) * x[j] + a\n    s += "
      "x[k] * s\ny[i] = s");
  expect_lines("s = x[i]\nk = int(0)\nwhile k < n and s < 50.0:\n    s = s * s + a\n    k += 1\ny[i] = s");
  expect_lines(
      "s = x[i]\nwhile True:\n    s = s * s + 1.0\n    if s > 30.0:\n        break\n    s += a\ny[i] = s * "
      "s");
  expect_lines(
      "s = x[i]\nfor k in range(6):\n    if k == i:\n        continue\n    s = s * x[k]\n    if s < -1.0:\n  "
      "      break\n    s += a\ny[i] = s");
  expect_lines(
      "s = x[i]\nfor k in range(6):\n    s = s * x[k] + a\n    if k == i:\n        y[i] = s\n        "
      "return\n    s += 0.5\ny[i] = s");
  expect_lines(
      "s = wp.rand_init(3, i)\nv = x[i]\nfor k in range(n):\n    v = v * wp.randf(s) + wp.randf(s, a, "
      "2.0)\ny[i] = v * wp.randn(s)");
}

TEST(Adjoint, FunctionsAndStructs) {
  const std::string text = R"(
import warp as wp

@wp.struct
class Spring:
    stiffness: float
    anchor: wp.vec3
    uses: int

@wp.func
def pull(s: Spring, x: wp.vec3):
    d = s.anchor - x
    if wp.length(d) < 0.1:
        return wp.vec3(), 0.0
    s.stiffness *= 2.0
    return d * s.stiffness, wp.length_sq(d)

@wp.func
def keep(e: wp.array[float], i: int, v: float):
    for k in range(3):
        if k == 2:
            e[i] = v * v
            return

@wp.kernel
def k(s: Spring, x: wp.array[wp.vec3], f: wp.array[wp.vec3], e: wp.array[float]):
    i = wp.tid()
    own = s
    own.anchor.y += 0.5 * s.stiffness
    own.uses += 1
    force, energy = pull(own, x[i])
    both = Spring(energy, force, 2)
    f[i] = force * float(own.uses)
    keep(e, i, both.stiffness + both.anchor.x)
)";
  const Module module = parse(text);
  std::mt19937 random(5);
  Arguments arguments{{Type::structure_of(0), {}, {}, {}},
                      reals_value(Type::vector(3).array(1), {4}, random),
                      reals_value(Type::vector(3).array(1), {4}, random),
                      reals_value(float_type.array(1), {4}, random)};
  for (const double v : {1.5, 0.25, -0.5, 1.0}) arguments[0].numbers.push_back(from_real(v));
  arguments[0].numbers.push_back(from_integer(2));
  const auto adjoints = adjoint_parameters(module, module.kernel());
  ASSERT_EQ(adjoints.size(), 5u);
  EXPECT_EQ(adjoints[1].name, "adj_s_anchor");
  expect_gradients(module, module.kernel(), {4}, arguments);
}

TEST(Adjoint, RefusesWhatItCannotCompute) {
  const std::string stale = refusal("y[i] = x[i] * a\nx[i] = y[i] * y[i]");
  EXPECT_NE(stale.find("needs 'y' here as the kernel has changed it (line 7)"), std::string::npos) << stale;
  EXPECT_NE(stale.find("k.py:8:"), std::string::npos) << stale;
  const auto expect = [](const std::string& lines, const std::string& problem) {
    const std::string message = refusal(lines);
    EXPECT_NE(message.find(problem), std::string::npos) << lines << "\ngives: " << message;
  };
  expect("for k in range(n):\n    y[k] = y[k] * y[k + 1]", "needs 'y' here");
  expect("old = wp.atomic_add(y, 0, x[i])\ny[i + 1] = x[i] * old", "the result of wp.atomic_add");
  expect("wp.atomic_exch(y, i, x[i])", "wp.atomic_exch of floats");
  expect("y[i] = 2.0\nwp.atomic_max(y, 0, x[i])", "is written here and by");
  expect("s = wp.shared_array(shape=4, dtype=float)\ns[i] = x[i]\ny[i] = s[i]", "shared arrays");
  expect("wp.sync_threads()\ny[i] = x[i]", "barriers");
  expect("z = x\ny[i] = z[i]", "an array is assigned");
}

TEST(Adjoint, OfAnAdjoint) {
  const Module module = parse(text_of("y[i] = x[i] * x[i] * x[i] * a + wp.sin(x[i])"));
  const Module first = adjoint(module, module.kernel());
  std::mt19937 random(13);
  Arguments arguments;
  for (int i = 0; i < first.kernel().parameters; ++i) {
    const Type type = first.kernel().variables[static_cast<std::size_t>(i)].type;
    arguments.push_back(type.is_array() ? reals_value(type, {6}, random) : scalar_value(type.scalar, 2));
  }
  expect_gradients(first, first.kernel(), {4}, arguments);
}

TEST(Adjoint, IsShort) {
  const Module module =
      parse(text_of("s = float(0.0)\nfor k in range(n):\n    s += x[k] * x[i]\ny[i] = a * s"));
  const std::string text = print(adjoint(module, module.kernel()));
  EXPECT_EQ(text.find("+ 0"), std::string::npos) << text;
  EXPECT_EQ(text.find("_first"), std::string::npos) << text;  // no round needs what others computed
}

}  // namespace

}  // namespace ferrite::kernel
