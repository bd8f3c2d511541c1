"""Matrices in Warp's form."""

import warp as wp


@wp.kernel
def times_vector(m: wp.array[wp.mat33], v: wp.array[wp.vec3], out: wp.array[wp.vec3]):
    i = wp.tid()
    out[i] = m[i] * v[i] + wp.transpose(m[i]) @ v[i]


@wp.kernel
def times_matrix(a: wp.array[wp.mat22], b: wp.array[wp.mat22], out: wp.array[wp.mat22]):
    i = wp.tid()
    out[i] = a[i] * b[i] - wp.transpose(b[i]) * 0.5 + a[i] @ a[i]


@wp.kernel
def invariants(a: wp.array[wp.mat44], out: wp.array[float]):
    i = wp.tid()
    out[i] = wp.trace(a[i]) * wp.determinant(a[i]) + wp.ddot(a[i], a[i])


@wp.kernel
def inverted(a: wp.array[wp.mat33], out: wp.array[wp.mat33]):
    i = wp.tid()
    out[i] = wp.inverse(a[i]) + wp.identity(n=3, dtype=float) * 2.0


@wp.kernel
def built(a: wp.array[wp.vec2], out: wp.array[wp.mat22]):
    i = wp.tid()
    m = wp.mat22(1.0, 2.0, a[i].x, a[i][1])
    out[i] = m + wp.matrix_from_rows(a[i], a[0]) + wp.matrix_from_cols(a[i], a[0]) + wp.outer(a[i], a[i])


@wp.kernel
def elements(a: wp.array[wp.mat33], out: wp.array[wp.mat33], r: wp.array[wp.vec3]):
    i = wp.tid()
    m = a[i]
    m[0, 1] = 2.0
    m[1, 1] += m[0, 0]
    m[2] = wp.vec3(1.0, 2.0, 3.0)
    out[i] = m
    r[i] = m[0] + a[i][1]
    out[i][0, 2] = a[i][2, 2] * a[i][1][0]


@wp.kernel
def diagonals(v: wp.array[wp.vec3], out: wp.array[wp.mat33]):
    i = wp.tid()
    d = wp.diag(v[i])
    out[i] = d + wp.skew(wp.get_diag(d)) + wp.mat33(0.0)


@wp.kernel
def rotation(q: wp.array[wp.quat], out: wp.array[wp.mat33]):
    i = wp.tid()
    out[i] = wp.quat_to_matrix(q[i]) * wp.quat_to_matrix(wp.quat_inverse(q[i]))


@wp.kernel
def doubles(a: wp.array[wp.mat22d], v: wp.array[wp.vec2d], out: wp.array[wp.vec2d]):
    i = wp.tid()
    out[i] = a[i] * v[i] + wp.mat22d(1.0, 0.0, 0.5, 1.0) * v[i]


@wp.kernel
def rows(a: wp.array2d[float], n: int, out: wp.array2d[float]):
    i, j = wp.tid()
    s = float(0.0)
    for k in range(n):
        s += a[i, k] * a[k, j]
    out[i, j] = s
