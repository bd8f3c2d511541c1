#!/usr/bin/env python3
"""Checks that weights go from Hugging Face's transformers to ferrite and back.

    python gpt_peer.py --ferrite PATH            random GPT-2s are saved, imported, exported, loaded and compared
    python gpt_peer.py --make tests/models/gpt/small    writes the fixture of the tests

Needs torch, transformers and safetensors. The exit code is 77 (skipped) without them.
"""
import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

SKIPPED = 77
try:
    import numpy as np
    import torch
    from safetensors.torch import save_file
    from transformers import GPT2Config, GPT2LMHeadModel
except ImportError as missing:
    print(f"SKIPPED: {missing}: install torch, transformers and safetensors to compare with them")
    sys.exit(SKIPPED)


def model_of(**sizes):
    """Random weights everywhere: as made, biases are 0 and norms 1, which would hide mistakes."""
    torch.manual_seed(1)
    end = sizes["vocab_size"] - 1
    model = GPT2LMHeadModel(GPT2Config(**sizes, bos_token_id=end, eos_token_id=end)).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "ln_" in name and name.endswith("weight"):
                parameter.add_(0.1 * torch.randn_like(parameter))
            else:
                parameter.copy_(0.1 * torch.randn_like(parameter))
    return model


def ids_for(model, rows=2):
    generator = torch.Generator().manual_seed(2)
    return torch.randint(model.config.vocab_size, (rows, model.config.n_positions), generator=generator)


def logits(model, ids):
    with torch.no_grad():
        return model(ids).logits


class Ferrite:
    def __init__(self, program):
        self.program = program

    def run(self, *arguments):
        result = subprocess.run([self.program, "gpt", *map(str, arguments)], capture_output=True, text=True)
        assert result.returncode == 0, result.stderr

    def there_and_back(self, source, folder, dtype="f32"):
        """The folder with the model that was imported and exported."""
        self.run("import", "--from", source, "--out", folder / "ours.safetensors", "--dtype", dtype)
        self.run("export", "--model", folder / "ours.safetensors", "--to", folder / "back")
        return folder / "back"


def check_same(model, folder, dtype):
    loaded = GPT2LMHeadModel.from_pretrained(folder).eval()
    assert loaded.dtype == dtype, f"loaded as {loaded.dtype}"
    expected, given = model.state_dict(), loaded.state_dict()
    assert expected.keys() == given.keys()
    for name in expected:
        assert torch.equal(expected[name], given[name]), name
    ids = ids_for(model)
    assert torch.equal(logits(model, ids), logits(loaded, ids))


def check_round_trips(ferrite, folder):
    model = model_of(vocab_size=1000, n_positions=64, n_embd=128, n_layer=2, n_head=2)
    for dtype, name in [(torch.float32, "f32"), (torch.bfloat16, "bf16"), (torch.float16, "f16")]:
        model = model.to(dtype)
        model.save_pretrained(folder / name)
        check_same(model, ferrite.there_and_back(folder / name, folder, name), dtype)


def check_shards(ferrite, folder):
    model = model_of(vocab_size=1000, n_positions=64, n_embd=128, n_layer=2, n_head=4)
    model.save_pretrained(folder / "shards", max_shard_size="500kB")
    assert (folder / "shards" / "model.safetensors.index.json").exists()
    check_same(model, ferrite.there_and_back(folder / "shards", folder), torch.float32)


def check_published_names(ferrite, folder):
    """The files of openai-community/gpt2: no prefix, masks, and here no config."""
    model = model_of(vocab_size=1000, n_positions=64, n_embd=128, n_layer=2, n_head=2)
    tensors = {name.removeprefix("transformer."): t.clone() for name, t in model.state_dict().items()}
    for layer in range(2):
        tensors[f"h.{layer}.attn.bias"] = torch.tril(torch.ones(1, 1, 64, 64))
    (folder / "plain").mkdir()
    save_file(tensors, folder / "plain" / "any.safetensors")
    check_same(model, ferrite.there_and_back(folder / "plain" / "any.safetensors", folder), torch.float32)


def make_fixture(folder):
    model = model_of(vocab_size=101, n_positions=16, n_embd=32, n_layer=2, n_head=4)
    model.save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    (folder / "model.safetensors").chmod(0o644)
    ids = ids_for(model)
    np.save(folder / "ids.npy", ids.numpy().astype(np.int32))
    # In f64, so that a test can tell whose error a difference is.
    np.save(folder / "logits.npy", logits(model.double(), ids).numpy())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ferrite", help="path of the program")
    parser.add_argument("--make", type=Path, help="write the fixture there instead")
    options = parser.parse_args()
    if options.make:
        return make_fixture(options.make)
    if not options.ferrite:
        parser.error("--ferrite or --make is needed")
    for check in (check_round_trips, check_shards, check_published_names):
        with tempfile.TemporaryDirectory() as folder:
            check(Ferrite(Path(options.ferrite).resolve()), Path(folder))
        print(f"{check.__name__}: ok", flush=True)


if __name__ == "__main__":
    sys.exit(main())
