#!/usr/bin/env python3
"""Compares `ferrite kernel emit --target warp` with what NVIDIA Warp's own code generator prints, token by token: names,
numbers of variables, types and order of lines; comments and hashes do not count. The kernels are those of
tests/kernel/corpus and tests/models/irsynth/warp_form, of folders given with --python, of JSON and JSONL records (fields
python_source and cuda_forward, perhaps cuda_backward) given with --records, or made by `ferrite irsynth` with --made.
Kernels that Warp refuses are passed over.
Exits with 77 where Warp is not installed."""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import warp as wp
    from warp._src.context import ModuleBuilder, ModuleHasher
except ImportError as missing:
    print(f"SKIPPED: {missing}")
    sys.exit(77)

from warp_kernels_peer import CORPUS, FERRITE_ONLY, load

WARP_FORM = CORPUS.parents[1] / "models" / "irsynth" / "warp_form"
CATEGORIES = ("arithmetic", "math", "vector", "matrix", "control_flow", "atomic")
TOKEN = re.compile(r'[A-Za-z_]\w*|\.?\d[\w.]*(?:(?<=[eE])[+-]\d+)?|"(?:\\.|[^"])*"|::|->|[-+*/<>=!&|]=|&&|\|\||\S')
HEAD = re.compile(r"^(?:extern \"C\" __global__ void |static (?:CUDA_CALLABLE )?[\w:<>, ]+ )(\w+)\($", re.M)


def pieces(text):
    """The functions of a text by name."""
    found = {}
    for head in HEAD.finditer(text):
        end = text.find("\n}\n", head.start())
        if re.search(r"_cpu_(?!kernel_)", head[1]):
            continue  # the loops over the threads
        found[head[1]] = text[head.start():end + 3]
    return found


def tokens(text):
    return TOKEN.findall(re.sub(r"//.*", "", text))


def without_hashes(text, source):
    """Structs without their hashes; functions with the number they have when Warp reads nothing before them."""
    for name in re.findall(r"@wp\.struct\s+class (\w+)", source):
        text = re.sub(rf"\b((?:adj_)?{name})_[0-9a-f]{{8}}\b", r"\1", text)
    for name in re.findall(r"@wp\.func\s+def (\w+)", source):
        text = re.sub(rf"\b((?:adj_)?{name})_\d+\b", r"\1_0", text)
    return text


def warp_text(module, kernels, device):
    """What Warp prints of these kernels; None if it refuses one."""
    options = module.resolve_options(wp.config, block_dim=1 if device == "cpu" else 256) | {"strip_hash": True}
    module.options = module.options | {"strip_hash": True}
    try:
        return ModuleBuilder(module, options, hasher=ModuleHasher(kernels, options)).codegen(device)
    except Exception as error:  # Warp raises what it likes
        return str(error).splitlines()[0] if not kernels[1:] else None


class Comparison:
    def __init__(self, ferrite, device, verbose):
        self.ferrite, self.device, self.verbose = ferrite, device, verbose
        self.equal, self.identical, self.different, self.refused = 0, 0, 0, 0

    def emit(self, file, kernel):
        target = "warp" if self.device == "cuda" else "warp-cpu"
        return subprocess.run([self.ferrite, "kernel", "emit", str(file), "--kernel", kernel, "--target", target],
                              capture_output=True, text=True)

    def file(self, path, name):
        source = path.read_text()
        load(path, name)
        module = wp.get_module(name)
        for kernel in list(module.kernels.values()):
            self.kernel(path, kernel.key, warp_text(module, [kernel], self.device), source)

    def kernel(self, path, key, want, source):
        wanted = pieces(without_hashes(want, source))
        if not any(key in name for name in wanted):
            self.refused += 1
            if self.verbose:
                print(f"{path.name} {key}: refused by Warp: {want}")
            return
        made = self.emit(path, key)
        if made.returncode != 0:
            self.different += 1
            print(f"{path.name} {key}: {made.stderr.strip()}")
            return
        self.compare(f"{path.name} {key}", pieces(made.stdout), wanted)

    def compare(self, what, got, want):
        if sorted(got) != sorted(want):
            self.different += 1
            print(f"{what}: ferrite has {sorted(got)}, Warp {sorted(want)}")
            return
        for name, text in want.items():
            ours, theirs = tokens(got[name]), tokens(text)
            if ours != theirs:
                self.different += 1
                self.show(f"{what}: {name}", got[name], text)
                return
        self.equal += 1
        self.identical += got == want

    @staticmethod
    def show(what, got, want):
        ours, theirs = got.splitlines(), want.splitlines()
        for a, b in zip(ours + [""], theirs + [""]):
            if tokens(a) != tokens(b):
                print(f"{what}: ferrite has `{a.strip()}`, Warp `{b.strip()}`")
                return
        print(f"{what}: {len(ours)} lines, Warp has {len(theirs)}")

    def record(self, record, what, file, name):
        """A record's own texts against Warp's."""
        file.write_text(record["python_source"])
        load(file, name)
        module = wp.get_module(name)
        kernels = list(module.kernels.values())
        text = warp_text(module, kernels, "cuda")
        want = pieces(without_hashes(text, record["python_source"])) if text else {}
        got = pieces(record["cuda_forward"])
        got |= pieces(record["cuda_backward"]) if "cuda_backward" in record else {}
        if not any(key.endswith("_cuda_kernel_forward") for key in want):
            self.refused += 1
            print(f"{what}: refused by Warp: {text}")
            return
        if "cuda_backward" not in record:
            want = {key: piece for key, piece in want.items() if "_cuda_kernel_backward" not in key and not key.startswith("adj_")}
        self.compare(what, got, want)


def made(ferrite, count, seed, folder):
    """Records of the seed's six categories in Warp's form."""
    command = [ferrite, "irsynth", "-n", str(count), "-o", str(folder), "-s", str(seed), "--style", "warp", "--backward"]
    command += ["--verify", "none", "--format", "jsonl", "--quiet", "-c", *CATEGORIES]
    subprocess.run(command, check=True)
    return str(folder)


def records_of(folder):
    for path in sorted(Path(folder).rglob("*.json*")):
        if path.suffix == ".jsonl":
            for number, line in enumerate(path.read_text().splitlines()):
                yield f"{path.name}:{number + 1}", json.loads(line)
        elif path.suffix == ".json":
            yield path.name, json.loads(path.read_text())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ferrite", required=True, help="path of the program")
    parser.add_argument("--python", action="append", default=[], help="folder of Python files with kernels")
    parser.add_argument("--records", action="append", default=[], help="folder of JSON or JSONL records")
    parser.add_argument("--made", type=int, default=0, help="compare so many records of ferrite irsynth too")
    parser.add_argument("--seed", type=int, default=1, help="of the records that are made")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    wp.config.quiet = True
    wp.init()
    comparison = Comparison(options.ferrite, options.device, options.verbose)
    with tempfile.TemporaryDirectory() as scratch:
        scratch = Path(scratch)
        folders = options.python or ([] if options.records else [CORPUS, WARP_FORM])
        files = [file for folder in folders for file in sorted(Path(folder).glob("*.py")) if file.name not in FERRITE_ONLY]
        for number, file in enumerate(files):
            comparison.file(file, f"form_{number}_{file.stem}")
        count = 0
        if options.made:
            options.records.append(made(options.ferrite, options.made, options.seed, scratch / "made"))
        for folder in options.records:
            for what, record in records_of(folder):
                if "python_source" in record:
                    comparison.record(record, what, scratch / f"record_{count}.py", f"record_{count}")
                    count += 1
    print(f"{comparison.identical} of {comparison.equal} equal with comments, {comparison.refused} refused by Warp")
    print(f"{comparison.equal} passed, {comparison.different} failed")
    return 1 if comparison.different else 0


if __name__ == "__main__":
    sys.exit(main())
