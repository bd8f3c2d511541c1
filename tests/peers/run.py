#!/usr/bin/env python3
r"""Tests ferrite against independent implementations.

    tests/peers/run.py --ferrite build/release/src/ferrite --io-peer build/release/tests/io_peer \
        --functions build/release/tests/functions_peer
    tests/peers/run.py --ferrite build/release/src/ferrite --oracle torch
    tests/peers/run.py --ferrite build/release/src/ferrite --oracle warp

With NumPy and SciPy (default): makes a virtual environment, installs what is needed into it, and runs the comparison of
all ops (op_peer.py), of the file formats (io_peer.py) and of the tokenizer (quantile_tokenizer_peer.py, with pandas and
scikit-learn where they can be installed). With torch: runs op_peer.py in the Python that runs this script, which must
have PyTorch, and gpt_peer.py and gpt_training_peer.py where it has transformers too. With warp: makes a virtual
environment with NVIDIA Warp and runs warp_kernels_peer.py, warp_gradients_peer.py, warp_form_peer.py,
warp_examples_peer.py and warp_irsynth_peer.py. The exit code is 1 if anything differs and 77 (skipped) if the packages
are not there and cannot be installed.
"""

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
SKIPPED = 77
PACKAGES = ("numpy", "scipy", "safetensors")
WARP_PACKAGES = ("numpy", "warp")
OPTIONAL = ("ml_dtypes", "pandas", "sklearn", "pyarrow")  # bf16 for NumPy; peers of the tokenizer
PIP_NAMES = {"sklearn": "scikit-learn", "warp": "warp-lang"}


def has(python, packages):
    return subprocess.run([python, "-c", "import " + ", ".join(packages)], capture_output=True).returncode == 0


def install(python, packages):
    command = [python, "-m", "pip", "install", "--quiet", "--no-compile", "--disable-pip-version-check"]
    command += [PIP_NAMES.get(name, name) for name in packages]
    return subprocess.run(command, capture_output=True, text=True)


def python_of(folder, packages=PACKAGES, optional=OPTIONAL):
    """The Python of a virtual environment with the packages; exits as skipped where it cannot be made."""
    python = str(folder / "bin" / "python")
    if not Path(python).exists() or not has(python, packages):
        print(f"making a virtual environment in {folder}", flush=True)
        made = subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], capture_output=True, text=True)
        if made.returncode == 0:
            made = install(python, packages)
        if made.returncode != 0:
            reason = (made.stderr or made.stdout).strip().splitlines()[-1:] or ["no message"]
            print(f"SKIPPED: no virtual environment with {', '.join(packages)}: {reason[0]}")
            sys.exit(SKIPPED)
    if optional and not has(python, optional):
        install(python, optional)  # the peers say what is left out without them
    return python


class Tally:
    def __init__(self):
        self.passed = self.failed = 0
        self.environment = dict(os.environ)
        # ferrite syncs every file it writes: in memory that costs nothing.
        if os.access("/dev/shm", os.W_OK):
            self.environment.setdefault("TMPDIR", "/dev/shm")

    def run(self, *command):
        """Shows what a peer prints and adds up what it counts; returns its exit code."""
        with subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, text=True, env=self.environment) as peer:
            counted = False
            for line in peer.stdout:
                counts = re.fullmatch(r"(\d+) passed, (\d+) failed\n", line)
                if counts:
                    counted = True
                    self.passed += int(counts[1])
                    self.failed += int(counts[2])
                else:
                    self.passed += line.endswith(": ok\n")
                    print(line, end="", flush=True)
        if peer.returncode not in (0, SKIPPED) and not counted:
            self.failed += 1
        return peer.returncode


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ferrite", required=True, help="path of the program")
    parser.add_argument("--io-peer", help="path of the program built from io_peer.cpp")
    parser.add_argument("--gpt-training", help="path of the program built from gpt_training_peer.cpp")
    parser.add_argument("--oracle", choices=("numpy", "torch", "warp"), default="numpy")
    parser.add_argument("--venv", type=Path, default=HERE.parents[1] / ".venv", help="the virtual environment's folder")
    options, rest = parser.parse_known_args()
    tally = Tally()
    if options.oracle == "warp":
        python = python_of(options.venv, WARP_PACKAGES, ())
        code = tally.run(python, HERE / "warp_kernels_peer.py", "--ferrite", options.ferrite)
        tally.run(python, HERE / "warp_gradients_peer.py", "--ferrite", options.ferrite)
        form = (python, HERE / "warp_form_peer.py", "--ferrite", options.ferrite)
        tally.run(*form, "--made", "2000")
        tally.run(*form, "--device", "cpu")
        tally.run(python, HERE / "warp_examples_peer.py", "--ferrite", options.ferrite)
        tally.run(python, HERE / "warp_irsynth_peer.py", "--ferrite", options.ferrite, "--pairs", "200")
        print(f"{tally.passed} passed, {tally.failed} failed")
        return 1 if tally.failed else code
    python = python_of(options.venv) if options.oracle == "numpy" else sys.executable
    needed = (*PACKAGES, "torch") if options.oracle == "torch" else ()
    missing = [name for name in needed if not has(python, [name])]
    if missing:
        print(f"SKIPPED: {python} has no {', '.join(missing)}: install them there to compare with PyTorch")
        return SKIPPED
    if options.io_peer:
        tally.run(python, HERE / "io_peer.py", options.io_peer)
    if options.oracle == "numpy":
        tally.run(python, HERE / "quantile_tokenizer_peer.py", "--ferrite", options.ferrite)
    if options.oracle == "torch":
        tally.run(python, HERE / "gpt_peer.py", "--ferrite", options.ferrite)
        if options.gpt_training:
            training = (python, HERE / "gpt_training_peer.py", "--ferrite", options.ferrite, "--peer", options.gpt_training)
            tally.run(*training)
            tally.run(*training, "--precision", "bf16")
    code = tally.run(python, HERE / "op_peer.py", "--ferrite", options.ferrite, "--oracle", options.oracle, *rest)
    print(f"{tally.passed} passed, {tally.failed} failed")
    return 1 if tally.failed else SKIPPED if code == SKIPPED else 0


if __name__ == "__main__":
    sys.exit(main())
