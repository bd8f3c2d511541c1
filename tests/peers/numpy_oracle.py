"""What each op means, said in NumPy and SciPy in float64: primitives, views and their relatives.

An oracle takes the case and its inputs as wide values and returns (values, dtype) per output.
"""

import numpy as np
from scipy import special

import philox
from dtypes import NUMPY, float_result, is_floating, promote, promote_scalar, round_to, sum_result, widen

ORACLES = {}


def oracle(op):
    def register(function):
        ORACLES[op] = function
        return function

    return register


def evaluate(case):
    with np.errstate(all="ignore"):
        return ORACLES[case.op](case, *case.wide)


# Creation.


@oracle("fill")
def fill(case):
    return [(np.full(case["shape"], cast(case["value"], case["dtype"])), case["dtype"])]


@oracle("iota")
def iota(case):
    return [(case["start"] + np.arange(case["count"]) * case["step"], case["dtype"])]


@oracle("random")
def random(case):
    fn, dtype, low, high = case["fn"], case["dtype"], case["low"], case["high"]
    count = int(np.prod(case["shape"]))
    key = case["seed"], case["stream"], count
    if fn == "uniform":
        values = philox.uniform(dtype, *key, low, high)
    elif fn == "normal":
        values = low + high * philox.normal(dtype, *key)
    elif fn == "bernoulli":
        values = philox.bernoulli(*key, low)
    else:
        values = philox.integer(*key, int(low), int(high))
    return [(values.reshape(case["shape"]), dtype)]


def cast(values, dtype):
    """To bool: is not zero. To integers: truncated, NaN is 0, values beyond the range saturate."""
    values = np.asarray(values)
    if dtype == "bool":
        return values != 0
    if is_floating(dtype) or values.dtype != np.float64:
        return values
    limits = np.iinfo(NUMPY[dtype])
    exact = [
        0 if np.isnan(v) else limits.max if v >= limits.max else limits.min if v <= limits.min else int(v)
        for v in values.flat
    ]
    return np.array(exact, dtype=np.int64).reshape(values.shape)


@oracle("copy")
def copy(case, x):
    return [(cast(x, case["dtype"]), case["dtype"])]


# Elementwise.

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


# Reductions, products, order.


def axes_of(case):
    return tuple(case["axes"]) or None


@oracle("reduce")
def reduce(case, x):
    fn, dtype = case["fn"], case.dtypes[0]
    options = {"axis": axes_of(case), "keepdims": case["keepdim"]}
    if fn in ("any", "all"):
        return [(getattr(np, fn)(x != 0, **options), "bool")]
    if fn in ("sum", "prod"):
        dtype = sum_result(dtype)
        x = x.astype(np.int64) if dtype == "i64" else x
    return [(getattr(np, fn)(x, **options), dtype)]


@oracle("statistic")
def statistic(case, x):
    fn, parameter = case["fn"], case["parameter"]
    options = {"axis": axes_of(case), "keepdims": case["keepdim"]}
    x = x.astype(float)
    if fn == "mean":
        values = np.mean(x, **options)
    elif fn == "var":
        values = np.var(x, ddof=parameter, **options)
    elif fn == "logsumexp":
        values = special.logsumexp(x, **options)
    elif parameter == 2:
        values = np.sqrt(np.sum(x * x, **options))
    else:
        values = (np.sum if parameter == 1 else np.max)(np.abs(x), **options)
    return [(values, float_result(case.dtypes[0]))]


@oracle("argreduce")
def argreduce(case, x):
    return [(getattr(np, case["fn"])(x, axis=case["axis"], keepdims=case["keepdim"]), "i64")]


@oracle("scan")
def scan(case, x):
    axis, dtype = case["axis"], sum_result(case.dtypes[0])
    x = x.astype(np.int64) if dtype == "i64" else x
    if case["reverse"]:
        return [(np.flip(np.cumsum(np.flip(x, axis), axis), axis), dtype)]
    return [(np.cumsum(x, axis), dtype)]


@oracle("sort")
def sort(case, x):
    axis = case["axis"]
    if case["descending"]:  # stable: sort the mirror image, then mirror back
        n = x.shape[axis]
        order = n - 1 - np.flip(np.argsort(np.flip(x, axis), axis, kind="stable"), axis)
    else:
        order = np.argsort(x, axis, kind="stable")
    return [(np.take_along_axis(x, order, axis), case.dtypes[0]), (order, "i64")]


@oracle("matmul")
def matmul(case, a, b):
    return [(np.matmul(a, b), promote(*case.dtypes))]


@oracle("global_norm")
def global_norm(case, *tensors):
    wide = all(dtype == "f64" for dtype in case.dtypes)
    return [(np.sqrt(sum(np.sum(t * t) for t in tensors)), "f64" if wide else "f32")]


# Indexing.


def reached(x, index, axis):
    """The part of x that lies across from the index."""
    return x[tuple(slice(None) if i == axis else slice(n) for i, n in enumerate(index.shape))]


@oracle("gather")
def gather(case, x, index):
    axis = case["axis"] % x.ndim
    return [(np.take_along_axis(reached(x, index, axis), index, axis), case.dtypes[0])]


def scatter_with(case, x, index, source, combine):
    y, axis = x.copy(), case["axis"] % x.ndim
    for place in np.ndindex(*index.shape):
        target = place[:axis] + (index[place],) + place[axis + 1 :]
        y[target] = combine(y[target], source[place])
    return [(y, case.dtypes[0])]


@oracle("scatter")
def scatter(case, x, index, source):
    return scatter_with(case, x, index, source, lambda old, new: new)


@oracle("scatter_add")
def scatter_add(case, x, index, source):
    return scatter_with(case, x, index, source, lambda old, new: old + new)


@oracle("index_select")
def index_select(case, x, index):
    return [(np.take(x, index, axis=case["axis"]), case.dtypes[0])]


@oracle("embedding")
def embedding(case, weight, ids):
    return [(weight[ids], case.dtypes[0])]


@oracle("embedding_backward")
def embedding_backward(case, dy, ids):
    dweight = np.zeros((case["rows"], dy.shape[-1]))
    np.add.at(dweight, ids, dy)
    return [(dweight, case.dtypes[0])]


@oracle("one_hot")
def one_hot(case, ids):
    return [(ids[..., None] == np.arange(case["classes"]), case["dtype"])]


# Views and what is assembled from them.


@oracle("reshape")
def reshape(case, x):
    return [(x.reshape(case["shape"]), case.dtypes[0])]


@oracle("permute")
def permute(case, x):
    return [(x.transpose(case["order"]), case.dtypes[0])]


def along(x, axis, selection):
    """x[selection] on one axis."""
    return x[tuple(selection if i == axis % x.ndim else slice(None) for i in range(x.ndim))]


@oracle("slice")
def slice_(case, x):
    places = case["start"] + case["step"] * np.arange(case["count"])
    return [(along(x, case["axis"], places), case.dtypes[0])]


@oracle("expand")
def expand(case, x):
    return [(np.broadcast_to(x, case["shape"]), case.dtypes[0])]


def windows_of(x, axis, size, step, dilation):
    views = np.lib.stride_tricks.sliding_window_view(x, (size - 1) * dilation + 1, axis)
    return along(views, axis % x.ndim, slice(None, None, step))[..., ::dilation]


@oracle("windows")
def windows(case, x):
    return [(windows_of(x, case["axis"], case["size"], case["step"], case["dilation"]), case.dtypes[0])]


@oracle("fold")
def fold(case, x):
    axis = case["axis"] % (x.ndim - 1)
    y = np.zeros(x.shape[:axis] + (case["length"],) + x.shape[axis + 1 : -1])
    for window in range(x.shape[axis]):
        for k in range(x.shape[-1]):
            at = window * case["step"] + k * case["dilation"]
            along(y, axis, slice(at, at + 1))[...] += along(x[..., k], axis, slice(window, window + 1))
    return [(y, case.dtypes[0])]


@oracle("pad")
def pad(case, x):
    value = widen(round_to(case["value"], case.dtypes[0]))
    for axis, interior in enumerate(case["interior"]):
        n = x.shape[axis]
        if interior and n:
            spread = np.full(x.shape[:axis] + (n + (n - 1) * interior,) + x.shape[axis + 1 :], value)
            along(spread, axis, slice(None, None, interior + 1))[...] = x
            x = spread
    return [(np.pad(x, list(zip(case["low"], case["high"])), constant_values=value), case.dtypes[0])]


@oracle("cat")
def cat(case, *tensors):
    dtype = case.dtypes[0]
    for other in case.dtypes[1:]:
        dtype = promote(dtype, other)
    return [(np.concatenate(tensors, axis=case["axis"]), dtype)]


@oracle("triangle")
def triangle(case, x):
    return [((np.tril if case["lower"] else np.triu)(x, case["diagonal"]), case.dtypes[0])]
