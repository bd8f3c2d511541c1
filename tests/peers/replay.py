"""Calls ferrite: a call of one op as a .safetensors file, run by `ferrite replay`."""

import json
import math
import select
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from safetensors import deserialize
from safetensors.numpy import save_file

from dtypes import NUMPY

FILE_DTYPES = {
    "F32": "f32",
    "F64": "f64",
    "F16": "f16",
    "BF16": "bf16",
    "I32": "i32",
    "I64": "i64",
    "U8": "u8",
    "BOOL": "bool",
    "I8": "i8",
    "U16": "u16",
    "U32": "u32",
}


class ReplayError(Exception):
    """ferrite refused the file or crashed."""


def attribute(value):
    """JSON has no infinities and no NaN: ferrite writes them as strings."""
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    return value


def write_call(path, op, attributes, inputs, root_gradient=None):
    tensors = {f"in{i}": np.ascontiguousarray(x).reshape(x.shape) for i, x in enumerate(inputs)}
    if root_gradient is not None:
        tensors["grad0"] = np.ascontiguousarray(root_gradient).reshape(root_gradient.shape)
    text = json.dumps({key: attribute(value) for key, value in attributes.items()})
    save_file(tensors, path, {"op": op, "attributes": text})


def read_tensors(path):
    """By name, in the NumPy dtype of each."""
    tensors = {}
    for name, entry in deserialize(Path(path).read_bytes()):
        dtype = NUMPY[FILE_DTYPES[entry["dtype"]]]
        tensors[name] = np.frombuffer(bytes(entry["data"]), dtype=dtype).reshape(entry["shape"])
    return tensors


class Program:
    """A program that is called as `ferrite replay` is, once per call."""

    def __init__(self, program, timeout=120):
        self.program = str(Path(program).resolve())
        self.timeout = timeout

    def replay(self, path, backend, with_gradients):
        """The results of the call in `path`: out0, ... and, if asked for, grad_in0, ..."""
        target = Path(path).with_suffix(f".{backend}.safetensors")
        self.call(str(path), backend, str(target), with_gradients)
        if not target.exists():
            raise ReplayError("no file of results")
        return read_tensors(target)

    def call(self, path, backend, target, with_gradients):
        command = [self.program, "replay", path, "--backend", backend, "--out", target]
        if with_gradients:
            command.append("--grad")
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=self.timeout)
        except subprocess.TimeoutExpired as error:
            raise ReplayError(f"no result after {self.timeout} s") from error
        if done.returncode != 0:
            raise ReplayError(f"exit code {done.returncode}: {(done.stderr or done.stdout).strip()[-600:]}")


class Ferrite(Program):
    """`ferrite replay --serve`: one process for many calls, started again after a call that ended it."""

    def __init__(self, program, timeout=120):
        super().__init__(program, timeout)
        self.process = None

    def ops(self):
        """The op list: per op its type name, the functions of its family and whether it has a gradient."""
        listed = subprocess.run([self.program, "ops", "--json"], capture_output=True, text=True, check=True)
        return json.loads(listed.stdout)["ops"]

    def call(self, path, backend, target, with_gradients):
        if self.process is None:
            self.errors = tempfile.TemporaryFile("w+")
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": self.errors}
            self.process = subprocess.Popen([self.program, "replay", "--serve"], text=True, **pipes)
        request = {"file": path, "backend": backend, "out": target, "grad": with_gradients}
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answered = select.select([self.process.stdout], [], [], self.timeout)[0]
        line = self.process.stdout.readline() if answered else ""
        if not line:
            raise ReplayError(self.stop() if answered else f"no result after {self.timeout} s, {self.stop()}")
        answer = json.loads(line)
        if answer["status"] != 0:
            raise ReplayError(f"exit code {answer['status']}: {answer['message'].strip()[-600:]}")

    def stop(self):
        """Ends the process; how it ended."""
        if self.process is None:
            return "no process"
        self.process.kill()
        code = self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
        self.process = None
        self.errors.seek(0)
        said = self.errors.read().strip()[-600:]
        self.errors.close()
        return f"exit code {code}: {said}"
