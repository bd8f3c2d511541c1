"""When a result counts as right. The tolerance is made of the dtype's epsilon and the length of the sums, nothing else.

exact         the bits of the rounded expectation, signs of zeros included; one NaN is as good as another
elementwise   relative to each element: half an ulp (and a trace) for f16 and bf16, which are computed wider and rounded
              once; `ulps` epsilon for f32 and f64; signs of zeros as in exact. Where a case gives a magnitude |x f'(x)|
              it counts beside |y|: rounding the argument once moves the result by an epsilon of it. Where it gives a
              floor, ferrite states that smaller results may be 0
reducing      8 epsilon sqrt(length), relative to the element plus the root mean square of the result, since terms may
              cancel; the rule ferrite states for its own ops
"""

import numpy as np

from case import ELEMENTWISE, EXACT, REDUCING
from dtypes import EPSILON, LARGEST, SMALLEST, is_floating, name_of, round_to


def tolerance(check, dtype, length, ulps):
    if check == ELEMENTWISE:
        return (0.51 if dtype in ("f16", "bf16") else ulps) * EPSILON[dtype]
    return 8 * EPSILON[dtype] * np.sqrt(max(length, 1.0))


def mismatch(got, expected, dtype, check, length=1, ulps=4, magnitude=0.0, floor=0.0):
    """Nothing if `got` is right, otherwise what is wrong with it. `expected` is wide."""
    expected = np.asarray(expected)
    if name_of(got) != dtype:
        return f"dtype is {name_of(got)}, expected {dtype}"
    if got.shape != expected.shape:
        return f"shape is {list(got.shape)}, expected {list(expected.shape)}"
    with np.errstate(all="ignore"):
        rounded = round_to(expected, dtype)
        if not is_floating(dtype):
            return report(got, rounded, got == rounded)
        same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
        if check != REDUCING:
            zeros = (got == 0) & (rounded == 0)
            same &= ~zeros | (np.signbit(got) == np.signbit(rounded))
        if check == EXACT:
            return report(got, rounded, same)
        value = clipped(got.astype(np.float64), dtype)
        wanted = clipped(expected.astype(np.float64), dtype)
        scale = magnitude if check == ELEMENTWISE else root_mean_square(wanted)
        allowed = (
            tolerance(check, dtype, length, ulps) * (np.abs(wanted) + np.nan_to_num(scale)) + floor + SMALLEST[dtype]
        )
        close = np.abs(value - wanted) <= allowed  # false if either is NaN
        close &= np.isfinite(expected) & ((got != 0) | (rounded != 0))
        return report(got, expected, same | close, allowed)


def clipped(values, dtype):
    """The largest finite number stands in for an infinity, which one side may round to and the other just miss."""
    return np.clip(values, -LARGEST[dtype], LARGEST[dtype])


def root_mean_square(values):
    finite = values[np.isfinite(values)]
    if finite.size == 0:
        return 0.0
    top = np.max(np.abs(finite))
    return top * np.sqrt(np.mean((finite / top) ** 2)) if top > 0 else 0.0


def report(got, wanted, right, allowed=None):
    if np.all(right):
        return None
    wrong = np.argwhere(~np.asarray(right))
    place = tuple(wrong[0])
    limit = "" if allowed is None else f", allowed error {np.broadcast_to(allowed, got.shape)[place]:.3g}"
    first = f"first at {list(map(int, place))}: {got[place]!s}, expected {np.asarray(wanted)[place]!s}{limit}"
    return f"{len(wrong)} of {got.size} elements differ; {first}"
