"""torch.linalg. Signs are the ones that ferrite states."""

import torch

from torch_oracle.registry import oracle


def symmetric_part(a):
    return (a + a.mT) / 2


def flips(columns):
    """1, or -1 for columns whose largest element is negative."""
    largest = torch.gather(columns, -2, columns.abs().argmax(-2, keepdim=True))
    return torch.where(largest < 0, -1.0, 1.0).detach()


def flat(*parts):
    return torch.cat([x.flatten(-2) if x.ndim > 1 else x for x in parts], -1)


@oracle("triangular_solve")
def triangular_solve(case, a, b):
    matrix, upper = (a.mT, case["lower"]) if case["transposed"] else (a, not case["lower"])
    return torch.linalg.solve_triangular(matrix, b, upper=upper, unitriangular=case["unit_diagonal"])


@oracle("cholesky")
def cholesky(case, a):
    return torch.linalg.cholesky(symmetric_part(a))


@oracle("lu")
def lu(case, a):
    p, lower, upper = torch.linalg.lu(a)
    return torch.tril(lower, -1) + upper, p.argmax(-2)


@oracle("solve")
def solve(case, a, b):
    factors, order = lu(case, a.mT)
    return torch.linalg.solve(a, b), factors.mT, order


@oracle("solve_factored")
def solve_factored(case, a, factors, order, b):
    return torch.linalg.solve(a.mT if case["transposed"] else a, b) + 0 * factors.sum()


@oracle("qr")
def qr(case, a):
    q, r = torch.linalg.qr(a)
    sign = torch.where(torch.diagonal(r, dim1=-2, dim2=-1) < 0, -1.0, 1.0).detach()
    return flat(q * sign.unsqueeze(-2), r * sign.unsqueeze(-1))


@oracle("eigh")
def eigh(case, a):
    values, vectors = torch.linalg.eigh(symmetric_part(a))
    return torch.cat([values.unsqueeze(-2), vectors * flips(vectors)], -2)


@oracle("svd")
def svd(case, a):
    u, s, vt = torch.linalg.svd(a, full_matrices=False)
    sign = flips(u)
    return flat(u * sign, s.unsqueeze(-2), vt * sign.mT)


@oracle("einsum")
def einsum(case, *operands):
    return torch.einsum(case["subscripts"], *operands)


@oracle("inverse")
def inverse(case, a):
    return torch.linalg.inv(a)


@oracle("det")
def det(case, a):
    return torch.linalg.det(a)


@oracle("slogdet")
def slogdet(case, a):
    sign, logarithm = torch.linalg.slogdet(a)
    return logarithm, sign


@oracle("lstsq")
def lstsq(case, a, b):
    return torch.linalg.lstsq(a, b).solution


@oracle("pinv")
def pinv(case, a):
    return torch.linalg.pinv(a)


NORMS = {"frobenius": "fro", "nuclear": "nuc", "spectral": 2, "one": 1, "infinity": float("inf")}


@oracle("matrix_norm")
def matrix_norm(case, a):
    return torch.linalg.matrix_norm(a, NORMS[case["which"]])
