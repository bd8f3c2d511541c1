"""ferrite's dtypes by name: their NumPy counterparts, rounding, and the promotion rules.

Oracles compute in float64, int64 or bool ("wide" values); `round_to` brings a wide result to a dtype. bf16 needs the
ml_dtypes package; without it the bf16 cases are left out.
"""

import numpy as np

try:
    from ml_dtypes import bfloat16
except ImportError:
    bfloat16 = None

NUMPY = {
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "f16": np.dtype(np.float16),
    "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64),
    "u8": np.dtype(np.uint8),
    "bool": np.dtype(np.bool_),
    "i8": np.dtype(np.int8),
    "u16": np.dtype(np.uint16),
    "u32": np.dtype(np.uint32),
}
if bfloat16 is not None:
    NUMPY["bf16"] = np.dtype(bfloat16)

# Machine epsilon, the smallest positive number and the largest finite one.
EPSILON = {"f32": 2.0**-23, "f64": 2.0**-52, "f16": 2.0**-10, "bf16": 2.0**-7}
SMALLEST = {"f32": 2.0**-149, "f64": 2.0**-1074, "f16": 2.0**-24, "bf16": 2.0**-133}
LARGEST = {
    "f32": float(np.finfo(np.float32).max),
    "f64": float(np.finfo(np.float64).max),
    "f16": 65504.0,
    "bf16": (2 - 2.0**-7) * 2.0**127,
}

FLOATS = ("f32", "f64", "f16", "bf16")
INTEGERS = ("i32", "i64", "u8")
NUMBERS = FLOATS + INTEGERS
EVERY = NUMBERS + ("bool",)
STORAGE = ("i8", "u16", "u32")  # moved, not computed with


def is_floating(dtype):
    return dtype in FLOATS


def name_of(array):
    return next(name for name, dtype in NUMPY.items() if dtype == array.dtype)


def widen(array):
    """The same values in float64, int64 or bool."""
    name = name_of(array)
    return array.astype(np.float64 if is_floating(name) else np.bool_ if name == "bool" else np.int64)


def round_to(values, dtype):
    """Rounds once, to nearest even; integers wrap around."""
    values = np.asarray(values)
    if dtype == "bf16":  # NumPy's own casts would round twice, by way of float32
        _, exponent = np.frexp(values)
        quantum = np.ldexp(1.0, np.maximum(exponent - 8, -133))
        rounded = np.where(np.isfinite(values), np.rint(values / quantum) * quantum, values)
        return rounded.astype(np.float32).astype(NUMPY["bf16"])
    if dtype in INTEGERS:
        values = values.astype(np.int64)
    return values.astype(NUMPY[dtype])


def promote(a, b):
    """NumPy's result type; bf16 stands beside f16, and the two together give f32."""
    if a == b:
        return a
    if {a, b} == {"f16", "bf16"}:
        return "f32"
    halves = {"bf16": "f16"}
    result = np.result_type(NUMPY[halves.get(a, a)], NUMPY[halves.get(b, b)])
    name = next(name for name, dtype in NUMPY.items() if dtype == result)
    return "bf16" if name == "f16" and "bf16" in (a, b) else name


def promote_scalar(tensor, scalar):
    """A Python scalar is weak: it changes the kind of the result, never the width."""
    if isinstance(scalar, float):
        return float_result(tensor)
    if not isinstance(scalar, bool) and tensor == "bool":
        return "i64"
    return tensor


def float_result(dtype):
    if is_floating(dtype):
        return dtype
    return "f64" if dtype in ("i32", "i64") else "f32"


def sum_result(dtype):
    return dtype if is_floating(dtype) else "i64"


def statistics_dtype(dtype):
    return "f64" if dtype == "f64" else "f32"
