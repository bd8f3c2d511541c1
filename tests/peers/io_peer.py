"""Checks that ferrite's files and those of numpy and safetensors are interchangeable, both ways.

    python io_peer.py PATH_OF_IO_PEER

io_peer is built from io_peer.cpp; it copies a file from one format to another. Needs numpy and safetensors.
"""
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import load_file, save, save_file

DTYPES = ["<f4", "<f8", "<f2", "<i4", "<i8", "|u1", "|b1"]
SHAPES = [(), (0,), (1,), (7,), (2, 3), (3, 0, 2), (2, 1, 3, 2, 1, 2, 1, 2)]


def samples():
    rng = np.random.default_rng(0)
    arrays = {}
    for dtype in DTYPES:
        for shape in SHAPES:
            values = rng.integers(0, 2 if dtype == "|b1" else 200, size=shape)
            arrays[f"{dtype} {shape} \u20ac"] = np.asarray(values).astype(dtype)
    return arrays


def same(a, b):
    return a.keys() == b.keys() and all(
        a[k].dtype == b[k].dtype and a[k].shape == b[k].shape and a[k].tobytes() == b[k].tobytes() for k in a
    )


class Peer:
    def __init__(self, program, folder):
        self.program = program
        self.folder = folder

    def copy(self, source, target):
        """Runs io_peer; returns the path of the copy."""
        target = self.folder / target
        result = subprocess.run([self.program, source, target], capture_output=True, text=True)
        assert result.returncode == 0, result.stderr
        return target

    def refuses(self, source, *parts):
        target = self.folder / "refused.safetensors"
        result = subprocess.run([self.program, source, target], capture_output=True, text=True)
        assert result.returncode == 1, f"{source} was not refused"
        assert not target.exists()
        for part in (str(source), *parts):
            assert part in result.stderr, f"{part!r} is not in {result.stderr!r}"


def check_safetensors(peer):
    arrays = samples()
    source = peer.folder / "py.safetensors"
    save_file(arrays, source, {"note": "line\n\u20ac \"quoted\""})
    copy = peer.copy(source, "copy.safetensors")
    assert same(load_file(copy), arrays)
    with safe_open(copy, "np") as file:
        assert file.metadata() == {"note": "line\n\u20ac \"quoted\""}
    assert copy.read_bytes() == source.read_bytes(), "not the bytes of the Python package"

    # bf16 has no NumPy dtype: bytes are compared.
    header = b'{"w":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]}}'
    header += b" " * (-len(header) % 8)
    raw = len(header).to_bytes(8, "little") + header + b"\x80\x3f\x00\xc0"
    source.write_bytes(raw)
    assert peer.copy(source, "bf16.safetensors").read_bytes() == raw

    source.write_bytes(save({}))
    assert load_file(peer.copy(source, "none.safetensors")) == {}


def check_safetensors_refusals(peer):
    """What the Python package refuses, ferrite refuses."""
    good = save({"w": np.arange(4, dtype="<f4")})
    bad = peer.folder / "bad.safetensors"
    for at in range(len(good)):
        for damaged in (good[:at], good[:at] + b"\xff" + good[at + 1 :]):
            bad.write_bytes(damaged)
            try:
                load_file(bad)
            except (SafetensorError, UnicodeDecodeError):
                peer.refuses(bad)
    bad.write_bytes(save({"w": np.zeros(2, dtype="<u8")}))
    peer.refuses(bad, '"w"', '"U64"')


def check_npy(peer):
    for array in samples().values():
        for version in [(1, 0), (2, 0), (3, 0)]:
            for ordered in (array, array.copy(order="F")):
                with open(peer.folder / "py.npy", "wb") as file:
                    np.lib.format.write_array(file, ordered, version)
                copy = np.load(peer.copy(peer.folder / "py.npy", "copy.npy"))
                assert same({"x": copy}, {"x": array}) and copy.flags.c_contiguous
    for array, part in [
        (np.zeros(2, ">f4"), "big-endian"),
        (np.zeros(2, "<c8"), "<c8"),
        (np.zeros(2, [("a", "<f4")]), "structured"),
        (np.array(["text"]), "<U4"),
        (np.zeros((1,) * 9), "at most 8 axes"),
    ]:
        np.save(peer.folder / "py.npy", array)
        peer.refuses(peer.folder / "py.npy", part)


def check_npz(peer):
    arrays = samples()
    arrays["zeros"] = np.zeros(1_000_000)
    source = peer.folder / "py.npz"
    for write in (np.savez, np.savez_compressed):
        write(source, **arrays)
        copy = peer.copy(source, "copy.npz")
        assert same(dict(np.load(copy)), arrays)
        assert zipfile.ZipFile(copy).testzip() is None
        assert same(load_file(peer.copy(source, "from_npz.safetensors")), arrays)
    np.savez(source)
    assert dict(np.load(peer.copy(source, "none.npz"))) == {}
    with zipfile.ZipFile(source, "w") as archive:
        archive.writestr("readme.txt", "text")
    peer.refuses(source, "readme.txt", ".npy")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    program = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        peer = Peer(program, Path(folder))
        for check in (check_safetensors, check_safetensors_refusals, check_npy, check_npz):
            check(peer)
            print(f"{check.__name__}: ok", flush=True)


if __name__ == "__main__":
    main()
