"""What each op means in PyTorch: its own functions in float64 on the CPU, gradients by its autograd.

A backward op is checked against the gradient of the forward function, not against a formula.
"""

import numpy as np
import torch
import torch.nn.functional as F

from dtypes import float_result, is_floating, promote, promote_scalar, round_to, widen

ORACLES = {}


def oracle(op):
    def register(function):
        ORACLES[op] = function
        return function

    return register


def evaluate(case, root):
    """The outputs, and the gradient of every floating input for the root gradient (nothing without one)."""
    inputs = [tensor(x, grad=root is not None and is_floating(d)) for x, d in zip(case.wide, case.dtypes)]
    result = ORACLES[case.op](case, *inputs)
    outputs = result if isinstance(result, (tuple, list)) else [result]
    gradients = []
    if root is not None:
        leaves = [x for x in inputs if x.requires_grad]
        found = iter(torch.autograd.grad(outputs[0], leaves, torch.from_numpy(np.asarray(root))))
        gradients = [next(found).numpy() if x.requires_grad else None for x in inputs]
    return [y.detach().numpy() for y in outputs], gradients


def tensor(values, grad=False):
    return torch.tensor(np.ascontiguousarray(values).reshape(values.shape), requires_grad=grad)


def gradient_of(function, inputs, root):
    """The gradients of a function's result; the inputs are made leaves."""
    leaves = [x.detach().clone().requires_grad_() for x in inputs]
    return torch.autograd.grad(function(*leaves), leaves, root)


# Creation and elementwise.


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
    low, high = {"u8": (0, 255), "i32": (-(2**31), 2**31 - 1), "i64": (-(2**63), 2**63 - 1)}[case["dtype"]]
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


# Reductions, products, order.


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


@oracle("matmul")
def matmul(case, a, b):
    kind = torch.promote_types(a.dtype, b.dtype)
    return torch.matmul(a.to(kind), b.to(kind))


@oracle("global_norm")
def global_norm(case, *tensors):
    return torch.linalg.vector_norm(torch.cat([t.reshape(-1) for t in tensors]))


# Indexing.


def from_start(index, extent):
    return torch.where(index < 0, index + extent, index)


@oracle("gather")
def gather(case, x, index):
    return torch.gather(x, case["axis"], from_start(index, x.shape[case["axis"]]))


@oracle("scatter")
def scatter(case, x, index, source):
    return torch.scatter(x, case["axis"], from_start(index, x.shape[case["axis"]]), source)


@oracle("scatter_add")
def scatter_add(case, x, index, source):
    covered = source[tuple(slice(n) for n in index.shape)]  # PyTorch has no gradient for a larger source
    return torch.scatter_add(x, case["axis"], from_start(index, x.shape[case["axis"]]), covered)


@oracle("index_select")
def index_select(case, x, index):
    return torch.index_select(x, case["axis"], from_start(index, x.shape[case["axis"]]))


@oracle("embedding")
def embedding(case, weight, ids):
    return F.embedding(from_start(ids, len(weight)), weight)


@oracle("embedding_backward")
def embedding_backward(case, dy, ids):
    weight = torch.zeros(case["rows"], dy.shape[-1], dtype=torch.float64)
    return gradient_of(lambda w: F.embedding(from_start(ids, len(w)), w), [weight], dy)[0]


@oracle("one_hot")
def one_hot(case, ids):
    classes = case["classes"]
    inside = (ids >= 0) & (ids < classes)  # PyTorch refuses others; ferrite gives zeros
    return F.one_hot(torch.where(inside, ids, 0), classes) * inside[..., None]


# Views and what is assembled from them.


@oracle("reshape")
def reshape(case, x):
    return torch.reshape(x, case["shape"])


@oracle("permute")
def permute(case, x):
    return torch.permute(x, case["order"])


@oracle("slice")
def slice_(case, x):
    return torch.index_select(x, case["axis"], case["start"] + case["step"] * torch.arange(case["count"]))


@oracle("expand")
def expand(case, x):
    return torch.broadcast_to(x, case["shape"])


def windows_of(x, axis, size, step, dilation):
    return x.unfold(axis, (size - 1) * dilation + 1, step)[..., ::dilation]


@oracle("windows")
def windows(case, x):
    return windows_of(x, case["axis"], case["size"], case["step"], case["dilation"])


@oracle("fold")
def fold(case, x):
    """The gradient of taking windows."""
    axis, count = case["axis"] % (x.ndim - 1), x.shape[case["axis"] % (x.ndim - 1)]
    folded = torch.zeros(
        x.shape[:axis] + (case["length"],) + x.shape[axis + 1 : -1], dtype=torch.float64, requires_grad=True
    )
    views = windows_of(folded, axis, x.shape[-1], case["step"], case["dilation"]).narrow(axis, 0, count)
    return torch.autograd.grad(views, folded, x.to(torch.float64), create_graph=x.requires_grad)[0]


@oracle("pad")
def pad(case, x):
    value = widen(round_to(case["value"], case.dtypes[0])).item()
    for axis, interior in enumerate(case["interior"]):
        if interior and x.shape[axis]:
            shape = list(x.shape)
            shape[axis] += (shape[axis] - 1) * interior
            spread = torch.full(shape, value, dtype=x.dtype)
            x = torch.index_copy(spread, axis, torch.arange(x.shape[axis]) * (interior + 1), x)
    sides = [n for low, high in reversed(list(zip(case["low"], case["high"]))) for n in (low, high)]
    return F.pad(x, sides, value=value)


@oracle("cat")
def cat(case, *tensors):
    return torch.cat(tensors, dim=case["axis"])


@oracle("triangle")
def triangle(case, x):
    return (torch.tril if case["lower"] else torch.triu)(x, case["diagonal"])
