"""What the fused ops mean in PyTorch; see torch_oracle.py."""

import numpy as np
import torch
import torch.nn.functional as F

import philox
from dtypes import widen
from torch_oracle import UNARY, gradient_of, oracle, tensor

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
def linear(case, x, weight, bias=None):
    pre = F.linear(x, weight, bias)
    name = case["activation"]
    if name == "none":
        return pre
    y = UNARY["gelu_tanh" if name == "gelu" else name](pre, 1)
    return (y, pre) if name in ("gelu", "silu") else y


def attention_mask(case, q, k, mask):
    """PyTorch aligns a causal mask with the first key; ferrite with the last."""
    if not case["causal"]:
        return mask
    t, s = q.shape[-2], k.shape[-2]
    causal = torch.ones(t, s, dtype=torch.bool).tril(s - t)
    return causal if mask is None else mask & causal


def attend(case, q, k, v, mask):
    return F.scaled_dot_product_attention(q, k, v, attn_mask=attention_mask(case, q, k, mask), scale=case["scale"])


@oracle("attention")
def attention(case, q, k, v, mask=None):
    full = attention_mask(case, q, k, mask)
    scores = q @ k.mT * case["scale"]
    if full is not None:
        scores = scores.masked_fill(~full, -torch.inf) if full.dtype == torch.bool else scores + full
    return attend(case, q, k, v, mask), torch.logsumexp(scores, dim=-1)


@oracle("attention_backward")
def attention_backward(case, do, q, k, v, o, lse, mask=None):
    return gradient_of(lambda q, k, v: attend(case, q, k, v, mask), [q, k, v], do)


# Losses.


def cross_entropy(case, logits, targets):
    options = {"ignore_index": case["ignore_index"], "label_smoothing": case["label_smoothing"]}
    return F.cross_entropy(logits, targets, reduction="none", **options)


@oracle("softmax_cross_entropy")
def softmax_cross_entropy(case, logits, targets):
    return cross_entropy(case, logits, targets), torch.logsumexp(logits, dim=1)


@oracle("softmax_cross_entropy_backward")
def softmax_cross_entropy_backward(case, dloss, logits, targets, lse):
    return gradient_of(lambda x: cross_entropy(case, x, targets), [logits], dloss)[0]


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


# Convolutions and pools.


def geometry(case):
    return {key: case[key] for key in ("stride", "padding", "dilation", "groups")}


@oracle("conv2d")
def conv2d(case, x, weight, bias=None):
    return F.conv2d(x, weight, bias, **geometry(case))


@oracle("conv2d_input_grad")
def conv2d_input_grad(case, dy, weight):
    x = torch.zeros(case["input"], dtype=torch.float64)
    return gradient_of(lambda x: F.conv2d(x, weight, **geometry(case)), [x], dy)[0]


@oracle("conv2d_weight_grad")
def conv2d_weight_grad(case, dy, x):
    weight = torch.zeros(case["weight"], dtype=torch.float64)
    return gradient_of(lambda w: F.conv2d(x, w, **geometry(case)), [weight], dy)[0]


def pool_geometry(case):
    stride = [stride or kernel for stride, kernel in zip(case["stride"], case["kernel"])]
    return {"kernel_size": case["kernel"], "stride": stride, "padding": case["padding"]}


@oracle("max_pool2d")
def max_pool2d(case, x):
    return F.max_pool2d(x, **pool_geometry(case), return_indices=True)


@oracle("max_pool2d_backward")
def max_pool2d_backward(case, dy, index):
    n, c, height, width = case["input"]
    plane = torch.zeros(n, c, height * width, dtype=torch.float64)
    return plane.scatter_add(2, index.flatten(2), dy.flatten(2)).reshape(case["input"])


@oracle("avg_pool2d")
def avg_pool2d(case, x):
    return F.avg_pool2d(x, **pool_geometry(case))


@oracle("avg_pool2d_backward")
def avg_pool2d_backward(case, dy):
    x = torch.zeros(case["input"], dtype=torch.float64)
    return gradient_of(lambda x: F.avg_pool2d(x, **pool_geometry(case)), [x], dy)[0]


# Dropout (with ferrite's mask, since each library draws its own) and the optimisers.


@oracle("dropout")
def dropout(case, x):
    draw = philox.unit_uniform("f32", case["seed"], case["stream"], x.numel()).reshape(x.shape)
    kept = torch.from_numpy(draw >= float(np.float32(case["p"])))
    return x * kept / (1 - case["p"]) if case["p"] < 1 else x * 0


def one_step(parameters, gradients, clip, make):
    """Parameters after one step of a torch optimiser that `make` builds."""
    leaves = [p.detach().clone().requires_grad_() for p in parameters]
    for leaf, gradient in zip(leaves, gradients):
        leaf.grad = gradient * clip
    optimizer = make(leaves)
    optimizer.step()
    return leaves, optimizer


def lists(tensors, count):
    n = (len(tensors) - 1) // count
    return [tensors[i * n : (i + 1) * n] for i in range(count)] + [tensors[-1]]


@oracle("sgd")
def sgd(case, *tensors):
    parameters, gradients, buffers, clip = lists(tensors, 3)

    def make(leaves):
        keys = ("lr", "momentum", "nesterov", "weight_decay")
        optimizer = torch.optim.SGD(leaves, **{key: case[key] for key in keys})
        for leaf, buffer in zip(leaves, buffers):
            optimizer.state[leaf]["momentum_buffer"] = buffer.clone()
        return optimizer

    leaves, optimizer = one_step(parameters, gradients, clip, make)
    return leaves + [optimizer.state[leaf]["momentum_buffer"] for leaf in leaves]


@oracle("adam")
def adam(case, *tensors):
    parameters, gradients, firsts, seconds, clip = lists(tensors, 4)

    def make(leaves):
        kind = torch.optim.AdamW if case["decoupled"] else torch.optim.Adam
        betas = (case["beta1"], case["beta2"])
        optimizer = kind(leaves, lr=case["lr"], betas=betas, eps=case["eps"], weight_decay=case["weight_decay"])
        for leaf, m, v in zip(leaves, firsts, seconds):
            step = torch.tensor(float(case["step"] - 1))
            optimizer.state[leaf].update(step=step, exp_avg=m.clone(), exp_avg_sq=v.clone())
        return optimizer

    leaves, optimizer = one_step(parameters, gradients, clip, make)
    return leaves + [optimizer.state[leaf][key] for key in ("exp_avg", "exp_avg_sq") for leaf in leaves]
