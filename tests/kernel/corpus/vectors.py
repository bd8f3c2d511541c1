"""Vectors, matrices and quaternions."""

import warp as wp


# run: dim=32 a=normal:32x3 b=normal:32x3 c=zeros:32x3 d=zeros:32
@wp.kernel
def vector_algebra(a: wp.array[wp.vec3], b: wp.array[wp.vec3], c: wp.array[wp.vec3], d: wp.array[float]):
    i = wp.tid()
    u = a[i]
    v = b[i]
    w = wp.cross(u, v) * 0.5 + (u - v) / 2.0
    c[i] = wp.normalize(w) + wp.cw_mul(u, v) - 2.0 * w
    d[i] = wp.dot(u, v) + wp.length(w) + wp.length_sq(u) + wp.min(u) + wp.max(v)


# run: dim=32 a=normal:32x2 c=zeros:32x4
@wp.kernel
def components(a: wp.array[wp.vec2], c: wp.array[wp.vec4]):
    i = wp.tid()
    v = a[i]
    r = wp.vec4(v.x, v.y, v[0] * v[1], 1.0)
    r[3] = r.x + r.y
    r.z += 2.0
    k = i % 4
    r[k] = r[k] * 3.0
    c[i] = r


# run: dim=32 m=normal:32x3x3 v=normal:32x3 r=zeros:32x3 d=zeros:32
@wp.kernel
def matrix_vector(m: wp.array[wp.mat33], v: wp.array[wp.vec3], r: wp.array[wp.vec3], d: wp.array[float]):
    i = wp.tid()
    a = m[i] + wp.identity(n=3, dtype=float) * 4.0
    b = wp.transpose(a) * a
    r[i] = b * v[i] + wp.inverse(a) * v[i] + v[i] * a
    d[i] = wp.determinant(a) + wp.trace(b) + wp.ddot(a, b)


# run: dim=16 m=normal:16x2x2 r=zeros:16x2x2
@wp.kernel
def matrix_elements(m: wp.array[wp.mat22], r: wp.array[wp.mat22]):
    i = wp.tid()
    a = m[i]
    a[0, 1] = a[1, 0] * 2.0
    a[1] = wp.vec2(7.0, a[0][0])
    row = a[0]
    r[i] = a @ wp.outer(row, wp.vec2(1.0, -1.0)) + wp.mat22(1.0, 2.0, 3.0, 4.0) / 2.0 + wp.diag(row)


# run: dim=16 m=normal:16x4x4 r=zeros:16x4 d=zeros:16
@wp.kernel
def matrix44(m: wp.array[wp.mat44], r: wp.array[wp.vec4], d: wp.array[float]):
    i = wp.tid()
    a = m[i] + wp.diag(wp.vec4(5.0, 6.0, 7.0, 8.0))
    r[i] = wp.inverse(a) * wp.vec4(1.0, 2.0, 3.0, 4.0) + wp.get_diag(a)
    d[i] = wp.determinant(a)


# run: dim=32 axis=normal:32x3 angle=normal:32 v=normal:32x3 r=zeros:32x3 q=zeros:32x4
@wp.kernel
def rotations(
    axis: wp.array[wp.vec3],
    angle: wp.array[float],
    v: wp.array[wp.vec3],
    r: wp.array[wp.vec3],
    q: wp.array[wp.quat],
):
    i = wp.tid()
    a = wp.quat_from_axis_angle(wp.normalize(axis[i]), angle[i])
    b = wp.quat_rpy(0.1, angle[i], -0.4)
    c = wp.normalize(a * b + wp.quat_identity(dtype=float) * 0.25)
    r[i] = wp.quat_rotate(c, v[i]) - wp.quat_rotate_inv(a, v[i]) + wp.quat_to_matrix(b) * v[i]
    q[i] = wp.quat_slerp(a, b, 0.3) * wp.quat_inverse(c)


# run: dim=16 a=normal:16x3 y=zeros:16
@wp.kernel
def double_vectors(a: wp.array[wp.vec3d], y: wp.array[wp.float64]):
    i = wp.tid()
    v = a[i] * wp.float64(0.5) + wp.vec3d(1.0, 2.0, 3.0)
    y[i] = wp.dot(v, a[i]) + wp.length(v)


# run: dim=16 a=integers:16x3 y=zeros:16x3
@wp.kernel
def integer_vectors(a: wp.array[wp.vec3i], y: wp.array[wp.vec3i]):
    i = wp.tid()
    v = a[i] + wp.vec3i(1, 2, 3) * i
    y[i] = wp.cw_mul(v, a[i]) - wp.vec3i(wp.dot(v, v))
