#!/usr/bin/env python3
"""A GPT-2 of random weights in ferrite and in Hugging Face's transformers: logits, gradients, and the losses of training.

    python gpt_training_peer.py --ferrite PATH --peer PATH                   a small model on the CPU
    python gpt_training_peer.py --ferrite PATH --peer PATH --size gpt2 --backend cuda --precision bf16 --rate 1e-4

In f32 the judge of logits and gradients is transformers in f64. In bf16 it is transformers in f32, and the other side is
transformers under torch.autocast. ferrite may be at most --slack times as far from the judge as the other side is: in bf16
it rounds the sums of the residual stream too, which autocast keeps in f32. The judge of losses is transformers in f32. In
bf16 the same holds for them, over the first 30 steps and over all. In f32 they differ by 1e-5 of them in the first 30 at
most, on average, and by 1 % over all: roundings drive runs apart. Needs torch, transformers and safetensors. The exit code is 77 (skipped) without them.
"""
import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

SKIPPED = 77
try:
    import numpy as np
    import torch
    from safetensors.torch import load_file
    from transformers import GPT2Config, GPT2LMHeadModel
except ImportError as missing:
    print(f"SKIPPED: {missing}: install torch, transformers and safetensors to compare with them")
    sys.exit(SKIPPED)

EARLY = 30  # steps in which roundings have not driven runs apart
SIZES = {
    "small": dict(vocab_size=300, n_positions=32, n_embd=64, n_layer=3, n_head=4),
    "gpt2": dict(vocab_size=50257, n_positions=1024, n_embd=768, n_layer=12, n_head=12),
}
NAMES = {"tokens.weight": "wte.weight", "positions.weight": "wpe.weight", "norm.weight": "ln_f.weight", "norm.bias": "ln_f.bias"}
IN_BLOCK = {"attn.qkv": "attn.c_attn", "attn.proj": "attn.c_proj", "norm1": "ln_1", "norm2": "ln_2", "ff.up": "mlp.c_fc",
            "ff.down": "mlp.c_proj"}


def theirs(name):
    """The name of a parameter in transformers."""
    if name in NAMES:
        return NAMES[name]
    _, layer, rest = name.split(".", 2)
    part, kind = rest.rsplit(".", 1)
    return f"h.{layer}.{IN_BLOCK[part]}.{kind}"


class Transformers:
    """What gpt_training_peer.cpp does, by transformers."""

    def __init__(self, folder, ids, device, dtype, autocast=False):
        self.model = GPT2LMHeadModel.from_pretrained(folder, dtype=dtype).to(device).eval()  # eval: no dropout
        self.ids = torch.from_numpy(ids).to(device, torch.int64)
        self.autocast = lambda: torch.autocast(device, torch.bfloat16, enabled=autocast)

    def loss(self, step):
        x, y = self.ids[step][:, :-1], self.ids[step][:, 1:]
        with self.autocast():
            logits = self.model(x).logits
        wide = logits if logits.dtype == torch.float64 else logits.float()
        return torch.nn.functional.cross_entropy(wide.flatten(0, 1), y.flatten()), logits

    def first_batch(self):
        self.model.zero_grad()
        loss, logits = self.loss(0)
        loss.backward()
        gradients = {n: p.grad.double().cpu() for n, p in self.model.transformer.named_parameters()}
        self.model.zero_grad()
        return logits.detach().double().cpu(), gradients

    def losses(self, steps, rate):
        matrices = [p for p in self.model.parameters() if p.dim() > 1]
        others = [p for p in self.model.parameters() if p.dim() < 2]
        groups = [{"params": matrices, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
        optimizer = torch.optim.AdamW(groups, lr=rate, betas=(0.9, 0.95), eps=1e-8)
        result = []
        for step in range(steps):
            loss, _ = self.loss(step % len(self.ids))
            result.append(loss.item())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return np.array(result)


def distance(given, expected):
    """Of tensors, relative to the expected one: of the vectors as a whole."""
    return ((given - expected).norm() / expected.norm()).item()


def our_gradients(out):
    result = {}
    for name, tensor in out.items():
        if not name.startswith("gradient."):
            continue
        key = theirs(name.removeprefix("gradient."))
        matrix = key.startswith("h.") and tensor.dim() == 2  # transformers keeps these transposed
        result[key] = (tensor.T if matrix else tensor).double()
    return result


def compare(options, folder):
    sizes = SIZES[options.size]
    torch.manual_seed(1)
    model = GPT2LMHeadModel(GPT2Config(**sizes, bos_token_id=0, eos_token_id=0))
    with torch.no_grad():  # biases and norms that could hide nothing
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.add_(0.1 * torch.randn_like(parameter))
    model.save_pretrained(folder / "model")
    length = min(options.length, sizes["n_positions"])
    # Tokens that can be learnt: each is followed by one of a few.
    draw = np.random.default_rng(2)
    ids = np.empty((options.batches, options.rows, length + 1), np.int32)
    ids[..., 0] = draw.integers(sizes["vocab_size"], size=ids.shape[:2])
    for t in range(length):
        ids[..., t + 1] = (ids[..., t].astype(np.int64) * 31 + draw.integers(4, size=ids.shape[:2])) % sizes["vocab_size"]
    np.save(folder / "ids.npy", ids)

    def run(*command):
        result = subprocess.run(list(map(str, command)), capture_output=True, text=True)
        assert result.returncode == 0, result.stderr
    run(options.ferrite, "gpt", "import", "--from", folder / "model", "--out", folder / "ours.safetensors")
    run(options.peer, folder / "ours.safetensors", folder / "ids.npy", options.backend, options.precision, options.steps,
        options.rate, folder / "out.safetensors")
    ours = load_file(folder / "out.safetensors")
    gradients = our_gradients(ours)

    device = "cuda" if options.backend.startswith("cuda") else "cpu"
    torch.backends.cuda.matmul.allow_tf32 = False
    plain = torch.float64 if options.precision == "f32" else torch.float32
    logits, exact = Transformers(folder / "model", ids, device, plain).first_batch()
    assert gradients.keys() == exact.keys(), gradients.keys() ^ exact.keys()
    peer = Transformers(folder / "model", ids, device, torch.float32, autocast=options.precision == "bf16")
    peer_logits, peer_gradients = peer.first_batch()

    beyond = gradients["wte.weight"][sizes["vocab_size"]:]  # rows of the table that no token has
    assert not beyond.any(), "tokens beyond the vocabulary have gradients"
    gradients["wte.weight"] = gradients["wte.weight"][: sizes["vocab_size"]]
    errors = {n: (distance(gradients[n], exact[n]), distance(peer_gradients[n], exact[n])) for n in exact}
    worst = max(errors, key=lambda n: errors[n][0] / errors[n][1])
    losses = {"ferrite": ours["losses"].double().numpy(), "transformers": peer.losses(options.steps, options.rate)}
    judge = losses["transformers"]
    if options.precision == "bf16":
        judge = Transformers(folder / "model", ids, device, torch.float32).losses(options.steps, options.rate)
        losses["transformers f32"] = judge
    report = {
        "size": options.size, "backend": options.backend, "precision": options.precision, "rows": options.rows, "length": length,
        "logits": {"ferrite": distance(ours["logits"].double(), logits), "transformers": distance(peer_logits, logits)},
        "gradients": {n: {"ferrite": a, "transformers": b} for n, (a, b) in errors.items()},
        "losses": {side: curve.tolist() for side, curve in losses.items()},
    }
    if options.out:
        options.out.write_text(json.dumps(report, indent=1) + "\n")

    def apart(side, steps):
        """From the judge's losses, on average over the first steps and relative to them."""
        return float(np.mean(np.abs(losses[side] - judge)[:steps] / judge[:steps]))
    ours_apart = {steps: apart("ferrite", steps) for steps in (EARLY, options.steps)}
    theirs_apart = {steps: apart("transformers", steps) for steps in (EARLY, options.steps)}
    print(f"{options.size}, {options.backend}, {options.precision}: logits {report['logits']}; gradients, the worst is {worst}: "
          f"ferrite {errors[worst][0]:.3g}, transformers {errors[worst][1]:.3g}; losses {losses['ferrite'][0]:.4f} to "
          f"{losses['ferrite'][-1]:.4f}, from those of transformers in f32 {ours_apart}"
          + (f" (autocast: {theirs_apart})" if options.precision == "bf16" else ""), flush=True)
    slack = options.slack
    assert report["logits"]["ferrite"] <= slack * report["logits"]["transformers"], "logits"
    assert all(a <= slack * b for a, b in errors.values()), f"gradient of {worst}"
    assert losses["ferrite"][-1] < 0.9 * losses["ferrite"][0], "the losses do not fall"
    if options.precision == "f32":
        assert ours_apart[EARLY] <= 1e-5 and ours_apart[options.steps] <= 0.01, "losses"
    else:
        assert all(ours_apart[steps] <= slack * theirs_apart[steps] for steps in ours_apart), "losses"
    print("training as in transformers: ok")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ferrite", required=True, type=Path, help="path of the program")
    parser.add_argument("--peer", required=True, type=Path, help="path of the program built from gpt_training_peer.cpp")
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument("--backend", default="cpu")
    parser.add_argument("--precision", choices=["f32", "bf16"], default="f32")
    parser.add_argument("--rows", type=int, default=4)
    parser.add_argument("--length", type=int, default=256)
    parser.add_argument("--batches", type=int, default=4, help="that take turns in training")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--rate", type=float, default=1e-3, help="of learning; 1e-4 suits gpt2")
    parser.add_argument("--slack", type=float, default=3.0)
    parser.add_argument("--out", type=Path, help="write what was found there, as JSON")
    with tempfile.TemporaryDirectory() as folder:
        compare(parser.parse_args(), Path(folder))


if __name__ == "__main__":
    sys.exit(main())
