"""Reductions, statistics, order, products."""

import numpy as np
from scipy import special

from dtypes import float_result, promote, sum_result
from numpy_oracle.registry import oracle


def axes_of(case):
    return tuple(case["axes"]) or None


@oracle("reduce")
def reduce(case, x):
    fn, dtype = case["fn"], case.dtypes[0]
    options = {"axis": axes_of(case), "keepdims": case["keepdim"]}
    if fn in ("any", "all"):
        return [(getattr(np, fn)(x != 0, **options), "bool")]
    if fn in ("sum", "prod"):
        dtype = sum_result(dtype)
        x = x.astype(np.int64) if dtype == "i64" else x
    return [(getattr(np, fn)(x, **options), dtype)]


@oracle("statistic")
def statistic(case, x):
    fn, parameter = case["fn"], case["parameter"]
    options = {"axis": axes_of(case), "keepdims": case["keepdim"]}
    x = x.astype(float)
    if fn == "mean":
        values = np.mean(x, **options)
    elif fn == "var":
        values = np.var(x, ddof=parameter, **options)
    elif fn == "logsumexp":
        values = special.logsumexp(x, **options)
    elif parameter == 2:
        values = np.sqrt(np.sum(x * x, **options))
    else:
        values = (np.sum if parameter == 1 else np.max)(np.abs(x), **options)
    return [(values, float_result(case.dtypes[0]))]


@oracle("argreduce")
def argreduce(case, x):
    return [(getattr(np, case["fn"])(x, axis=case["axis"], keepdims=case["keepdim"]), "i64")]


@oracle("scan")
def scan(case, x):
    axis, dtype = case["axis"], sum_result(case.dtypes[0])
    x = x.astype(np.int64) if dtype == "i64" else x
    if case["reverse"]:
        return [(np.flip(np.cumsum(np.flip(x, axis), axis), axis), dtype)]
    return [(np.cumsum(x, axis), dtype)]


@oracle("sort")
def sort(case, x):
    axis = case["axis"]
    if case["descending"]:  # stable: sort the mirror image, then mirror back
        n = x.shape[axis]
        order = n - 1 - np.flip(np.argsort(np.flip(x, axis), axis, kind="stable"), axis)
    else:
        order = np.argsort(x, axis, kind="stable")
    return [(np.take_along_axis(x, order, axis), case.dtypes[0]), (order, "i64")]


@oracle("order_statistics")
def order_statistics(case, x, levels):
    """What np.quantile takes between: its "lower" and "higher" neighbours, written out by rank."""
    lower, upper, counts = [], [], []
    for column in x.T:
        column = np.sort(column[~np.isnan(column)])
        n = len(column)
        product = levels * (n - 1 if case["method"] == "linear" else n)
        low, high = np.floor(product), np.floor(product)
        if case["method"] == "linear":
            high = low + 1
        else:
            low = np.where(product == low, low - 1, low)
            high = low if case["method"] == "inverted_cdf" else high
        column = column if n else np.array([np.nan])
        lower.append(column[np.clip(low, 0, max(n - 1, 0)).astype(int)])
        upper.append(column[np.clip(high, 0, max(n - 1, 0)).astype(int)])
        counts.append(n)
        if n and np.all(np.isfinite(column)):
            between = np.quantile(column, levels, method=case["method"])
            assert np.all((lower[-1] <= between) & (between <= upper[-1]))
    return [(np.array(lower), case.dtypes[0]), (np.array(upper), case.dtypes[0]), (np.array(counts), "i64")]


@oracle("bucketize")
def bucketize(case, x, edges):
    side = "right" if case["closed"] == "left" else "left"
    rows = [row[~np.isnan(row)] for row in edges]
    tokens = np.stack([np.searchsorted(row, column, side=side) for row, column in zip(rows, x.T)], axis=1)
    return [(np.where(np.isnan(x), case["missing"], tokens), case["dtype"])]


@oracle("matmul")
def matmul(case, a, b):
    return [(np.matmul(a, b), promote(*case.dtypes))]


@oracle("global_norm")
def global_norm(case, *tensors):
    wide = all(dtype == "f64" for dtype in case.dtypes)
    return [(np.sqrt(sum(np.sum(t * t) for t in tensors)), "f64" if wide else "f32")]
