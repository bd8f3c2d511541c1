"""Softmax, normalisations, linear, attention, losses, dropout; gradients by their formulas."""

import numpy as np
from scipy import special

import philox
from dtypes import promote, statistics_dtype
from numpy_oracle.elementwise import DERIVATIVE, UNARY
from numpy_oracle.registry import oracle

# Softmax and normalisations.


@oracle("softmax")
def softmax(case, x):
    return [(special.softmax(x, axis=case["axis"]), case.dtypes[0])]


@oracle("softmax_backward")
def softmax_backward(case, y, dy):
    return [(y * (dy - np.sum(y * dy, axis=case["axis"], keepdims=True)), case.dtypes[0])]


@oracle("log_softmax")
def log_softmax(case, x):
    return [(special.log_softmax(x, axis=case["axis"]), case.dtypes[0])]


@oracle("log_softmax_backward")
def log_softmax_backward(case, y, dy):
    return [(dy - np.exp(y) * np.sum(dy, axis=case["axis"], keepdims=True), case.dtypes[0])]


def normalised(x, axes, eps):
    mean = np.mean(x, axis=axes, keepdims=True)
    rstd = 1 / np.sqrt(np.var(x, axis=axes, keepdims=True) + eps)
    return (x - mean) * rstd, mean, rstd


def normalised_backward(dn, normed, rstd, axes):
    """The gradient of x from that of (x - mean) rstd."""
    mean = lambda v: np.mean(v, axis=axes, keepdims=True)
    return (dn - mean(dn) - normed * mean(dn * normed)) * rstd


@oracle("layer_norm")
def layer_norm(case, x, weight, bias):
    normed, mean, rstd = normalised(x, -1, case["eps"])
    dtype = case.dtypes[0]
    return [
        (normed * weight + bias, dtype),
        (mean[..., 0], statistics_dtype(dtype)),
        (rstd[..., 0], statistics_dtype(dtype)),
    ]


@oracle("layer_norm_backward")
def layer_norm_backward(case, dy, x, weight, mean, rstd):
    normed = (x - mean[..., None]) * rstd[..., None]
    rows = tuple(range(x.ndim - 1))
    dx = normalised_backward(dy * weight, normed, rstd[..., None], -1)
    return [(dx, case.dtypes[1]), (np.sum(dy * normed, rows), case.dtypes[2]), (np.sum(dy, rows), case.dtypes[2])]


@oracle("rms_norm")
def rms_norm(case, x, weight):
    rstd = 1 / np.sqrt(np.mean(x * x, axis=-1) + case["eps"])
    return [(x * rstd[..., None] * weight, case.dtypes[0]), (rstd, statistics_dtype(case.dtypes[0]))]


@oracle("rms_norm_backward")
def rms_norm_backward(case, dy, x, weight, rstd):
    normed, dn = x * rstd[..., None], dy * weight
    dx = (dn - normed * np.mean(dn * normed, axis=-1, keepdims=True)) * rstd[..., None]
    return [(dx, case.dtypes[1]), (np.sum(dy * normed, tuple(range(x.ndim - 1))), case.dtypes[2])]


def per_channel(x):
    """The axes that are summed over, and the shape of [C] against x."""
    return tuple(i for i in range(x.ndim) if i != 1), (1, -1) + (1,) * (x.ndim - 2)


@oracle("batch_norm")
def batch_norm(case, x, weight, bias):
    axes, spread = per_channel(x)
    normed, mean, rstd = normalised(x, axes, case["eps"])
    dtype = case.dtypes[0]
    y = normed * weight.reshape(spread) + bias.reshape(spread)
    return [(y, dtype), (mean.reshape(-1), statistics_dtype(dtype)), (rstd.reshape(-1), statistics_dtype(dtype))]


@oracle("batch_norm_backward")
def batch_norm_backward(case, dy, x, weight, mean, rstd):
    axes, spread = per_channel(x)
    normed = (x - mean.reshape(spread)) * rstd.reshape(spread)
    dx = normalised_backward(dy * weight.reshape(spread), normed, rstd.reshape(spread), axes)
    return [(dx, case.dtypes[1]), (np.sum(dy * normed, axes), case.dtypes[2]), (np.sum(dy, axes), case.dtypes[2])]


# Linear and attention.


@oracle("linear")
def linear(case, x, weight, *more):
    dtype = case.dtypes[0]
    for other in case.dtypes[1:]:
        dtype = promote(dtype, other)
    pre = x @ weight.T + sum(more)  # bias and residual
    name = case["activation"]
    if name == "none":
        return [(pre, dtype)]
    y = UNARY["gelu_tanh" if name == "gelu" else name](pre, 1)
    return [(y, dtype), (pre, dtype)] if name in ("gelu", "silu") else [(y, dtype)]


def shared(x, heads):
    """Keys or values [B, K, S, D] for all heads of queries."""
    return np.repeat(x, heads // x.shape[1], axis=1)


def hidden_keys(case, t, s):
    """Keys that causality or the window hide: [T, S]."""
    ahead = np.arange(s) - (np.arange(t) + s - t)[:, None]
    hidden = ahead > 0 if case["causal"] else np.zeros((t, s), bool)
    return hidden | (np.abs(ahead) >= case["window"]) if case["window"] else hidden


def attention_scores(case, q, k, mask):
    scores = q @ np.swapaxes(k, -1, -2) * case["scale"]
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    return np.where(hidden_keys(case, *scores.shape[-2:]), -np.inf, scores)


def weights_of(scores, lse):
    return np.exp(scores - np.where(np.isfinite(lse), lse, 0)[..., None])


@oracle("attention")
def attention(case, q, k, v, mask=None):
    scores = attention_scores(case, q, shared(k, q.shape[1]), mask)
    lse = special.logsumexp(scores, axis=-1)
    return [(weights_of(scores, lse) @ shared(v, q.shape[1]), case.dtypes[0]), (lse, statistics_dtype(case.dtypes[0]))]


@oracle("attention_backward")
def attention_backward(case, do, q, k, v, o, lse, mask=None):
    shape, k, v = k.shape, shared(k, q.shape[1]), shared(v, q.shape[1])
    p = weights_of(attention_scores(case, q, k, mask), lse)
    dp = do @ np.swapaxes(v, -1, -2)
    ds = p * (dp - np.sum(do * o, axis=-1, keepdims=True)) * case["scale"]
    dtype = case.dtypes[1]

    def of_group(x):
        return x.reshape(shape[0], shape[1], -1, shape[2], x.shape[-1]).sum(axis=2)

    dk, dv = of_group(np.swapaxes(ds, -1, -2) @ q), of_group(np.swapaxes(p, -1, -2) @ do)
    return [(ds @ k, dtype), (dk, dtype), (dv, dtype)]


def heads_of(packed):
    """Queries, keys and values [N, H, T, D] of [N, T, 3, H, D]."""
    return [np.swapaxes(packed[:, :, i], 1, 2) for i in range(3)]


@oracle("self_attention")
def self_attention(case, packed):
    (o, dtype), lse = attention(case, *heads_of(packed))
    return [(np.swapaxes(o, 1, 2), dtype), lse]


@oracle("self_attention_backward")
def self_attention_backward(case, do, packed, o, lse):
    gradients = attention_backward(case, np.swapaxes(do, 1, 2), *heads_of(packed), np.swapaxes(o, 1, 2), lse)
    return [(np.stack([np.swapaxes(gradient, 1, 2) for gradient, _ in gradients], axis=2), case.dtypes[1])]


@oracle("cross_attention")
def cross_attention(case, q, k, v, mask=None):
    (o, dtype), lse = attention(case, *(np.swapaxes(x, 1, 2) for x in (q, k, v)), mask)
    return [(np.swapaxes(o, 1, 2), dtype), lse]


@oracle("cross_attention_backward")
def cross_attention_backward(case, do, q, k, v, o, lse, mask=None):
    gradients = attention_backward(case, *(np.swapaxes(x, 1, 2) for x in (do, q, k, v, o)), lse, mask)
    return [(np.swapaxes(gradient, 1, 2), dtype) for gradient, dtype in gradients]


@oracle("rope")
def rope(case, x, frequencies, positions=None):
    axis = case["axis"] % x.ndim
    count, half = x.shape[axis], x.shape[-1] // 2
    if positions is None:
        positions = case["start"] + np.arange(count)
    angle = (positions[:, None] * frequencies).reshape(count, *[1] * (x.ndim - 2 - axis), half)
    turn = np.exp(-1j * angle if case["inverse"] else 1j * angle)
    halves = case["pairs"] == "halves"
    y = (x[..., :half] + 1j * x[..., half:] if halves else x[..., ::2] + 1j * x[..., 1::2]) * turn
    parts = [y.real, y.imag]
    return [(np.concatenate(parts, -1) if halves else np.stack(parts, -1).reshape(x.shape), case.dtypes[0])]


def gate_of(case):
    """The activation and its derivative by its input."""
    name = {"gelu": "gelu_tanh"}.get(case["activation"], case["activation"])
    if name == "none":
        return lambda x: x, np.ones_like
    f = lambda x: UNARY[name](x, 1)
    return f, lambda x: DERIVATIVE[name](f(x) if name in ("tanh", "sigmoid") else x, 1)


@oracle("gated_activation")
def gated_activation(case, gate, up):
    return [(gate_of(case)[0](gate) * up, case.dtypes[0])]


@oracle("gated_activation_backward")
def gated_activation_backward(case, dy, gate, up):
    f, slope = gate_of(case)
    return [(dy * up * slope(gate), case.dtypes[1]), (dy * f(gate), case.dtypes[2])]


@oracle("activation_backward")
def activation_backward(case, saved, dy):
    d, dtype = dy * DERIVATIVE[case["fn"]](saved, case["alpha"]), case.dtypes[0]
    return [(d, dtype), (np.sum(d, axis=0), dtype)]


# Losses.


def without_padding(case, logits):
    return logits[:, : case["classes"] or None]


def with_padding(gradient, columns):
    return np.pad(gradient, ((0, 0), (0, columns - gradient.shape[1])))


@oracle("softmax_cross_entropy")
def softmax_cross_entropy(case, logits, targets):
    logits = without_padding(case, logits)
    smoothing, ignored = case["label_smoothing"], targets == case["ignore_index"]
    log_p = special.log_softmax(logits, axis=1)
    picked = log_p[np.arange(len(targets)), np.where(ignored, 0, targets)]
    smooth = np.mean(log_p, axis=1) if smoothing else 0
    loss = np.where(ignored, 0, -(1 - smoothing) * picked - smoothing * smooth)
    dtype = statistics_dtype(case.dtypes[0])
    return [(loss, dtype), (special.logsumexp(logits, axis=1), dtype)]


@oracle("softmax_cross_entropy_backward")
def softmax_cross_entropy_backward(case, dloss, logits, targets, lse):
    columns, logits = logits.shape[1], without_padding(case, logits)
    smoothing, classes = case["label_smoothing"], logits.shape[1]
    wanted = (targets[:, None] == np.arange(classes)) * (1 - smoothing) + smoothing / classes
    scale = np.where(targets == case["ignore_index"], 0, dloss)
    gradient = (np.exp(logits - lse[:, None]) - wanted) * scale[:, None]
    return [(with_padding(gradient, columns), case.dtypes[1])]


@oracle("softmax_cross_entropy_with_gradient")
def softmax_cross_entropy_with_gradient(case, logits, targets, scale):
    (loss, dtype), (lse, _) = softmax_cross_entropy(case, logits, targets)
    dloss = np.full(len(targets), scale)
    ((gradient, _),) = softmax_cross_entropy_backward(case, dloss, logits, targets, lse)
    return [(loss, dtype), (gradient, case.dtypes[0])]


@oracle("cross_entropy_loss")
def cross_entropy_loss(case, logits, targets):
    counted = np.sum(targets != case["ignore_index"]) if case["mean"] else 1
    (loss, dtype), gradient = softmax_cross_entropy_with_gradient(case, logits, targets, 1 / counted)
    result = (np.sum(loss) / counted, dtype)
    return [result, gradient] if case["with_gradient"] else [result]


@oracle("linear_cross_entropy")
def linear_cross_entropy(case, x, weight, targets):
    counted = np.sum(targets != case["ignore_index"]) if case["mean"] else 1
    scaled = softmax_cross_entropy_with_gradient(case, x @ weight.T, targets, 1 / counted)
    (loss, dtype), (slope, _) = scaled
    result = (np.sum(loss) / counted, dtype)
    if not case["with_gradient"]:
        return [result]
    # A gradient in f16 would underflow before a loss scale could raise it.
    return [result, (slope @ weight, "f32" if case.dtypes[0] == "f16" else case.dtypes[0]), (slope.T @ x, dtype)]


def huber(x, t, delta):
    d = np.abs(x - t)
    return np.where(d <= delta, d * d / 2, delta * (d - delta / 2))


LOSS = {
    "mse": lambda x, t, delta: (x - t) ** 2,
    "l1": lambda x, t, delta: np.abs(x - t),
    "huber": huber,
    "bce_with_logits": lambda x, t, delta: np.logaddexp(0, x) - x * t,
}
LOSS_DERIVATIVE = {
    "mse": lambda x, t, delta: 2 * (x - t),
    "l1": lambda x, t, delta: np.sign(x - t),
    "huber": lambda x, t, delta: np.clip(x - t, -delta, delta),
    "bce_with_logits": lambda x, t, delta: special.expit(x) - t,
}


@oracle("pointwise_loss")
def pointwise_loss(case, x, t):
    return [(LOSS[case["fn"]](x, t, case["delta"]), promote(*case.dtypes))]


@oracle("pointwise_loss_backward")
def pointwise_loss_backward(case, x, t, dloss):
    return [(dloss * LOSS_DERIVATIVE[case["fn"]](x, t, case["delta"]), case.dtypes[0])]


# Dropout.


@oracle("dropout")
def dropout(case, x):
    draw = philox.unit_uniform("f32", case["seed"], case["stream"], x.size).reshape(x.shape)
    kept = draw >= float(np.float32(case["p"]))
    return [(np.where(kept, x / (1 - case["p"]) if case["p"] < 1 else 0, 0), case.dtypes[0])]
