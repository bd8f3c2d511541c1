"""Creation, casts, unary, binary, where."""

import torch
import torch.nn.functional as F

from dtypes import float_result, is_floating, promote, promote_scalar, round_to, widen
from torch_oracle.registry import oracle
from torch_oracle.tensors import gradient_of, tensor


@oracle("fill")
def fill(case):
    value = case["value"] != 0 if case["dtype"] == "bool" else case["value"]
    if not is_floating(case["dtype"]):
        return torch.full(case["shape"], int(value))
    return torch.full(case["shape"], value, dtype=torch.float64)


@oracle("iota")
def iota(case):
    return case["start"] + torch.arange(case["count"], dtype=torch.float64) * case["step"]


@oracle("copy")
def copy(case, x):
    if is_floating(case["dtype"]):
        return x.to(torch.float64)
    if case["dtype"] == "bool":
        return x != 0
    # Beyond the range PyTorch's conversion is undefined; ferrite's saturates.
    bits = int(case["dtype"][1:])
    low, high = (0, 2**bits - 1) if case["dtype"][0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    if not x.is_floating_point():
        return x
    inside = torch.nan_to_num(x.clamp(low, high)).to(torch.int64)
    return torch.where(x >= high, high, inside)


UNARY = {
    "neg": lambda x, a: torch.neg(x),
    "abs": lambda x, a: torch.abs(x),
    "sign": lambda x, a: torch.where(torch.isnan(x), x, torch.sign(x)) if x.is_floating_point() else torch.sign(x),
    "square": lambda x, a: torch.square(x),
    "relu": lambda x, a: torch.relu(x) + 0,  # + 0: relu(-0.0) is -0.0 there
    "floor": lambda x, a: torch.floor(x),
    "ceil": lambda x, a: torch.ceil(x),
    "round": lambda x, a: torch.round(x),
    "sqrt": lambda x, a: torch.sqrt(x),
    "rsqrt": lambda x, a: torch.rsqrt(x),
    "reciprocal": lambda x, a: torch.reciprocal(x),
    "exp": lambda x, a: torch.exp(x),
    "expm1": lambda x, a: torch.expm1(x),
    "log": lambda x, a: torch.log(x),
    "log1p": lambda x, a: torch.log1p(x),
    "sin": lambda x, a: torch.sin(x),
    "cos": lambda x, a: torch.cos(x),
    "tan": lambda x, a: torch.tan(x),
    "tanh": lambda x, a: torch.tanh(x),
    "sigmoid": lambda x, a: torch.sigmoid(x),
    "erf": lambda x, a: torch.erf(x),
    "gelu_tanh": lambda x, a: F.gelu(x, approximate="tanh"),
    "gelu_erf": lambda x, a: F.gelu(x),
    "silu": lambda x, a: F.silu(x),
    "softplus": lambda x, a: F.softplus(x, beta=a, threshold=40),
    "elu": lambda x, a: F.elu(x, alpha=a),
    "leaky_relu": lambda x, a: F.leaky_relu(x, negative_slope=a),
    "logical_not": lambda x, a: torch.logical_not(x),
    "isnan": lambda x, a: torch.isnan(x),
    "isfinite": lambda x, a: torch.isfinite(x),
}
KEEPS_INTEGERS = ("neg", "abs", "sign", "square", "relu", "floor", "ceil", "round", "logical_not", "isnan", "isfinite")


@oracle("unary")
def unary(case, x):
    if case["fn"] not in KEEPS_INTEGERS:
        x = x.to(torch.float64)
    return UNARY[case["fn"]](x, case["alpha"])


@oracle("unary_backward")
def unary_backward(case, saved, dy):
    x = tensor(widen(case.context["x"]))
    return gradient_of(lambda v: UNARY[case["fn"]](v, case["alpha"]), [x], dy)[0]


BINARY = {
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "div": torch.true_divide,
    "pow": torch.pow,
    "maximum": torch.maximum,
    "minimum": torch.minimum,
    "remainder": torch.remainder,
    "atan2": torch.atan2,
    "eq": torch.eq,
    "ne": torch.ne,
    "lt": torch.lt,
    "le": torch.le,
    "gt": torch.gt,
    "ge": torch.ge,
    "logical_and": torch.logical_and,
    "logical_or": torch.logical_or,
    "logical_xor": torch.logical_xor,
}


def operands(case, inputs, common):
    """Both operands of one kind, the scalar (rounded to the common dtype) as a tensor on its side."""
    kind = torch.float64 if is_floating(common) else torch.bool if common == "bool" else torch.int64
    values = [x.to(kind) for x in inputs]
    if case["side"] != "none":
        scalar = tensor(widen(round_to(case["scalar"], common))).to(kind)
        values.insert(0 if case["side"] == "left" else 1, scalar)
    return values


def common_dtype(case, dtypes):
    return promote(*dtypes) if case["side"] == "none" else promote_scalar(dtypes[0], case["scalar"])


@oracle("binary")
def binary(case, *inputs):
    fn, common = case["fn"], common_dtype(case, case.dtypes)
    if fn in ("div", "atan2"):
        common = float_result(common)
    elif fn.startswith("logical"):
        common = "bool"
    elif fn in ("eq", "ne", "lt", "le", "gt", "ge") and case["side"] != "none" and not is_floating(common):
        common = "i64"
    left, right = operands(case, inputs, common)
    if fn == "remainder" and left.dtype == torch.int64:  # PyTorch refuses integer division by zero; ferrite says 0
        return torch.where(right == 0, 0, torch.remainder(left, torch.where(right == 0, 1, right)))
    return BINARY[fn](left, right)


@oracle("where")
def where(case, condition, *inputs):
    return torch.where(condition, *operands(case, inputs, common_dtype(case, case.dtypes[1:])))
