"""Blocks: ferrite's extension to Warp's language. Warp itself has tiles instead and does not take these."""

import warp as wp


# run: dim=128 block=32 x=normal:128 y=zeros:4
@wp.kernel
def block_sum(x: wp.array[float], y: wp.array[float]):
    i = wp.tid()
    n = wp.block_dim()
    lane = i % n
    part = wp.shared_array(shape=(32,), dtype=float)
    part[lane] = x[i]
    wp.sync_threads()
    width = n / 2
    while width > 0:
        if lane < width:
            part[lane] = part[lane] + part[lane + width]
        wp.sync_threads()
        width = width / 2
    if lane == 0:
        y[i / n] = part[0]


# run: dim=64 block=16 x=normal:64 y=zeros:64
@wp.kernel
def block_scan(x: wp.array[float], y: wp.array[float]):
    i = wp.tid()
    lane = i % 16
    a = wp.shared_array(shape=(2, 16), dtype=float)
    a[0, lane] = x[i]
    wp.sync_threads()
    row = int(0)
    for k in range(4):
        v = a[row, lane]
        if lane >= (1 << k):
            v += a[row, lane - (1 << k)]
        a[1 - row, lane] = v
        wp.sync_threads()
        row = 1 - row
    y[i] = a[row, lane]


# run: dim=16x16 block=16 x=normal:16x16 y=zeros:16x16
@wp.kernel
def block_reverse(x: wp.array2d[float], y: wp.array2d[float]):
    i, j = wp.tid()
    row = wp.shared_array(shape=16, dtype=float)
    row[j] = x[i, j]
    wp.sync_threads()
    y[i, j] = row[15 - j]


# run: dim=128 block=32 x=normal:128 total=zeros:1
@wp.kernel
def tile_sums(x: wp.array[float], total: wp.array[float]):
    i = wp.tid()
    s = wp.tile_sum(wp.tile(x[i] * 2.0))
    wp.tile_atomic_add(total, s)


# run: dim=8x16 block=16 x=normal:8x16 means=zeros:8 n=3
@wp.kernel
def row_means(x: wp.array2d[float], means: wp.array[float], n: int):
    i, j = wp.tid()
    if n > 0:
        mean = float(0.0)
        for k in range(n):
            t = wp.tile(x[i, j] * float(k))
            s = wp.tile_sum(t)
            mean += s[0] / 16.0
        last = wp.tile_sum(wp.tile(mean))
        wp.tile_store(means, last, offset=i)


# run: dim=64 block=16 v=normal:64x3 total=zeros:2x3
@wp.kernel
def tile_vectors(v: wp.array[wp.vec3], total: wp.array[wp.vec3]):
    wp.tile_atomic_add(total, wp.tile_sum(wp.tile(v[wp.tid()])), offset=1)
