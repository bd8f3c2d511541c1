"""Views, pad, cat, fold, triangle, and the indexing ops."""

from case import EXACT
from dtypes import EVERY, FLOATS, INTEGERS, NUMBERS


def add_to(cases):
    add_views(cases)
    add_assembled(cases)
    add_indexing(cases)


def add_views(cases):
    options = dict(check=EXACT, grad=True)
    cube = lambda s: [s.real(2, 3, 4)]
    for label, shape in {"merge": [6, 4], "infer": [4, -1], "split": [2, 3, 2, 2, 1], "flat": [-1]}.items():
        cases.add("reshape", label, {"shape": shape}, cube, EVERY if label == "merge" else ["f32", "f64"], **options)
    cases.add("reshape", "empty", {"shape": [0, 7]}, lambda s: [s.real(2, 0)], ["f32"], check=EXACT)
    cases.add("reshape", "to_0d", {"shape": []}, lambda s: [s.real(1, 1)], ["f32", "f64"], **options)
    cases.add("permute", "", {"order": [2, 0, 1]}, cube, EVERY, **options)
    cases.add("permute", "negative", {"order": [-1, 1, 0]}, cube, ["f32", "f64"], **options)
    for axis, start, count, step in (
        (0, 1, 1, 1),
        (1, 0, 3, 1),
        (2, 0, 2, 3),
        (2, 3, 4, -1),
        (-1, 3, 2, -2),
        (1, 2, 0, 1),
    ):
        attributes = {"axis": axis, "start": start, "count": count, "step": step}
        dtypes = EVERY if step == -2 else ["f32", "f64"]
        cases.add("slice", f"{axis}_{start}_{count}_{step}", attributes, cube, dtypes, **options)
    cases.add("expand", "", {"shape": [2, 3, 4]}, lambda s: [s.real(3, 1)], EVERY, **options)
    cases.add("expand", "from_0d", {"shape": [2, 2]}, lambda s: [s.real()], ["f32", "f64"], **options)
    cases.add("expand", "to_empty", {"shape": [0, 3]}, lambda s: [s.real(1, 3)], ["f32"], check=EXACT)
    for axis, size, step, dilation in ((1, 3, 1, 1), (0, 2, 2, 1), (-1, 3, 2, 2), (1, 1, 1, 1), (2, 7, 1, 1)):
        attributes = {"axis": axis, "size": size, "step": step, "dilation": dilation}
        cases.add(
            "windows",
            f"{axis}_{size}_{step}_{dilation}",
            attributes,
            lambda s: [s.real(4, 5, 7)],
            ["f32", "f64", "i32"],
            **options,
        )


def add_assembled(cases):
    for axis, length, step, dilation in ((1, 7, 1, 1), (0, 11, 3, 2), (-1, 10, 2, 1), (0, 30, 2, 3)):
        attributes = {"axis": axis, "length": length, "step": step, "dilation": dilation}
        label = f"{axis}_{length}_{step}_{dilation}"
        cases.add("fold", label, attributes, lambda s: [s.real(3, 4, 3)], FLOATS + ("i32",), grad=True, length=3)

    options = dict(check=EXACT, grad=True)
    around = {"low": [1, 0], "high": [2, 3], "interior": [0, 0]}
    between = {"low": [0, 2], "high": [1, 0], "interior": [2, 1]}
    cases.add("pad", "around", {**around, "value": 0}, lambda s: [s.real(3, 4)], EVERY, **options)
    cases.add("pad", "value", {**around, "value": 1.5}, lambda s: [s.real(3, 4)], FLOATS, **options)
    cases.add("pad", "minus_infinity", {**around, "value": float("-inf")}, lambda s: [s.real(3, 4)], FLOATS, **options)
    cases.add("pad", "interior", {**between, "value": 7}, lambda s: [s.real(3, 4)], NUMBERS, **options)
    cases.add("pad", "empty", {**around, "value": 2}, lambda s: [s.real(0, 4)], ["f32", "i64"], check=EXACT)
    cases.add("pad", "single", {**between, "value": 2}, lambda s: [s.real(1, 1)], ["f32", "f64"], **options)

    cases.add("cat", "", {"axis": 1}, lambda s: [s.real(2, 1, 3), s.real(2, 4, 3), s.real(2, 0, 3)], EVERY, **options)
    cases.add("cat", "negative_axis", {"axis": -1}, lambda s: [s.real(3, 2), s.real(3, 1)], ["f32", "f64"], **options)
    cases.add("cat", "one", {"axis": 0}, lambda s: [s.real(3)], ["f32", "f64"], **options)
    for other in ("f64", "i32", "u8", "bool", "f16"):
        cases.add(
            "cat",
            f"with_{other}",
            {"axis": 0},
            lambda s: [s.real(2), s.real(3, dtype=other)],
            ["f32", "bf16", "i64"],
            check=EXACT,
        )
    cases.add("cat", "special", {"axis": 0}, lambda s: [s.special(), s.special()], FLOATS, check=EXACT)

    for lower in (True, False):
        for diagonal in (0, 1, -2, 9, -9):
            attributes = {"lower": lower, "diagonal": diagonal}
            cases.add(
                "triangle",
                f"{'lower' if lower else 'upper'}_{diagonal}",
                attributes,
                lambda s: [s.real(2, 4, 5)],
                EVERY if diagonal == 1 else ["f32", "f64"],
                **options,
            )
    # What lies outside becomes 0, not NaN or -0.
    cases.add(
        "triangle",
        "special",
        {"lower": True, "diagonal": -1},
        lambda s: [s.of([[float("nan"), -1.0], [float("inf"), float("-inf")]])],
        FLOATS,
        check=EXACT,
    )


def add_indexing(cases):
    options = dict(check=EXACT, grad=True)
    for index_dtype in INTEGERS:
        low = 0 if index_dtype == "u8" else -4  # negative indices count from the end
        pick = lambda s, *shape: s.index(*shape, limit=4, low=low, dtype=index_dtype)
        label = f"by_{index_dtype}"
        dtypes = EVERY if index_dtype == "i64" else ["f32"]
        cases.add("gather", label, {"axis": 0}, lambda s: [s.real(4, 3), pick(s, 5, 2)], dtypes, **options)
        cases.add(
            "gather", f"{label}/last", {"axis": -1}, lambda s: [s.real(3, 2, 4), pick(s, 2, 2, 6)], dtypes, **options
        )
        cases.add(
            "scatter",
            f"{label}/duplicates",
            {"axis": 0},
            lambda s: [s.real(4, 3), pick(s, 5, 3), s.real(6, 3)],
            dtypes,
            check=EXACT,
            torch=False,
        )
        numbers = [dtype for dtype in dtypes if dtype != "bool"]
        cases.add(
            "scatter_add",
            label,
            {"axis": 0},
            lambda s: [s.real(4, 3), pick(s, 5, 2), s.real(6, 3)],
            numbers,
            grad=True,
            length=5,
        )
        cases.add(
            "scatter_add",
            f"{label}/last",
            {"axis": 1},
            lambda s: [s.real(3, 4), pick(s, 2, 7), s.real(3, 7)],
            numbers,
            grad=True,
            length=7,
        )
        cases.add("index_select", label, {"axis": 1}, lambda s: [s.real(2, 4, 3), pick(s, 6)], dtypes, **options)
        cases.add("embedding", label, {}, lambda s: [s.real(4, 3), pick(s, 2, 5)], dtypes, **options)
        cases.add(
            "embedding_backward", label, {"rows": 4}, lambda s: [s.real(2, 5, 3), pick(s, 2, 5)], FLOATS, length=10
        )
        cases.add(
            "one_hot",
            label,
            {"classes": 5, "dtype": "f32"},
            lambda s: [s.index(2, 3, limit=8, dtype=index_dtype)],
            [index_dtype],
            check=EXACT,
        )
    # Each target once: with duplicates the gradient of an overwritten source is a matter of definition.
    once = lambda s: [s.real(3, 4), s.rng.permuted([[0, 1, 2, 3]] * 3, axis=1)[:, :2], s.real(3, 2)]
    cases.add("scatter", "once", {"axis": 1}, once, NUMBERS, **options)
    cases.add("gather", "empty", {"axis": 0}, lambda s: [s.real(4, 3), s.index(0, 3, limit=4)], ["f32"], check=EXACT)
    cases.add(
        "scatter_add",
        "empty",
        {"axis": 0},
        lambda s: [s.real(4, 3), s.index(0, 3, limit=4), s.real(0, 3)],
        ["f32"],
        check=EXACT,
    )
    for dtype in EVERY:
        cases.add(
            "one_hot",
            f"as_{dtype}",
            {"classes": 4, "dtype": dtype},
            lambda s: [s.index(6, limit=5, low=-1)],
            ["i64"],
            check=EXACT,
        )
    # More classes than the ids' dtype can count.
    cases.add(
        "one_hot", "many_classes", {"classes": 300, "dtype": "f32"}, lambda s: [s.of([0, 44, 255])], ["u8"], check=EXACT
    )
