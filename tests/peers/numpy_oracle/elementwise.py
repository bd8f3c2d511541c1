"""unary, binary, where."""

import numpy as np
from scipy import special

from dtypes import float_result, is_floating, promote, promote_scalar, round_to, widen
from numpy_oracle.registry import oracle

UNARY = {
    "neg": lambda x, a: -x,
    "abs": lambda x, a: np.abs(x),
    "sign": lambda x, a: np.sign(x),
    "square": lambda x, a: x * x,
    "relu": lambda x, a: np.where(x <= 0, 0, x),
    "floor": lambda x, a: np.floor(x),
    "ceil": lambda x, a: np.ceil(x),
    "round": lambda x, a: np.rint(x),
    "sqrt": lambda x, a: np.sqrt(x),
    "rsqrt": lambda x, a: 1 / np.sqrt(x),
    "reciprocal": lambda x, a: 1 / x,
    "exp": lambda x, a: np.exp(x),
    "expm1": lambda x, a: np.expm1(x),
    "log": lambda x, a: np.log(x),
    "log1p": lambda x, a: np.log1p(x),
    "sin": lambda x, a: np.sin(x),
    "cos": lambda x, a: np.cos(x),
    "tan": lambda x, a: np.tan(x),
    "tanh": lambda x, a: np.tanh(x),
    "sigmoid": lambda x, a: special.expit(x),
    "erf": lambda x, a: special.erf(x),
    # 1 + tanh(u) = 2 sigmoid(2 u), which keeps its digits where tanh(u) is close to -1.
    "gelu_tanh": lambda x, a: x * special.expit(np.sqrt(8 / np.pi) * (x + 0.044715 * x**3)),
    "gelu_erf": lambda x, a: x * special.ndtr(x),
    "silu": lambda x, a: x * special.expit(x),
    "softplus": lambda x, a: np.logaddexp(0, a * x) / a,
    "elu": lambda x, a: np.where(x > 0, x, a * np.expm1(x)),
    "leaky_relu": lambda x, a: np.where(x > 0, x, a * x),
    "logical_not": lambda x, a: np.logical_not(x),
    "isnan": lambda x, a: np.isnan(x),
    "isfinite": lambda x, a: np.isfinite(x),
}

# Functions whose derivative is taken from the output y instead of the input x.
FROM_OUTPUT = ("sqrt", "rsqrt", "reciprocal", "exp", "expm1", "tan", "tanh", "sigmoid", "relu")


def normal_density(x):
    return np.exp(-x * x / 2) / np.sqrt(2 * np.pi)


def gelu_tanh_derivative(x):
    s = special.expit(np.sqrt(8 / np.pi) * (x + 0.044715 * x**3))
    return s + x * s * (1 - s) * np.sqrt(8 / np.pi) * (1 + 3 * 0.044715 * x**2)


DERIVATIVE = {
    "abs": lambda x, a: np.sign(x),
    "square": lambda x, a: 2 * x,
    "relu": lambda y, a: (y > 0).astype(float),
    "sqrt": lambda y, a: 1 / (2 * y),
    "rsqrt": lambda y, a: -(y**3) / 2,
    "reciprocal": lambda y, a: -y * y,
    "exp": lambda y, a: y,
    "expm1": lambda y, a: y + 1,
    "log": lambda x, a: 1 / x,
    "log1p": lambda x, a: 1 / (1 + x),
    "sin": lambda x, a: np.cos(x),
    "cos": lambda x, a: -np.sin(x),
    "tan": lambda y, a: 1 + y * y,
    "tanh": lambda y, a: 1 - y * y,
    "sigmoid": lambda y, a: y * (1 - y),
    "erf": lambda x, a: 2 / np.sqrt(np.pi) * np.exp(-x * x),
    "gelu_tanh": lambda x, a: gelu_tanh_derivative(x),
    "gelu_erf": lambda x, a: special.ndtr(x) + x * normal_density(x),
    "silu": lambda x, a: special.expit(x) * (1 + x * special.expit(-x)),
    "softplus": lambda x, a: special.expit(a * x),
    "elu": lambda x, a: np.where(x > 0, 1, a * np.exp(x)),
    "leaky_relu": lambda x, a: np.where(x > 0, 1, a),
}


@oracle("unary")
def unary(case, x):
    fn, dtype = case["fn"], case.dtypes[0]
    if fn in ("logical_not", "isnan", "isfinite"):
        return [(UNARY[fn](x, 1), "bool")]
    keeps = fn in ("neg", "abs", "sign", "square", "relu", "floor", "ceil", "round")
    result = dtype if keeps else float_result(dtype)
    return [(UNARY[fn](x.astype(float) if is_floating(result) else x, case["alpha"]), result)]


@oracle("unary_backward")
def unary_backward(case, saved, dy):
    return [(dy * DERIVATIVE[case["fn"]](saved, case["alpha"]), case.dtypes[0])]


BINARY = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.true_divide,
    "pow": np.power,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "remainder": np.remainder,
    "atan2": np.arctan2,
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "logical_xor": np.logical_xor,
}


def operands(case, inputs, dtypes, operand_dtype):
    """Both operands in the dtype they are computed in, the scalar on its side."""
    values = [widen(round_to(x, operand_dtype)) for x in inputs]
    if case["side"] != "none":
        scalar = widen(round_to(case["scalar"], operand_dtype))
        values.insert(0 if case["side"] == "left" else 1, scalar)
    return values


@oracle("binary")
def binary(case, *inputs):
    fn, scalar = case["fn"], case["scalar"]
    if case["side"] == "none":
        common = promote(*case.dtypes)
    else:
        common = promote_scalar(case.dtypes[0], scalar)
    if fn.startswith("logical"):
        left, right = operands(case, [x != 0 for x in inputs], case.dtypes, "bool")
        return [(BINARY[fn](left, right), "bool")]
    if fn in ("eq", "ne", "lt", "le", "gt", "ge"):
        if case["side"] != "none" and not is_floating(common):
            common = "i64"
        return [(BINARY[fn](*operands(case, inputs, case.dtypes, common)), "bool")]
    if fn in ("div", "atan2"):
        common = float_result(common)
    return [(BINARY[fn](*operands(case, inputs, case.dtypes, common)), common)]


@oracle("where")
def where(case, condition, *inputs):
    if case["side"] == "none":
        dtype = promote(*case.dtypes[1:])
    else:
        dtype = promote_scalar(case.dtypes[1], case["scalar"])
    return [(np.where(condition, *operands(case, inputs, case.dtypes[1:], dtype)), dtype)]
