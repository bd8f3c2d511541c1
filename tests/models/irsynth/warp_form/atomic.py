"""Atomics in Warp's form."""

import warp as wp


@wp.kernel
def add(a: wp.array[float], total: wp.array[float]):
    i = wp.tid()
    wp.atomic_add(total, 0, a[i])


@wp.kernel
def extremes(a: wp.array[float], low: wp.array[float], high: wp.array[float]):
    i = wp.tid()
    wp.atomic_min(low, 0, a[i])
    wp.atomic_max(high, 0, a[i] * 2.0)


@wp.kernel
def histogram(a: wp.array[float], bins: wp.array[int]):
    i = wp.tid()
    b = wp.clamp(int(a[i] * 10.0), 0, len(bins) - 1)
    wp.atomic_add(bins, b, 1)


@wp.kernel
def updates(a: wp.array[float], total: wp.array[float], n: wp.array[int]):
    i = wp.tid()
    total[i % 4] += a[i]
    total[0] -= 1.0
    n[0] += 1
    n[1] |= i
    n[2] &= 255
    n[3] ^= i
    total[1] *= 2.0


@wp.kernel
def slots(a: wp.array[float], counter: wp.array[int], out: wp.array[float]):
    i = wp.tid()
    if a[i] > 0.0:
        at = wp.atomic_add(counter, 0, 1)
        out[at] = a[i]


@wp.kernel
def vectors(a: wp.array[wp.vec3], total: wp.array[wp.vec3]):
    i = wp.tid()
    wp.atomic_add(total, 0, a[i] * 2.0)
    total[1] += a[i]
    wp.atomic_sub(total, i % 2, wp.normalize(a[i]))


@wp.kernel
def planes(a: wp.array2d[float], total: wp.array2d[float], cube: wp.array3d[int]):
    i, j = wp.tid()
    wp.atomic_add(total, i % 2, j % 3, a[i, j])
    total[i, 0] += a[i, j]
    cube[i, j, 0] += 1


@wp.kernel
def locks(owner: wp.array[int], n: wp.array[wp.uint32], out: wp.array[int]):
    i = wp.tid()
    old = wp.atomic_cas(owner, 0, -1, i)
    out[i] = old + wp.atomic_exch(owner, 1, i) + wp.atomic_or(owner, 2, i)
    wp.atomic_max(n, 0, wp.uint32(i))


@wp.kernel
def in_loop(a: wp.array2d[float], n: int, total: wp.array[float]):
    i = wp.tid()
    for k in range(n):
        if a[i, k] != 0.0:
            wp.atomic_add(total, k, a[i, k])
