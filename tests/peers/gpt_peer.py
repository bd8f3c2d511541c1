#!/usr/bin/env python3
"""Checks that weights go from Hugging Face's transformers to ferrite and back.

    python gpt_peer.py --ferrite PATH            random models are saved, imported, exported, loaded and compared
    python gpt_peer.py --make tests/models/gpt          writes the fixtures of the tests: small (a GPT-2), llama, ...

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
    from transformers import AutoModelForCausalLM, GPT2Config, GPT2LMHeadModel
    from transformers import LlamaConfig, LlamaForCausalLM, MistralConfig, MistralForCausalLM
    from transformers import Qwen2Config, Qwen2ForCausalLM
except ImportError as missing:
    print(f"SKIPPED: {missing}: install torch, transformers and safetensors to compare with them")
    sys.exit(SKIPPED)


def randomised(make, scale=0.1):
    """Random weights everywhere: as made, biases are 0 and norms 1, which would hide mistakes."""
    torch.manual_seed(1)
    model = make()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if ("ln_" in name or "norm" in name) and name.endswith("weight"):
                parameter.add_(0.1 * torch.randn_like(parameter))
            else:
                parameter.copy_(scale * torch.randn_like(parameter))
    return model.eval()


def model_of(**sizes):
    end = sizes["vocab_size"] - 1
    return randomised(lambda: GPT2LMHeadModel(GPT2Config(**sizes, bos_token_id=end, eos_token_id=end)))


def llamas(**sizes):
    """One of each kind, by the name of its fixture. Weights are so large that attention differs among keys."""
    base = {"bos_token_id": 1, "eos_token_id": 2, "num_attention_heads": 4, "num_key_value_heads": 2, **sizes}
    scaled = {"rope_type": "llama3", "rope_theta": 10000.0, "factor": 4.0, "low_freq_factor": 1.0}
    scaled |= {"high_freq_factor": 4.0, "original_max_position_embeddings": 16}
    linear = {"rope_type": "linear", "rope_theta": 1000.0, "factor": 2.0}
    biased = {**base, "num_key_value_heads": 4, "attention_bias": True, "mlp_bias": True}
    configs = {
        "llama": LlamaConfig(**base, rope_parameters=scaled, rms_norm_eps=1e-5),
        "llama_tied": LlamaConfig(**biased, rope_parameters=linear, tie_word_embeddings=True),
        "mistral": MistralConfig(**base, sliding_window=5, head_dim=12),
        "qwen2": Qwen2Config(**base, tie_word_embeddings=True),
    }
    classes = {"llama": LlamaForCausalLM, "mistral": MistralForCausalLM, "qwen2": Qwen2ForCausalLM}
    return {name: randomised(lambda: classes[c.model_type](c), scale=0.3) for name, c in configs.items()}


def ids_for(model, rows=2):
    generator = torch.Generator().manual_seed(2)
    return torch.randint(model.config.vocab_size, (rows, model.config.max_position_embeddings), generator=generator)


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
    loaded = AutoModelForCausalLM.from_pretrained(folder, dtype="auto").eval()
    assert type(loaded) is type(model), f"loaded as {type(loaded).__name__}"
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


def check_llamas(ferrite, folder):
    sizes = {"vocab_size": 300, "max_position_embeddings": 64, "hidden_size": 64, "intermediate_size": 96}
    for name, model in llamas(**sizes, num_hidden_layers=3).items():
        model.save_pretrained(folder / name)
        (folder / f"{name}_back").mkdir()
        check_same(model, ferrite.there_and_back(folder / name, folder / f"{name}_back"), torch.float32)
    model.to(torch.bfloat16).save_pretrained(folder / "shards", max_shard_size="50kB")
    assert (folder / "shards" / "model.safetensors.index.json").exists()
    # Loaded again: to() has rounded the frequencies of the rotations, too, which files do not hold.
    model = AutoModelForCausalLM.from_pretrained(folder / "shards", dtype="auto").eval()
    check_same(model, ferrite.there_and_back(folder / "shards", folder, "bf16"), torch.bfloat16)


def make_fixtures(folder):
    make_fixture(folder / "small", model_of(vocab_size=101, n_positions=16, n_embd=32, n_layer=2, n_head=4))
    sizes = {"vocab_size": 53, "max_position_embeddings": 24, "hidden_size": 32, "intermediate_size": 40}
    for name, model in llamas(**sizes, num_hidden_layers=2).items():
        make_fixture(folder / name, model)


def make_fixture(folder, model):
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
    parser.add_argument("--make", type=Path, help="write the fixtures there instead")
    options = parser.parse_args()
    if options.make:
        return make_fixtures(options.make)
    if not options.ferrite:
        parser.error("--ferrite or --make is needed")
    for check in (check_round_trips, check_shards, check_published_names, check_llamas):
        with tempfile.TemporaryDirectory() as folder:
            check(Ferrite(Path(options.ferrite).resolve()), Path(folder))
        print(f"{check.__name__}: ok", flush=True)


if __name__ == "__main__":
    sys.exit(main())
