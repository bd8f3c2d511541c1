"""Tiles of Warp, which ferrite reads as arrays of the block."""

import warp as wp


# run: dim=2x3x16 block=16 a=normal:13x20 b=normal:20x11 c=zeros:13x11
@wp.kernel
def tile_product(a: wp.array2d[float], b: wp.array2d[float], c: wp.array2d[wp.float64]):
    i, j = wp.tid()
    total = wp.tile_zeros(shape=(8, 4), dtype=wp.float64)
    for k in range(3):
        left = wp.tile_load(a, shape=(8, 8), offset=(i * 8, k * 8))
        right = wp.tile_load(b, shape=(8, 4), offset=(k * 8, j * 4), storage="shared")
        wp.tile_matmul(left, right, total)
    wp.tile_store(c, total, offset=(i * 8, j * 4))


# run: dim=2x2x32 block=32 x=normal:8x6x2 y=zeros:6x8x2
@wp.kernel
def tile_turn(x: wp.array2d[wp.vec2], y: wp.array2d[wp.vec2]):
    i, j = wp.tid()
    t = wp.tile_load(x, shape=(4, 3), offset=(i * 4, j * 3))
    u = wp.tile_transpose(t)
    wp.tile_store(y, u, offset=(j * 3, i * 4))


# run: dim=32 block=16 x=normal:32x3 y=zeros:32x3
@wp.kernel
def tile_attraction(x: wp.array[wp.vec3], y: wp.array[wp.vec3]):
    i = wp.tid()
    pull = wp.vec3()
    for k in range(len(x) / 8):
        others = wp.tile_load(x, shape=8, offset=k * 8)
        for n in range(8):
            d = others[n] - x[i]
            pull += d / (1.0 + wp.length_sq(d))
    y[i] = pull


# run: dim=16 block=16 x=normal:40 y=zeros:8 z=zeros:3x3x3
@wp.kernel
def tile_ahead(x: wp.array[float], y: wp.array[float], z: wp.array3d[float]):
    now = wp.tile_load(x, shape=8)
    cube = wp.tile_zeros(shape=(2, 3, 2))
    for k in range(1, 5):
        ahead = wp.tile_load(x, shape=8, offset=8 * k, storage="register", bounds_check=False)
        wp.tile_atomic_add(y, now)
        now = ahead
    square = wp.tile_load(z, shape=(1, 2, 2), offset=(2, 1, 1))
    wp.tile_store(y, now)
    wp.tile_store(z, cube, offset=(1, 0, 1))
    wp.tile_atomic_add(z, square, offset=(0, 2, 0))


# run: dim=1x1x8 block=8 a=normal:4x3 b=normal:3x4 c=zeros:4x4
@wp.kernel
def tile_products(a: wp.array2d[float], b: wp.array2d[float], c: wp.array2d[float]):
    left = wp.tile_load(a, shape=(4, 3))
    square = wp.tile_matmul(left, wp.tile_load(b, shape=(3, 4)))
    for k in range(2):
        wp.tile_matmul(wp.tile_transpose(wp.tile_load(b, shape=(3, 4))), wp.tile_transpose(left), square)
    wp.tile_store(c, square)
