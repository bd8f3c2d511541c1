// Builtins whose derivative is that of their own text, written in the kernel language.
#include <map>
#include <mutex>
#include <string>
#include <tuple>

#include "ferrite/kernel/parse.hpp"
#include "kernel/transform/derivative.hpp"

namespace ferrite::kernel {

namespace {

struct Definition {
  Builtin id;
  std::string_view text;
};

/// T stands for the scalar type, VEC3, QUAT and MAT (of the first argument) for composites over it.
constexpr Definition definitions[] = {
    {Builtin::smoothstep, R"(
def f(a: T, b: T, x: T):
    t = wp.clamp((x - a) / (b - a), T(0.0), T(1.0))
    return t * t * (T(3.0) - T(2.0) * t)
)"},
    {Builtin::quat_from_axis_angle, R"(
def f(axis: VEC3, angle: T):
    s = wp.sin(angle * T(0.5))
    return QUAT(axis[0] * s, axis[1] * s, axis[2] * s, wp.cos(angle * T(0.5)))
)"},
    {Builtin::quat_rpy, R"(
def f(roll: T, pitch: T, yaw: T):
    x = QUAT(wp.sin(roll * T(0.5)), T(0.0), T(0.0), wp.cos(roll * T(0.5)))
    y = QUAT(T(0.0), wp.sin(pitch * T(0.5)), T(0.0), wp.cos(pitch * T(0.5)))
    z = QUAT(T(0.0), T(0.0), wp.sin(yaw * T(0.5)), wp.cos(yaw * T(0.5)))
    return z * (y * x)
)"},
    {Builtin::quat_rotate, R"(
def f(q: QUAT, x: VEC3):
    v = VEC3(q[0], q[1], q[2])
    w = T(2.0) * q[3]
    return x * (w * q[3] - T(1.0)) + v * (T(2.0) * wp.dot(v, x)) + wp.cross(v, x) * w
)"},
    {Builtin::quat_rotate_inv, R"(
def f(q: QUAT, x: VEC3):
    v = VEC3(q[0], q[1], q[2])
    w = T(2.0) * q[3]
    return x * (w * q[3] - T(1.0)) + v * (T(2.0) * wp.dot(v, x)) - wp.cross(v, x) * w
)"},
    {Builtin::quat_slerp, R"(
def f(a: QUAT, b: QUAT, t: T):
    turn = wp.quat_inverse(a) * b
    v = VEC3(turn[0], turn[1], turn[2])
    size = wp.length(v)
    if size == T(0.0):
        return a
    half = t * wp.atan2(size, wp.abs(turn[3]))
    v = v * (wp.sign(turn[3]) * wp.sin(half) / size)
    return a * QUAT(v[0], v[1], v[2], wp.cos(half))
)"},
    {Builtin::quat_to_matrix, R"(
def f(q: QUAT):
    x = wp.quat_rotate(q, VEC3(T(1.0), T(0.0), T(0.0)))
    y = wp.quat_rotate(q, VEC3(T(0.0), T(1.0), T(0.0)))
    z = wp.quat_rotate(q, VEC3(T(0.0), T(0.0), T(1.0)))
    return wp.matrix_from_cols(x, y, z)
)"},
    {Builtin::quat_from_matrix, R"(
def f(m: MAT):
    trace = m[0, 0] + m[1, 1] + m[2, 2]
    q = QUAT(m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1], trace + T(1.0))
    if trace < T(0.0):
        i = int(0)
        if m[1, 1] > m[0, 0]:
            i = 1
        if m[2, 2] > m[i, i]:
            i = 2
        j = (i + 1) % 3
        k = (i + 2) % 3
        q[i] = m[i, i] - (m[j, j] + m[k, k]) + T(1.0)
        q[j] = m[i, j] + m[j, i]
        q[k] = m[k, i] + m[i, k]
        q[3] = m[k, j] - m[j, k]
    return wp.normalize(q)
)"},
};

std::string with_types(std::string_view text, Type first) {
  const ScalarType s = first.scalar;
  const std::pair<std::string_view, std::string> words[] = {{"VEC3", to_string(Type::vector(3, s))},
                                                            {"QUAT", to_string(Type::quaternion(s))},
                                                            {"MAT", to_string(first)},
                                                            {"T", to_string(Type::of(s))}};
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    bool found = false;
    for (const auto& [word, type] : words) {
      if (text.substr(i, word.size()) != word) continue;
      out += type;
      i += word.size();
      found = true;
      break;
    }
    if (!found) out += text[i++];
  }
  return out;
}

}  // namespace

const Function& definition_of(Builtin id, std::span<const Type> arguments) {
  static std::mutex mutex;
  static std::map<std::tuple<Builtin, ScalarType, int>, Module> parsed;
  const std::lock_guard lock(mutex);
  const Type first = arguments[0];
  const auto [found, is_new] = parsed.try_emplace({id, first.scalar, first.rows});
  if (is_new)
    for (const Definition& d : definitions)
      if (d.id == id)
        found->second = parse("import warp as wp\n\n@wp.func" + with_types(d.text, first), "definition");
  return found->second.functions[0];
}

}  // namespace ferrite::kernel
