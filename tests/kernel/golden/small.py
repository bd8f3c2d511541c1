"""What emitted code looks like: small.cu, small.cpp and the files NAME.warp.* are made of this file."""

import warp as wp


@wp.kernel
def saxpy(a: float, x: wp.array[float], y: wp.array[float]):
    i = wp.tid()
    y[i] = a * x[i] + y[i]


@wp.kernel
def laplacian(u: wp.array2d[float], r: wp.array2d[float]):
    i, j = wp.tid()
    if i == 0 or j == 0 or i == u.shape[0] - 1 or j == u.shape[1] - 1:
        return
    r[i, j] = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4.0 * u[i, j]


@wp.kernel
def centre(x: wp.array[wp.vec3], n: int, total: wp.array[wp.vec3]):
    i = wp.tid()
    s = wp.vec3(0.0)
    for j in range(n):
        s += wp.normalize(x[j] - x[i])
    wp.atomic_add(total, 0, s / float(n))
