"""Factorisations and what is solved by them. Signs are the ones that ferrite states."""

import numpy as np
from scipy import linalg

from numpy_oracle.registry import oracle


def each(function, *arrays):
    """A function of matrices over batches; it returns one array or several."""
    batch = arrays[0].shape[:-2]
    results = [function(*(x.reshape(-1, *x.shape[-2:])[i] for x in arrays)) for i in range(int(np.prod(batch)))]
    if not isinstance(results[0], tuple):
        results = [(r,) for r in results]
    return [np.stack(part).reshape(*batch, *part[0].shape) for part in zip(*results)]


def turned(x):
    return np.swapaxes(x, -1, -2)


def symmetric_part(a):
    """ferrite reads one triangle and gives both halves of a gradient the same share."""
    return (a + turned(a)) / 2


def flips(columns):
    """1, or -1 for columns whose largest element is negative."""
    return np.where(columns[np.argmax(np.abs(columns), axis=0), np.arange(columns.shape[1])] < 0, -1.0, 1.0)


@oracle("triangular_solve")
def triangular_solve(case, a, b):
    options = dict(lower=case["lower"], trans=int(case["transposed"]), unit_diagonal=case["unit_diagonal"])
    return [(each(lambda x, y: linalg.solve_triangular(x, y, **options), a, b)[0], case.dtypes[0])]


@oracle("cholesky")
def cholesky(case, a):
    return [(np.linalg.cholesky(symmetric_part(a)), case.dtypes[0])]


def lu_of(a):
    factors, swaps = linalg.lapack.dgetrf(a)[:2]
    order = np.arange(a.shape[0])
    for i, other in enumerate(swaps):
        order[[i, other]] = order[[other, i]]
    return factors, order


@oracle("lu")
def lu(case, a):
    factors, order = each(lu_of, a)
    return [(factors, case.dtypes[0]), (order, "i64")]


@oracle("solve")
def solve(case, a, b):
    factors, order = each(lu_of, turned(a))
    return [(np.linalg.solve(a, b), case.dtypes[0]), (turned(factors), case.dtypes[0]), (order, "i64")]


@oracle("solve_factored")
def solve_factored(case, a, factors, order, b):
    return [(np.linalg.solve(turned(a) if case["transposed"] else a, b), case.dtypes[0])]


@oracle("qr")
def qr(case, a):
    def one(x):
        q, r = np.linalg.qr(x)
        sign = np.where(np.diagonal(r) < 0, -1.0, 1.0)
        return np.concatenate([(q * sign).ravel(), (r * sign[:, None]).ravel()])

    return [(each(one, a)[0], case.dtypes[0])]


@oracle("eigh")
def eigh(case, a):
    def one(x):
        values, vectors = np.linalg.eigh(x)
        return np.concatenate([values[None], vectors * flips(vectors)])

    return [(each(one, symmetric_part(a))[0], case.dtypes[0])]


@oracle("svd")
def svd(case, a):
    def one(x):
        u, s, vt = np.linalg.svd(x, full_matrices=False)
        sign = flips(u)
        return np.concatenate([(u * sign).ravel(), s, (vt * sign[:, None]).ravel()])

    return [(each(one, a)[0], case.dtypes[0])]


@oracle("einsum")
def einsum(case, *operands):
    return [(np.einsum(case["subscripts"], *operands), case.dtypes[0])]


@oracle("inverse")
def inverse(case, a):
    return [(np.linalg.inv(a), case.dtypes[0])]


@oracle("det")
def det(case, a):
    return [(np.linalg.det(a), case.dtypes[0])]


@oracle("slogdet")
def slogdet(case, a):
    sign, logarithm = np.linalg.slogdet(a)
    return [(logarithm, case.dtypes[0]), (sign, case.dtypes[0])]


@oracle("lstsq")
def lstsq(case, a, b):
    return [(each(lambda x, y: np.linalg.lstsq(x, y, rcond=None)[0], a, b)[0], case.dtypes[0])]


@oracle("pinv")
def pinv(case, a):
    return [(np.linalg.pinv(a), case.dtypes[0])]


NORMS = {"frobenius": "fro", "nuclear": "nuc", "spectral": 2, "one": 1, "infinity": np.inf}


@oracle("matrix_norm")
def matrix_norm(case, a):
    return [(np.linalg.norm(a, NORMS[case["which"]], axis=(-2, -1)), case.dtypes[0])]
