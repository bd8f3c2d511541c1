#!/usr/bin/env python3
"""Synthetic datasets from ferrite as PyTorch (or NumPy) tensors, without a copy.

    python3 examples/priors_dlpack.py build/release/src/libferrite.so --backend cuda

Calls the C interface (ferrite/models/priors/priors.h) by ctypes and hands each DLPack structure over as a capsule. With
torch the tensors stay where they were made, in the GPU's memory if the backend is cuda; with numpy only, on the CPU.
Exits with 77 where what it needs is not there: one of the two, or torch and a GPU for cuda.
"""

import argparse
import ctypes
import json
import sys
import time

NAMES = ("x", "y", "row_mask", "feature_mask", "levels", "info")
CPU, CUDA = 1, 2


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("dtype", ctypes.c_uint32), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


class Managed(ctypes.Structure):
    pass


Managed._fields_ = [("tensor", Tensor), ("context", ctypes.c_void_p),
                    ("deleter", ctypes.CFUNCTYPE(None, ctypes.POINTER(Managed)))]

new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)


class Exported:
    """What torch.from_dlpack and numpy.from_dlpack ask for; may be taken once."""

    def __init__(self, managed):
        self.managed = managed

    def __dlpack_device__(self):
        return self.managed.contents.tensor.device_type, self.managed.contents.tensor.device_id

    def __dlpack__(self, **_):
        managed, self.managed = self.managed, None
        return new_capsule(ctypes.cast(managed, ctypes.c_void_p), b"dltensor", None)


def generate(library, backend, config, seed, first, count):
    out = (ctypes.POINTER(Managed) * len(NAMES))()
    failed = library.ferrite_priors_generate(backend.encode(), json.dumps(config).encode(), ctypes.c_uint64(seed),
                                             ctypes.c_int64(first), ctypes.c_int64(count), out)
    if failed:
        library.ferrite_priors_error.restype = ctypes.c_char_p
        raise RuntimeError(library.ferrite_priors_error().decode())
    return {name: Exported(managed) for name, managed in zip(NAMES, out)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", help="where libferrite.so is")
    parser.add_argument("--backend", default="cpu")
    parser.add_argument("--datasets", type=int, default=32)
    options = parser.parse_args()
    try:
        import torch as consumer
    except ImportError:
        try:
            import numpy as consumer
        except ImportError:
            print("SKIPPED: neither torch nor numpy is installed")
            return 77
    on_gpu = options.backend.startswith("cuda")
    if on_gpu and (consumer.__name__ != "torch" or not consumer.cuda.is_available()):
        print("SKIPPED: no torch that has a GPU")
        return 77
    library = ctypes.CDLL(options.path)
    exported = generate(library, options.backend, {"rows": 256}, 7, 0, options.datasets)
    address = exported["x"].managed.contents.tensor.data
    batch, seconds = {}, []
    for name, one in exported.items():
        start = time.perf_counter()
        batch[name] = consumer.from_dlpack(one)
        seconds.append(time.perf_counter() - start)
        print(f"{name:<13}{tuple(batch[name].shape)} {batch[name].dtype}")
    x = batch["x"]
    assert not on_gpu or x.is_cuda
    taken = x.data_ptr() if hasattr(x, "data_ptr") else x.__array_interface__["data"][0]
    assert taken == address, "the memory was copied"
    rows = int(batch["info"][0, 0])
    assert rows == 256 and int(batch["row_mask"][0].sum()) == rows and float(abs(x[0]).max()) > 0
    print(f"handed over to {consumer.__name__} in {1e6 * sorted(seconds)[3]:.1f} us (median), same memory")
    return 0


if __name__ == "__main__":
    sys.exit(main())
