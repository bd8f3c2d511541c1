"""Indexing, views, and what is assembled from them."""

import numpy as np

from dtypes import promote, round_to, widen
from numpy_oracle.registry import oracle

# Indexing.


def reached(x, index, axis):
    """The part of x that lies across from the index."""
    return x[tuple(slice(None) if i == axis else slice(n) for i, n in enumerate(index.shape))]


@oracle("gather")
def gather(case, x, index):
    axis = case["axis"] % x.ndim
    return [(np.take_along_axis(reached(x, index, axis), index, axis), case.dtypes[0])]


def scatter_with(case, x, index, source, combine):
    y, axis = x.copy(), case["axis"] % x.ndim
    for place in np.ndindex(*index.shape):
        target = place[:axis] + (index[place],) + place[axis + 1 :]
        y[target] = combine(y[target], source[place])
    return [(y, case.dtypes[0])]


@oracle("scatter")
def scatter(case, x, index, source):
    return scatter_with(case, x, index, source, lambda old, new: new)


@oracle("scatter_add")
def scatter_add(case, x, index, source):
    return scatter_with(case, x, index, source, lambda old, new: old + new)


@oracle("index_select")
def index_select(case, x, index):
    return [(np.take(x, index, axis=case["axis"]), case.dtypes[0])]


@oracle("embedding")
def embedding(case, weight, ids):
    return [(weight[ids], case.dtypes[0])]


@oracle("embedding_backward")
def embedding_backward(case, dy, ids):
    dweight = np.zeros((case["rows"], dy.shape[-1]))
    np.add.at(dweight, ids, dy)
    return [(dweight, case.dtypes[0])]


@oracle("one_hot")
def one_hot(case, ids):
    return [(ids[..., None] == np.arange(case["classes"]), case["dtype"])]


# Views and what is assembled from them.


@oracle("reshape")
def reshape(case, x):
    return [(x.reshape(case["shape"]), case.dtypes[0])]


@oracle("permute")
def permute(case, x):
    return [(x.transpose(case["order"]), case.dtypes[0])]


def along(x, axis, selection):
    """x[selection] on one axis."""
    return x[tuple(selection if i == axis % x.ndim else slice(None) for i in range(x.ndim))]


@oracle("slice")
def slice_(case, x):
    places = case["start"] + case["step"] * np.arange(case["count"])
    return [(along(x, case["axis"], places), case.dtypes[0])]


@oracle("expand")
def expand(case, x):
    return [(np.broadcast_to(x, case["shape"]), case.dtypes[0])]


def windows_of(x, axis, size, step, dilation):
    views = np.lib.stride_tricks.sliding_window_view(x, (size - 1) * dilation + 1, axis)
    return along(views, axis % x.ndim, slice(None, None, step))[..., ::dilation]


@oracle("windows")
def windows(case, x):
    return [(windows_of(x, case["axis"], case["size"], case["step"], case["dilation"]), case.dtypes[0])]


@oracle("fold")
def fold(case, x):
    axis = case["axis"] % (x.ndim - 1)
    y = np.zeros(x.shape[:axis] + (case["length"],) + x.shape[axis + 1 : -1])
    for window in range(x.shape[axis]):
        for k in range(x.shape[-1]):
            at = window * case["step"] + k * case["dilation"]
            along(y, axis, slice(at, at + 1))[...] += along(x[..., k], axis, slice(window, window + 1))
    return [(y, case.dtypes[0])]


@oracle("pad")
def pad(case, x):
    value = widen(round_to(case["value"], case.dtypes[0]))
    for axis, interior in enumerate(case["interior"]):
        n = x.shape[axis]
        if interior and n:
            spread = np.full(x.shape[:axis] + (n + (n - 1) * interior,) + x.shape[axis + 1 :], value)
            along(spread, axis, slice(None, None, interior + 1))[...] = x
            x = spread
    return [(np.pad(x, list(zip(case["low"], case["high"])), constant_values=value), case.dtypes[0])]


@oracle("cat")
def cat(case, *tensors):
    dtype = case.dtypes[0]
    for other in case.dtypes[1:]:
        dtype = promote(dtype, other)
    return [(np.concatenate(tensors, axis=case["axis"]), dtype)]


@oracle("triangle")
def triangle(case, x):
    return [((np.tril if case["lower"] else np.triu)(x, case["diagonal"]), case.dtypes[0])]
