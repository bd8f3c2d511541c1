"""Compares ferrite's ops with an independent implementation.

    python op_peer.py --ferrite build/release/src/ferrite --oracle numpy
    python op_peer.py --ferrite build/release/src/ferrite --oracle torch --filter attention
    python op_peer.py --ferrite build/release/src/ferrite --functions build/release/tests/functions_peer --filter einsum

numpy: results of every op; gradients of the f64 cases by differences. torch: results and gradients by autograd. Every
case runs on every backend named by --backend. The last line counts; the exit code is 1 if anything differs, 77 if the
oracle is not installed.
"""

import argparse
import multiprocessing
import os
import re
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

import gradients
import numpy_oracle
import philox
from case import REDUCING
from cases import all_cases
from compare import mismatch
from coverage import uncovered
from dtypes import NUMPY, round_to
from replay import Ferrite, Program, ReplayError, write_call

SKIPPED = 77


class NumpyOracle:
    name = "NumPy"
    incomparable = ()

    def accepts(self, case):
        return True

    def rule(self, case):
        return case.check, case.length

    def outputs(self, case):
        return numpy_oracle.evaluate(case)

    def gradient_mismatch(self, case, root, results):
        return gradients.mismatches(case, root, results)


class TorchOracle:
    name = "PyTorch"
    # Every library draws its own numbers; PyTorch rounds the levels of quantiles to the dtype of the values.
    incomparable = ("random", "order_statistics")

    def __init__(self):
        import torch_oracle

        self.evaluate = torch_oracle.evaluate
        self.known = torch_oracle.ORACLES

    def accepts(self, case):
        return case.torch and case.op in self.known

    def rule(self, case):
        # PyTorch computes x / 2 (1 + tanh) and x / 2 (1 + erf), which cancel for negative x.
        cancels = case.attributes.get("fn", "").startswith("gelu")
        return REDUCING if cancels else case.check, case.context.get("autograd_length", case.length)

    def outputs(self, case):
        """(values, dtype) where PyTorch computes the output; the NumPy oracle checks dtypes."""
        computed = self.evaluate(case, None)[0]
        expected = numpy_oracle.evaluate(case)
        return [(values, dtype) for values, (_, dtype) in zip(computed, expected)]

    def gradient_mismatch(self, case, root, results):
        for i, expected in enumerate(self.evaluate(case, root)[1]):
            if expected is not None and i not in case.constants:
                got = results[f"grad_in{i}"]
                length = case.length * max(1, root.size / max(got.size, 1))
                yield f"grad_in{i}", mismatch(got, expected, case.dtypes[i], REDUCING, length)


def root_gradient(case):
    """A gradient of the first output's shape and dtype, from the case's name alone."""
    values, dtype = numpy_oracle.evaluate(case)[0]
    rng = np.random.default_rng(len(case.name))
    return round_to(rng.uniform(-1, 1, np.shape(values)), dtype)


def run_case(case, oracle, ferrite, backends, folder):
    """The failures of one case, as lines. Its files go into the folder."""
    path = folder / (case.name.replace("/", "-") + ".safetensors")
    root = root_gradient(case) if case.grad else None
    write_call(path, case.op, case.attributes, case.inputs, root)
    failures = []
    expected = oracle.outputs(case)
    for backend in backends:

        def fail(what, why):
            if why:
                failures.append(f"{case.name} on {backend}: {what}: {why}")

        try:
            results = ferrite.replay(path, backend, case.grad)
            for i, (values, dtype) in enumerate(expected):
                if values is not None:
                    extra = {key: case.context[key] for key in ("magnitude", "floor") if key in case.context}
                    why = mismatch(results[f"out{i}"], values, dtype, *oracle.rule(case), case.ulps, **extra)
                    fail(f"out{i}", why)
            if f"out{len(expected)}" in results:
                fail("outputs", f"more than the {len(expected)} expected")
            if case.grad:
                for what, why in oracle.gradient_mismatch(case, root.astype(float), results):
                    fail(what, why)
        except ReplayError as error:
            fail("replay", str(error))
        except KeyError as error:
            fail("replay", f"gave no {error}")
    return failures


class Worker:
    """Runs cases in a process of its own; `state` is the one of this process."""

    state = None

    def __init__(self, options, oracle):
        self.options, self.oracle = options, oracle
        self.cases = {case.name: case for case in all_cases()}
        self.ferrite = Ferrite(options.ferrite)
        self.functions = Program(options.functions) if options.functions else None
        self.ops = {op["op"] for op in self.ferrite.ops()}

    def run(self, case):
        program = self.ferrite if case.op in self.ops else self.functions
        backends = self.options.backend
        if self.options.keep:
            return run_case(case, self.oracle, program, backends, self.options.keep)
        with tempfile.TemporaryDirectory() as folder:
            return run_case(case, self.oracle, program, backends, Path(folder))


def start_worker(options):
    Worker.state = Worker(options, ORACLES[options.oracle]())


def run_named(name):
    return Worker.state.run(Worker.state.cases[name])


ORACLES = {"numpy": NumpyOracle, "torch": TorchOracle}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ferrite", required=True, help="path of the program")
    parser.add_argument("--functions", help="path of functions_peer, which runs what is made of several ops")
    parser.add_argument("--oracle", choices=ORACLES, default="numpy")
    parser.add_argument("--backend", action="append", help="reference or cpu; both unless given")
    parser.add_argument("--filter", default="", help="regular expression that case names must match")
    parser.add_argument("--keep", type=Path, help="folder in which the calls and results stay")
    options = parser.parse_args()
    try:
        oracle = ORACLES[options.oracle]()
    except ImportError as error:
        print(f"SKIPPED: {error}. Install PyTorch to compare with it.")
        return SKIPPED
    philox.check_known_answers()
    if "bf16" not in NUMPY:
        print("bf16 is left out: the package ml_dtypes is not installed")

    accepted = [case for case in all_cases() if oracle.accepts(case)]
    listed = Ferrite(options.ferrite).ops()
    ops = [op for op in listed if op["op"] not in oracle.incomparable]
    failures = [f"coverage: {missing} has no case" for missing in uncovered(accepted, ops)]
    # What is no op is a function made of several.
    functions = {case.op for case in accepted} - {op["op"] for op in listed}
    if not options.functions:
        print(f"left out, as they need --functions: {', '.join(sorted(functions))}")
        accepted = [case for case in accepted if case.op not in functions]
    cases = [case for case in accepted if re.search(options.filter, case.name)]
    options.backend = options.backend or ["reference", "cpu"]
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
    # Differences take most of the time, and Python runs one thread at once: a process per core, each with one thread. They
    # are not forked, as the libraries have threads.
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    apart = {"mp_context": multiprocessing.get_context("spawn"), "initializer": start_worker, "initargs": (options,)}
    with ProcessPoolExecutor(os.cpu_count(), **apart) as pool:
        results = list(pool.map(run_named, [case.name for case in cases], chunksize=8))
    failures += [line for result in results for line in result]
    for line in failures:
        print(line)
    if failures and not options.keep:
        print("the calls as files: run again with --keep FOLDER, and --filter with the name of a case")
    failed = sum(1 for result in results if result)
    print(f"{oracle.name}: {len(cases)} cases on {' and '.join(options.backend)}")
    print(f"{len(cases) - failed} passed, {failed + len(failures) - sum(map(len, results))} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
