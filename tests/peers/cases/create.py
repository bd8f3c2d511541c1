"""fill, iota, random, copy."""

import numpy as np

from case import EXACT
from dtypes import EVERY, FLOATS, NUMBERS, NUMPY

# Seeds and streams beyond 32 bits, so that both halves of the key and the counter matter.
SEED, STREAM = 0x0123456789ABCDEF, 0xFEDCBA9876543210


def add_to(cases):
    for dtype in EVERY:
        if dtype not in NUMPY:
            continue
        fill = lambda value, shape=(2, 3): {"shape": list(shape), "dtype": dtype, "value": value}
        none = lambda source: []
        for value in (0, 1, 3, 2.75, True) + ((-1.1, 1e30, float("-inf"), float("nan")) if dtype in FLOATS else ()):
            cases.add("fill", f"{value}", fill(value), none, [dtype], check=EXACT)
        cases.add("fill", "0d", fill(1, ()), none, [dtype], check=EXACT)
        cases.add("fill", "empty", fill(1, (2, 0)), none, [dtype], check=EXACT)
        for target in EVERY:
            if target in NUMPY:
                cases.add("copy", f"to_{target}", {"dtype": target}, to_be_cast, [dtype], check=EXACT)
        if dtype == "bool":
            continue
        for start, step in ((0, 1), (5, -1), (2, 3)) + (((0.5, 0.1), (-3.0, 0.37)) if dtype in FLOATS else ()):
            attributes = {"count": 11, "dtype": dtype, "start": start, "step": step}
            cases.add("iota", f"{start}_{step}", attributes, none, [dtype], check=EXACT)
        cases.add("iota", "empty", {"count": 0, "dtype": dtype, "start": 0, "step": 1}, none, [dtype], check=EXACT)
    cases.add("copy", "gradient", {"dtype": "f32"}, lambda s: [s.real(3, 4)], ["f64"], grad=True, check=EXACT)
    add_random(cases)


def to_be_cast(s):
    if s.dtype == "bool":
        return [s.of([True, False])]
    if s.dtype in FLOATS:
        # Inexact in 16 bits, ties, out of range for integers, and what has no integer at all.
        values = [0.0, -0.0, 0.5, 1.5, -2.75, 255.0, 256.0, 1 + 2.0**-8, 1 + 3 * 2.0**-8, 1 + 2.0**-11, 1e5, -1e5]
        values += [
            1 + 2.0**-9 + 2.0**-40,
            3e9,
            -3e9,
            1e19,
            -1e19,
            np.inf,
            -np.inf,
            np.nan,
            *s.rng.normal(size=40) * 1e3,
        ]
        return [s.of(values)]
    values = [0, 1, 2, 100, 255] + ([-1, -128, 2**31 - 1, -(2**31), 2**24 + 1] if s.dtype != "u8" else [])
    return [s.of(values + ([2**53 + 1, -(2**63), 2**63 - 1, 2**40 + 3] if s.dtype == "i64" else []))]


def add_random(cases):
    def add(fn, dtype, low, high, shape=(3, 7), key=(SEED, STREAM), **options):
        attributes = {
            "fn": fn,
            "shape": list(shape),
            "dtype": dtype,
            "seed": key[0],
            "stream": key[1],
            "low": low,
            "high": high,
        }
        label = f"{fn}_{low}_{high}_{'x'.join(map(str, shape))}_{key[0] & 255}"
        cases.add("random", label, attributes, lambda s: [], [dtype], torch=False, **options)

    for dtype in FLOATS:
        for key in ((SEED, STREAM), (0, 0), (7, 1)):
            add("uniform", dtype, 0.0, 1.0, key=key, check=EXACT)
            add("normal", dtype, 0.0, 1.0, key=key)
        add("uniform", dtype, -3.0, 5.5, check=EXACT)
        add("uniform", dtype, 1.0, 1.0 + 2.0**-6, shape=(501,), check=EXACT)
        add("normal", dtype, 2.0, 0.25, shape=(2, 1, 5))
        add("normal", dtype, 0.0, 1.0, shape=(10001,))
    for dtype in EVERY:
        add("bernoulli", dtype, 0.3, 0.0, shape=(50,), check=EXACT)
        add("bernoulli", dtype, 1.0, 0.0, check=EXACT)
    for dtype in NUMBERS:
        add("integer", dtype, 0.0, 100.0, check=EXACT)
    add("integer", "i64", -(2.0**40), 2.0**52, shape=(100,), check=EXACT)
    add("integer", "i32", -5.0, -4.0, check=EXACT)
    add("uniform", "f32", 0.0, 1.0, shape=(100003,), check=EXACT)
