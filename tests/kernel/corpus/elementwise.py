"""One thread, one element: arithmetic and math. The comment over a kernel says how the tests launch it."""

import warp as wp

GAIN = wp.constant(1.5)
OFFSET = 2.0 * 0.25


# run: dim=64 a=2.5 x=normal:64 y=normal:64
@wp.kernel
def saxpy(a: float, x: wp.array[float], y: wp.array[float]):
    i = wp.tid()
    y[i] = a * x[i] + y[i]


# run: dim=50 n=40 x=normal:50 y=zeros:50
@wp.kernel
def guarded(x: wp.array(dtype=float), y: wp.array(dtype=wp.float32), n: int):
    i = wp.tid()
    if i >= n:
        return
    y[i] = GAIN * x[i] - OFFSET


# run: dim=64 x=normal:64 y=zeros:64
@wp.kernel
def gelu(x: wp.array[float], y: wp.array[float]):
    i = wp.tid()
    v = x[i]
    inner = wp.sqrt(2.0 / wp.pi) * (v + 0.044715 * v**3.0)
    y[i] = 0.5 * v * (1.0 + wp.tanh(inner))


# run: dim=64 x=normal:64 y=zeros:64
@wp.kernel
def chained_math(x: wp.array[float], y: wp.array[float]):
    i = wp.tid()
    v = wp.abs(x[i]) + 0.5
    y[i] = wp.log(v) * wp.exp(-v) + wp.sin(v) / wp.cos(0.3 * v) - wp.atan2(v, 2.0) + wp.floor(v) - wp.ceil(-v)


# run: dim=64 x=normal:64 y=zeros:64
@wp.kernel
def clamped(x: wp.array[float], y: wp.array[float]):
    i = wp.tid()
    v = wp.clamp(x[i], -1.0, 0.5)
    y[i] = wp.max(v, wp.min(-v, 0.25)) + wp.sign(x[i]) + wp.step(x[i]) + wp.where(x[i] > 0.0, 1.0, -1.0)


# run: dim=8x16 x=normal:8x16 y=zeros:16x8
@wp.kernel
def transpose(x: wp.array2d[float], y: wp.array2d(dtype=float)):
    i, j = wp.tid()
    y[j, i] = x[i, j]


# run: dim=4x3x5 x=normal:4x3x5 y=zeros:4x3x5
@wp.kernel
def cube(x: wp.array3d[float], y: wp.array(dtype=float, ndim=3)):
    i, j, k = wp.tid()
    y[i, j, k] = x[i, j, k] * float(i + 2 * j - k)


# run: dim=2x3x4x5 y=zeros:2x3x4x5
@wp.kernel
def hypercube(y: wp.array4d[int]):
    i, j, k, m = wp.tid()
    y[i, j, k, m] = ((i * 10 + j) * 10 + k) * 10 + m


# run: dim=30 y=zeros:30
@wp.kernel
def linear_number(y: wp.array[int]):
    y[wp.tid()] = wp.tid() * 3
