"""Softmax, normalisations, linear, attention, losses, dropout."""

import numpy as np
import torch
import torch.nn.functional as F

import philox
from dtypes import widen
from torch_oracle.elementwise import UNARY
from torch_oracle.registry import oracle
from torch_oracle.tensors import gradient_of, tensor

# Softmax and normalisations.


@oracle("softmax")
def softmax(case, x):
    return F.softmax(x, dim=case["axis"])


@oracle("log_softmax")
def log_softmax(case, x):
    return F.log_softmax(x, dim=case["axis"])


@oracle("softmax_backward")
def softmax_backward(case, y, dy):
    return gradient_of(lambda x: F.softmax(x, dim=case["axis"]), [tensor(widen(case.context["x"]))], dy)[0]


@oracle("log_softmax_backward")
def log_softmax_backward(case, y, dy):
    return gradient_of(lambda x: F.log_softmax(x, dim=case["axis"]), [tensor(widen(case.context["x"]))], dy)[0]


@oracle("layer_norm")
def layer_norm(case, x, weight, bias):
    y, mean, rstd = torch.native_layer_norm(x, weight.shape, weight, bias, case["eps"])
    return y, mean[..., 0], rstd[..., 0]


@oracle("layer_norm_backward")
def layer_norm_backward(case, dy, x, weight, mean, rstd):
    norm = lambda x, w, b: F.layer_norm(x, w.shape, w, b, case.context["eps"])
    return gradient_of(norm, [x, weight, torch.zeros_like(weight)], dy)


@oracle("rms_norm")
def rms_norm(case, x, weight):
    rstd = torch.rsqrt(torch.mean(x * x, dim=-1) + case["eps"])
    return F.rms_norm(x, weight.shape, weight, case["eps"]), rstd


@oracle("rms_norm_backward")
def rms_norm_backward(case, dy, x, weight, rstd):
    return gradient_of(lambda x, w: F.rms_norm(x, w.shape, w, case.context["eps"]), [x, weight], dy)


@oracle("batch_norm")
def batch_norm(case, x, weight, bias):
    return torch.native_batch_norm(x, weight, bias, None, None, True, 0.0, case["eps"])


@oracle("batch_norm_backward")
def batch_norm_backward(case, dy, x, weight, mean, rstd):
    norm = lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True, eps=case.context["eps"])
    return gradient_of(norm, [x, weight, torch.zeros_like(weight)], dy)


# Linear and attention.


@oracle("linear")
def linear(case, x, weight, *more):
    pre = F.linear(x, weight)
    for term in more:  # bias and residual
        pre = pre + term
    name = case["activation"]
    if name == "none":
        return pre
    y = UNARY["gelu_tanh" if name == "gelu" else name](pre, 1)
    return (y, pre) if name in ("gelu", "silu") else y


@oracle("quantized_linear")
def quantized_linear(case, x, weight, scale, bias=None):
    pre = F.linear(x.double(), (weight.double().T * scale.double()).T, None if bias is None else bias.double())
    name = case["activation"]
    return (pre if name == "none" else UNARY["gelu_tanh" if name == "gelu" else name](pre, 1)).to(x.dtype)


def attention_mask(case, q, k, mask):
    """PyTorch aligns a causal mask with the first key; ferrite with the last. It has no windows."""
    if not case["causal"] and not case["window"]:
        return mask
    t, s = q.shape[-2], k.shape[-2]
    seen = torch.ones(t, s, dtype=torch.bool)
    if case["causal"]:
        seen = seen.tril(s - t)
    if case["window"]:
        seen = seen.triu(s - t - case["window"] + 1).tril(s - t + case["window"] - 1)
    return seen if mask is None else mask & seen


def attend(case, q, k, v, mask):
    full = attention_mask(case, q, k, mask)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=full, scale=case["scale"], enable_gqa=True)


@oracle("attention")
def attention(case, q, k, v, mask=None):
    full = attention_mask(case, q, k, mask)
    scores = q @ k.repeat_interleave(q.shape[1] // k.shape[1], dim=1).mT * case["scale"]
    if full is not None:
        scores = scores.masked_fill(~full, -torch.inf) if full.dtype == torch.bool else scores + full
    return attend(case, q, k, v, mask), torch.logsumexp(scores, dim=-1)


@oracle("attention_backward")
def attention_backward(case, do, q, k, v, o, lse, mask=None):
    return gradient_of(lambda q, k, v: attend(case, q, k, v, mask), [q, k, v], do)


@oracle("self_attention")
def self_attention(case, packed):
    o, lse = attention(case, *packed.permute(2, 0, 3, 1, 4))
    return o.transpose(1, 2), lse


@oracle("self_attention_backward")
def self_attention_backward(case, do, packed, o, lse):
    return gradient_of(lambda packed: self_attention(case, packed)[0], [packed], do)


@oracle("cross_attention")
def cross_attention(case, q, k, v, mask=None):
    o, lse = attention(case, q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), mask)
    return o.transpose(1, 2), lse


@oracle("cross_attention_backward")
def cross_attention_backward(case, do, q, k, v, o, lse, mask=None):
    return gradient_of(lambda q, k, v: cross_attention(case, q, k, v, mask)[0], [q, k, v], do)


@oracle("rope")
def rope(case, x, frequencies, positions=None):
    axis = case["axis"] % x.ndim
    count, half = x.shape[axis], x.shape[-1] // 2
    if positions is None:
        positions = case["start"] + torch.arange(count)
    angle = (positions[:, None] * frequencies).reshape(count, *[1] * (x.ndim - 2 - axis), half)
    if case["inverse"]:
        angle = -angle
    if case["pairs"] == "halves":  # as transformers writes it
        angle = torch.cat((angle, angle), dim=-1)
        turned = torch.cat((-x[..., half:], x[..., :half]), dim=-1)
        return x * angle.cos() + turned * angle.sin()
    pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], half, 2))
    return torch.view_as_real(pairs * torch.polar(torch.ones_like(angle), angle)).flatten(-2)


def gate_of(case):
    name = {"gelu": "gelu_tanh"}.get(case["activation"], case["activation"])
    return (lambda x: x) if name == "none" else lambda x: UNARY[name](x, 1)


@oracle("gated_activation")
def gated_activation(case, gate, up):
    return gate_of(case)(gate) * up


@oracle("gated_activation_backward")
def gated_activation_backward(case, dy, gate, up):
    return gradient_of(lambda gate, up: gate_of(case)(gate) * up, [gate, up], dy)


@oracle("activation_backward")
def activation_backward(case, saved, dy):
    d = gradient_of(lambda x: UNARY[case["fn"]](x, case["alpha"]), [saved], dy)[0]
    return d, d.sum(dim=0)


# Losses.


def without_padding(case, logits):
    return logits[:, : case["classes"] or None]


def cross_entropy(case, logits, targets):
    options = {"ignore_index": case["ignore_index"], "label_smoothing": case["label_smoothing"]}
    return F.cross_entropy(without_padding(case, logits), targets, reduction="none", **options)


@oracle("softmax_cross_entropy")
def softmax_cross_entropy(case, logits, targets):
    return cross_entropy(case, logits, targets), torch.logsumexp(without_padding(case, logits), dim=1)


@oracle("softmax_cross_entropy_backward")
def softmax_cross_entropy_backward(case, dloss, logits, targets, lse):
    return gradient_of(lambda x: cross_entropy(case, x, targets), [logits], dloss)[0]


@oracle("softmax_cross_entropy_with_gradient")
def softmax_cross_entropy_with_gradient(case, logits, targets, scale):
    loss = cross_entropy(case, logits, targets)
    return loss, gradient_of(lambda x: cross_entropy(case, x, targets), [logits], scale.expand(len(targets)))[0]


@oracle("cross_entropy_loss")
def cross_entropy_loss(case, logits, targets):
    def loss(x):
        total = cross_entropy(case, x, targets).sum()
        return total / (targets != case["ignore_index"]).sum() if case["mean"] else total

    result = loss(logits)
    if not case["with_gradient"]:
        return result
    return result, gradient_of(loss, [logits], torch.ones_like(result))[0]


@oracle("linear_cross_entropy")
def linear_cross_entropy(case, x, weight, targets):
    def loss(x, weight):
        total = cross_entropy(case, F.linear(x, weight), targets).sum()
        return total / (targets != case["ignore_index"]).sum() if case["mean"] else total

    result = loss(x, weight)
    if not case["with_gradient"]:
        return result
    return result, *gradient_of(loss, [x, weight], torch.ones_like(result))


LOSS = {
    "mse": lambda x, t, delta: F.mse_loss(x, t, reduction="none"),
    "l1": lambda x, t, delta: F.l1_loss(x, t, reduction="none"),
    "huber": lambda x, t, delta: F.huber_loss(x, t, reduction="none", delta=delta),
    "bce_with_logits": lambda x, t, delta: F.binary_cross_entropy_with_logits(x, t, reduction="none"),
}


@oracle("pointwise_loss")
def pointwise_loss(case, x, t):
    return LOSS[case["fn"]](x, t, case["delta"])


@oracle("pointwise_loss_backward")
def pointwise_loss_backward(case, x, t, dloss):
    return gradient_of(lambda x: LOSS[case["fn"]](x, t, case["delta"]), [x], dloss)[0]


# Dropout, with ferrite's mask, since each library draws its own.


@oracle("dropout")
def dropout(case, x):
    draw = philox.unit_uniform("f32", case["seed"], case["stream"], x.numel()).reshape(x.shape)
    kept = torch.from_numpy(draw >= float(np.float32(case["p"])))
    return x * kept / (1 - case["p"]) if case["p"] < 1 else x * 0
