#!/usr/bin/env python3
"""Times ferrite's linear algebra on the CPU and the same calls of NumPy, one after the other, and prints the ratio.

    python3 benches/peers/numpy_linear_algebra.py --build build/release --out build/bench

Writes linear_algebra.json into --out: milliseconds of both, best of the runs, and what they ran on. Needs NumPy in the
Python that runs it.
"""

import argparse
import json
import platform
import subprocess
import time
from pathlib import Path

import numpy as np

CALLS = {
    "cholesky": lambda m: np.linalg.cholesky(m["positive"]),
    "solve": lambda m: np.linalg.solve(m["any"], m["right"]),
    "qr": lambda m: np.linalg.qr(m["any"]),
    "eigh": lambda m: np.linalg.eigh(m["symmetric"]),
    "svd": lambda m: np.linalg.svd(m["any"], full_matrices=False),
}


def matrices(batch, n, dtype):
    rng = np.random.default_rng(1)
    x = rng.standard_normal((batch, n, n)).astype(dtype)
    turned = np.swapaxes(x, -1, -2)
    made = {"any": x, "symmetric": x + turned, "positive": x @ turned + n * np.eye(n)}
    made["right"] = rng.standard_normal((batch, n, 1))
    return {name: value.astype(dtype) for name, value in made.items()}


def best_of(call, seconds):
    call()  # the first call sets up threads and workspaces
    best, begin = float("inf"), time.perf_counter()
    while True:
        start = time.perf_counter()
        call()
        now = time.perf_counter()
        best = min(best, now - start)
        if now - begin > seconds:
            return 1e3 * best


def ours(program, name, repetitions, seconds):
    command = [program, f"--benchmark_filter=^{name}/real_time$", "--benchmark_format=json"]
    command += [f"--benchmark_repetitions={repetitions}", f"--benchmark_min_time={seconds / repetitions}"]
    runs = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["benchmarks"]
    return min(run["real_time"] for run in runs if run["run_type"] == "iteration")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=Path("build/release"))
    parser.add_argument("--out", type=Path, default=Path("build/bench"))
    parser.add_argument("--seconds", type=float, default=1.0, help="for each of the two sides of a row")
    parser.add_argument("--filter", default="", help="only rows whose name contains this, e.g. svd/f64")
    options = parser.parse_args()
    program = str(options.build / "benches" / "linear_algebra_bench")
    listed = subprocess.run([program, "--benchmark_list_tests"], check=True, capture_output=True, text=True).stdout
    names = [line.removesuffix("/real_time") for line in listed.split() if options.filter in line]
    rows = []
    print(f"{'':24}{'ferrite ms':>12}{'NumPy ms':>12}{'ratio':>8}")
    for name in names:
        op, dtype, size = name.split("/")
        batch, n = map(int, size.split("x"))
        made = matrices(batch, n, {"f32": np.float32, "f64": np.float64}[dtype])
        here, there = ours(program, name, 3, options.seconds), best_of(lambda: CALLS[op](made), options.seconds)
        rows.append({"name": name, "ferrite_ms": here, "numpy_ms": there, "ratio": there / here})
        print(f"{name:24}{here:12.4f}{there:12.4f}{there / here:8.2f}", flush=True)
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    machine = {"machine": platform.machine(), "numpy": np.__version__, "numpy_blas": f"{blas['name']} {blas['version']}"}
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "linear_algebra.json").write_text(json.dumps({**machine, "rows": rows}, indent=1) + "\n")
    least = min(rows, key=lambda row: row["ratio"])
    print(f"{len(rows)} rows, least {least['ratio']:.2f} ({least['name']})")


if __name__ == "__main__":
    main()
