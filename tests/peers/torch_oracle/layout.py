"""Indexing, views, and what is assembled from them."""

import torch
import torch.nn.functional as F

from dtypes import round_to, widen
from torch_oracle.registry import oracle
from torch_oracle.tensors import gradient_of

# Indexing.


def from_start(index, extent):
    return torch.where(index < 0, index + extent, index)


@oracle("gather")
def gather(case, x, index):
    return torch.gather(x, case["axis"], from_start(index, x.shape[case["axis"]]))


@oracle("scatter")
def scatter(case, x, index, source):
    return torch.scatter(x, case["axis"], from_start(index, x.shape[case["axis"]]), source)


@oracle("scatter_add")
def scatter_add(case, x, index, source):
    covered = source[tuple(slice(n) for n in index.shape)]  # PyTorch has no gradient for a larger source
    return torch.scatter_add(x, case["axis"], from_start(index, x.shape[case["axis"]]), covered)


@oracle("index_select")
def index_select(case, x, index):
    return torch.index_select(x, case["axis"], from_start(index, x.shape[case["axis"]]))


@oracle("embedding")
def embedding(case, weight, ids):
    return F.embedding(from_start(ids, len(weight)), weight)


@oracle("embedding_backward")
def embedding_backward(case, dy, ids):
    weight = torch.zeros(case["rows"], dy.shape[-1], dtype=torch.float64)
    return gradient_of(lambda w: F.embedding(from_start(ids, len(w)), w), [weight], dy)[0]


@oracle("one_hot")
def one_hot(case, ids):
    classes = case["classes"]
    inside = (ids >= 0) & (ids < classes)  # PyTorch refuses others; ferrite gives zeros
    return F.one_hot(torch.where(inside, ids, 0), classes) * inside[..., None]


# Views and what is assembled from them.


@oracle("reshape")
def reshape(case, x):
    return torch.reshape(x, case["shape"])


@oracle("permute")
def permute(case, x):
    return torch.permute(x, case["order"])


@oracle("slice")
def slice_(case, x):
    return torch.index_select(x, case["axis"], case["start"] + case["step"] * torch.arange(case["count"]))


@oracle("expand")
def expand(case, x):
    return torch.broadcast_to(x, case["shape"])


def windows_of(x, axis, size, step, dilation):
    return x.unfold(axis, (size - 1) * dilation + 1, step)[..., ::dilation]


@oracle("windows")
def windows(case, x):
    return windows_of(x, case["axis"], case["size"], case["step"], case["dilation"])


@oracle("fold")
def fold(case, x):
    """The gradient of taking windows."""
    axis, count = case["axis"] % (x.ndim - 1), x.shape[case["axis"] % (x.ndim - 1)]
    folded = torch.zeros(
        x.shape[:axis] + (case["length"],) + x.shape[axis + 1 : -1], dtype=torch.float64, requires_grad=True
    )
    views = windows_of(folded, axis, x.shape[-1], case["step"], case["dilation"]).narrow(axis, 0, count)
    return torch.autograd.grad(views, folded, x.to(torch.float64), create_graph=x.requires_grad)[0]


@oracle("pad")
def pad(case, x):
    value = widen(round_to(case["value"], case.dtypes[0])).item()
    for axis, interior in enumerate(case["interior"]):
        if interior and x.shape[axis]:
            shape = list(x.shape)
            shape[axis] += (shape[axis] - 1) * interior
            spread = torch.full(shape, value, dtype=x.dtype)
            x = torch.index_copy(spread, axis, torch.arange(x.shape[axis]) * (interior + 1), x)
    sides = [n for low, high in reversed(list(zip(case["low"], case["high"]))) for n in (low, high)]
    return F.pad(x, sides, value=value)


@oracle("cat")
def cat(case, *tensors):
    return torch.cat(tensors, dim=case["axis"])


@oracle("triangle")
def triangle(case, x):
    return (torch.tril if case["lower"] else torch.triu)(x, case["diagonal"])
