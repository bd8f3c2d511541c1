"""Arithmetic in Warp's form: constants, casts and every operator."""

import math

import warp as wp

SCALE = 2.5
COUNT = wp.constant(7)
TURN = 2.0 * math.pi


@wp.kernel
def chain(a: wp.array[float], b: wp.array[float], out: wp.array[float]):
    i = wp.tid()
    x = a[i]
    y = b[i]
    out[i] = (x + y) * (x - y) / (y * y + 0.0001) - -x


@wp.kernel
def named_constants(a: wp.array[float], out: wp.array[float]):
    i = wp.tid()
    x = a[i] * SCALE + TURN
    out[i] = x + SCALE * float(COUNT) - wp.pi / math.pi


@wp.kernel
def literals(out: wp.array[float]):
    i = wp.tid()
    out[i] = 1e-05 + 123456789.0 + 1e20 + 0.1 - 3.0e-7 + -2.5 + 1.0e16


@wp.kernel
def integers(a: wp.array[int], b: wp.array[int], out: wp.array[int]):
    i = wp.tid()
    x = a[i]
    y = b[i] | 1
    out[i] = x // y + x % y - x / y + (x << 2) + (x >> 1) + (x & y) + (x ^ y) + ~x


@wp.kernel
def widths(a: wp.array[wp.int64], b: wp.array[wp.uint32], c: wp.array[wp.float64], out: wp.array[wp.float64]):
    i = wp.tid()
    big = wp.int64(123456789012) + a[i]
    small = wp.uint32(7) * b[i]
    exact = wp.float64(0.1) + c[i]
    out[i] = exact * wp.float64(big) + wp.float64(small)


@wp.kernel
def updates(a: wp.array[float], s: float, out: wp.array[float]):
    i = wp.tid()
    x = a[i]
    x += s
    x *= 2.0
    x -= a[i] / s
    x /= 3.0
    y = x
    y += x
    out[i] = y % 4.0


@wp.kernel
def powers(a: wp.array[float], out: wp.array[float]):
    i = wp.tid()
    x = a[i]
    out[i] = x**2.0 + (-x) ** 3.0 + x // 2.0 + float(i) ** 0.5


@wp.kernel
def grid(a: wp.array2d[float], b: wp.array3d[float], out: wp.array2d[float]):
    i, j = wp.tid()
    out[i, j] = a[i, j] + b[i, j, 0] * b[i, j, i % 2] + float(a.shape[1] * i + j)


@wp.kernel
def swap(a: wp.array[float], b: wp.array[float]):
    i = wp.tid()
    x = a[i]
    y = b[i]
    x, y = y, x
    p, q = a[i], x * 2.0
    a[i] = x + p
    b[i] = y + q


@wp.kernel
def halves(a: wp.array[wp.float16], s: wp.float16, out: wp.array[wp.float16]):
    i = wp.tid()
    out[i] = a[i] * s + wp.float16(0.5)


@wp.kernel
def across_lines(a: wp.array[float], b: wp.array[float], out: wp.array[float]):
    i = wp.tid()
    out[i] = (
        a[i]
        + b[i] * 2.0
        - wp.min(
            a[i],
            b[i],
        )
    )
