#!/usr/bin/env python3
"""Compares gradients with NVIDIA Warp's tape: for every kernel of tests/kernel/corpus, Warp runs the backward kernel that
`ferrite kernel adjoint` prints, and its own. Compared are the adjoints of arrays that the kernel does not change, since Warp
leaves the adjoint of an overwritten element as it is. Exits with 77 where Warp is not installed."""

import argparse
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

from warp_kernels_peer import CORPUS, Check, corpus_for_warp, generate, launches, load, numpy_type

# Where Warp's own gradient differs, seen with 1.19; ferrite's agree with central differences (tests/kernel).
NOT_WARP = {
    "newton_root": "a while loop that changes the values its derivative needs",
    "early_returns": "a return out of a loop",
    "structs": "an overwritten component keeps its adjoint",
    "components": "an overwritten component keeps its adjoint",
    "matrix_elements": "an overwritten component keeps its adjoint",
    "local_array": "an overwritten element keeps its adjoint",
    "windows": "an array of the thread whose elements are factors of a product, with indices from either end",
    "halves": "adjoints in f16, which round in another order",
}


def struct_of(kind, fields):
    value = kind()
    for field, text in fields.items():
        numbers = [float(part) for part in text.split(",")]
        setattr(value, field, numbers[0] if len(numbers) == 1 else wp.vec3(*numbers))
    return value


def arguments_of(kernel, run, rng):
    """Values in the order of the kernel's parameters; arrays are NumPy's."""
    values = []
    for a in kernel.adj.args:
        fields = {k.split(".")[1]: v for k, v in run.items() if k.startswith(a.label + ".")}
        if fields:
            values.append(struct_of(a.type, fields))
        elif hasattr(a.type, "ndim"):
            values.append(generate(run[a.label], numpy_type(a.type.dtype), rng))
        else:
            values.append(float(run[a.label]) if "." in run[a.label] else int(run[a.label]))
    return values


def is_float_array(a):
    return hasattr(a.type, "ndim") and numpy_type(a.type.dtype).kind == "f"


def compare(check, what, kernel, backward, run):
    rng = np.random.default_rng(len(what))
    dim = tuple(int(n) for n in run["dim"].split("x"))
    values = arguments_of(kernel, run, rng)
    parameters = kernel.adj.args

    def arrays(requires_grad):
        return [wp.array(v, dtype=p.type.dtype, device="cpu", requires_grad=requires_grad and is_float_array(p))
                if isinstance(v, np.ndarray) else v for p, v in zip(parameters, values)]

    inputs = arrays(True)
    tape = wp.Tape()
    with tape:
        wp.launch(kernel, dim=dim, inputs=inputs, device="cpu")
    seeds, unchanged = {}, []
    for p, before, after in zip(parameters, values, inputs):
        if not is_float_array(p):
            continue
        if np.array_equal(before, after.numpy()):
            unchanged.append(p.label)
            seeds[p.label] = np.zeros_like(before)
        else:
            seeds[p.label] = rng.standard_normal(before.shape).astype(before.dtype)
            after.grad.assign(seeds[p.label])
    tape.backward()

    ours = arrays(False)
    for a in backward.adj.args[:len(parameters)]:
        fields = {k.split(".")[1]: v for k, v in run.items() if k.startswith(a.label + ".")}
        if fields:  # the printed module has its own struct
            ours[[p.label for p in parameters].index(a.label)] = struct_of(a.type, fields)
    adjoints = {}
    for a in backward.adj.args[len(parameters):]:
        of = a.label.removeprefix("adj_")
        seed = seeds.get(of)
        adjoints[of] = (wp.zeros(1, dtype=a.type.dtype, device="cpu") if seed is None
                        else wp.array(seed, dtype=a.type.dtype, device="cpu"))
    wp.launch(backward, dim=dim, inputs=ours + list(adjoints.values()), device="cpu")
    for label in unchanged:
        warp_says = inputs[[p.label for p in parameters].index(label)].grad.numpy()
        check.close(f"{what} {label}", adjoints[label].numpy(), warp_says)
    return len(unchanged)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ferrite", required=True, help="path of the program")
    options = parser.parse_args()
    check, compared, refused = Check(), 0, []
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        for file in corpus_for_warp(folder) + sorted((CORPUS.parent / "custom").glob("*.py")):
            module = load(file, "forward_" + file.stem)
            for name, run in launches(file.read_text()):
                if name in NOT_WARP:
                    continue
                shown = subprocess.run([options.ferrite, "kernel", "adjoint", file, "--kernel", name], capture_output=True)
                if shown.returncode != 0:
                    refused.append(name)
                    continue
                path = folder / f"{name}.py"
                path.write_bytes(shown.stdout)
                backward = getattr(load(path, "backward_" + name), name + "_backward")
                compared += compare(check, f"{file.name} {name}", getattr(module, name), backward, run)
    print(f"{compared} adjoints compared; refused: {', '.join(refused)}")
    print(f"{check.passed} passed, {check.failed} failed")
    return 1 if check.failed or not compared else 0


if __name__ == "__main__":
    sys.exit(main())
