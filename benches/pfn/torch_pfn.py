"""The prior-fitted network of include/ferrite/models/pfn in PyTorch: the same parameters, names and arithmetic.

    model = torch_pfn.load("run/best.safetensors").to("cuda")
    context = model.read(x_train, is_category, labels)
    logits = model.predict(context, x_query)

Shapes and meanings are those of network.hpp. Statistics of columns and scores are f32 whatever the weights are; mixed
precision is torch.autocast around a call, bf16 inference is model.to(torch.bfloat16).
"""

import json
import math
import typing

import torch
import torch.nn.functional as F
from torch import nn

# CUDA kernels of scaled_dot_product_attention have the batch in a grid dimension of 16 bits. Attention among cells has a
# batch of all rows of all tables, which can be more.
MOST_BATCHES = 65_535


class Scale(typing.NamedTuple):
    """Where columns lie, by their finite cells: [N, 1, C] each; mean and deviation are those of x / magnitude."""
    magnitude: torch.Tensor
    mean: torch.Tensor
    deviation: torch.Tensor

    @staticmethod
    def of(x):
        present = torch.isfinite(x)
        filled = torch.where(present, x, 0)
        largest = filled.abs().amax(1, keepdim=True)
        magnitude = torch.where(largest > 0, largest, 1)
        count = present.sum(1, keepdim=True).clamp(min=1)
        scaled = filled / magnitude
        mean = scaled.sum(1, keepdim=True) / count
        squares = torch.where(present, scaled - mean, 0).square().sum(1, keepdim=True)
        return Scale(magnitude, mean, (squares / count).sqrt())

    def standardise(self, x):
        present = torch.isfinite(x)
        inverse = torch.where(self.deviation > 0, 1 / self.deviation.clamp(min=1e-30), 0)
        scaled = (torch.where(present, x, 0) / self.magnitude).clamp(-1e20, 1e20)
        return torch.where(present, ((scaled - self.mean) * inverse).clamp(-100, 100), 0)


class Context(typing.NamedTuple):
    """What is kept of the train rows."""
    columns: Scale
    is_category: torch.Tensor
    labels: typing.Optional[Scale]  # of regression
    layers: list  # (keys, values) of each block


def compressed(x, bound=4.0):
    size = x.abs()
    return x.sign() * (size.clamp(max=bound) + (size.clamp(min=bound) / bound).log() * bound)


def cell_features(scale, x, is_category, offsets):
    missing = (~torch.isfinite(x)).to(x.dtype)
    category = is_category.unsqueeze(1).expand_as(x)
    cells = torch.stack([compressed(scale.standardise(x)), missing, category], 3)
    return torch.cat([torch.roll(cells, -offset, 2) if offset else cells for offset in offsets], 3)


class RmsNorm(nn.Module):
    def __init__(self, dim, eps):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(dim)), eps

    def forward(self, x):
        # Autocast would widen x to f32 and write that; the fused kernel computes in f32 anyway.
        with torch.autocast(x.device.type, enabled=False):
            return F.rms_norm(x, self.weight.shape, self.weight.to(x.dtype), self.eps)


def plain_attention(q, k, v):
    return ((q * q.shape[-1] ** -0.5) @ k.transpose(-1, -2)).softmax(-1).to(v.dtype) @ v


def chunked_attention(q, k, v):
    if not q.is_cuda or q.shape[0] <= MOST_BATCHES:
        return F.scaled_dot_product_attention(q, k, v)
    parts = zip(*(t.split(MOST_BATCHES) for t in (q, k, v)))
    return torch.cat([F.scaled_dot_product_attention(*part) for part in parts])


# Rows have as few as 3 cells, for which tiles of fused attention are mostly empty: either form can be the faster.
CELL_ATTENTION = {"sdpa": chunked_attention, "plain": plain_attention}


class CellAttention(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.qkv, self.proj = nn.Linear(dim, 3 * dim, bias=False), nn.Linear(dim, dim, bias=False)


class FeedForward(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.up, self.down = nn.Linear(dim, hidden, bias=False), nn.Linear(hidden, dim, bias=False)

    def forward(self, x):
        return self.down(F.gelu(self.up(x), approximate="tanh"))


class Block(nn.Module):
    def __init__(self, config, form):
        super().__init__()
        dim, eps = config["dim"], config["eps"]
        self.norm1, self.norm2, self.norm3 = (RmsNorm(dim, eps) for _ in range(3))
        self.cells = CellAttention(dim)
        self.query, self.key, self.value, self.proj = (nn.Linear(dim, dim, bias=False) for _ in range(4))
        self.ff = FeedForward(dim, config["hidden"])
        self.width, self.attend = config["head_width"], CELL_ATTENTION[form]
        for ends_branch in (self.cells.proj, self.proj, self.ff.down):
            nn.init.zeros_(ends_branch.weight)

    def among_cells(self, x):
        n, rows, cells, dim = x.shape
        packed = self.cells.qkv(self.norm1(x)).view(n * rows, cells, 3, dim // self.width, self.width)
        seen = self.attend(*packed.transpose(1, 3).unbind(2))
        return x + self.cells.proj(seen.transpose(1, 2).reshape(x.shape))

    def shown(self, normed):
        return self.columns(self.key(normed)), self.columns(self.value(normed))

    def among_rows(self, x, normed, shown):
        seen = F.scaled_dot_product_attention(self.columns(self.query(normed)), *shown)
        y = x + self.proj(seen.transpose(1, 2).reshape(x.shape))
        return y + self.ff(self.norm3(y))

    def columns(self, x):
        """Heads of columns are heads of attention, without a copy: [N, R, K, dim] -> [N, K heads, R, width]"""
        return x.view(x.shape[0], x.shape[1], -1, self.width).transpose(1, 2)


class Pfn(nn.Module):
    """config: the object in the metadata of ferrite's files. form: a key of CELL_ATTENTION."""

    def __init__(self, config, form="sdpa"):
        super().__init__()
        self.config = config
        dim, registers = config["dim"], config["registers"]
        self.is_classifier = config["task"] == "classification"
        self.cell = nn.Linear(3 * len(config["offsets"]), dim)
        if self.is_classifier:
            self.label_classes = nn.Embedding(config["classes"], dim)
        else:
            self.label_values = nn.Linear(1, dim)
            shapes = bin_shapes(config["bins"])
            self.register_buffer("borders", torch.tensor(shapes["borders"], dtype=torch.float32), persistent=False)
        self.label_unknown = nn.Parameter(torch.randn(dim))
        if registers:
            self.register_cells = nn.Parameter(torch.randn(registers, dim))
            self.register_labels = nn.Parameter(torch.randn(registers, dim))
        self.blocks = nn.ModuleList(Block(config, form) for _ in range(config["layers"]))
        self.norm = RmsNorm(dim, config["eps"])
        self.head = nn.Linear(dim, config["hidden"])
        self.output = nn.Linear(config["hidden"], config["classes"] if self.is_classifier else config["bins"])

    def forward(self, x, is_category, labels):
        train = labels.shape[1]
        return self.predict(self.read(x[:, :train], is_category, labels), x[:, train:])

    def loss(self, x, is_category, labels, targets, classes):
        """The mean cross entropy of the query rows; classes [N] that a table does not have get no probability."""
        train = labels.shape[1]
        context = self.read(x[:, :train], is_category, labels)
        logits = self.predict(context, x[:, train:])
        if self.is_classifier:
            absent = torch.arange(logits.shape[2], device=x.device) >= classes.view(-1, 1, 1)
            logits = logits.masked_fill(absent, -1e30)
        else:
            targets = torch.bucketize(context.labels.standardise(targets.unsqueeze(2)).squeeze(2), self.borders, right=True)
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())

    def read(self, x, is_category, labels):
        columns, scale = Scale.of(x), None
        if self.is_classifier:
            label = self.label_classes(labels)
        else:
            scale = Scale.of(labels.unsqueeze(2))
            label = self.label_values(compressed(scale.standardise(labels.unsqueeze(2))).to(self.cell.weight.dtype))
        rows = self.with_registers(self.tokens(columns, x, is_category, label))
        layers = []
        for block in self.blocks:
            is_last = len(layers) + 1 == len(self.blocks)
            rows = block.among_cells(rows)
            if is_last:  # behind it only labels are read
                rows = rows[:, :, -1:]
            normed = block.norm2(rows)
            layers.append(block.shown(normed))
            if not is_last:
                rows = block.among_rows(rows, normed, layers[-1])
        return Context(columns, is_category, scale, layers)

    def predict(self, context, x):
        label = self.label_unknown.expand(x.shape[0], x.shape[1], -1)
        rows = self.tokens(context.columns, x, context.is_category, label)
        for i, block in enumerate(self.blocks):
            rows = block.among_cells(rows)
            if i + 1 == len(self.blocks):
                rows = rows[:, :, -1:]
            rows = block.among_rows(rows, block.norm2(rows), context.layers[i])
        return self.output(F.gelu(self.head(self.norm(rows.squeeze(2))), approximate="tanh")).float()

    def tokens(self, scale, x, is_category, label):
        features = cell_features(scale, x, is_category, self.config["offsets"])
        cells = self.cell(features.to(self.cell.weight.dtype))
        return torch.cat([cells, label.unsqueeze(2).to(cells.dtype)], 2)

    def with_registers(self, rows):
        if not self.config["registers"]:
            return rows
        n, _, cells, _ = rows.shape
        first = torch.cat([self.register_cells.unsqueeze(1).expand(-1, cells - 1, -1),
                           self.register_labels.unsqueeze(1)], 1).to(rows.dtype)
        return torch.cat([first.expand(n, -1, -1, -1), rows], 1)


def bin_shapes(bins):
    """As src/models/pfn/label_bins.cpp: quantiles of Student's distribution with 4 degrees of freedom."""
    borders = []
    for i in range(1, bins):
        p = i / bins
        root = 2 * math.sqrt(p * (1 - p))
        excess = math.cos(math.acos(min(root, 1)) / 3) / root - 1
        borders.append(math.copysign(2 * math.sqrt(max(excess, 0)), p - 0.5))
    inner = [b - a for a, b in zip(borders, borders[1:])]
    starts, widths = [borders[0], *borders], [inner[0], *inner, inner[-1]]
    means = [s + 0.5 * w for s, w in zip(starts, widths)]
    means[0], means[-1] = starts[0] - widths[0], starts[-1] + widths[-1]
    return {"borders": borders, "starts": starts, "widths": widths, "means": means}


def read_file(path):
    """The metadata and the tensors of a safetensors file."""
    with open(path, "rb") as f:
        header = json.loads(f.read(int.from_bytes(f.read(8), "little")))
        body = bytearray(f.read())
    kinds = {"F32": torch.float32, "BF16": torch.bfloat16, "F16": torch.float16, "F64": torch.float64}
    metadata, tensors = header.pop("__metadata__", {}), {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        if entry["dtype"] in kinds and end > begin:
            flat = torch.frombuffer(body, dtype=torch.uint8)[begin:end].clone().view(kinds[entry["dtype"]])
            tensors[name] = flat.view(entry["shape"])
    return metadata, tensors


def load(path, form="sdpa"):
    """A network of `pfn::save`, or of a checkpoint of `ferrite pfn train`: of averaged weights, where it has them."""
    metadata, tensors = read_file(path)
    if "pfn" not in metadata:
        raise ValueError(f"{path}: no config of a prior-fitted network in its metadata")
    if any(name.startswith("model.") for name in tensors):
        tensors = {name.removeprefix(prefix): tensor for prefix in ("model.", "average.")
                   for name, tensor in tensors.items() if name.startswith(prefix)}
    config = json.loads(metadata["pfn"])
    model = Pfn(config, form)
    model.load_state_dict({name: tensor.float() for name, tensor in tensors.items()})
    return model.to(torch.bfloat16) if config["dtype"] == "bf16" else model
