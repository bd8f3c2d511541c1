#!/usr/bin/env python3
"""How fast ferrite, tiktoken and Hugging Face's tokenizers encode the same text with GPT-2's vocabulary.

    python3 benches/peers/bpe_speed.py --text book.txt --out bpe.json
    python3 benches/peers/bpe_speed.py --rounds 5 --threads 1,2          (the text is this repository's own)

ferrite is timed by `ferrite gpt tokens --json`, which also reads the text from its file and writes the ids to one; the
others get a string and return ids. A round measures every side once, and the table shows medians. The ids must be equal.
Needs the packages tiktoken and tokenizers.
"""

import argparse
import gzip
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HEADER_BYTES = 1024  # of llm.c's token files


def own_text():
    """Prose and programs: what git tracks here."""
    patterns = ["*.md", "*.hpp", "*.cpp", "*.cu", "*.cuh", "*.py"]
    names = subprocess.run(["git", "ls-files", *patterns], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return "".join((ROOT / name).read_text() for name in names.splitlines())


def peers():
    """GPT-2's tokenizer in both packages, as the tests of ferrite's have it."""
    sys.path.insert(0, str(ROOT / "tests" / "text"))
    from make_vectors import gpt2

    return gpt2()


def ours(program, text, vocabulary, threads, folder):
    """Seconds and ids."""
    import numpy as np

    out = folder / "ids.bin"
    command = [program, "gpt", "tokens", "--text", text, "--tokenizer", vocabulary, "--out", out, "--overwrite", "--json"]
    environment = dict(os.environ, FERRITE_NUM_THREADS=str(threads))
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        raise SystemExit(f"{program}: {done.stderr.strip()}")
    return json.loads(done.stdout)["seconds"], np.fromfile(out, dtype="<u2", offset=HEADER_BYTES)


def timed(call):
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ferrite", type=Path, default=ROOT / "build/release/src/ferrite")
    parser.add_argument("--text", type=Path, help="a file of UTF-8; default: the text files of this repository")
    parser.add_argument("--threads", default="1", help="of ferrite, such as 1,2; the others have one")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--note", default="", help="about the machine, for the file: what else ran")
    parser.add_argument("--out", type=Path, default=Path("bpe_speed.json"))
    o = parser.parse_args()
    os.environ["RAYON_NUM_THREADS"] = "1"  # tokenizers would take all cores
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    import tiktoken
    import tokenizers

    text = o.text.read_bytes().decode() if o.text else own_text()
    encoding, tokenizer = peers()
    names = {f"ferrite, threads {n}": int(n) for n in o.threads.split(",")}
    seconds = {name: [] for name in [*names, "tiktoken", "tokenizers"]}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        vocabulary, file = folder / "vocab.bpe", folder / "text.txt"
        vocabulary.write_bytes(gzip.decompress((ROOT / "tests/text/vocab.bpe.gz").read_bytes()))
        file.write_bytes(text.encode())
        for number in range(o.rounds):
            took, wanted = timed(lambda: encoding.encode_ordinary(text))
            seconds["tiktoken"].append(took)
            took, encoded = timed(lambda: tokenizer.encode(text))
            seconds["tokenizers"].append(took)
            equal = {"tokenizers": encoded.ids == wanted}
            del encoded
            for side, threads in names.items():
                took, ids = ours(o.ferrite, file, vocabulary, threads, folder)
                seconds[side].append(took)
                equal[side] = ids.tolist() == wanted
            if not all(equal.values()):
                raise SystemExit(f"the ids differ from tiktoken's: {[side for side, same in equal.items() if not same]}")
            print(f"round {number}: " + ", ".join(f"{s} {t[-1]:.3f} s" for s, t in seconds.items()), file=sys.stderr)
    size = len(text.encode())
    median = {side: statistics.median(times) for side, times in seconds.items()}
    rows = [{"side": side, "seconds": seconds[side], "median_seconds": median[side], "bytes_per_second": size / median[side],
             "over_tiktoken": median["tiktoken"] / median[side]} for side in seconds]
    settings = {"text": str(o.text or "files of the repository"), "bytes": size, "tokens": len(wanted), "rounds": o.rounds}
    versions = {"tiktoken": tiktoken.__version__, "tokenizers": tokenizers.__version__, "python": platform.python_version()}
    result = {"settings": settings, "note": o.note, "machine": platform.platform(), "versions": versions, "rows": rows}
    o.out.write_text(json.dumps(result, indent=1) + "\n")
    print(f"{size / 1e6:.1f} MB, {len(wanted)} tokens, equal ids")
    for row in rows:
        print(f"{row['side']:<20} {row['bytes_per_second'] / 1e6:>8.1f} MB/s {row['over_tiktoken']:>8.2f} x tiktoken")


if __name__ == "__main__":
    main()
