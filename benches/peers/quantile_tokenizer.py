"""The tokenizer beside scikit-learn's KBinsDiscretizer and pandas' qcut, on the same table and cores, in one run.

    ./dev bench --peer tokenizer        (or: python3 benches/peers/quantile_tokenizer.py --build build/release)

1,000,000 x 20, 100 bins, exact: f32, which have 9 digits in CSV, and f64, which have 17. Prints a table with the least ratios
that are asked for, and writes JSON. Times are medians; the rounds of the libraries alternate. Needs NumPy, pandas and
scikit-learn in the Python that runs it.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

ROWS, COLUMNS, BINS = 1_000_000, 20, 100
# The work that each peer stands beside, and how many times as fast it is to be.
LIMITS = {"KBinsDiscretizer": ("fit_transform", 8), "qcut": ("fit_transform", 10), "read_csv + qcut": ("csv_to_tokens", 3),
          "read_csv + qcut, 17 digits": ("long_csv_to_tokens", 2)}


def seconds(work):
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def ferrite_times(program, files):
    command = [program, "--benchmark_format=json", "--benchmark_filter=fit_transform|csv"]
    environment = {**os.environ, "FERRITE_TOKENIZER_NPY": files["npy"], "FERRITE_TOKENIZER_CSV": files["csv"],
                   "FERRITE_TOKENIZER_LONG_CSV": files["long.csv"]}
    output = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
    runs = json.loads(output)["benchmarks"]
    return {run["name"].split("/")[1]: run["real_time"] / 1e3 for run in runs}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("build/bench"))
    options = parser.parse_args()
    try:
        import numpy
        import pandas
        import sklearn
        from sklearn.preprocessing import KBinsDiscretizer
    except ImportError as error:
        print(f"no comparison of the tokenizer: {error}")
        return 0
    warnings.filterwarnings("ignore")

    x = numpy.random.default_rng(0).standard_normal((ROWS, COLUMNS), dtype=numpy.float32)
    frame = pandas.DataFrame(x, columns=[f"f{i}" for i in range(COLUMNS)])
    cut = lambda table: [pandas.qcut(table[name], BINS, labels=False) for name in table]
    peers = {
        "KBinsDiscretizer": lambda _: KBinsDiscretizer(BINS, encode="ordinal", subsample=None).fit_transform(x),
        "qcut": lambda _: cut(frame),
        "read_csv + qcut": lambda files: cut(pandas.read_csv(files["csv"])),
        "read_csv + qcut, 17 digits": lambda files: cut(pandas.read_csv(files["long.csv"])),
    }
    times = {}
    with tempfile.TemporaryDirectory() as folder:
        files = {kind: os.path.join(folder, f"table.{kind}") for kind in ("npy", "csv", "long.csv")}
        numpy.save(files["npy"], x)
        frame.to_csv(files["csv"], index=False)
        pandas.DataFrame(numpy.random.default_rng(1).standard_normal((ROWS, COLUMNS))).to_csv(files["long.csv"], index=False)
        for _ in range(options.rounds):
            for name, value in ferrite_times(Path(options.build) / "benches" / "quantile_tokenizer_bench", files).items():
                times.setdefault(name, []).append(value)
            for name, work in peers.items():
                times.setdefault(name, []).append(seconds(lambda: work(files)))
    middle = {name: statistics.median(values) for name, values in times.items()}

    print(f"{ROWS} x {COLUMNS}, {BINS} bins, {os.cpu_count()} cores, medians of {options.rounds}")
    rows = []
    for peer, (ours, least) in LIMITS.items():
        ratio = middle[peer] / middle[ours]
        rows.append({"work": ours, "peer": peer, "ferrite_s": middle[ours], "peer_s": middle[peer], "ratio": ratio, "least": least})
        met = "yes" if ratio >= least else "NO"
        print(f"{ours:<18} {1e3 * middle[ours]:8.1f} ms   {peer:<26} {1e3 * middle[peer]:8.1f} ms   {ratio:5.1f} x, at least {least} x: {met}")
    options.out.mkdir(parents=True, exist_ok=True)
    versions = {"numpy": numpy.__version__, "pandas": pandas.__version__, "sklearn": sklearn.__version__}
    machine = {"machine": platform.machine(), "cores": os.cpu_count(), "load": os.getloadavg()}
    result = {"rows": rows, "times": times, "versions": versions, "machine": machine}
    (options.out / "tokenizer_peers.json").write_text(json.dumps(result, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
