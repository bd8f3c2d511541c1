"""Stencils, reductions, particles: kernels as simulations have them."""

import warp as wp


@wp.func
def poly6(r2: float, h: float):
    if r2 > h * h:
        return 0.0
    d = h * h - r2
    return 1.566681 * d * d * d / wp.pow(h, 9.0)


# run: dim=24 n=24 h=1.2 x=normal:24x3 rho=zeros:24
@wp.kernel
def sph_density(x: wp.array[wp.vec3], rho: wp.array[float], n: int, h: float):
    i = wp.tid()
    xi = x[i]
    total = float(0.0)
    for j in range(n):
        d = xi - x[j]
        total += poly6(wp.dot(d, d), h)
    rho[i] = total


# run: dim=24 n=24 dt=0.01 x=normal:24x3 v=normal:24x3
@wp.kernel
def nbody(x: wp.array[wp.vec3], v: wp.array[wp.vec3], n: int, dt: float):
    i = wp.tid()
    f = wp.vec3(0.0, 0.0, 0.0)
    for j in range(n):
        d = x[j] - x[i]
        f += d / (wp.length_sq(d) + 0.01)
    v[i] = v[i] + f * dt


# run: dim=20x24 u=normal:20x24 r=zeros:20x24
@wp.kernel
def laplacian(u: wp.array2d[float], r: wp.array2d[float]):
    i, j = wp.tid()
    n = u.shape[0]
    m = u.shape[1]
    if i == 0 or j == 0 or i == n - 1 or j == m - 1:
        return
    r[i, j] = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4.0 * u[i, j]


# run: dim=20 u=normal:20 r=zeros:20
@wp.kernel
def upwind(u: wp.array[float], r: wp.array[float]):
    i = wp.tid()
    left = wp.max(i - 1, 0)
    right = wp.min(i + 1, len(u) - 1)
    flux = u[i] - u[left] if u[i] > 0.0 else u[right] - u[i]
    r[i] = u[i] - 0.1 * u[i] * flux


# run: dim=6x5 a=normal:6x7 b=normal:7x5 c=zeros:6x5
@wp.kernel
def matmul(a: wp.array2d[float], b: wp.array2d[float], c: wp.array2d[float]):
    i, j = wp.tid()
    s = float(0.0)
    for k in range(a.shape[1]):
        s += a[i, k] * b[k, j]
    c[i, j] = s


# run: dim=64 x=integers:64 total=zeros:1 low=zeros:1 high=zeros:1 hist=zeros:10
@wp.kernel
def integer_reductions(
    x: wp.array[int], total: wp.array[int], low: wp.array[int], high: wp.array[int], hist: wp.array[int]
):
    i = wp.tid()
    wp.atomic_add(total, 0, x[i])
    wp.atomic_min(low, 0, x[i] - 60)
    wp.atomic_max(high, 0, x[i])
    hist[x[i] / 10] += 1


# run: dim=64 x=normal:64x3 total=zeros:1x3 energy=zeros:1
@wp.kernel
def float_reductions(x: wp.array[wp.vec3], total: wp.array[wp.vec3], energy: wp.array[float]):
    i = wp.tid()
    wp.atomic_add(total, 0, x[i])
    wp.atomic_sub(energy, 0, wp.length_sq(x[i]) * 0.5)
    old = wp.atomic_add(energy, 0, 0.0)
    total[0] += wp.vec3(0.0, 0.0, old * 0.0)


# run: dim=40 x=integers:40 keys=zeros:128 count=zeros:1
@wp.kernel
def hash_insert(x: wp.array[int], keys: wp.array[int], count: wp.array[int]):
    i = wp.tid()
    key = x[i] + 1
    slot = (key * 17) % 128
    for k in range(128):
        old = wp.atomic_cas(keys, slot, 0, key)
        if old == 0:
            wp.atomic_add(count, 0, 1)
            break
        if old == key:
            break
        slot = (slot + 1) % 128


# run: dim=16 x=normal:16 y=zeros:16
@wp.kernel
def local_array(x: wp.array[float], y: wp.array[float]):
    i = wp.tid()
    best = wp.zeros(shape=(4,), dtype=float)
    for k in range(16):
        v = x[k] * float(i + 1)
        slot = k % 4
        if v > best[slot]:
            best[slot] = v
    y[i] = best[0] + best[1] * 2.0 + best[2] * 3.0 + best[3] * 4.0


# run: dim=32 seed=42 y=zeros:32 v=zeros:32x3 n=zeros:32
@wp.kernel
def monte_carlo(seed: int, y: wp.array[float], v: wp.array[wp.vec3], n: wp.array[int]):
    i = wp.tid()
    state = wp.rand_init(seed, i)
    hits = int(0)
    for k in range(50):
        a = wp.randf(state)
        b = wp.randf(state, -1.0, 1.0)
        if a * a + b * b < 1.0:
            hits += 1
    y[i] = wp.randn(state) + float(hits)
    v[i] = wp.sample_unit_sphere(state) + wp.sample_unit_cube(state)
    n[i] = wp.randi(state, -10, 10) + int(wp.randu(state) % wp.uint32(7))


# run: dim=32 o=normal:32x3 d=normal:32x3 t=zeros:32 normal=zeros:32x3
@wp.kernel
def ray_sphere(o: wp.array[wp.vec3], d: wp.array[wp.vec3], t: wp.array[float], normal: wp.array[wp.vec3]):
    i = wp.tid()
    origin = wp.normalize(o[i]) * 2.0
    dir = wp.normalize(-origin + d[i] * 0.3)
    b = wp.dot(origin, dir)
    c = wp.dot(origin, origin) - 1.0
    disc = b * b - c
    if disc < 0.05:
        t[i] = -1.0
        return
    hit = -b - wp.sqrt(disc)
    t[i] = hit
    normal[i] = origin + dir * hit


# run: dim=32 seed=7 x=normal:32x3 y=zeros:32
@wp.kernel
def noises(seed: int, x: wp.array[wp.vec3], y: wp.array[float]):
    i = wp.tid()
    state = wp.rand_init(seed)
    p = x[i] * 3.0
    y[i] = wp.noise(state, p) + wp.noise(state, wp.vec2(p[0], p[1])) * wp.noise(state, p[2])
