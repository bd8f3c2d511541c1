"""Functions of scalars in Warp's form."""

import warp as wp


@wp.kernel
def nested(a: wp.array[float], out: wp.array[float]):
    i = wp.tid()
    out[i] = wp.sqrt(wp.abs(wp.sin(wp.exp(a[i]))))


@wp.kernel
def logarithms(a: wp.array[float], out: wp.array[float]):
    i = wp.tid()
    x = wp.abs(a[i]) + 0.001
    out[i] = wp.log(x) + wp.log2(x) * wp.log10(x)


@wp.kernel
def trigonometry(a: wp.array[float], b: wp.array[float], out: wp.array[float]):
    i = wp.tid()
    x = wp.clamp(a[i], -1.0, 1.0)
    out[i] = wp.asin(x) + wp.acos(x) - wp.atan(x) + wp.atan2(b[i], x) + wp.tan(x) + wp.cos(wp.pi)


@wp.kernel
def hyperbolic(a: wp.array[float], out: wp.array[float]):
    i = wp.tid()
    x = a[i]
    out[i] = wp.sinh(x) + wp.cosh(x) + wp.tanh(x) + wp.erf(x) - wp.erfc(x)


@wp.kernel
def rounding(a: wp.array[float], out: wp.array[float]):
    i = wp.tid()
    x = a[i]
    out[i] = wp.floor(x) + wp.ceil(x) + wp.round(x) + wp.rint(x) + wp.trunc(x) + wp.frac(x) + wp.sign(x)


@wp.kernel
def mixing(a: wp.array[float], b: wp.array[float], out: wp.array[float]):
    i = wp.tid()
    t = wp.smoothstep(0.0, 1.0, a[i])
    out[i] = wp.lerp(a[i], b[i], t) + wp.step(a[i]) + wp.max(a[i], wp.min(b[i], 0.5)) + wp.cbrt(b[i])


@wp.kernel
def python_names(a: wp.array[float], n: int, out: wp.array[float]):
    i = wp.tid()
    out[i] = abs(a[i]) + max(a[i], 1.0) + min(float(n), 2.0) + float(len(a)) + pow(a[i], 2.0) + round(a[i])


@wp.kernel
def doubles(a: wp.array[wp.float64], out: wp.array[wp.float64]):
    i = wp.tid()
    out[i] = wp.sqrt(a[i] * a[i] + wp.float64(1.0)) * wp.exp(-a[i])


@wp.kernel
def tests_of_numbers(a: wp.array[float], out: wp.array[int]):
    i = wp.tid()
    out[i] = int(wp.isnan(a[i])) + int(wp.isinf(a[i])) + int(wp.isfinite(a[i])) + wp.bit_count(i)


@wp.kernel
def noise(seed: int, out: wp.array[float], v: wp.array[wp.vec3]):
    i = wp.tid()
    state = wp.rand_init(seed, i)
    x = wp.randf(state) + wp.randf(state, -1.0, 1.0) * wp.randn(state)
    v[i] = wp.sample_unit_sphere_surface(state)
    out[i] = x + float(wp.randi(state, 0, 10))


@wp.kernel
def angles(a: wp.array[float], out: wp.array[float]):
    i = wp.tid()
    out[i] = wp.degrees(wp.radians(a[i])) + wp.copysign(wp.half_pi, a[i]) + wp.nonzero(a[i])
