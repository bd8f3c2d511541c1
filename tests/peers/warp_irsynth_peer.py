#!/usr/bin/env python3
"""Gives generated kernels to NVIDIA Warp (package warp-lang, its CPU device): each must be accepted as it is and leave the
outputs that the record has, integers exactly, floats to as many roundings as irsynth promises. Exits with 77 where Warp is
not installed."""

import argparse
import json
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

from warp_kernels_peer import load, numpy_type

ROUNDINGS = 64  # parity_roundings of include/ferrite/models/irsynth/record.hpp
FERRITE_ONLY = "shared_memory"  # shared arrays and barriers are no part of Warp
PER_MODULE = 50


def renamed(record, number):
    """The source with unique names for everything it defines, so that many fit into one Python module."""
    text = record["python_source"].replace("import warp as wp\n", "")
    for name in re.findall(r"^(?:def|class) (\w+)", text, re.M):
        text = re.sub(rf"\b{name}\b", f"{name}_{number}", text)
    return text


def argument(given, parameter):
    """What to launch with, from the values in the record."""
    numbers = given["values"]
    if hasattr(parameter.type, "ndim"):
        dtype = parameter.type.dtype
        data = np.array(numbers, numpy_type(dtype)).reshape(*given["shape"], *getattr(dtype, "_shape_", ()))
        return wp.array(data, dtype=dtype, device="cpu")
    if hasattr(parameter.type, "vars"):  # a struct
        value, at = parameter.type(), 0
        for name, field in parameter.type.vars.items():
            length = getattr(field.type, "_length_", 1)
            part = numbers[at : at + length]
            setattr(value, name, field.type(*part))
            at += length
        return value
    return numbers[0] if len(numbers) == 1 else parameter.type(*numbers)


def compare(record, kernel):
    """What is wrong, or nothing."""
    meta = record["metadata"]
    inputs = [argument(a, p) for a, p in zip(meta["arguments"], kernel.adj.args)]
    wp.launch(kernel, dim=tuple(meta["grid"]), inputs=inputs, device="cpu")
    wanted = {o["name"]: o["values"] for o in meta["outputs"]}
    for given, value in zip(meta["arguments"], inputs):
        if not given["output"]:
            continue
        got = value.numpy().reshape(-1)
        want = np.array(wanted[given["name"]], got.dtype)
        if got.dtype.kind != "f":
            same = got == want
        else:
            scale = max(1.0, np.max(np.abs(want)))
            same = np.abs(got - want) <= ROUNDINGS * np.finfo(got.dtype).eps * scale
        if not np.all(same):
            at = np.argmin(same)
            return f"{given['name']}[{at}]: ferrite has {want[at]}, Warp {got[at]}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ferrite", required=True, help="path of the program")
    parser.add_argument("--pairs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=42)
    options = parser.parse_args()
    passed = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        wp.config.quiet = True
        wp.config.enable_backward = False
        wp.config.kernel_cache_dir = str(folder / "cache")
        wp.init()
        command = [options.ferrite, "irsynth", "-n", str(options.pairs), "-o", folder / "pairs", "-s", str(options.seed)]
        command += ["--format", "jsonl", "--values", "--quiet", "-c"]
        usage = subprocess.run([options.ferrite, "irsynth", "--help"], capture_output=True, text=True, check=True).stdout
        listed = re.sub(r"\s+", " ", re.search(r"Only these[^:]*: ([\w,\s]+?)\s+-d", usage)[1]).split(", ")
        subprocess.run(command + [name for name in listed if name != FERRITE_ONLY], check=True)
        lines = [line for shard in sorted((folder / "pairs").glob("*.jsonl")) for line in open(shard)]
        for first in range(0, len(lines), PER_MODULE):
            records = [json.loads(line) for line in lines[first : first + PER_MODULE]]
            file = folder / f"records_{first}.py"
            file.write_text("import warp as wp\n" + "".join(renamed(r, n) for n, r in enumerate(records)))
            try:
                module = load(file, file.stem)
            except Exception as refused:
                failed += len(records)
                print(f"records {first} on: Warp refuses them: {refused}")
                continue
            for n, record in enumerate(records):
                meta = record["metadata"]
                try:
                    problem = compare(record, getattr(module, f"{meta['kernel_name']}_{n}"))
                except Exception as refused:
                    problem = f"Warp refuses it: {refused}"
                passed += problem is None
                failed += problem is not None
                if problem:
                    print(f"record {meta['index']} ({meta['category']}, level {meta['level']}): {problem}\n{record['python_source']}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
