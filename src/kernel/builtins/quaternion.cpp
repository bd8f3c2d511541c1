// Quaternions (x, y, z, w). Rotations take a quaternion of length 1; others give what the formulas give.
#include <array>

#include "kernel/builtins/rules.hpp"

namespace ferrite::kernel {

namespace {

constexpr std::string_view group = "Quaternions";
constexpr Effect none = Effect::none;
using Quaternion = std::array<double, 4>;

Result by_name(Types) { return std::nullopt; }  // the call names its type; see the checker
Result axis_angles(Types t) {
  const bool fits =
      t.size() == 2 && t[0].is_vector() && t[0].rows == 3 && t[1].is_float() && t[0].scalar == t[1].scalar;
  return fits ? Result(Type::quaternion(t[1].scalar)) : std::nullopt;
}
Result angles(Types t) {
  return t.size() == 3 && all_same(t) && t[0].is_float() ? Result(Type::quaternion(t[0].scalar))
                                                         : std::nullopt;
}
Result quaternions(Types t) { return t.size() == 1 && t[0].is_quaternion() ? Result(t[0]) : std::nullopt; }
Result rotations(Types t) {
  const bool fits = t.size() == 2 && t[0].is_quaternion() && t[1] == Type::vector(3, t[0].scalar);
  return fits ? Result(t[1]) : std::nullopt;
}
Result slerps(Types t) {
  const bool fits = t.size() == 3 && t[0].is_quaternion() && t[0] == t[1] && t[2] == Type::of(t[0].scalar);
  return fits ? Result(t[0]) : std::nullopt;
}
Result to_matrices(Types t) {
  return t.size() == 1 && t[0].is_quaternion() ? Result(Type::matrix(3, t[0].scalar)) : std::nullopt;
}
Result from_matrices(Types t) {
  return t.size() == 1 && t[0].is_matrix() && t[0].rows >= 3 ? Result(Type::quaternion(t[0].scalar))
                                                             : std::nullopt;
}

Quaternion load(const BuiltinCall& c, int arg) {
  return {c.real(arg, 0), c.real(arg, 1), c.real(arg, 2), c.real(arg, 3)};
}
void store(const BuiltinCall& c, const Quaternion& q) {
  for (int i = 0; i < 4; ++i) c.store(i, q[static_cast<std::size_t>(i)]);
}
Quaternion multiply(const Quaternion& a, const Quaternion& b) {
  return {a[3] * b[0] + b[3] * a[0] + a[1] * b[2] - b[1] * a[2],
          a[3] * b[1] + b[3] * a[1] + a[2] * b[0] - b[2] * a[0],
          a[3] * b[2] + b[3] * a[2] + a[0] * b[1] - b[0] * a[1],
          a[3] * b[3] - a[0] * b[0] - a[1] * b[1] - a[2] * b[2]};
}
Quaternion conjugate(const Quaternion& q) { return {-q[0], -q[1], -q[2], q[3]}; }
Quaternion about(double x, double y, double z, double angle) {
  const double s = std::sin(angle / 2);
  return {x * s, y * s, z * s, std::cos(angle / 2)};
}
/// x turned by q, for |q| = 1: x (2 w^2 - 1) + 2 v (v . x) + 2 w (v cross x).
std::array<double, 3> rotate(const Quaternion& q, const std::array<double, 3>& x) {
  const double c = 2 * q[3] * q[3] - 1, d = 2 * (q[0] * x[0] + q[1] * x[1] + q[2] * x[2]), w = 2 * q[3];
  return {x[0] * c + q[0] * d + (q[1] * x[2] - q[2] * x[1]) * w,
          x[1] * c + q[1] * d + (q[2] * x[0] - q[0] * x[2]) * w,
          x[2] * c + q[2] * d + (q[0] * x[1] - q[1] * x[0]) * w};
}

void identity(BuiltinCall& c) { store(c, {0, 0, 0, 1}); }
void from_axis_angle(BuiltinCall& c) { store(c, about(c.real(0, 0), c.real(0, 1), c.real(0, 2), c.real(1))); }
void rpy(BuiltinCall& c) {
  const Quaternion roll = about(1, 0, 0, c.real(0)), pitch = about(0, 1, 0, c.real(1)),
                   yaw = about(0, 0, 1, c.real(2));
  store(c, multiply(yaw, multiply(pitch, roll)));
}
void inverse(BuiltinCall& c) { store(c, conjugate(load(c, 0))); }
template <bool inverted>
void rotate_vector(BuiltinCall& c) {
  const Quaternion q = load(c, 0);
  const auto y = rotate(inverted ? conjugate(q) : q, {c.real(1, 0), c.real(1, 1), c.real(1, 2)});
  for (int i = 0; i < 3; ++i) c.store(i, y[static_cast<std::size_t>(i)]);
}
/// The turn from a to b, the shorter way, done by the share t.
void slerp(BuiltinCall& c) {
  const Quaternion a = load(c, 0);
  Quaternion turn = multiply(conjugate(a), load(c, 1));
  const double length = std::sqrt(turn[0] * turn[0] + turn[1] * turn[1] + turn[2] * turn[2]);
  const double angle = 2 * std::atan2(length, std::fabs(turn[3]));
  const double scale = length > 0 ? (turn[3] < 0 ? -1 : 1) / length : 0;
  store(c, multiply(a, about(turn[0] * scale, turn[1] * scale, turn[2] * scale, c.real(2) * angle)));
}
void to_matrix(BuiltinCall& c) {
  for (int j = 0; j < 3; ++j) {
    const auto column = rotate(
        load(c, 0), {static_cast<double>(j == 0), static_cast<double>(j == 1), static_cast<double>(j == 2)});
    for (int i = 0; i < 3; ++i) c.store(i * 3 + j, column[static_cast<std::size_t>(i)]);
  }
}
/// Shepperd's method: divide by the largest of the four components.
void from_matrix(BuiltinCall& c) {
  const int n = c.type_of(0).rows;
  const auto m = [&](int i, int j) { return c.real(0, i * n + j); };
  Quaternion q{};
  const double trace = m(0, 0) + m(1, 1) + m(2, 2);
  if (trace >= 0) {
    const double h = std::sqrt(trace + 1);
    q = {(m(2, 1) - m(1, 2)) / (2 * h), (m(0, 2) - m(2, 0)) / (2 * h), (m(1, 0) - m(0, 1)) / (2 * h), h / 2};
  } else {
    int i = m(1, 1) > m(0, 0) ? 1 : 0;
    if (m(2, 2) > m(i, i)) i = 2;
    const int j = (i + 1) % 3, k = (i + 2) % 3;
    const double h = std::sqrt(m(i, i) - (m(j, j) + m(k, k)) + 1);
    q[static_cast<std::size_t>(i)] = h / 2;
    q[static_cast<std::size_t>(j)] = (m(i, j) + m(j, i)) / (2 * h);
    q[static_cast<std::size_t>(k)] = (m(k, i) + m(i, k)) / (2 * h);
    q[3] = (m(k, j) - m(j, k)) / (2 * h);
  }
  const double length = std::sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
  for (double& x : q) x /= length;
  store(c, q);
}

constexpr BuiltinInfo rows[] = {
    {Builtin::quat_identity, "quat_identity", "", group, "quat_identity(dtype: Type) -> Quat",
     "No rotation: (0, 0, 0, 1).", none, by_name, identity},
    {Builtin::quat_from_axis_angle, "quat_from_axis_angle", "", group,
     "quat_from_axis_angle(axis: Vector3, angle: Float) -> Quat", "Rotation about an axis of length 1.", none,
     axis_angles, from_axis_angle},
    {Builtin::quat_rpy, "quat_rpy", "", group, "quat_rpy(roll: Float, pitch: Float, yaw: Float) -> Quat",
     "Roll about x, then pitch about y, then yaw about z.", none, angles, rpy},
    {Builtin::quat_inverse, "quat_inverse", "", group, "quat_inverse(q: Quat) -> Quat", "The conjugate.",
     none, quaternions, inverse},
    {Builtin::quat_rotate, "quat_rotate", "", group, "quat_rotate(quat: Quat, vec: Vector3) -> Vector3",
     "The vector turned by the quaternion.", none, rotations, rotate_vector<false>},
    {Builtin::quat_rotate_inv, "quat_rotate_inv", "", group,
     "quat_rotate_inv(quat: Quat, vec: Vector3) -> Vector3", "The vector turned back.", none, rotations,
     rotate_vector<true>},
    {Builtin::quat_slerp, "quat_slerp", "", group, "quat_slerp(a: Quat, b: Quat, t: Float) -> Quat",
     "Between a (t = 0) and b (t = 1), the shorter way, at constant speed.", none, slerps, slerp},
    {Builtin::quat_to_matrix, "quat_to_matrix", "", group, "quat_to_matrix(quat: Quat) -> Matrix33",
     "The rotation matrix.", none, to_matrices, to_matrix},
    {Builtin::quat_from_matrix, "quat_from_matrix", "", group, "quat_from_matrix(mat: Matrix) -> Quat",
     "The quaternion of a rotation matrix (of the upper left 3x3 of a 4x4).", none, from_matrices,
     from_matrix},
};

}  // namespace

std::span<const BuiltinInfo> quaternion_builtins() { return rows; }

}  // namespace ferrite::kernel
