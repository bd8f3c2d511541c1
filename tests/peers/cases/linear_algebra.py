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


def add_to(cases):
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
