"""Reductions, statistics, scans, order, products."""

import numpy as np

from case import EXACT
from dtypes import EVERY, FLOATS, INTEGERS, NUMBERS

INFINITY = float("inf")


def add_to(cases):
    add_reductions(cases)
    add_statistics(cases)
    add_order(cases)
    add_products(cases)


SPANS = {"all": ([], False, 60), "axes": ([0, -1], False, 15), "keepdim": ([1], True, 4), "last": ([-1], False, 5)}


def add_reductions(cases):
    for fn in ("sum", "prod", "max", "min", "any", "all"):
        selects = fn not in ("sum", "prod")
        options = dict(check=EXACT, grad=fn in ("max", "min")) if selects else dict(grad=True)
        for label, (axes, keepdim, length) in SPANS.items():
            attributes = {"fn": fn, "axes": axes, "keepdim": keepdim}
            if fn == "prod":
                make = lambda s: [
                    s.of(s.rng.choice([-1, 1, 2], (3, 4, 5))) if s.dtype in INTEGERS else s.positive(3, 4, 5)
                ]
            else:
                make = lambda s: [s.distinct(3, 4, 5) if selects else s.real(3, 4, 5)]
            dtypes = [d for d in EVERY if not (fn == "prod" and d in ("f16", "bool") and label in ("all", "axes"))]
            cases.add(
                "reduce",
                f"{fn}/{label}",
                attributes,
                make,
                dtypes,
                **({} if selects else {"length": length}),
                **options,
            )
        whole = {"fn": fn, "axes": [], "keepdim": False}
        cases.add("reduce", f"{fn}/0d", whole, lambda s: [s.real()], ["f32", "i32"], check=EXACT)
        cases.add(
            "reduce", f"{fn}/no_rows", {**whole, "axes": [1]}, lambda s: [s.real(0, 3)], ["f32", "i32"], check=EXACT
        )
        if fn not in ("max", "min"):
            cases.add(
                "reduce",
                f"{fn}/of_nothing",
                {**whole, "axes": [0]},
                lambda s: [s.real(0, 3)],
                ["f32", "i32", "bool"],
                check=EXACT,
            )
        # Rows with NaN, infinities of both signs, only -inf; columns of them too.
        rows = [
            [1.0, np.nan, 2.0],
            [np.inf, -np.inf, 0.0],
            [-np.inf, -np.inf, -np.inf],
            [np.inf, 1.0, 2.0],
            [0.0, 0.0, 0.0],
        ]
        for axis in (0, 1):
            cases.add(
                "reduce", f"{fn}/special_{axis}", {**whole, "axes": [axis]}, lambda s: [s.of(rows)], FLOATS, check=EXACT
            )
    long = {"fn": "sum", "axes": [1], "keepdim": False}
    cases.add("reduce", "sum/long_rows", long, lambda s: [s.real(3, 4099)], FLOATS, length=4099)
    cases.add("reduce", "sum/long_columns", {**long, "axes": [0]}, lambda s: [s.real(4099, 3)], FLOATS, length=4099)
    # Beyond what 16 bits can count: 1 + 1 + ... stops at 256 in bf16 unless the sum is wider.
    cases.add(
        "reduce", "sum/of_ones", {**long, "axes": []}, lambda s: [s.of(np.ones(3000))], FLOATS + INTEGERS, check=EXACT
    )
    zeros = {"fn": "prod", "axes": [1], "keepdim": False}
    cases.add(
        "reduce",
        "prod/zeros",
        zeros,
        lambda s: [s.of([[2.0, 0.0, 3.0], [0.0, 0.0, 3.0], [1.5, 2.0, 4.0]])],
        ["f32", "f64"],
        grad=True,
        length=3,
    )


def add_statistics(cases):
    for fn, parameter, label in (
        ("mean", 0.0, ""),
        ("var", 1.0, "sample"),
        ("var", 0.0, "population"),
        ("logsumexp", 0.0, ""),
        ("norm", 1.0, "1"),
        ("norm", 2.0, "2"),
        ("norm", INFINITY, "inf"),
    ):
        for span, (axes, keepdim, length) in SPANS.items():
            attributes = {"fn": fn, "axes": axes, "keepdim": keepdim, "parameter": parameter}
            make = lambda s: [s.distinct(3, 4, 5) if parameter == INFINITY else s.real(3, 4, 5)]
            cases.add("statistic", f"{fn}{label}/{span}", attributes, make, NUMBERS, grad=True, length=length)
    whole = {"axes": [], "keepdim": False, "parameter": 0.0}
    rows = [[1.0, np.nan, 2.0], [-np.inf, 0.0, 1.0], [-np.inf, -np.inf, -np.inf], [np.inf, 1.0, 2.0], [1e4, 1e4, -1e4]]
    cases.add(
        "statistic",
        "logsumexp/special",
        {**whole, "fn": "logsumexp", "axes": [1]},
        lambda s: [s.of(rows)],
        FLOATS,
        length=3,
    )
    # Sums beyond the range of f16 whose mean or root lies inside it.
    cases.add(
        "statistic",
        "mean/large_sum",
        {**whole, "fn": "mean"},
        lambda s: [s.of(s.rng.uniform(90, 110, 4000))],
        FLOATS,
        length=4000,
    )
    cases.add(
        "statistic",
        "norm2/large_sum",
        {**whole, "fn": "norm", "parameter": 2.0},
        lambda s: [s.of([300.0, 400.0])],
        FLOATS,
        length=2,
    )
    # A mean far from zero: the variance must not be a difference of large squares.
    cases.add(
        "statistic",
        "var/offset",
        {**whole, "fn": "var", "parameter": 1.0},
        lambda s: [s.of(1000 + s.rng.integers(0, 8, 500))],
        ["f32", "f64", "f16"],
        length=500,
    )
    cases.add("global_norm", "", {}, lambda s: [s.real(3, 4), s.real(5), s.real()], FLOATS, grad=True, length=18)
    cases.add("global_norm", "mixed", {}, lambda s: [s.real(3, 4), s.real(5, dtype="f32")], FLOATS, length=17)
    cases.add("global_norm", "large", {}, lambda s: [s.of(np.full(1000, 200.0)), s.real(2, 0)], FLOATS, length=1000)


def add_order(cases):
    for fn in ("argmax", "argmin"):
        for axis, keepdim in ((1, False), (-1, True), (0, False)):
            attributes = {"fn": fn, "axis": axis, "keepdim": keepdim}
            cases.add("argreduce", f"{fn}/{axis}", attributes, lambda s: [s.real(3, 4, 5)], EVERY)
            cases.add("argreduce", f"{fn}/{axis}/long", attributes, lambda s: [s.real(3, 130, 67)], ["f32", "u8"])
        rows = [[1.0, np.nan, np.nan], [3.0, 3.0, -np.inf], [-np.inf, -np.inf, -np.inf], [0.0, -0.0, 0.0]]
        cases.add("argreduce", f"{fn}/special", {"fn": fn, "axis": 1, "keepdim": False}, lambda s: [s.of(rows)], FLOATS)
    for axis in (0, 1, -1):
        for reverse in (False, True):
            attributes = {"axis": axis, "reverse": reverse}
            label = f"{axis}{'_reverse' if reverse else ''}"
            cases.add("scan", label, attributes, lambda s: [s.real(3, 4, 5)], EVERY, grad=True, length=5)
    cases.add("scan", "long", {"axis": -1, "reverse": False}, lambda s: [s.positive(2, 2049)], FLOATS, length=2049)
    for axis in (0, -1):
        for descending in (False, True):
            attributes = {"axis": axis, "descending": descending}
            label = f"{axis}{'_descending' if descending else ''}"
            cases.add("sort", label, attributes, lambda s: [s.distinct(5, 6)], FLOATS, grad=True, check=EXACT)
            # Many ties, so that only a stable order gives these indices.
            cases.add(
                "sort", f"{label}/ties", attributes, lambda s: [s.of(s.rng.integers(0, 3, (4, 40)))], EVERY, check=EXACT
            )
            mixed = [
                [np.nan, 1.0, -np.inf, np.nan, np.inf, 0.0, -0.0, 0.0, 1.0],
                [-0.0, 0.0, -1.0, 2.0, np.nan, -1.0, 5.0, 5.0, 4.0],
            ]
            cases.add("sort", f"{label}/special", attributes, lambda s: [s.of(mixed)], FLOATS, check=EXACT)
    # NaN left out, ties, infinities, a column of nothing but NaN.
    columns = [
        [np.nan, 3.0, 1.0, np.nan],
        [2.0, 3.0, -np.inf, np.nan],
        [0.5, 3.0, np.inf, np.nan],
        [-1.0, 3.0, 2.0, np.nan],
        [2.0, 3.0, np.nan, np.nan],
    ]
    levels = np.arange(11) / 10
    for method in ("linear", "inverted_cdf", "averaged_inverted_cdf"):
        attributes = {"method": method}
        options = dict(dtypes=FLOATS, check=EXACT, torch=False)
        for label, make in (("", lambda s: s.distinct(57, 3)), ("special", lambda s: s.of(columns))):
            inputs = lambda s: [make(s), levels]
            cases.add("order_statistics", "/".join(filter(None, (method, label))), attributes, inputs, **options)
    edges = np.array([[-1.0, 0.0, 0.0, 1.0], [-np.inf, 0.25, np.inf, np.nan], [np.nan] * 4])
    for closed in ("left", "right"):
        for dtype in ("u8", "i32", "i64"):
            attributes = {"closed": closed, "missing": 9, "dtype": dtype}
            values = [[v, v, v] for v in (-np.inf, -1.0, -0.0, 0.0, 0.25, 1.0, 2.0, np.inf, np.nan)]
            inputs = lambda s: [s.of(values), edges]
            cases.add("bucketize", f"{closed}/{dtype}", attributes, inputs, FLOATS, check=EXACT)


def add_products(cases):
    forms = {
        "2d": ((3, 4), (4, 5)),
        "batched": ((2, 3, 4), (2, 4, 5)),
        "broadcast_batch": ((2, 1, 3, 4), (3, 4, 2)),
        "stack_times_matrix": ((2, 3, 4), (4, 5)),
        "matrix_times_stack": ((3, 4), (2, 4, 5)),
        "one_by_one": ((1, 1), (1, 1)),
        "row": ((1, 7), (7, 1)),
        "column": ((7, 1), (1, 7)),
    }
    for label, (a, b) in forms.items():
        cases.add("matmul", label, {}, lambda s: [s.real(*a), s.real(*b)], NUMBERS, grad=True, length=a[-1])
    cases.add("matmul", "empty_inner", {}, lambda s: [s.real(3, 0), s.real(0, 2)], ["f32", "i32"])
    cases.add("matmul", "empty_rows", {}, lambda s: [s.real(0, 4), s.real(4, 2)], ["f32"])
    cases.add("matmul", "odd_sizes", {}, lambda s: [s.real(37, 131), s.real(131, 29)], NUMBERS, length=131)
    cases.add("matmul", "wraps", {}, lambda s: [s.of([[2**20, 200, -(2**31)]]), s.of([[2**15], [200], [3]])], INTEGERS)
    for other in ("f64", "f16", "i32", "u8", "bool"):
        cases.add(
            "matmul",
            f"with_{other}",
            {},
            lambda s: [s.real(3, 4), s.real(4, 2, dtype=other)],
            ["f32", "bf16", "i64"],
            length=4,
        )
    # A zero times an infinity is NaN, and the other rows stay clean.
    special = lambda s: [s.of([[0.0, 1.0], [2.0, 0.0]]), s.of([[np.inf, 1.0], [3.0, np.nan]])]
    cases.add("matmul", "special", {}, special, FLOATS, length=2)
