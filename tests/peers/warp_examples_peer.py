#!/usr/bin/env python3
"""Reads the kernels of the examples that come with NVIDIA Warp: a share of them must parse, and what parses must emit as
CUDA and C++. --verbose lists the kernels that do not parse and why. Exits with 77 where Warp is not installed."""

import argparse
import ast
import re
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import warp
except ImportError as missing:
    print(f"SKIPPED: {missing}")
    sys.exit(77)

LEAST = 0.77  # of all kernels; the others need meshes, trees, hash grids and tiles beyond loads, stores and products

# What the examples' own calls decide: parameters of functions that make kernels, and types that are Any.
BINDINGS = {
    "benchmark_gemm.py": {f"create_gemm_kernel.{p}": n for p, n in (("m", 64), ("n", 64), ("k", 16))},
    "benchmark_tile_matmul_pipelined.py": {f"create_{kind}_gemm_kernel.tile_{p}": n for kind in ("shared", "pipelined")
                                           for p, n in (("m", 32), ("n", 32), ("k", 16))},
    "benchmark_tile_load_store.py": {f"create_kernel_{d}d.{p}": v for d in (2, 3) for p, v in
                                     (("tile_size", 16), ("dtype", "wp.float32"), ("storage_type", "'shared'"))},
    "example_apic_fluid.py": {"scale_transposed_divergence_mat.tr_divergence_mat_values": "wp.vec3"},
    "example_apic_fluid_multi_env.py": {"schur_inverse_diagonal_kernel.divergence_mat_values": "wp.mat33"},
}


def kernels_of(text):
    """Names of the functions under @wp.kernel."""
    found = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef)]
    return [n.name for n in found if any(ast.unparse(d).startswith("wp.kernel") for d in n.decorator_list)]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ferrite", required=True, help="path of the program")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    folder = Path(warp.__file__).parent / "examples"
    total, parsed, passed, failed = 0, 0, 0, 0
    with tempfile.TemporaryDirectory() as scratch:
        for path in sorted(folder.rglob("*.py")):
            names = kernels_of(path.read_text())
            if not names:
                continue
            total += len(names)
            command = [options.ferrite, "kernel", "check", "--print", path]
            for parameter, value in BINDINGS.get(path.name, {}).items():
                command += ["--bind", f"{parameter}={value}"]
            check = subprocess.run(command, capture_output=True, text=True)
            read = set(re.findall(r"^@wp\.kernel.*\ndef (\w+)", check.stdout, re.M))
            parsed += sum(name in read for name in names)
            if options.verbose and not read.issuperset(names):
                print(f"{path.relative_to(folder)}: {sorted(set(names) - read)}\n{check.stderr}")
            if not read:
                continue
            printed = Path(scratch) / path.name  # without what does not parse
            printed.write_text(check.stdout)
            for target in ("cuda", "cpp"):
                made = subprocess.run([options.ferrite, "kernel", "emit", printed, "--target", target],
                                      capture_output=True, text=True)
                passed += made.returncode == 0
                failed += made.returncode != 0
                if made.returncode != 0:
                    print(f"{path.relative_to(folder)} as {target}: {made.stderr.strip()}")
    share = parsed / total
    print(f"{parsed} of {total} kernels of Warp's examples parse: {share:.1%}")
    if share < LEAST:
        failed += 1
        print(f"fewer than {LEAST:.0%}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
