#!/usr/bin/env python3
"""Compares kernels with NVIDIA Warp (package warp-lang, its CPU device): those of tests/kernel/corpus, launched by both as
the comment over each kernel says (Warp runs the text itself and the text that ferrite prints of it), and every expression of
builtins.txt. Integers must be equal; floats must agree to a few
roundings of their type. Exits with 77 where Warp is not installed."""

import argparse
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import numpy as np
    import warp as wp
except ImportError as missing:
    print(f"SKIPPED: {missing}")
    sys.exit(77)

CORPUS = Path(__file__).resolve().parents[1] / "kernel" / "corpus"
TILES = "tiles.py"  # are printed as shared arrays
FERRITE_ONLY = {"shared.py", TILES}  # shared_array and sync_threads are no part of Warp
ROUNDINGS = 64  # of the largest value in the array: Warp's compiler contracts a * b + c, the interpreter does not


class Check:
    def __init__(self):
        self.passed, self.failed = 0, 0

    def close(self, what, got, want):
        got, want = np.asarray(got), np.asarray(want)
        if want.dtype.kind == "f":
            scale = np.max(np.abs(want[np.isfinite(want)]), initial=1.0)
            bound = ROUNDINGS * np.finfo(want.dtype).eps * scale
            with np.errstate(invalid="ignore"):
                same = (np.abs(got - want) <= bound) | (got == want) | (np.isnan(got) & np.isnan(want))
        else:
            same = got == want
        if got.shape == want.shape and np.all(same):
            self.passed += 1
            return
        self.failed += 1
        at = np.argwhere(~same)[0] if got.shape == want.shape else ()
        print(f"{what}: at {tuple(at)} ferrite has {got[tuple(at)]}, Warp {want[tuple(at)]}")


def load(path, name):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def launches(text):
    """(kernel, {name: value}) of every comment `# run: dim=... name=value ...`."""
    for found in re.finditer(r"# run: (.*)\n@wp\.kernel.*\ndef (\w+)", text):
        yield found[2], dict(part.split("=", 1) for part in found[1].split())


def generate(how, dtype, rng):
    kind, _, shape = how.partition(":")
    shape = tuple(int(n) for n in shape.split("x"))
    if kind == "zeros":
        return np.zeros(shape, dtype)
    return (rng.standard_normal(shape) if kind == "normal" else rng.integers(0, 100, shape)).astype(dtype)


def numpy_type(element):
    """The dtype of the scalars in a Warp element type."""
    return np.dtype(wp._src.types.warp_type_to_np_dtype[getattr(element, "_wp_scalar_type_", element)])


def compare_kernel(check, ferrite, file, module, name, run, folder):
    kernel = getattr(module, name)
    rng = np.random.default_rng(len(name))
    dim = tuple(int(n) for n in run.pop("dim").split("x"))
    command = [ferrite, "kernel", "run", str(file), "--kernel", name, "--dim", "x".join(map(str, dim)), "--out", str(folder)]
    command += ["--block-dim", run["block"]] if "block" in run else []
    inputs, arrays = [], {}
    for argument in kernel.adj.args:
        fields = {k.split(".")[1]: v for k, v in run.items() if k.startswith(argument.label + ".")}
        if fields:
            value = argument.type()
            for field, text in fields.items():
                numbers = [float(part) for part in text.split(",")]
                setattr(value, field, numbers[0] if len(numbers) == 1 else wp.vec3(*numbers))
                command += ["--arg", f"{argument.label}.{field}={text}"]
        elif hasattr(argument.type, "ndim"):
            data = generate(run[argument.label], numpy_type(argument.type.dtype), rng)
            path = folder / f"{argument.label}_in.npy"
            np.save(path, data.astype(np.int32) if data.dtype == np.uint32 else data)
            command += ["--arg", f"{argument.label}={path}"]
            value = arrays[argument.label] = wp.array(data, dtype=argument.type.dtype, device="cpu")
        else:
            text = run[argument.label]
            value = float(text) if "." in text else int(text)
            command += ["--arg", f"{argument.label}={run[argument.label]}"]
        inputs.append(value)
    reply = subprocess.run(command, capture_output=True, text=True)
    if reply.returncode != 0:
        check.failed += 1
        print(f"{file.name} {name}: {reply.stderr.strip()}")
        return
    if dim[-1] == int(run.get("block", 0)):  # a block is one thread of Warp's CPU
        dim = (*dim[:-1], 1)
    wp.launch(kernel, dim=dim, inputs=inputs, device="cpu", block_dim=1)
    for label, array in arrays.items():
        want = array.numpy()
        check.close(f"{file.name} {name} {label}", np.load(folder / f"{label}.npy").astype(want.dtype), want)


PARTS = {"s": [""]}
PARTS |= {f"v{n}": [f"[{i}]" for i in range(n)] for n in (2, 3, 4)}
PARTS |= {f"m{n}": [f"[{i}, {j}]" for i in range(n) for j in range(n)] for n in (2, 3, 4)}
PARTS["q"] = PARTS["v4"]


def compare_builtins(check, ferrite, folder):
    """One kernel per expression, all in one file."""
    lines = (CORPUS / "builtins.txt").read_text().splitlines()
    cases = [re.fullmatch(r"(\w+): (.*) => (.*)", line).groups() for line in lines if line[0] != "#"]
    text = "import warp as wp\n"
    for k, (form, expression, _) in enumerate(cases):
        text += f"\n\n@wp.kernel(enable_backward=False)\ndef case_{k}(x: float, i: int, a: wp.array[float], "
        text += "n: wp.array[int], out: wp.array[wp.float64]):\n    state = wp.rand_init(42)\n"
        text += f"    v = {expression}\n"
        for c, part in enumerate(PARTS[form]):
            text += f"    out[{c}] = wp.float64(v{part})\n"
    file = folder / "builtin_cases.py"
    file.write_text(text)
    module = load(file, "builtin_cases")
    numbers = np.arange(1, 5)
    np.save(folder / "a.npy", numbers.astype(np.float32))
    np.save(folder / "n.npy", numbers.astype(np.int32))
    for k, (form, expression, _) in enumerate(cases):
        out = folder / "out"
        command = [ferrite, "kernel", "run", file, "--kernel", f"case_{k}", "--dim", "1", "--arg", "x=0.75", "--arg", "i=-7"]
        command += ["--arg", f"a={folder / 'a.npy'}", "--arg", f"n={folder / 'n.npy'}", "--arg", "out=zeros:16", "--out", out]
        reply = subprocess.run(command, capture_output=True, text=True)
        if reply.returncode != 0:
            check.failed += 1
            print(f"{expression}: {reply.stderr.strip()}")
            continue
        a, n = wp.array(numbers, dtype=float, device="cpu"), wp.array(numbers, dtype=int, device="cpu")
        result = wp.zeros(16, dtype=wp.float64, device="cpu")
        wp.launch(getattr(module, f"case_{k}"), dim=1, inputs=[0.75, -7, a, n, result], device="cpu")
        got, want = np.load(out / "out.npy"), result.numpy()
        wide = "float64" in expression  # others are f32, stored as f64
        check.close(expression, got if wide else got.astype(np.float32), want if wide else want.astype(np.float32))


def corpus_for_warp(folder):
    """The files that Warp takes too; Warp is started and keeps what it compiles in the folder."""
    wp.config.quiet = True
    wp.config.optimization_level = 0  # compiling takes longer than running
    wp.config.kernel_cache_dir = str(folder / "cache")
    wp.init()
    return [file for file in sorted(CORPUS.glob("*.py")) if file.name not in FERRITE_ONLY]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ferrite", required=True, help="path of the program")
    options = parser.parse_args()
    check = Check()
    wp.config.enable_backward = False
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        for file in corpus_for_warp(folder):
            printed = folder / file.name
            shown = subprocess.run([options.ferrite, "kernel", "check", "--print", file], capture_output=True, check=True)
            printed.write_bytes(shown.stdout)
            for form, path in (("text", file), ("printed", printed)):
                module = load(path, f"{form}_{file.stem}")
                for name, run in launches(file.read_text()):
                    compare_kernel(check, options.ferrite, file, module, name, run, folder)
        tiles = load(CORPUS / TILES, "tiles")
        for name, run in launches((CORPUS / TILES).read_text()):
            compare_kernel(check, options.ferrite, CORPUS / TILES, tiles, name, run, folder)
        compare_builtins(check, options.ferrite, folder)
    print(f"{check.passed} passed, {check.failed} failed")
    return 1 if check.failed else 0


if __name__ == "__main__":
    sys.exit(main())
