"""Reductions, statistics, order, products."""

import torch

from torch_oracle.registry import oracle


def axes_of(case, x):
    return tuple(case["axes"]) or tuple(range(x.ndim))


@oracle("reduce")
def reduce(case, x):
    fn, keepdim, axes = case["fn"], case["keepdim"], axes_of(case, x)
    if fn in ("any", "all"):
        x = x != 0
        return getattr(torch, fn)(x, dim=axes, keepdim=keepdim) if axes else getattr(torch, fn)(x)
    if fn == "sum":
        return torch.sum(x, dim=axes, keepdim=keepdim)
    if fn in ("max", "min"):
        x = x.to(torch.int64) if x.dtype == torch.bool else x
        return (torch.amax if fn == "max" else torch.amin)(x, dim=axes, keepdim=keepdim)
    for axis in sorted((axis % x.ndim for axis in axes), reverse=True):  # prod takes one axis at a time
        x = torch.prod(x, dim=axis, keepdim=keepdim)
    return x.to(torch.int64) if x.dtype == torch.bool else x


@oracle("statistic")
def statistic(case, x):
    fn, keepdim, axes = case["fn"], case["keepdim"], axes_of(case, x)
    x = x.to(torch.float64)
    if fn == "mean":
        return torch.mean(x, dim=axes, keepdim=keepdim)
    if fn == "var":
        return torch.var(x, dim=axes, correction=int(case["parameter"]), keepdim=keepdim)
    if fn == "logsumexp":
        return torch.logsumexp(x, dim=axes, keepdim=keepdim)
    return torch.linalg.vector_norm(x, ord=case["parameter"], dim=axes, keepdim=keepdim)


@oracle("argreduce")
def argreduce(case, x):
    x = x.to(torch.int64) if x.dtype == torch.bool else x
    return getattr(torch, case["fn"])(x, dim=case["axis"], keepdim=case["keepdim"])


@oracle("scan")
def scan(case, x):
    axis = case["axis"]
    if case["reverse"]:
        return torch.flip(torch.cumsum(torch.flip(x, (axis,)), axis), (axis,))
    return torch.cumsum(x, axis)


@oracle("sort")
def sort(case, x):
    return tuple(torch.sort(x, dim=case["axis"], descending=case["descending"], stable=True))


@oracle("bucketize")
def bucketize(case, x, edges):
    rows = [row[~torch.isnan(row)] for row in edges.double()]
    columns = [column.contiguous() for column in x.double().T]
    tokens = [torch.bucketize(c, row, right=case["closed"] == "left") for c, row in zip(columns, rows)]
    return torch.where(torch.isnan(x), case["missing"], torch.stack(tokens, dim=1))


@oracle("matmul")
def matmul(case, a, b):
    kind = torch.promote_types(a.dtype, b.dtype)
    return torch.matmul(a.to(kind), b.to(kind))


@oracle("global_norm")
def global_norm(case, *tensors):
    return torch.linalg.vector_norm(torch.cat([t.reshape(-1) for t in tensors]))
