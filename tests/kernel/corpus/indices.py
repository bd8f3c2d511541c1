"""Indices from the end, the order of an update, and constants of 64 bits."""

import math

import warp as wp

TENTH = wp.constant(wp.float64(0.1))
PYTHON_TENTH = 0.1
TENTHS = wp.vec3d(0.1, 0.2, 0.3)


# run: dim=8 x=normal:8 y=zeros:8
@wp.kernel
def neighbours(x: wp.array[float], y: wp.array[float]):
    i = wp.tid()
    y[i] = x[i - 1] + 2.0 * x[-1] - x[-i - 1] * x[i]


# run: dim=6x4 a=normal:6x4 b=zeros:6x4
@wp.kernel
def mirrored(a: wp.array2d[float], b: wp.array2d[float]):
    i, j = wp.tid()
    b[-1 - i, j - 4] = a[i, -1 - j] + a[i - 6, j]


# run: dim=5 a=normal:2x3x5 b=zeros:2x2x3x5
@wp.kernel
def corners(a: wp.array3d[float], b: wp.array4d[float]):
    i = wp.tid()
    b[-1, i % 2 - 2, -2, i] = a[-2, i % 3 - 3, -i - 1]


# run: dim=9 x=normal:9 total=zeros:3 most=zeros:3 count=zeros:3
@wp.kernel
def counted_sums(x: wp.array[float], total: wp.array[float], most: wp.array[int], count: wp.array[int]):
    i = wp.tid()
    wp.atomic_add(total, -1 - i % 3, x[i])
    total[i % 3 - 3] += 2.0 * x[i]
    wp.atomic_max(most, -2, i)
    count[-1] |= 1 << i


# run: dim=6 v=normal:6x3 m=normal:6x2x2 y=zeros:6
@wp.kernel
def components(v: wp.array[wp.vec3], m: wp.array[wp.mat22], y: wp.array[float]):
    i = wp.tid()
    p = v[-1 - i]
    q = m[i]
    row = q[i % 2 - 2]
    p[i % 3 - 3] = p[-1] * 2.0
    y[i - 6] = p[0] + p[1] + p[2] + q[-1, i % 2 - 2] + row[-2]


# run: dim=7 x=normal:7 y=zeros:7
@wp.kernel
def windows(x: wp.array[float], y: wp.array[float]):
    i = wp.tid()
    last = wp.zeros(shape=(4,), dtype=float)
    for k in range(4):
        last[-1 - k] = x[(i + k) % 7]
    s = float(0.0)
    for k in range(3, -1, -1):
        s += last[k] * x[-1 - k]
    y[i] = s + last[i % 4 - 4]


# run: dim=6 x=normal:6 y=zeros:6 wide=-2 narrow=-1
@wp.kernel
def other_widths(x: wp.array[float], y: wp.array[float], wide: wp.int64, narrow: wp.int8):
    i = wp.tid()
    y[i] = x[wide] * x[narrow] + x[wp.uint8(i)] + x[wp.int64(i) - wp.int64(6)]


@wp.func
def bump(s: wp.array[int], i: int) -> int:
    before = s[i]
    s[i] = before + 1
    return before


# run: dim=4 s=zeros:4 out=zeros:8 v=zeros:8x3 scaled=integers:8
@wp.kernel
def index_before_value(s: wp.array[int], out: wp.array[int], v: wp.array[wp.vec3i], scaled: wp.array[int]):
    i = wp.tid()
    out[2 * i + bump(s, i)] += 10 * s[i]
    v[2 * i + bump(s, i) % 2][1] += 10 * s[i]
    scaled[2 * i + bump(s, i) % 2] *= 2 + s[i]
    scaled[2 * i] -= bump(s, i)


# run: dim=4 x=normal:4 y=zeros:12
@wp.kernel
def exact_constants(x: wp.array[wp.float64], y: wp.array[wp.float64]):
    i = wp.tid()
    v = wp.vec3d(0.1, 0.2, 0.3) + TENTHS
    m = wp.mat22d(0.1, 0.2, 0.3, -0.1)
    q = wp.quatd(0.1, 0.2, -0.3, 0.4)
    y[3 * i] = v[0] * x[i] + m[1, 1] + TENTH
    y[3 * i + 1] = TENTH * x[i] + wp.float64(PYTHON_TENTH) + wp.float64(-PYTHON_TENTH) * q[2]
    y[3 * i + 2] = wp.float64(wp.pi) * x[i] + wp.float64(math.e) + wp.vec2d(0.7)[1]
