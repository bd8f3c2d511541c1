// How quaternions are written.
#include "kernel/emit/rules.hpp"

namespace ferrite::kernel {

namespace {

using namespace fit;

constexpr EmitRule rules[] = {
    {Builtin::quat_identity, any, "$R{0, 0, 0, 1}"},
    {Builtin::quat_from_axis_angle, any, "quat_from_axis_angle($0, $1)", R"(
const $T s = $m{sin}(angle / 2);
return $R{axis[0] * s, axis[1] * s, axis[2] * s, $m{cos}(angle / 2)};)"},
    {Builtin::quat_rpy, any, "quat_rpy($0, $1, $2)", R"(
const $R about_x = quat_from_axis_angle($V{1, 0, 0}, roll);
const $R about_y = quat_from_axis_angle($V{0, 1, 0}, pitch);
const $R about_z = quat_from_axis_angle($V{0, 0, 1}, yaw);
return about_z * (about_y * about_x);)",
     "quat_from_axis_angle:VT mul:QQ"},
    {Builtin::quat_inverse, any, "quat_inverse($0)", "return $R{-q[0], -q[1], -q[2], q[3]};"},
    {Builtin::quat_rotate, any, "quat_rotate($0, $1)", R"(
const $T c = 2 * q[3] * q[3] - 1, d = 2 * (q[0] * v[0] + q[1] * v[1] + q[2] * v[2]), w = 2 * q[3];
return $R{v[0] * c + q[0] * d + (q[1] * v[2] - q[2] * v[1]) * w,
          v[1] * c + q[1] * d + (q[2] * v[0] - q[0] * v[2]) * w,
          v[2] * c + q[2] * d + (q[0] * v[1] - q[1] * v[0]) * w};)"},
    {Builtin::quat_rotate_inv, any, "quat_rotate(quat_inverse($0), $1)", "", "quat_inverse:Q quat_rotate:QV"},
    {Builtin::quat_slerp, any, "quat_slerp($0, $1, $2)", R"(
const $R turn = quat_inverse(a) * b;
const $T l = $m{sqrt}(turn[0] * turn[0] + turn[1] * turn[1] + turn[2] * turn[2]);
const $T angle = 2 * $m{atan2}(l, $m{fabs}(turn[3]));
const $T scale = l > 0 ? (turn[3] < 0 ? -1 : 1) / l : 0;
return a * quat_from_axis_angle($V{turn[0] * scale, turn[1] * scale, turn[2] * scale}, t * angle);)",
     "quat_inverse:Q mul:QQ quat_from_axis_angle:VT"},
    {Builtin::quat_to_matrix, any, "quat_to_matrix($0)", R"(
const $V x = quat_rotate(q, $V{1, 0, 0}), y = quat_rotate(q, $V{0, 1, 0}), z = quat_rotate(q, $V{0, 0, 1});
return $R{x[0], y[0], z[0], x[1], y[1], z[1], x[2], y[2], z[2]};)",
     "quat_rotate:QV"},
    {Builtin::quat_from_matrix, any, "quat_from_matrix($0)", R"(
$R q{};  // Shepperd's method: divide by the largest of the four components
const $T trace = m[0][0] + m[1][1] + m[2][2];
if (trace >= 0) {
  const $T h = $m{sqrt}(trace + 1);
  q = $R{(m[2][1] - m[1][2]) / (2 * h), (m[0][2] - m[2][0]) / (2 * h), (m[1][0] - m[0][1]) / (2 * h), h / 2};
} else {
  int i = m[1][1] > m[0][0] ? 1 : 0;
  if (m[2][2] > m[i][i]) i = 2;
  const int j = (i + 1) % 3, k = (i + 2) % 3;
  const $T h = $m{sqrt}(m[i][i] - (m[j][j] + m[k][k]) + 1);
  q[i] = h / 2;
  q[j] = (m[i][j] + m[j][i]) / (2 * h);
  q[k] = (m[k][i] + m[i][k]) / (2 * h);
  q[3] = (m[k][j] - m[j][k]) / (2 * h);
}
return q / length(q);)",
     "length:Q div:QT"},
};

}  // namespace

std::span<const EmitRule> quaternion_rules() { return rules; }

}  // namespace ferrite::kernel
