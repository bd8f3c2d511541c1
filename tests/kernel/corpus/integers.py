"""Integers and conversions: division of negative numbers, bits, wrap-around, narrow and wide types."""

import warp as wp


# run: dim=40 q=zeros:40 f=zeros:40 r=zeros:40
@wp.kernel
def divisions(q: wp.array[int], f: wp.array[int], r: wp.array[int]):
    i = wp.tid()
    a = i - 20
    b = i % 7 - 3
    if b == 0:
        b = 5
    q[i] = a / b
    f[i] = a // b
    r[i] = a % b


# run: dim=40 f=zeros:40 r=zeros:40
@wp.kernel
def float_divisions(f: wp.array[float], r: wp.array[float]):
    i = wp.tid()
    a = float(i - 20) * 0.75
    b = float(i % 5) - 2.5
    f[i] = a // b
    r[i] = a % b


# run: dim=32 y=zeros:32
@wp.kernel
def bits(y: wp.array[int]):
    i = wp.tid()
    v = i * 2654435
    v = v ^ (v >> 7)
    v = (v & 0xFFFF) | (i << 16)
    v ^= ~i
    v |= 1
    v &= 0x7FFFFFFF
    y[i] = v + wp.bit_count(v)


# run: dim=32 y=zeros:32
@wp.kernel
def hashing(y: wp.array[wp.uint32]):
    i = wp.tid()
    h = wp.uint32(2166136261)
    v = wp.uint32(i)
    for k in range(4):
        h = (h ^ (v & wp.uint32(255))) * wp.uint32(16777619)
        v = v >> wp.uint32(8)
    y[i] = h


# run: dim=32 y=zeros:32
@wp.kernel
def wide(y: wp.array[wp.int64]):
    i = wp.tid()
    v = wp.int64(i) * wp.int64(4000000000) - wp.int64(7)
    y[i] = v // wp.int64(3) + (v << wp.int64(2)) + wp.abs(v)


# run: dim=32 x=normal:32 y=zeros:32 h=zeros:32
@wp.kernel
def conversions(x: wp.array[float], y: wp.array[int], h: wp.array[wp.float64]):
    i = wp.tid()
    v = x[i] * 100.0
    n = int(v)
    b = bool(n)
    y[i] = n + int(b) + int(wp.int8(n)) + int(wp.uint8(n * 3)) + int(wp.int16(n * 777))
    h[i] = wp.float64(v) / wp.float64(3.0) + wp.float64(n)


# run: dim=32 x=normal:32 y=zeros:32
@wp.kernel
def halves(x: wp.array[float], y: wp.array[float]):
    i = wp.tid()
    v = wp.float16(x[i])
    w = v * v + wp.float16(0.1) / (wp.abs(v) + wp.float16(1.0))
    y[i] = float(w - v)


# run: dim=32 x=integers:32 y=zeros:32
@wp.kernel
def integer_math(x: wp.array[int], y: wp.array[int]):
    i = wp.tid()
    v = x[i] - 50
    y[i] = wp.abs(v) + wp.sign(v) * 2 + wp.min(v, i) * wp.max(v, 3) + wp.clamp(v, -4, 4) + wp.step(v) + wp.nonzero(v)


# run: dim=32 x=normal:32 y=zeros:32
@wp.kernel
def mixed_comparisons(x: wp.array[float], y: wp.array[int]):
    i = wp.tid()
    n = int(0)
    if x[i] > 0:
        n += 1
    if i < x[i] * 10.0:
        n += 2
    if wp.int64(i) >= 7:
        n += 4
    if wp.float64(x[i]) < x[i] + 1.0:
        n += 8
    y[i] = n
