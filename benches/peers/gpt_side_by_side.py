#!/usr/bin/env python3
"""Training steps of GPT-2 by ferrite, by PyTorch and by llm.c, in turn on one GPU and on the same tokens.

    python3 benches/peers/gpt_side_by_side.py --batch 64,4 --out side_by_side.json
    python3 benches/peers/gpt_side_by_side.py --sides ferrite,compile,llmc --llmc ~/llm.c/train_gpt2cu
    python3 benches/peers/gpt_side_by_side.py --size gpt2-medium --batch 32 --data train_0000.bin --out medium.json
    python3 benches/peers/gpt_side_by_side.py --device cpu --batch 1 --length 32 --seconds 1 --rounds 1    (a trial)

Every measurement is a process of its own, of at least --seconds without its warm-up. Rounds go over all sides, so that a
GPU that becomes warmer slows all of them. A step is forward, backward, clipping and AdamW. Prints a table of medians, and
writes all measurements with clocks and power (by nvidia-smi, twice a second) into --out. Needs torch and NumPy, and for
llmc its program, built with cuDNN (`make train_gpt2cu USE_CUDNN=1`).
"""

import argparse
import json
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from gpt_torch import SIZES, VOCABULARY, measure, versions  # noqa: E402

HEADER = 256  # int32 of llm.c's token files
SIDES = ["ferrite", "ferrite-fastest", "eager", "compile", "llmc"]


class Clocks:
    """What nvidia-smi says while it lives; nothing where there is none."""

    QUERY = "clocks.sm,clocks.mem,power.draw,temperature.gpu"

    def __enter__(self):
        self.samples = []
        command = ["nvidia-smi", f"--query-gpu={self.QUERY}", "--format=csv,noheader,nounits", "-i", "0", "-lms", "500"]
        try:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        except FileNotFoundError:
            self.process = None
            return self
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        return self

    def read(self):
        for line in self.process.stdout:
            try:
                self.samples.append([float(word) for word in line.split(",")])
            except ValueError:  # "[N/A]", or a message instead of numbers
                pass

    def __exit__(self, *_):
        if self.process:
            self.process.terminate()
            self.process.wait()
            self.reader.join()

    def report(self, seconds):
        """All samples, and medians of the last `seconds`: what comes before is loading and compiling."""
        names = [name.replace(".", "_") for name in self.QUERY.split(",")]
        columns = list(zip(*self.samples[-max(1, int(2 * seconds)):]))
        return {"columns": names, "samples": self.samples,
                "median": {n: statistics.median(c) for n, c in zip(names, columns)}}


def write_random_tokens(path, count):
    """A token file as `ferrite gpt tokens` writes them. Token k is as frequent as 1 / (k + 3), about as in texts."""
    import numpy as np

    header = np.zeros(HEADER, dtype="<i4")
    header[:3] = 20240520, 1, count
    share = 1 / (np.arange(VOCABULARY) + 3.0)
    tokens = np.random.default_rng(1).choice(VOCABULARY, count, p=share / share.sum()).astype("<u2")
    path.write_bytes(header.tobytes() + tokens.tobytes())


def run_json(command):
    """The last line of a program's output, which is JSON."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]} ended with {done.returncode}: {(done.stderr or done.stdout).strip()[-2000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def measure_llmc(batch, o):
    """Steps of llm.c, whose first ones do not count, until they have taken --seconds."""
    warmup, milliseconds, said = 5, [], []
    command = ["stdbuf", "-oL", o.llmc, "-i", o.data, "-j", o.data, "-e", f"d{SIZES[o.size][0]}", "-b", batch]
    command += ["-t", o.length, "-d", batch * o.length, "-v", 10**6, "-s", 10**6, "-x", 10**6, *o.llmc_flags.split()]
    program = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        for line in program.stdout:
            said.append(line)
            if found := re.match(r"step +(\d+)/.*\| ([\d.]+) ms \|", line):
                if int(found[1]) > warmup:
                    milliseconds.append(float(found[2]))
                if sum(milliseconds) >= 1e3 * o.seconds:
                    break
    finally:
        program.kill()
        program.wait()
    if sum(milliseconds) < 1e3 * o.seconds:
        raise RuntimeError(f"{o.llmc} ended early: {''.join(said)[-2000:].strip()}")
    seconds, steps = sum(milliseconds) / 1e3, len(milliseconds)
    return {"size": o.size, "batch": batch, "length": o.length, "precision": "bf16", "flags": o.llmc_flags, "steps": steps,
            "seconds": seconds, "milliseconds_per_step": 1e3 * seconds / steps,
            "tokens_per_second": batch * o.length * steps / seconds}


def measure_side(side, batch, o):
    if side == "llmc":
        return measure_llmc(batch, o)
    if side.startswith("ferrite"):
        command = [o.ferrite, "gpt", "bench", "--size", o.size, "--batch", batch, "--length", o.length]
        command += ["--seconds", o.seconds, "--precision", o.precision, "--json"]
        command += ["--backend", o.device] + (["--fastest"] if side == "ferrite-fastest" else [])
        row = run_json(command + ["--data", o.data])
        row.pop("data", None)  # stands in the settings
    else:
        asked = {"side": side, "size": o.size, "batch": batch, "length": o.length, "seconds": o.seconds}
        asked |= {"precision": o.precision, "device": o.device, "data": str(o.data), "attention": o.attention}
        row = run_json([sys.executable, __file__, "--worker", json.dumps(asked)])
    return row


def table(rows, o):
    lines = [f"{'batch':>6} {'side':<16} {'tokens/s':>10} {'of ' + o.sides[0]:>14} {'memory':>10} {'clock':>9}"]
    for batch in o.batch:
        median = {}
        for side in o.sides:
            mine = [r for r in rows if r["side"] == side and r["batch"] == batch and "tokens_per_second" in r]
            if not mine:
                lines.append(f"{batch:>6} {side:<16} {'failed':>10}")
                continue
            median[side] = statistics.median(r["tokens_per_second"] for r in mine)
            base = median.get(o.sides[0])
            ratio = f"{median[side] / base:.3f}" if base else ""
            clocks = [r["clocks"]["median"]["clocks_sm"] for r in mine if r["clocks"]["median"]]
            clock = f"{statistics.median(clocks):.0f} MHz" if clocks else ""
            peak = max(r.get("peak_bytes", 0) for r in mine)
            memory = f"{peak / 2**30:.1f} GiB" if peak else ""
            lines.append(f"{batch:>6} {side:<16} {median[side]:>10.0f} {ratio:>14} {memory:>10} {clock:>9}")
    return "\n".join(lines)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ferrite", type=Path, default=Path("build/release/src/ferrite"))
    parser.add_argument("--size", choices=list(SIZES), default="gpt2")
    parser.add_argument("--batch", default="64,4", help="rows of a batch; several are measured in turn")
    parser.add_argument("--length", type=int, default=1024, help="tokens of a row")
    parser.add_argument("--data", type=Path, help="a token file of llm.c's format, u16; default: random ones")
    parser.add_argument("--sides", default="ferrite,eager,compile", help=f"some of {','.join(SIDES)}")
    parser.add_argument("--precision", choices=["bf16", "f32"], help="of products; default: bf16 on a GPU")
    parser.add_argument("--attention", choices=["auto", "cudnn", "flash"], default="auto", help="PyTorch's kernel")
    parser.add_argument("--llmc", type=Path, help="llm.c's train_gpt2cu")
    parser.add_argument("--llmc-flags", default="-r 0 -ge 2", help="its fastest with many rows; with 4 rows: '-r 0 -ge 0'")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--seconds", type=float, default=10, help="at least so long for each measurement")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("gpt_side_by_side.json"))
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    o = parser.parse_args()
    o.batch = [int(word) for word in o.batch.split(",")]
    o.sides = o.sides.split(",")
    if unknown := set(o.sides) - set(SIDES):
        parser.error(f"--sides {','.join(unknown)}: known are {','.join(SIDES)}")
    if "llmc" in o.sides and not o.llmc:
        parser.error("--sides llmc: say with --llmc where its train_gpt2cu is")
    if "llmc" in o.sides and (o.device != "cuda" or o.precision == "f32"):
        parser.error("--sides llmc: it is measured in bf16 on a GPU; leave it out")
    o.precision = o.precision or ("bf16" if o.device == "cuda" else "f32")
    return o


def main():
    o = arguments()
    if o.worker:
        print(json.dumps(measure(json.loads(o.worker))))
        return 0
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        if not o.data:
            o.data = Path(folder) / "random.bin"
            write_random_tokens(o.data, 1 + 16 * max(o.batch) * o.length)
        for number in range(o.rounds):
            for batch in o.batch:
                for side in o.sides:
                    row = {"round": number, "side": side, "batch": batch, "began": time.time()}
                    with Clocks() as clocks:
                        try:
                            row |= measure_side(side, batch, o)
                        except (RuntimeError, OSError, ValueError) as error:
                            row["error"] = str(error)
                    row |= {"side": side, "clocks": clocks.report(row.get("seconds", o.seconds))}
                    rows.append(row)
                    said = row.get("error") or f"{row['tokens_per_second']:.0f} tokens/s"
                    print(f"round {number}, {batch} rows, {side}: {said}", file=sys.stderr, flush=True)
    # Names without folders: results are read on other machines.
    settings = {name: value.name if isinstance(value, Path) else value for name, value in vars(o).items()}
    result = {"settings": settings, "machine": platform.platform(), "versions": versions(), "rows": rows}
    o.out.write_text(json.dumps(result, indent=1) + "\n")
    print(table(rows, o))
    return 1 if any("error" in row for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
