"""Vectors and quaternions in Warp's form."""

import warp as wp

UP = wp.vec3(0.0, 1.0, 0.1)


@wp.kernel
def products(a: wp.array[wp.vec3], b: wp.array[wp.vec3], out: wp.array[float]):
    i = wp.tid()
    out[i] = wp.dot(a[i], b[i]) + wp.length(wp.cross(a[i], b[i])) + wp.length_sq(a[i])


@wp.kernel
def lengths(a: wp.array[wp.vec2], out: wp.array[wp.vec2]):
    i = wp.tid()
    v = a[i]
    out[i] = wp.normalize(v) * wp.length(v) - v / 2.0


@wp.kernel
def four(a: wp.array[wp.vec4], b: wp.array[wp.vec4], out: wp.array[wp.vec4]):
    i = wp.tid()
    out[i] = wp.cw_mul(a[i], b[i]) + wp.cw_div(a[i], b[i] + wp.vec4(1.0)) - 2.0 * a[i]


@wp.kernel
def components(a: wp.array[wp.vec3], out: wp.array[float]):
    i = wp.tid()
    v = a[i]
    out[i] = v.x + v[1] * a[i].z - a[i][0] + v[i % 3]


@wp.kernel
def writes(a: wp.array[wp.vec3], out: wp.array[wp.vec3]):
    i = wp.tid()
    v = a[i]
    v[0] = 1.0
    v.y = 2.0
    v[2] += 3.0
    v.x *= 2.0
    out[i] = v


@wp.kernel
def element_components(out: wp.array[wp.vec3], n: int):
    i = wp.tid()
    out[i].x = 1.0
    out[i][1] = float(n)
    out[i].z += 2.0
    out[i][n] -= 0.5


@wp.kernel
def constants(a: wp.array[wp.vec3], out: wp.array[wp.vec3]):
    i = wp.tid()
    out[i] = a[i] + UP * 2.0 + wp.vec3(1, 0, 0) - wp.vec3(0.0, float(i), 1.0) + wp.vec3()


@wp.kernel
def doubles(a: wp.array[wp.vec3d], out: wp.array[wp.vec3d]):
    i = wp.tid()
    out[i] = a[i] * wp.float64(2.0) + wp.vec3d(0.1, 0.2, 0.3)


@wp.kernel
def whole(a: wp.array[wp.vec2i], out: wp.array[wp.vec2i]):
    i = wp.tid()
    out[i] = a[i] + wp.vec2i(1, i) - 2 * a[i]


@wp.kernel
def rotate(q: wp.array[wp.quat], v: wp.array[wp.vec3], out: wp.array[wp.vec3]):
    i = wp.tid()
    r = wp.quat_from_axis_angle(wp.vec3(0.0, 0.0, 1.0), 0.5) * q[i]
    out[i] = wp.quat_rotate(r, v[i]) + wp.quat_rotate_inv(wp.normalize(r), v[i]) * r.w


@wp.kernel
def reduce_vector(a: wp.array[wp.vec3], out: wp.array[float]):
    i = wp.tid()
    out[i] = wp.max(a[i]) - wp.min(a[i]) + float(wp.argmax(a[i])) + wp.dot(-a[i], wp.max(a[i], UP))
