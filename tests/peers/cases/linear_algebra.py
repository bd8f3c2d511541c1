"""Cases of linear algebra: matrices far from singular, and with eigenvalues apart, so that rounding is not magnified."""

import numpy as np

from numpy_oracle.linear_algebra import each, lu_of, turned

SHAPES = {"": (), "batch": (2, 3)}


def well_conditioned(source, *shape):
    """Far from singular, so that rounding is not magnified."""
    x = source.real(*shape).astype(np.float64)
    n = min(shape[-2:])
    x[..., np.arange(n), np.arange(n)] += 4.0
    return source.of(x)


def positive_definite(source, *shape):
    x = source.real(*shape).astype(np.float64)
    return source.of(x @ turned(x) + 2 * np.eye(shape[-1]))


def symmetric(source, *shape):
    """With eigenvalues that lie apart."""
    x = source.real(*shape).astype(np.float64)
    return source.of(0.2 * (x + turned(x)) + np.diag(np.arange(shape[-1]) * 2.0))


def factored(source, *shape):
    """A matrix, its factors and their order as solve gives them, and a right side."""
    a = well_conditioned(source, *shape)
    source.context["constants"] = (1,)
    factors, order = each(lu_of, turned(np.asarray(a, dtype=np.float64)))
    return [a, source.of(turned(factors)), order.astype(np.int64), source.real(*shape[:-1], 2)]


EINSUMS = {
    "product": ("ij,jk->ik", (3, 4), (4, 5)),
    "batched": ("bij,bjk->bik", (2, 3, 4), (2, 4, 5)),
    "ellipsis": ("...ij,...jk->...ik", (2, 1, 3, 4), (3, 4, 2)),
    "three": ("ab,bc,cd->ad", (2, 3), (3, 4), (4, 5)),
    "outer": ("i,j->ij", (3,), (4,)),
    "dot": ("ij,ij->", (3, 4), (3, 4)),
    "trace": ("ii->", (4, 4)),
    "diagonal": ("bii->bi", (2, 4, 4)),
    "sum": ("ijk->k", (2, 3, 4)),
    "alphabetical": ("kj,ji", (3, 4), (4, 2)),
}


def add_functions_to(cases):
    """What is made of several ops: functions_peer runs them."""
    for label, (subscripts, *shapes) in EINSUMS.items():
        attributes = {"subscripts": subscripts}
        cases.add("einsum", label, attributes, lambda s: [s.real(*shape) for shape in shapes], length=16, grad=True)
    options = dict(length=256, grad=True)
    for label, batch in SHAPES.items():
        for function in ("inverse", "det", "slogdet"):
            cases.add(function, label, {}, lambda s: [well_conditioned(s, *batch, 5, 5)], **options)
        for m, n in ((4, 4), (6, 3), (3, 6)):
            size = f"{label}/{m}x{n}"
            cases.add("pinv", size, {}, lambda s: [well_conditioned(s, *batch, m, n)], **options)
            cases.add("lstsq", size, {}, lambda s: [well_conditioned(s, *batch, m, n), s.real(*batch, m, 2)], **options)
            for which in ("frobenius", "nuclear", "spectral", "one", "infinity"):
                given = lambda s: [well_conditioned(s, *batch, m, n)]
                cases.add("matrix_norm", f"{which}/{size}", {"which": which}, given, **options)


def add_to(cases):
    add_functions_to(cases)
    for label, batch in SHAPES.items():
        for lower in (True, False):
            for transposed in (False, True):
                for unit in (False, True):
                    cases.add(
                        "triangular_solve",
                        f"{label}/{lower}{transposed}{unit}",
                        {"lower": lower, "transposed": transposed, "unit_diagonal": unit},
                        lambda s: [well_conditioned(s, *batch, 4, 4), s.real(*batch, 4, 3)],
                        length=64,
                        grad=True,
                    )
        options = dict(length=256)
        cases.add("cholesky", label, {}, lambda s: [positive_definite(s, *batch, 5, 5)], grad=True, **options)
        cases.add("solve", label, {}, lambda s: [well_conditioned(s, *batch, 5, 5), s.real(*batch, 5, 2)], grad=True, **options)
        for transposed in (False, True):
            cases.add(
                "solve_factored",
                f"{label}/{transposed}",
                {"transposed": transposed},
                lambda s: factored(s, *batch, 5, 5),
                grad=True,
                **options,
            )
        cases.add("lu", label, {}, lambda s: [well_conditioned(s, *batch, 5, 5)], grad=True, **options)
        cases.add("eigh", label, {}, lambda s: [symmetric(s, *batch, 4, 4)], grad=True, **options)
        for m, n in ((4, 4), (6, 3), (3, 6)):
            cases.add("qr", f"{label}/{m}x{n}", {}, lambda s: [well_conditioned(s, *batch, m, n)], grad=True, **options)
            cases.add("svd", f"{label}/{m}x{n}", {}, lambda s: [well_conditioned(s, *batch, m, n)], grad=True, **options)
