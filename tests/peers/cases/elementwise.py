"""unary, binary, where: every function, on ordinary and on special values, with broadcasting and scalars."""

import numpy as np

from case import ELEMENTWISE, EXACT
from dtypes import EVERY, FLOATS, INTEGERS, NUMBERS, round_to
from numpy_oracle.elementwise import DERIVATIVE, FROM_OUTPUT, UNARY

INTEGER_UNARY = ("neg", "abs", "sign", "square", "relu", "floor", "ceil", "round")
LOGICAL_UNARY = ("logical_not", "isnan", "isfinite")
STEPS = ("sign", "floor", "ceil", "round")  # derivative 0
ARITHMETIC = ("add", "sub", "mul", "div", "pow", "maximum", "minimum", "remainder", "atan2")
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
LOGICAL = ("logical_and", "logical_or", "logical_xor")
# As src/math/fast_math.hpp says: tanh is within 6 ulp (the others 2), and in three functions the exponential
# is 0 where it would be denormal.
ULPS = {"tanh": 6}
FLUSHED = ("sigmoid", "silu", "gelu_tanh")
# Tails so steep that rounding x / sqrt(2), or alpha x, once moves the result by many ulp.
STEEP = ("gelu_erf", "gelu_tanh", "softplus")
ALPHA = {"leaky_relu": 0.125, "softplus": 1.5, "elu": 0.75}


def add_to(cases):
    for fn in UNARY:
        add_unary(cases, fn)
    for fn in ARITHMETIC:
        add_arithmetic(cases, fn)
    for fn in COMPARISONS + LOGICAL:
        add_discrete(cases, fn)
    add_where(cases)


def domain(source, fn, *shape):
    if fn in ("sqrt", "rsqrt", "log", "log1p", "reciprocal"):
        return source.positive(*shape)
    if fn == "tan":
        return source.real(*shape, low=-1.2, high=1.2)
    return source.real(*shape, low=-4.0, high=4.0)


def add_unary(cases, fn):
    attributes = {"fn": fn, "alpha": ALPHA.get(fn, 1.0)}
    exact = fn in ("neg", "abs", "sign", "floor", "ceil", "round") + LOGICAL_UNARY
    grad = fn not in LOGICAL_UNARY

    def add(label, make, dtypes, **more):
        def inputs(s):
            x = make(s)
            wide = np.abs(x.astype(np.float64))
            if fn in STEEP:
                s.context["magnitude"] = wide * np.abs(DERIVATIVE[fn](x.astype(np.float64), attributes["alpha"]))
            if fn in FLUSHED and s.dtype in ("f32", "bf16"):
                s.context["floor"] = 2.0**-126 * np.maximum(wide, 1.0)
            return [x]

        cases.add(
            "unary",
            fn + label,
            attributes,
            inputs,
            dtypes,
            check=EXACT if exact else ELEMENTWISE,
            ulps=ULPS.get(fn, 4),
            **more,
        )

    add("", lambda s: domain(s, fn, 3, 5), FLOATS, grad=grad)
    add("/special", lambda s: s.special(), FLOATS)
    # A length that no vector width divides, over the whole range where functions are interesting.
    add("/long", lambda s: s.real(1003, low=-12.0, high=12.0), ["f32", "bf16"])
    add("/0d", lambda s: domain(s, fn), ["f32"], grad=grad)
    add("/empty", lambda s: domain(s, fn, 2, 0), ["f32"])
    add("", lambda s: s.positive(3, 5), INTEGERS if fn in INTEGER_UNARY else INTEGERS + ("bool",))
    if fn in INTEGER_UNARY:
        add("/negative", lambda s: s.of([-7, -1, 0, 2, 2**31 - 1, -(2**31)]), ["i32", "i64"])
    if fn in LOGICAL_UNARY + STEPS + ("neg",):
        return

    def saved_and_gradient(s):
        x = domain(s, fn, 3, 5)
        s.context["x"] = x
        y = UNARY[fn](x.astype(np.float64), attributes["alpha"])
        return [round_to(y, s.dtype) if fn in FROM_OUTPUT else x, s.real(3, 5)]

    cases.add("unary_backward", fn, attributes, saved_and_gradient, FLOATS)


def operand(source, fn, *shape, dtype=None):
    if fn in ("pow", "div", "remainder", "atan2"):
        return source.positive(*shape, dtype=dtype)
    return source.real(*shape, dtype=dtype)


def tensors(fn, side="none", scalar=0):
    return {"fn": fn, "side": side, "scalar": scalar}


def special_pairs(source, signed_zeros=True):
    values = source.special()
    if not signed_zeros:
        values = values[~((values == 0) & np.signbit(values))]
    left, right = np.meshgrid(values, values, indexing="ij")
    return [left, right]


def add_arithmetic(cases, fn):
    check = EXACT if fn in ("maximum", "minimum") else ELEMENTWISE
    both = lambda s: [operand(s, fn, 3, 4), operand(s, fn, 3, 4)]
    cases.add("binary", fn, tensors(fn), both, NUMBERS, grad=True, check=check)
    cases.add(
        "binary",
        f"{fn}/broadcast",
        tensors(fn),
        lambda s: [operand(s, fn, 2, 1, 4), operand(s, fn, 3, 1)],
        ["f32", "f64", "i32"],
        grad=True,
        check=check,
    )
    cases.add(
        "binary",
        f"{fn}/0d",
        tensors(fn),
        lambda s: [operand(s, fn, 3, 4), operand(s, fn)],
        ["f32"],
        grad=True,
        check=check,
    )
    cases.add(
        "binary",
        f"{fn}/empty",
        tensors(fn),
        lambda s: [operand(s, fn, 0, 4), operand(s, fn, 1, 4)],
        ["f32"],
        check=check,
    )
    # Neither NumPy nor IEEE 754-2008 says which zero is the larger one.
    pairs = lambda s: special_pairs(s, signed_zeros=fn not in ("maximum", "minimum"))
    # PyTorch's remainder of infinities is not Python's.
    cases.add("binary", f"{fn}/special", tensors(fn), pairs, FLOATS, check=check, torch=fn != "remainder")
    cases.add(
        "binary",
        f"{fn}/long",
        tensors(fn),
        lambda s: [operand(s, fn, 1003), operand(s, fn, 1003)],
        ["f32", "f16"],
        check=check,
    )
    for side in ("left", "right"):
        for scalar in (2.5, 3):
            cases.add(
                "binary",
                f"{fn}/{side}_{scalar}",
                tensors(fn, side, scalar),
                lambda s: [operand(s, fn, 3, 4)],
                NUMBERS,
                grad=True,
                check=check,
            )
    for other in EVERY:
        pair = lambda s: [operand(s, fn, 3, 4), operand(s, fn, 3, 4, dtype=other)]
        cases.add("binary", f"{fn}/with_{other}", tensors(fn), pair, mixed_with(other), check=check)
    if fn in ("add", "sub", "mul", "maximum", "minimum"):
        wrapping = lambda s: [s.of([2**31 - 1, -(2**31), 7, 200]), s.of([1, -1, 2**30, 100])]
        cases.add("binary", f"{fn}/wrap", tensors(fn), wrapping, INTEGERS, check=EXACT)
    if fn == "remainder":
        signs = lambda s: [s.of([7, -7, 7, -7, 5, 0, -1]), s.of([3, 3, -3, -3, 0, 4, -1])]
        cases.add("binary", "remainder/signs", tensors(fn), signs, ["f32", "f64", "i32", "i64"], check=EXACT)
    if fn == "pow":
        cases.add(
            "binary",
            "pow/negative_base",
            tensors(fn),
            lambda s: [-s.positive(4), s.of([0, 1, 2, 3])],
            ["f32", "f64", "i64"],
            check=check,
        )
        cases.add(
            "binary", "pow/square", tensors(fn, "right", 2), lambda s: [s.real(3, 4)], FLOATS, grad=True, check=check
        )


def mixed_with(other):
    """The dtypes that are paired with `other`, each unordered pair once."""
    return EVERY[: EVERY.index(other)]


def add_discrete(cases, fn):
    pair = lambda s: [s.real(3, 4), s.real(3, 4)]
    cases.add("binary", fn, tensors(fn), pair, EVERY, check=EXACT)
    cases.add("binary", f"{fn}/special", tensors(fn), special_pairs, FLOATS, check=EXACT)
    cases.add(
        "binary",
        f"{fn}/broadcast",
        tensors(fn),
        lambda s: [s.real(2, 1, 4), s.real(3, 1)],
        ["f32", "u8", "bool"],
        check=EXACT,
    )
    cases.add("binary", f"{fn}/long", tensors(fn), lambda s: [s.real(1003), s.real(1003)], ["f32", "i32"], check=EXACT)
    # 0.1 becomes a float32 before it is compared; -1 does not wrap to 255.
    cases.add(
        "binary",
        f"{fn}/right_0.1",
        tensors(fn, "right", 0.1),
        lambda s: [s.of([0.1, 0.2, 0.0, np.nan])],
        FLOATS,
        check=EXACT,
    )
    cases.add(
        "binary", f"{fn}/right_-1", tensors(fn, "right", -1), lambda s: [s.of([0, 1, 255])], INTEGERS, check=EXACT
    )
    cases.add("binary", f"{fn}/left_2", tensors(fn, "left", 2), lambda s: [s.of([0, 1, 2, 3])], NUMBERS, check=EXACT)
    if fn in COMPARISONS:
        large = lambda s: [s.of([2**53, 2**53 + 1, -(2**63)]), s.of([2**53 + 1, 2**53 + 1, 2**63 - 1])]
        cases.add("binary", f"{fn}/large", tensors(fn), large, ["i64"], check=EXACT)


def add_where(cases):
    options = dict(check=EXACT, grad=True)
    none, left, right = (
        {"side": side, "scalar": scalar} for side, scalar in (("none", 0), ("left", -1), ("right", 2.5))
    )
    cases.add("where", "", none, lambda s: [s.boolean(3, 4), s.real(3, 4), s.real(3, 4)], EVERY, **options)
    cases.add(
        "where",
        "broadcast",
        none,
        lambda s: [s.boolean(2, 1, 4), s.real(3, 1), s.real(4)],
        ["f32", "f64", "i64"],
        **options,
    )
    cases.add(
        "where",
        "left",
        left,
        lambda s: [s.boolean(3, 4), s.real(3, 4)],
        ["f32", "f64", "f16", "bf16", "i32"],
        **options,
    )
    cases.add("where", "right", right, lambda s: [s.boolean(3, 4), s.real(4)], NUMBERS, **options)
    masked = {"side": "left", "scalar": float("-inf")}
    cases.add("where", "masked_fill", masked, lambda s: [s.boolean(3, 4), s.real(3, 4)], FLOATS, **options)
    cases.add(
        "where",
        "special",
        none,
        lambda s: [s.boolean(s.special().size), s.special(), s.special()[::-1]],
        FLOATS,
        check=EXACT,
    )
    cases.add(
        "where",
        "promotes",
        none,
        lambda s: [s.boolean(3, 4), s.real(3, 4), s.real(3, 4, dtype="i32")],
        ["f32", "u8", "bool"],
        check=EXACT,
    )
