"""The rows of cuda_bench in PyTorch. A row is found by its name, as "softmax/bf16/8192x8192".

Each calls the most direct binding there is, because on small sizes Python's time counts.
"""

import math
from dataclasses import dataclass
from typing import Callable

import torch
import torch.nn.attention as sdpa
import torch.nn.functional as F

from torch_training import torch_models

softmax_backward = torch.ops.aten._softmax_backward_data.default
log_softmax_backward = torch.ops.aten._log_softmax_backward_data.default
nll_loss_forward = torch.ops.aten.nll_loss_forward.default
nll_loss_backward = torch.ops.aten.nll_loss_backward.default
layer_norm_backward = torch.ops.aten.native_layer_norm_backward.default
conv2d_backward = torch.ops.aten.convolution_backward.default
max_pool2d_with_indices = torch.ops.aten.max_pool2d_with_indices.default
max_pool2d_backward = torch.ops.aten.max_pool2d_with_indices_backward.default
batch_norm_backward = torch.ops.aten._batch_norm_impl_index_backward.default

DTYPES = {"f32": torch.float32, "tf32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16,
          "f64": torch.float64}
COUNTS = {"1K": 1_000, "10K": 10_000, "100K": 100_000, "1M": 1 << 20, "10M": 10_000_000, "256M": 1 << 28, "1G": 1 << 30}
GPT2_MATRICES = [(50304, 768), (1024, 768)] + 12 * [(2304, 768), (768, 768), (3072, 768), (768, 3072)]


@dataclass
class Problem:
    make: Callable  # -> inputs
    call: Callable  # what is timed, on what prepare gives
    prepare: Callable = lambda *inputs: inputs
    needs_grad: bool = False
    clock: str = "device"

    def run(self, inputs):
        return self.call(*self.prepare(*inputs))


def draw(*shape, dtype=torch.float32):
    return torch.randn(shape, dtype=dtype)


def elementwise(op, dtype, label):
    n = COUNTS[label]
    calls = {"add": torch.add, "relu": torch.relu, "sigmoid": torch.sigmoid, "copy": torch.clone,
             "gelu": lambda x: F.gelu(x, approximate="tanh")}
    return Problem(lambda: tuple(draw(n, dtype=dtype) for _ in range(2 if op == "add" else 1)), calls[op])


def fused(op, dtype, size, compiled):
    """Chains that Lazy<Cuda> fuses into one kernel (lazy_bench.cpp): op by op, or by torch.compile."""
    shape = (COUNTS[size],) if size in COUNTS else tuple(int(n) for n in size.split("x"))
    calls = {
        "chain8": lambda x: -torch.clamp(torch.relu(torch.abs(x * 1.1 + 0.3) - 0.2) * x, max=3),
        "bias_gelu": lambda x, bias: F.gelu(x + bias, approximate="tanh") * 0.5 + x,
        "sum_of_squares": lambda x: torch.sum(torch.square(x * 1.1 + 0.3), 1),
    }
    def make():
        return (draw(*shape, dtype=dtype),) + ((draw(shape[1], dtype=dtype),) if op == "bias_gelu" else ())
    return Problem(make, torch.compile(calls[op]) if compiled else calls[op])


def matmul(dtype, n):
    return Problem(lambda: (draw(n, n, dtype=dtype), draw(n, n, dtype=dtype)), torch.matmul)


def reduce(op, dtype, kind, label):
    side = math.isqrt(COUNTS[label])
    axes = {"rows": (1,), "columns": (0,), "all": (0, 1)}[kind]
    fn = torch.sum if op == "sum" else torch.amax
    return Problem(lambda: (torch.rand(side, side, dtype=dtype),), lambda x: fn(x, dim=axes))


def row_op(op, dtype, rows, columns):
    def x():
        return draw(rows, columns, dtype=dtype)

    def w():
        return draw(columns, dtype=dtype)

    if op == "softmax":
        return Problem(lambda: (x(),), lambda a: torch.softmax(a, -1))
    if op == "softmax_backward":
        return Problem(lambda: (torch.softmax(x(), -1), x()),
                       lambda y, dy: softmax_backward(dy, y, -1, y.dtype))
    if op == "layer_norm":
        return Problem(lambda: (x(), w(), w()), lambda a, weight, bias: torch.layer_norm(a, (columns,), weight, bias))
    if op == "layer_norm_backward":
        def make():
            a, weight = x(), w()
            return x(), a, weight, *torch.native_layer_norm(a, (columns,), weight, weight, 1e-5)[1:]
        return Problem(make, lambda dy, a, weight, mean, rstd: layer_norm_backward(
            dy, a, (columns,), mean, rstd, weight, weight, (True, True, True)))
    if op == "gated_activation":
        return Problem(lambda: (x(), x()), lambda gate, up: F.silu(gate) * up)
    if op == "gated_activation_backward":
        return Problem(lambda: (x(), x(), x()), lambda dy, gate, up: (
            torch.ops.aten.silu_backward(dy * up, gate), dy * F.silu(gate)))
    if op == "rms_norm":
        return Problem(lambda: (x(), w()), lambda a, weight: F.rms_norm(a, (columns,), weight, 1e-5))

    def prepare(dy, a, weight):
        a, weight = a.detach().requires_grad_(), weight.detach().requires_grad_()
        return dy, a, weight, F.rms_norm(a, (columns,), weight, 1e-5)
    return Problem(lambda: (x(), x(), w()), lambda dy, a, weight, y: torch.autograd.grad(
        y, (a, weight), dy, retain_graph=True), prepare, needs_grad=True)


def rope(dtype, positions, heads, width):
    """As transformers rotates queries and keys, with sines and cosines that are there already."""
    def make():
        angle = torch.outer(torch.arange(positions).float(), 10000.0 ** -(torch.arange(0, width, 2) / width))
        angle = torch.cat((angle, angle), dim=-1)[:, None]
        return draw(positions, heads, width, dtype=dtype), angle.cos().to(dtype), angle.sin().to(dtype)

    def rotate(x, c, s):
        left, right = x.chunk(2, dim=-1)
        return x * c + torch.cat((-right, left), dim=-1) * s
    return Problem(make, rotate)


def attention(op, dtype, kind, batch, heads, queries, columns, keys):
    """By the fastest of PyTorch's kernels that take the case, chosen when its inputs are prepared."""
    kernels = [sdpa.SDPBackend.FLASH_ATTENTION, sdpa.SDPBackend.CUDNN_ATTENTION, sdpa.SDPBackend.EFFICIENT_ATTENTION]
    causal, grouped, backward = kind in ("causal", "grouped"), kind == "grouped", op == "attention_backward"
    chosen = []

    def attend(q, k, v, mask=None):
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal, enable_gqa=grouped)

    def make():
        key_heads = heads // 4 if grouped else heads
        inputs = [draw(batch, n, length, columns, dtype=dtype).requires_grad_(backward)
                  for n, length in ((heads, queries), (key_heads, keys), (key_heads, keys))]
        if kind == "mask":
            inputs.append(torch.rand(queries, keys) > 0.25)
        if kind == "bias":
            inputs.append(draw(queries, keys, dtype=dtype))
        return (*inputs, draw(batch, heads, queries, columns, dtype=dtype)) if backward else tuple(inputs)

    def gradients(o, do, inputs):
        return torch.autograd.grad(o, inputs[:3], do, retain_graph=True)

    def prepare_with(kernel, inputs):
        """What `call` takes: the kernel, and for the gradient a forward pass by the same kernel."""
        if not backward:
            return kernel, inputs
        *inputs, do = inputs
        with sdpa.sdpa_kernel(kernel):
            return kernel, attend(*inputs), do, inputs

    def call(kernel, *rest):
        if backward:
            return gradients(*rest)
        with sdpa.sdpa_kernel(kernel):
            return attend(*rest[0])

    def seconds(kernel, inputs):
        try:
            prepared = prepare_with(kernel, inputs)
            call(*prepared)
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            for _ in range(3):
                call(*prepared)
            end.record()
            end.synchronize()
            return start.elapsed_time(end)
        except RuntimeError:  # this kernel does not take the case
            return math.inf

    def prepare(*inputs):
        if inputs[0].dtype == torch.float64:
            return prepare_with(sdpa.SDPBackend.MATH, inputs)
        if not chosen:
            chosen.append(min(kernels, key=lambda kernel: seconds(kernel, inputs)))
        return prepare_with(chosen[0], inputs)
    return Problem(make, call, prepare, needs_grad=backward)


def linear_cross_entropy(dtype, rows, length, classes):
    def both(x, weight, y):
        x.grad = weight.grad = None
        F.cross_entropy(F.linear(x, weight), y).backward()
        return x.grad, weight.grad

    def make():
        x, weight = draw(rows, length, dtype=dtype), draw(classes, length, dtype=dtype) * 0.02
        return x.requires_grad_(), weight.requires_grad_(), torch.randint(0, classes, (rows,))
    return Problem(make, both, needs_grad=True)


def cross_entropy(op, dtype, rows, classes):
    def targets():
        return torch.randint(0, classes, (rows,))

    if op == "cross_entropy":
        return Problem(lambda: (draw(rows, classes, dtype=dtype), targets()),
                       lambda x, y: F.cross_entropy(x, y, reduction="none"))
    if op == "cross_entropy_both":
        def both(x, y):
            x.grad = None
            F.cross_entropy(x, y).backward()
            return x.grad
        return Problem(lambda: (draw(rows, classes, dtype=dtype).requires_grad_(), targets()), both, needs_grad=True)

    def make():
        log_p, y = torch.log_softmax(draw(rows, classes, dtype=dtype), -1), targets()
        return draw(rows, dtype=dtype), log_p, y, nll_loss_forward(log_p, y, None, 0, -100)[1]
    return Problem(make, lambda dloss, log_p, y, total: log_softmax_backward(
        nll_loss_backward(dloss, log_p, y, None, 0, -100, total), log_p, -1, log_p.dtype))


def conv2d(op, dtype, image, outputs):
    kernel, result = (outputs, image[1], 3, 3), (image[0], outputs, *image[2:])
    if op == "conv2d":
        return Problem(lambda: (draw(*image, dtype=dtype), draw(*kernel, dtype=dtype)),
                       lambda x, w: F.conv2d(x, w, padding=1))
    which = (op == "conv2d_input_grad", op == "conv2d_weight_grad", False)
    return Problem(lambda: tuple(draw(*s, dtype=dtype) for s in (result, image, kernel)),
                   lambda dy, x, w: conv2d_backward(
                       dy, x, w, None, (1, 1), (1, 1), (1, 1), False, (0, 0), 1, which))


def max_pool2d(op, dtype, image):
    if op == "max_pool2d":
        return Problem(lambda: (draw(*image, dtype=dtype),), lambda x: torch.max_pool2d(x, 2))

    def make():
        x = draw(*image, dtype=dtype)
        y, index = max_pool2d_with_indices(x, (2, 2))
        return torch.randn_like(y), x, index
    return Problem(make, lambda dy, x, index: max_pool2d_backward(
        dy, x, (2, 2), (2, 2), (0, 0), (1, 1), False, index))


def batch_norm(op, dtype, image):
    def inputs():
        return draw(*image, dtype=dtype), draw(image[1]), draw(image[1])

    if op == "batch_norm":
        return Problem(inputs, lambda x, weight, bias: torch.batch_norm(
            x, weight, bias, None, None, True, 0.1, 1e-5, True))

    def prepare(x, weight, dy):  # with the kernel that the forward chooses, cuDNN's or PyTorch's own
        _, mean, rstd, reserve, chosen = torch._batch_norm_impl_index(
            x, weight, weight, None, None, True, 0.1, 1e-5, True)
        return chosen, x, dy, weight, None, None, mean, rstd, True, 1e-5, (True, True, True), reserve
    return Problem(lambda: (*inputs()[:2], draw(*image, dtype=dtype)), batch_norm_backward, prepare)


def optimizer(op):
    def make():
        parameters = [draw(*shape).requires_grad_() for shape in GPT2_MATRICES]
        for p in parameters:
            p.grad = torch.randn_like(p)
        return (torch.optim.AdamW(parameters, lr=1e-3, fused=True),)
    if op == "adamw":
        return Problem(make, lambda adamw: adamw.step(), needs_grad=True)
    return Problem(lambda: tuple(draw(*shape) for shape in GPT2_MATRICES),
                   lambda *grads: torch.nn.utils.get_total_norm(grads))


def tokenizer(op, kind, rows=10_000_000, columns=20, bins=100):
    """Sorting the columns and taking the quantiles between two elements; searching those."""
    ranks = torch.arange(bins + 1, dtype=torch.float64, device="cuda") / bins * (rows - 1)
    lower, weight = ranks.floor().long(), ranks.frac()
    upper = (lower + 1).clamp(max=rows - 1)
    dense = kind == "columns"  # do they lie dense, or the rows

    def table():
        x = draw(columns, rows) if dense else draw(rows, columns)
        return torch.floor(torch.rand_like(x) * 4) if kind == "ties" else torch.exp(3 * x) if kind == "tails" else x

    def quantiles(x):
        ordered = torch.sort(x, dim=1 if dense else 0).values
        by_rank = ordered if dense else ordered.T
        low, high = by_rank[:, lower].double(), by_rank[:, upper].double()
        return (low + (high - low) * weight).float()

    def tokens(x, edges):
        found = torch.searchsorted(edges, x if dense else x.T.contiguous(), right=True, out_int32=True).to(torch.uint8)
        return found if dense else found.T.contiguous()

    if op == "tokenizer_fit":
        return Problem(lambda: (table(),), quantiles, clock="latency")
    if op == "tokenizer_transform":
        return Problem(lambda: (table(),), tokens, lambda x: (x, quantiles(x)[:, 1:-1].contiguous()))

    def pinned():
        return (torch.randn(rows, columns, device="cpu").pin_memory(),)
    if op == "host_copy":
        return Problem(pinned, lambda x: x.to("cuda", non_blocking=True), clock="latency")

    def fit_transform(x):
        x = x.to("cuda", non_blocking=True)
        return tokens(x, quantiles(x)[:, 1:-1].contiguous())
    return Problem(pinned, fit_transform, clock="latency")


def training(kind, model_name):
    graph = kind == "train_graph"

    def make():
        model, forward = next((m, f) for name, m, f in torch_models(torch) if name == f"train/{model_name}")
        adamw = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True, capturable=graph)

        def step():
            adamw.zero_grad(set_to_none=True)
            forward().backward()
            adamw.step()
        if not graph:
            return (step,)
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                step()
        torch.cuda.current_stream().wait_stream(side)
        captured = torch.cuda.CUDAGraph()
        with torch.cuda.graph(captured):
            step()
        return captured.replay, step  # which keeps alive what the graph reads
    return Problem(make, lambda step, *_: step(), needs_grad=True, clock="wall")


def priors(kind):
    if kind == "dlpack":
        return Problem(lambda: (draw(16, 1024, 20),), torch.from_dlpack, clock="wall")

    def formula(count=1_000_000):  # as CausalCUDA has it: one formula, four coefficients a dataset
        x = torch.rand(count, 64, 4, device="cuda").mul_(6).sub_(3)
        a, b, c, d = torch.randn(4, count, 1, device="cuda")
        y = a * x[..., 0] + b * torch.sin(x[..., 1]) + c * torch.tanh(x[..., 2]) + d * torch.exp(0.5 * x[..., 3])
        return x, y
    return Problem(lambda: (), formula)


def linear_algebra(op, dtype, batch, n):
    linalg = torch.linalg

    def positive(x):
        return x @ x.mT + n * torch.eye(n, dtype=dtype, device="cuda")
    calls = {"cholesky": (positive, linalg.cholesky), "solve": (lambda x: x, lambda a, b: linalg.solve(a, b)),
             "qr": (lambda x: x, linalg.qr), "eigh": (lambda x: x + x.mT, linalg.eigh),
             "svd": (lambda x: x, lambda a: linalg.svd(a, full_matrices=False))}
    prepare, call = calls[op]
    right = ((draw(batch, n, 1, dtype=dtype).cuda(),) if op == "solve" else ())
    return Problem(lambda: (draw(batch, n, n, dtype=dtype),), call, lambda x: (prepare(x), *right), clock="latency")


def set_tf32(on):
    torch.backends.cuda.matmul.allow_tf32 = on
    torch.backends.cudnn.allow_tf32 = on


OURS_ALONE = r"priors/.*/1024x20/.*|(call/)?launch/.*"  # rows that PyTorch has nothing for


def problem(name):
    """Also sets whether f32 products may use tf32, as the name says."""
    parts = name.split("/")
    set_tf32("tf32" in parts)
    op, *rest = parts
    if op in ("train", "train_graph"):
        return training(op, rest[0])
    if op == "pool":
        return Problem(lambda: (), lambda: torch.empty(1 << 20, dtype=torch.uint8, device="cuda"),
                       clock="wall")
    if op == "priors":
        return priors(rest[0])
    if op == "call":
        single = problem("/".join(rest))
        single.clock = "call"
        return single
    if op in ("lazy", "compiled"):
        return fused(rest[0], DTYPES[rest[1]], rest[2], op == "compiled")
    if op in ("eager", "latency"):
        op, dtype, n = rest
        size, dtype = int(n), DTYPES[dtype]
        small = matmul(dtype, size) if op == "matmul" else Problem(lambda: (draw(size), draw(size)), torch.add)
        small.clock = "wall" if parts[0] == "eager" else "latency"
        return small
    dtype, size = DTYPES[rest[0]], rest[-1]
    if op in ("adamw", "global_norm"):
        return optimizer(op)
    if op.startswith("tokenizer") or op == "host_copy":
        return tokenizer(op, rest[1])
    if op == "matmul":
        return matmul(dtype, int(size))
    if op in ("cholesky", "solve", "qr", "eigh", "svd"):
        return linear_algebra(op, dtype, *(int(n) for n in size.split("x")[:2]))
    if op in ("add", "relu", "gelu", "sigmoid", "copy"):
        return elementwise(op, dtype, size)
    if op in ("sum", "max"):
        return reduce(op, dtype, *rest[1:])
    image, _, outputs = size.partition("_to_")
    extents = [int(n) for n in image.split("x")]
    if op.removesuffix("_backward") == "attention":
        return attention(op, dtype, rest[1], *extents, int(outputs or extents[2]))
    if op.startswith("conv2d"):
        return conv2d(op, dtype, extents, int(outputs))
    if op.startswith("max_pool2d"):
        return max_pool2d(op, dtype, extents)
    if op.startswith("batch_norm"):
        return batch_norm(op, dtype, extents)
    if op.startswith("linear_cross_entropy"):
        return linear_cross_entropy(dtype, *extents)
    if op.startswith("cross_entropy"):
        return cross_entropy(op, dtype, *extents)
    if op.removesuffix("_backward") in ("softmax", "layer_norm", "rms_norm", "gated_activation"):
        return row_op(op, dtype, *extents)
    if op == "rope":
        return rope(dtype, *extents)
    raise ValueError(f"{name}: no such row in PyTorch; add it to torch_rows.py")
