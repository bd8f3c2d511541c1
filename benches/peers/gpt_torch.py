"""GPT-2 in PyTorch, and the measurement of its training steps: the peer of `ferrite gpt bench`.

The model, AdamW, clipping and precision are those of src/cli/gpt/bench_run.hpp. Change both together.
"""

import contextlib
import time

VOCABULARY, PADDED = 50257, 50304  # both pad the table to a multiple of 128
SIZES = {"gpt2": (12, 12, 768), "gpt2-medium": (24, 16, 1024), "gpt2-large": (36, 20, 1280), "gpt2-xl": (48, 25, 1600)}


def versions():
    try:
        import torch
    except ImportError:
        return {}
    found = {"torch": torch.__version__}
    if torch.cuda.is_available():
        found |= {"cuda": torch.version.cuda, "cudnn": torch.backends.cudnn.version(), "gpu": torch.cuda.get_device_name()}
    return found


def make_model(torch, size, length):
    nn, F = torch.nn, torch.nn.functional
    layers, heads, dim = SIZES[size]

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
            self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
            self.up, self.down = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

        def forward(self, x):
            n, t, c = x.shape
            q, k, v = self.qkv(self.norm1(x)).view(n, t, 3, heads, c // heads).permute(2, 0, 3, 1, 4)
            seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.proj(seen.transpose(1, 2).reshape(n, t, c))
            return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))

    class Gpt(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.positions = nn.Embedding(PADDED, dim), nn.Embedding(max(1024, length), dim)
            self.blocks, self.norm = nn.ModuleList(Block() for _ in range(layers)), nn.LayerNorm(dim)
            for parameter in self.parameters():
                if parameter.dim() > 1:
                    nn.init.normal_(parameter, std=0.02)

        def forward(self, ids, targets):
            x = self.tokens(ids) + self.positions.weight[: ids.shape[1]]
            for block in self.blocks:
                x = block(x)
            logits = F.linear(self.norm(x), self.tokens.weight)
            return F.cross_entropy(logits.view(-1, PADDED), targets.view(-1))

    return Gpt()


def make_optimizer(torch, model):
    decayed = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() <= 1]
    groups = [{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=6e-4, betas=(0.9, 0.95), fused=True)


def batches(torch, asked):
    """Pairs of ids and targets on the device, without end: the windows of the file in a random order."""
    import numpy as np

    rows, length = asked["batch"], asked["length"]
    header = np.fromfile(asked["data"], dtype="<i4", count=3)
    if list(header[:2]) != [20240520, 1]:
        raise ValueError(f"{asked['data']}: give a token file of llm.c's format with u16 (`ferrite gpt tokens` writes it)")
    tokens = np.memmap(asked["data"], dtype="<u2", mode="r", offset=1024)
    windows = (len(tokens) - 1) // length
    if windows < rows:
        raise ValueError(f"{asked['data']}: has {windows} windows of {length} tokens: give fewer rows or a larger file")
    rng = np.random.default_rng(1)
    pinned = asked["device"] == "cuda"
    while True:
        order = rng.permutation(windows)
        for first in range(0, windows - rows + 1, rows):
            picked = np.stack([tokens[w * length : w * length + length + 1] for w in order[first : first + rows]])
            both = torch.from_numpy(picked.astype(np.int64))
            both = (both.pin_memory() if pinned else both).to(asked["device"], non_blocking=True)
            yield both[:, :-1].contiguous(), both[:, 1:].contiguous()


def attention_kernel(torch, name):
    if name == "auto":
        return contextlib.nullcontext()
    from torch.nn.attention import SDPBackend, sdpa_kernel

    return sdpa_kernel(SDPBackend.CUDNN_ATTENTION if name == "cudnn" else SDPBackend.FLASH_ATTENTION)


def measure(asked):
    """Steps for asked["seconds"], in chunks of half a second: what `ferrite gpt bench --json` says, by the same names."""
    import torch

    torch.manual_seed(1)
    device, on_gpu = asked["device"], asked["device"] == "cuda"
    model = make_model(torch, asked["size"], asked["length"]).to(device)
    optimizer = make_optimizer(torch, model)
    forward = torch.compile(model) if asked["side"] == "compile" else model
    precision = torch.autocast(device, dtype=torch.bfloat16, enabled=asked["precision"] == "bf16")
    source = batches(torch, asked)

    def step():
        ids, targets = next(source)
        with precision:
            loss = forward(ids, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss

    def seconds_of(steps):
        start = time.perf_counter()
        for _ in range(steps):
            loss = step()
        if on_gpu:
            torch.cuda.synchronize()
        return time.perf_counter() - start, loss

    with attention_kernel(torch, asked["attention"]):
        warmup, _ = seconds_of(3)  # compiles, and chooses kernels
        once, _ = seconds_of(1)
        chunk, steps, seconds = max(1, int(0.5 / once)), 0, 0.0
        while seconds < asked["seconds"]:
            took, loss = seconds_of(chunk)
            seconds, steps = seconds + took, steps + chunk
    peak = torch.cuda.max_memory_allocated() if on_gpu else peak_of_process()
    return {"size": asked["size"], "batch": asked["batch"], "length": asked["length"], "precision": asked["precision"],
            "steps": steps, "seconds": seconds, "warmup_seconds": warmup,
            "milliseconds_per_step": 1e3 * seconds / steps,
            "tokens_per_second": asked["batch"] * asked["length"] * steps / seconds,
            "peak_bytes": peak, "loss": loss.item()}


def peak_of_process():
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
