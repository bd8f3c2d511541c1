#!/usr/bin/env python3
"""Compares `ferrite tokenize` with np.quantile and np.searchsorted, scikit-learn's KBinsDiscretizer, pandas' qcut and
the rule of Auto-Tabular's kernel, on random and nasty columns. Tokens must be equal, edges too, bit by bit."""

import argparse
import json
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
from safetensors import safe_open

warnings.filterwarnings("ignore")
METHODS = ("linear", "inverted_cdf", "averaged_inverted_cdf")


def columns(rows, dtype, seed):
    """Finite columns, as a matrix: smooth, ties, constant, a heavy value, a heavy tail, a grid, denormals, big and small."""
    rng = np.random.default_rng(seed)
    normal = rng.standard_normal(rows)
    tiny = np.finfo(dtype).smallest_subnormal
    made = [
        normal,
        np.round(2 * normal),
        np.full(rows, 3.25),
        np.where(rng.random(rows) < 0.7, 0.0, normal),
        np.exp(8 * normal),
        np.arange(rows) / 8.0,
        rng.integers(-20, 20, rows) * tiny,
        rng.choice([-1e30, 1e-30, 1e30], rows) * rng.random(rows),
        np.where(rng.random(rows) < 0.5, -0.0, 0.0),
    ]
    return np.stack(made, axis=1).astype(dtype)


class Ferrite:
    def __init__(self, program, folder, backend):
        self.program, self.folder, self.backend = program, Path(folder), backend

    def run(self, *arguments):
        command = [self.program, "tokenize", *map(str, arguments), "--quiet"]
        subprocess.run(command, check=True, capture_output=True, text=True)

    def fit_transform(self, x, bins, *options):
        """(edges of every column, tokens, number of the missing token)"""
        table, fit, out = (self.folder / name for name in ("x.npy", "fit.safetensors", "tokens"))
        np.save(table, x)
        options = (*options, "--integer-categories", 0, "--backend", self.backend)
        self.run("fit", table, "--bins", bins, "--out", fit, "--tokens", out, "--overwrite", *options)
        index = json.loads((out / "index.json").read_text())
        tokens = np.concatenate([np.load(out / name) for name in index["shards"]])
        with safe_open(fit, "numpy") as file:
            lengths = [c["edges"] for c in json.loads(file.metadata()["tokenizer"])["columns"]]
            edges = np.split(file.get_tensor("edges"), np.cumsum(lengths)[:-1])
        return edges, tokens.astype(np.int64), index["missing_token"]


class Check:
    def __init__(self):
        self.passed, self.failed = 0, 0

    def equal(self, what, got, want):
        got, want = np.asarray(got), np.asarray(want)
        if got.shape == want.shape and np.array_equal(got, want, equal_nan=got.dtype.kind == "f"):
            self.passed += 1
            return
        self.failed += 1
        place = np.argwhere(got != want)[:3].tolist() if got.shape == want.shape else f"{got.shape} and {want.shape}"
        print(f"{what}: differs at {place}")


def against_numpy(check, ferrite, x, bins, what):
    for method in METHODS:
        for closed, side in (("left", "right"), ("right", "left")):
            options = ("--method", method, "--closed", closed, "--duplicates", "keep")
            edges, tokens, missing = ferrite.fit_transform(x, bins, *options)
            for c, column in enumerate(x.T.astype(np.float64)):
                present = column[~np.isnan(column)]
                name = f"numpy {method} {closed} {what} column {c}"
                if len(present) == 0:
                    check.equal(name, tokens[:, c], np.full(len(column), missing))
                    continue
                wanted = np.quantile(present, np.arange(bins + 1) / bins, method=method)[1:-1]
                check.equal(name + " edges", edges[c], wanted)
                found = np.searchsorted(wanted, column, side=side)
                check.equal(name, tokens[:, c], np.where(np.isnan(column), missing, found))


def against_sklearn(check, ferrite, x, bins, what):
    from sklearn.preprocessing import KBinsDiscretizer

    for method, like in (("averaged_inverted_cdf", "sklearn"), ("linear", "sklearn-linear")):
        peer = KBinsDiscretizer(bins, encode="ordinal", subsample=None, quantile_method=method)
        tokens = ferrite.fit_transform(x, bins, "--like", like)[1]
        for c in range(x.shape[1]):  # one by one: sklearn refuses columns of one sample otherwise
            wanted = peer.fit_transform(x[:, c : c + 1])[:, 0]
            check.equal(f"{like} {what} column {c}", tokens[:, c], wanted.astype(np.int64))


def against_pandas(check, ferrite, x, bins, what):
    import pandas

    tokens, missing = ferrite.fit_transform(x, bins, "--like", "pandas")[1:]
    for c, column in enumerate(x.T):
        present = column[~np.isnan(column)]
        if len(present) == 0 or np.all(present == present[0]):
            continue  # qcut has no bins for a constant
        codes = pandas.qcut(pandas.Series(column), bins, labels=False, duplicates="drop")
        wanted = codes.fillna(missing).to_numpy().astype(np.int64)
        check.equal(f"pandas {what} column {c}", tokens[:, c], wanted)


def against_auto_tabular(check, ferrite, x, bins, what):
    tokens = ferrite.fit_transform(x, bins, "--like", "auto-tabular")[1]
    levels = np.linspace(0, 100, bins + 1)[1:]
    for c, column in enumerate(x.T):
        # The kernel: the first threshold, of f32, that is larger; the last bin if none is.
        thresholds = np.percentile(column.astype(np.float64), levels).astype(np.float32)
        larger = column[:, None] < thresholds[None, :]
        wanted = np.where(larger.any(axis=1), larger.argmax(axis=1), bins - 1)
        check.equal(f"auto-tabular {what} column {c}", tokens[:, c], wanted)


def against_csv_as_parquet(check, ferrite, folder):
    """The same table as CSV and as Parquet has the same tokens. Left out where ferrite or Python cannot read Parquet."""
    try:
        import pandas
        import pyarrow
    except ImportError as error:
        return print(f"left out: {error}")
    rng, rows = np.random.default_rng(3), 700
    frame = pandas.DataFrame({"x": rng.standard_normal(rows), "n": rng.integers(0, 1000, rows)})
    frame["grade"] = rng.integers(0, 4, rows).astype(np.int8)
    frame["hole"] = np.where(rng.random(rows) < 0.3, np.nan, rng.random(rows))
    frame["city"] = rng.choice(["Oslo", "Lima", "Rom,e"], rows)
    frame["coded"] = frame["city"].astype("category")
    frame["day"] = [["2024-01-05", "2024-02-06"][i % 2] for i in range(rows)]
    table = Path(folder) / "table.csv"
    frame.to_csv(table, index=False)
    frame["day"] = pandas.to_datetime(frame["day"]).dt.date
    frame.to_parquet(table.with_suffix(".parquet"), row_group_size=300)
    tokens = []
    for kind in (".csv", ".parquet"):
        out = Path(folder) / f"tokens{kind}"
        options = ("--out", Path(folder) / "fit.safetensors", "--tokens", out, "--chunk-bytes", 9000)
        try:
            ferrite.run("fit", table.with_suffix(kind), "--bins", 20, *options)
        except subprocess.CalledProcessError as error:
            if "without Apache Arrow" in error.stderr:
                return print("left out: this ferrite reads no Parquet")
            raise RuntimeError(error.stderr) from error
        tokens.append(np.load(out / "tokens-00000.npy"))
    check.equal("parquet", *tokens)
    halves = [Path(folder) / f"half-{i}.parquet" for i in range(2)]
    for half, rows_of_it in zip(halves, (frame[:300], frame[300:])):
        rows_of_it.to_parquet(half)
    out = Path(folder) / "tokens of halves"
    ferrite.run("fit", *halves, "--bins", 20, "--out", Path(folder) / "fit.safetensors", "--tokens", out)
    check.equal("parquet in two files", np.load(out / "tokens-00000.npy"), tokens[1])
    parquet_is_read_as_csv_is(check, ferrite, folder)


def parquet_is_read_as_csv_is(check, ferrite, folder):
    """Missing texts and markers, columns of several leaves that are dropped, text that is not UTF-8."""
    import pyarrow
    import pyarrow.parquet

    column = [1.5, -999.0, 2.5, None, 0.5] * 30
    words = ["Oslo", "NA", "", "Lima", "?"] * 30
    pairs = pyarrow.array([{"l": 1, "r": 2}] * 150)
    coded = pyarrow.DictionaryArray.from_arrays([0, 2] * 75, ["a", "never", "null"])
    arrays = {"pairs": pairs, "x": column, "narrow": pyarrow.array(column, pyarrow.float32()), "word": words, "coded": coded}
    table = Path(folder) / "marked.parquet"
    pyarrow.parquet.write_table(pyarrow.table(arrays), table)
    out = Path(folder) / "marked"
    ferrite.run("fit", table, "--out", Path(folder) / "marked.safetensors", "--tokens", out, "--drop", "pairs", "--missing", "?,-999")
    tokens = np.load(out / "tokens-00000.npy")
    index = json.loads((out / "index.json").read_text())
    missing = np.array([[v is None or v == -999] * 2 + [w in ("NA", "", "?"), i % 2 == 1]
                        for i, (v, w) in enumerate(zip(column, words))])
    check.equal("missing values of parquet", tokens == index["missing_token"], missing)
    check.equal("categories of parquet", tokens[:, 2][~missing[:, 2]], np.tile([1, 0], 30))
    check.equal("used words of a dictionary", tokens[::2, 3], np.zeros(75))

    raw = pyarrow.array([b"ok"] * 4 + [b"bad\xff"], pyarrow.binary())
    text = pyarrow.Array.from_buffers(pyarrow.string(), 5, raw.buffers())
    pyarrow.parquet.write_table(pyarrow.table({"t": text}), table)
    try:
        ferrite.run("fit", table, "--out", Path(folder) / "none.safetensors")
        check.equal("text that is not UTF-8", np.array([0]), np.array([1]))
    except subprocess.CalledProcessError as error:
        named = "column 't', row 4" in error.stderr and "must be UTF-8" in error.stderr
        check.equal("text that is not UTF-8", np.array([named]), np.array([True]))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ferrite", required=True, help="path of the program")
    options = parser.parse_args()
    check = Check()
    with tempfile.TemporaryDirectory() as folder:
        against_csv_as_parquet(check, Ferrite(options.ferrite, folder, "cpu"), folder)
        for backend in ("cpu", "reference"):
            ferrite = Ferrite(options.ferrite, folder, backend)
            for rows in (1, 2, 7, 101, 1001) if backend == "cpu" else (101,):
                for bins in (2, 10, 100):
                    for dtype in (np.float32, np.float64):
                        what = f"{rows} rows {bins} bins {np.dtype(dtype).name} {backend}"
                        x = columns(rows, dtype, rows + bins)
                        holes = x.copy()
                        holes[np.random.default_rng(1).random(x.shape) < 0.2] = np.nan
                        holes[:, 1] = np.nan
                        against_numpy(check, ferrite, x, bins, what)
                        against_numpy(check, ferrite, holes, bins, what + " with NaN")
                        against_auto_tabular(check, ferrite, x, bins, what)
                        for peer in (against_sklearn, against_pandas):
                            try:
                                if peer is against_pandas:
                                    peer(check, ferrite, holes, bins, what + " with NaN")
                                if rows > 1:
                                    peer(check, ferrite, x, bins, what)
                            except ImportError as error:
                                print(f"left out: {error}")
    print(f"{check.passed} passed, {check.failed} failed")
    return 1 if check.failed else 0


if __name__ == "__main__":
    sys.exit(main())
