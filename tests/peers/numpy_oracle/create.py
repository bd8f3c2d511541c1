"""Creation and casts."""

import numpy as np

import philox
from dtypes import NUMPY, is_floating
from numpy_oracle.registry import oracle


@oracle("fill")
def fill(case):
    return [(np.full(case["shape"], cast(case["value"], case["dtype"])), case["dtype"])]


@oracle("iota")
def iota(case):
    return [(case["start"] + np.arange(case["count"]) * case["step"], case["dtype"])]


@oracle("random")
def random(case):
    fn, dtype, low, high = case["fn"], case["dtype"], case["low"], case["high"]
    count = int(np.prod(case["shape"]))
    key = case["seed"], case["stream"], count
    if fn == "uniform":
        values = philox.uniform(dtype, *key, low, high)
    elif fn == "normal":
        values = low + high * philox.normal(dtype, *key)
    elif fn == "bernoulli":
        values = philox.bernoulli(*key, low)
    else:
        values = philox.integer(*key, int(low), int(high))
    return [(values.reshape(case["shape"]), dtype)]


def cast(values, dtype):
    """To bool: is not zero. To integers: truncated, NaN is 0, values beyond the range saturate."""
    values = np.asarray(values)
    if dtype == "bool":
        return values != 0
    if is_floating(dtype) or values.dtype != np.float64:
        return values
    limits = np.iinfo(NUMPY[dtype])
    exact = [
        0 if np.isnan(v) else limits.max if v >= limits.max else limits.min if v <= limits.min else int(v)
        for v in values.flat
    ]
    return np.array(exact, dtype=np.int64).reshape(values.shape)


@oracle("copy")
def copy(case, x):
    return [(cast(x, case["dtype"]), case["dtype"])]
